// Package foreign reads and writes the files of other tools: iperf3's JSON and flent's data files.
//
// Bytes come in, run documents go out, and the reverse for flent. A document of another tool holds what that tool
// wrote and no more: a figure that a file lacks is absent. It opens no file and says no sentence but what is wrong with
// one.
package foreign

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"

	"pelt/model"
	"pelt/words"
)

// Names of tools, as model.Tool has them.
const (
	Iperf3 = "iperf3"
	Flent  = "flent"
)

// mostTests bounds the tests that one file may hold, and mostFlows the flows of a test.
const (
	mostTests = model.MaxRepeats
	mostFlows = 512
)

// Unpack returns the content of a file that gzip or bzip2 made, and any other as it is. most bounds it.
func Unpack(b []byte, name string, most int) ([]byte, error) {
	var r io.Reader
	var err error
	switch {
	case bytes.HasPrefix(b, []byte{0x1f, 0x8b}):
		r, err = gzip.NewReader(bytes.NewReader(b))
	case bytes.HasPrefix(b, []byte("BZh")):
		r = bzip2.NewReader(bytes.NewReader(b))
	default:
		return b, nil
	}
	if err == nil {
		b, err = io.ReadAll(io.LimitReader(r, int64(most)+1))
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, &model.FileError{Name: name, Err: words.Errorf("the compressed file is cut short")}
	case err != nil:
		return nil, &model.FileError{Name: name, Err: words.Errorf("cannot be unpacked: %v", err)}
	case len(b) > most:
		return nil, &model.FileError{Name: name, Err: words.Errorf("is larger than %d bytes when unpacked", most)}
	}
	return b, nil
}

// Read reads the unpacked content of a file of another tool. ok is false if it is of none.
func Read(b []byte, name string) (d model.Document, ok bool, err error) {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	var read func(*reader) (*model.Document, error)
	switch firstKey(b) {
	case "start", "event", "intervals", "error":
		read = readIperf3
	case "metadata", "raw_values", "results", "version", "x_values":
		if read = readFlent; namesFormat(b) {
			return d, false, nil
		}
	default:
		return d, false, nil
	}
	b = numbers(b)
	r := &reader{name: name, text: b, dec: json.NewDecoder(bytes.NewReader(b))}
	out, err := read(r)
	if err != nil {
		return d, true, err
	}
	out.ID = name // nothing else tells two files apart
	return *out, true, nil
}

// firstKey is the first name in the JSON object that a text begins with.
func firstKey(b []byte) string {
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	key, _ := dec.Token()
	name, _ := key.(string)
	return name
}

// namesFormat reports whether a JSON object is one of pelt's own.
func namesFormat(b []byte) bool {
	var head struct {
		Format string `json:"format"`
	}
	return json.NewDecoder(bytes.NewReader(b)).Decode(&head) == nil && head.Format != ""
}

// numbers puts null in the place of what C prints for no number, as iperf3 does of 0/0: nan, -nan, inf, -inf.
func numbers(b []byte) []byte {
	var out []byte
	inText, from := false, 0
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '-' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			end := i + 1
			for end < len(b) && (b[end] >= 'a' && b[end] <= 'z' || b[end] >= 'A' && b[end] <= 'Z') {
				end++
			}
			switch string(bytes.ToLower(bytes.TrimPrefix(b[i:end], []byte{'-'}))) {
			case "nan", "inf", "infinity":
				out, from = append(append(out, b[from:i]...), "null"...), end
			}
			i = end - 1
		}
	}
	return append(out, b[from:]...)
}

// reader reads the JSON values of a file, one after another.
type reader struct {
	name string
	text []byte
	dec  *json.Decoder
	from int64 // where the value begins that was decoded last
}

func (r *reader) decode(v any) error {
	r.from = r.next()
	return r.dec.Decode(v)
}

// next is where what follows begins, behind space and marks; the end of what was read, if nothing follows.
func (r *reader) next() int64 {
	offset := r.dec.InputOffset()
	rest := bytes.TrimLeft(r.text[offset:], " \t\r\n,:")
	if len(rest) == 0 {
		return offset
	}
	return int64(len(r.text) - len(rest))
}

// cut reports whether an error is that the text ends too early.
func cut(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// wrong is what is wrong where the reader is.
func (r *reader) wrong(err error) error {
	return model.WrongJSON(r.name, r.text, r.from, r.next(), err)
}

// unfit is what is wrong with the value that was decoded last as a whole.
func (r *reader) unfit(err error) error { return model.WrongJSON(r.name, r.text, r.from, r.from, err) }

// more reports whether anything follows but space.
func (r *reader) more() bool { return len(bytes.TrimSpace(r.text[r.dec.InputOffset():])) > 0 }

// object reads a JSON object, and gives the decoder to each for the value of each name.
func (r *reader) object(each func(key string) error) error {
	return r.delimited('{', func() error {
		key, err := r.dec.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		return each(name)
	})
}

// list reads a JSON list, and gives the decoder to each for each value. A null is an empty one.
func (r *reader) list(each func() error) error { return r.delimited('[', each) }

func (r *reader) delimited(open json.Delim, each func() error) error {
	t, err := r.dec.Token()
	if err != nil || t == nil {
		return err
	}
	if t != open {
		if open == '[' {
			return words.Errorf("want a list, not %v", t)
		}
		return words.Errorf("want an object, not %v", t)
	}
	for r.dec.More() {
		if err := each(); err != nil {
			return err
		}
	}
	_, err = r.dec.Token()
	return err
}

func (r *reader) skip() error {
	var ignored json.RawMessage
	return r.decode(&ignored)
}

// document is a run of another tool, without trials.
func document(tool, version string) *model.Document {
	return &model.Document{Format: model.RunFormat, Tool: model.Tool{Name: tool, Version: clip(version)},
		Host: []model.Host{}, Results: []model.Result{}, Findings: []model.Finding{}, Warnings: model.Doubts{},
		Complete: true}
}

// add appends a trial as one more repeat of its cell.
func add(d *model.Document, trial model.Result) {
	for _, r := range d.Results {
		if r.Cell.Equal(trial.Cell) {
			trial.Repeat++
		}
	}
	if trial.State != model.Valid {
		d.Complete = false
	}
	d.Results = append(d.Results, trial)
}

// mostFigure is the largest figure that is taken from a file, and leastSeconds the shortest time: what is made of them
// is finite.
const (
	mostFigure   = 1e18
	leastSeconds = 1e-9
)

// known returns a number that a file has, if it can be a figure.
func known(p *float64) (v float64, ok bool) {
	if p == nil || !(*p >= 0 && *p <= mostFigure) {
		return 0, false
	}
	return *p, true
}

// lasting returns a time in seconds that a file has, if there are rates over it.
func lasting(p *float64) (seconds float64, ok bool) {
	seconds, ok = known(p)
	return seconds, ok && seconds >= leastSeconds
}

// mostCount is the largest count that is taken from a file: sums of some stay in 64 bits.
const mostCount = 1e15

func count(p *float64) (n uint64, ok bool) {
	v, ok := known(p)
	if !ok || v > mostCount {
		return 0, false
	}
	return uint64(v), true
}

const mostText = 200

// clip keeps a text of a file short, and in one line.
func clip(s string) string {
	runes := []rune(s)
	if len(runes) > mostText {
		runes = append(runes[:mostText], '…')
	}
	return model.PrintableText(string(runes))
}
