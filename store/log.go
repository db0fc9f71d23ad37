package store

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"pelt/foreign"
	"pelt/internal/outfile"
	"pelt/model"
	"pelt/words"
)

// logFormat is the format of a stored run: JSON lines, each of which ends with the CRC-32C of what stands before
// it: {..., "crc32c": "8 hex digits"}. The first line is the header {"format", "id", "started", "tool", "arguments",
// "plan", "host", "lab"}. Then comes a line {"result": ...} for each finished trial, and {"checkpoint": ...} while a
// long one runs. When a session with the run ends of itself, it writes {"end": ...} and {"summary": ...}, which pelt
// list reads; a name or tags that a user gives it come with one more summary, and with one after each later line.
// Results after the last end are of a session that was cut.
const (
	logFormat  = "pelt/runlog/2"
	logFormats = "pelt/runlog/" // how the name of any version begins
)

// maxLine bounds one line of a log: a trial of a week has some ten series of
// 604 800 values. maxFile bounds what is read into memory.
const (
	maxLine = 256 << 20
	maxFile = 1 << 30
)

type header struct {
	Format    string             `json:"format"`
	ID        string             `json:"id"`
	Started   time.Time          `json:"started"`
	Tool      model.Tool         `json:"tool"`
	Arguments []string           `json:"arguments,omitempty"`
	Plan      model.Plan         `json:"plan"`
	Host      []model.Host       `json:"host"`
	Lab       *model.LabFacts    `json:"lab,omitempty"`
	PathMTU   []model.PathMTU    `json:"path_mtu,omitempty"`
	Router    *model.RouterFacts `json:"router,omitempty"`
}

type end struct {
	Complete bool               `json:"complete"`
	Warnings model.Doubts       `json:"warnings"`
	Router   *model.RouterFacts `json:"router,omitempty"` // in place of the header's
}

// record is a line after the header: exactly one field is set.
type record struct {
	Result     *model.Result     `json:"result,omitempty"`
	Checkpoint *model.Checkpoint `json:"checkpoint,omitempty"`
	End        *end              `json:"end,omitempty"`
	Summary    *Summary          `json:"summary,omitempty"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	sumBegins = `,"crc32c":"`
	sumEnds   = `"}`
	sumBytes  = len(sumBegins) + 8 + len(sumEnds)
)

// encodeLine makes one line of a log of an object that is not empty.
func encodeLine(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	b.Truncate(b.Len() - len("}\n"))
	fmt.Fprintf(&b, "%s%08x%s\n", sumBegins, crc32.Checksum(b.Bytes(), castagnoli), sumEnds)
	return b.Bytes(), nil
}

var (
	errChecksum = errors.New("its checksum differs")
	errNoJSON   = errors.New("it is not JSON")
	errNoRun    = errors.New("holds no run: pelt was ended before it had written the first line")
)

// whole returns nil if a line is as it was written.
func whole(line []byte) error {
	line = bytes.TrimSuffix(line, []byte{'\n'})
	at := max(0, len(line)-sumBytes)
	if string(line[at:]) != fmt.Sprintf("%s%08x%s", sumBegins, crc32.Checksum(line[:at], castagnoli), sumEnds) {
		return errChecksum
	}
	return nil
}

// tail tells how a log ends.
type tail struct {
	good  int64 // length of all lines
	cut   int64 // bytes after them: what was being written when the writer died
	open  bool  // the last line lacks its newline
	label Label
}

// readLog reads a whole stored run. What a dead writer left half written, and lines that are
// damaged, become warnings of the document.
func readLog(r io.Reader, name string) (model.Document, tail, error) {
	d := model.Document{Format: model.RunFormat, Results: []model.Result{}, Findings: []model.Finding{},
		Warnings: model.Doubts{}}
	var t tail
	var open trials
	var damaged []string
	var after int64 // bytes of damaged lines after the last whole one
	in := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		line, err := outfile.ReadLine(in, maxLine)
		if err != nil && !errors.Is(err, io.EOF) {
			return model.Document{}, t, &model.FileError{Name: name, Line: n, Err: err}
		}
		if len(line) == 0 {
			break
		}
		_, err = in.Peek(1)
		last := errors.Is(err, io.EOF)
		if n == 1 {
			if last && !json.Valid(line) {
				break
			}
			if err := readHeader(line, &d); err != nil {
				return model.Document{}, t, &model.FileError{Name: name, Line: 1, Err: err}
			}
		} else {
			if err = whole(line); err != nil && last {
				t.cut = int64(len(line))
				break
			}
			if err == nil {
				err = readRecord(line, &d, &open, &t.label)
			}
			if err != nil {
				damaged = append(damaged, fmt.Sprint(n))
				after += int64(len(line))
				continue
			}
		}
		t.good, after = t.good+after+int64(len(line)), 0
		t.open = line[len(line)-1] != '\n'
	}
	if t.cut > 0 { // nothing whole follows them
		t.cut += after
	} else {
		t.good += after
	}
	if t.good == 0 {
		return model.Document{}, t, &model.FileError{Name: name, Err: errNoRun}
	}
	if cut := open.all(); len(cut) > 0 {
		d.Results = append(d.Results, cut...)
		d.Complete = false
	}
	if len(damaged) > 0 {
		d.Warnings = append(d.Warnings, model.NewReason(model.LinesDamaged, "lines", float64(len(damaged)),
			"first", strings.Join(damaged[:min(len(damaged), 3)], ", ")))
	}
	if t.cut > 0 {
		d.Warnings = append(d.Warnings,
			model.Reason{Code: model.BytesCut, Numbers: map[string]float64{"cut_bytes": float64(t.cut)}})
	}
	return d, t, nil
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// namedFormat returns the format that a line names, "" if it names none.
func namedFormat(line []byte) string {
	var head struct {
		Format string `json:"format"`
	}
	if json.Unmarshal(line, &head) != nil {
		return ""
	}
	return head.Format
}

// checkHeader returns nil if a line, which names a format, is a whole first line of a log.
func checkHeader(line []byte, format string) error {
	switch {
	case format == logFormat:
		if err := whole(line); err != nil {
			return words.Errorf("is damaged, and holds the plan of the run: %w", err)
		}
		return nil
	case strings.HasPrefix(format, logFormats):
		return words.Errorf("format: is %.40q, of another version of pelt; this one reads %s", format, logFormat)
	case !json.Valid(line):
		return words.Errorf("want a stored run of format %s: %w", logFormat, errNoJSON)
	}
	return words.Errorf("format: is %.40q; want %s, as pelt stores runs", format, logFormat)
}

func readHeader(line []byte, d *model.Document) error {
	if err := checkHeader(line, namedFormat(line)); err != nil {
		return err
	}
	var h header
	if err := oneLineJSON(line, &h); err != nil {
		return err
	}
	d.ID, d.Started, d.Tool, d.Arguments, d.Plan, d.Host = h.ID, h.Started, h.Tool, h.Arguments, h.Plan, orEmpty(h.Host)
	d.Lab, d.PathMTU, d.Router = h.Lab, h.PathMTU, h.Router
	return nil
}

// readRecord adds a line after the header to the document. An error leaves the document as it was.
func readRecord(line []byte, d *model.Document, open *trials, label *Label) error {
	var rec record
	if err := oneLineJSON(line, &rec); err != nil {
		return err
	}
	var ended end // if anything follows an end, the run has gone on
	switch {
	case rec.Result != nil:
		if err := rec.Result.Check(); err != nil {
			return fmt.Errorf("result.%w", err)
		}
		open.close(*rec.Result)
		d.Results = append(d.Results, *rec.Result)
	case rec.Checkpoint != nil:
		if len(rec.Checkpoint.Flows) == 0 {
			return errors.New("checkpoint.flows: there are none")
		}
		d.Results = append(d.Results, open.take(*rec.Checkpoint)...)
	case rec.End != nil:
		ended = *rec.End
		if ended.Router != nil {
			d.Router = ended.Router
		}
	case rec.Summary != nil:
		if rec.Summary.Label.Check() == nil {
			*label = rec.Summary.Label
		}
		return nil // all else repeats what the lines before it say
	default:
		return errors.New("want a result, a checkpoint, an end or a summary")
	}
	d.Complete, d.Warnings = ended.Complete, orEmpty(ended.Warnings)
	return nil
}

// oneLineJSON decodes one line of a log.
func oneLineJSON(line []byte, v any) error {
	err := json.Unmarshal(line, v)
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s: want %s, not a JSON %s", kind.Field, kind.Type, kind.Value)
	}
	return err
}

// loadFile reads a run document, a stored run or a file of another tool, whichever the file is.
func loadFile(path string) (model.Document, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return model.Document{}, words.Errorf("run %s: %w: there is no such file", path, ErrNotFound)
	}
	if err != nil {
		return model.Document{}, fmt.Errorf("load run: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return model.Document{}, words.Errorf("run %s: %w: it is a directory", path, ErrNotFound)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return model.Document{}, fmt.Errorf("load run: %w", err)
	}
	if len(b) > maxFile {
		return model.Document{}, &model.FileError{Name: path, Err: words.Errorf("is larger than %d bytes", maxFile)}
	}
	if b, err = foreign.Unpack(b, path, maxFile); err != nil {
		return model.Document{}, err
	}
	if d, ok, err := foreign.Read(b, path); ok {
		return d, err
	}
	first, _, _ := bytes.Cut(b, []byte{'\n'})
	if strings.HasPrefix(namedFormat(first), logFormats) || filepath.Ext(path) == suffix {
		d, _, err := readLog(bytes.NewReader(b), path)
		return d, err
	}
	return model.DecodeDocument(b, path)
}
