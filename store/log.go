package store

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"pelt/model"
)

// maxLine bounds one line of a log: a trial of a week has some ten series of
// 604 800 values. maxFile bounds what is read into memory.
const (
	maxLine = 256 << 20
	maxFile = 1 << 30
)

type header struct {
	Format  string             `json:"format"`
	ID      string             `json:"id"`
	Started time.Time          `json:"started"`
	Tool    model.Tool         `json:"tool"`
	Plan    model.Plan         `json:"plan"`
	Host    []model.Host       `json:"host"`
	Lab     *model.LabFacts    `json:"lab,omitempty"`
	PathMTU []model.PathMTU    `json:"path_mtu,omitempty"`
	Router  *model.RouterFacts `json:"router,omitempty"`
}

type end struct {
	Complete bool               `json:"complete"`
	Findings []model.Finding    `json:"findings"`
	Warnings []string           `json:"warnings"`
	Router   *model.RouterFacts `json:"router,omitempty"` // in place of the header's
}

// record is a line after the header: exactly one field is set.
type record[R any] struct {
	Result     *R                `json:"result,omitempty"`
	Checkpoint *model.Checkpoint `json:"checkpoint,omitempty"`
	End        *end              `json:"end,omitempty"`
}

// encodeLine makes the one line that a single write puts on the disk.
func encodeLine(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// tail tells how a log ends.
type tail struct {
	good int64 // length of all whole lines
	cut  int64 // bytes after them: what was being written when the writer died
	open bool  // the last whole line lacks its newline
}

// scan calls visit for each line of a log with its number from 1. A last line
// that is not JSON was cut and is left out; any other is an error that names
// the line. An error of visit ends the scan.
func scan(r io.Reader, name string, visit func(n int, line []byte) error) (t tail, err error) {
	in := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		raw, err := readLine(in)
		if len(raw) == 0 && errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return t, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		line := bytes.TrimSpace(raw)
		if !json.Valid(line) {
			if _, more := in.Peek(1); more == io.EOF {
				t.cut = int64(len(raw))
				return t, nil
			}
			return t, fmt.Errorf("%s:%d: is damaged: not a line of JSON", name, n)
		}
		if err := visit(n, line); err != nil {
			return t, err
		}
		t.good += int64(len(raw))
		t.open = raw[len(raw)-1] != '\n'
	}
}

// readLine returns the next line with its newline; at the end of the input
// io.EOF comes with what is left.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, fmt.Errorf("is longer than %d bytes", maxLine)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// readLog reads a whole stored run. What a dead writer left half written
// becomes a warning of the document.
func readLog(r io.Reader, name string) (model.Document, tail, error) {
	d := model.Document{Format: model.RunFormat, Results: []model.Result{}, Findings: []model.Finding{}, Warnings: []string{}}
	var open trials
	t, err := scan(r, name, func(n int, line []byte) error {
		at := fmt.Sprintf("%s:%d", name, n)
		if n == 1 {
			return readHeader(line, at, &d)
		}
		var rec record[model.Result]
		if err := decodeRecord(line, at, &rec); err != nil {
			return err
		}
		if rec.Checkpoint != nil {
			if d.Results = append(d.Results, open.take(*rec.Checkpoint)...); len(rec.Checkpoint.Flows) == 0 {
				return fmt.Errorf("%s: checkpoint.flows: there are none", at)
			}
			rec.End = &end{}
		}
		if rec.Result != nil {
			if err := rec.Result.Check(); err != nil {
				return fmt.Errorf("%s: result.%w", at, err)
			}
			open.close(*rec.Result)
			d.Results = append(d.Results, *rec.Result)
			rec.End = &end{} // whatever ended before has gone on
		}
		if rec.End.Router != nil {
			d.Router = rec.End.Router
		}
		d.Complete, d.Findings, d.Warnings = rec.End.Complete, orEmpty(rec.End.Findings), orEmpty(rec.End.Warnings)
		return nil
	})
	if err != nil {
		return model.Document{}, t, err
	}
	if t.good == 0 {
		return model.Document{}, t, fmt.Errorf("%s: holds no run: its writer was cut before the first line was whole", name)
	}
	if cut := open.all(); len(cut) > 0 {
		d.Results = append(d.Results, cut...)
		d.Complete = false
	}
	if t.cut > 0 {
		d.Warnings = append(d.Warnings, fmt.Sprintf("the stored run was cut while it was written; its last %d bytes are dropped", t.cut))
	}
	return d, t, nil
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func readHeader(line []byte, at string, d *model.Document) error {
	var h header
	if err := oneLineJSON(line, at, &h); err != nil {
		return err
	}
	if h.Format != LogFormat {
		return fmt.Errorf("%s: format: is %.40q; this pelt reads %s", at, h.Format, LogFormat)
	}
	d.ID, d.Started, d.Tool, d.Plan, d.Host, d.Lab = h.ID, h.Started, h.Tool, h.Plan, orEmpty(h.Host), h.Lab
	d.PathMTU, d.Router = h.PathMTU, h.Router
	return nil
}

func decodeRecord[R any](line []byte, at string, rec *record[R]) error {
	if err := oneLineJSON(line, at, rec); err != nil {
		return err
	}
	set := 0
	for _, is := range []bool{rec.Result != nil, rec.Checkpoint != nil, rec.End != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		return fmt.Errorf("%s: want a result, a checkpoint or an end", at)
	}
	return nil
}

// oneLineJSON decodes one line of a log, whose place in the file is at.
func oneLineJSON(line []byte, at string, v any) error {
	err := json.Unmarshal(line, v)
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Errorf("%s: %s: want %s, not a JSON %s", at, kind.Field, kind.Type, kind.Value)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	return nil
}

// loadFile reads a run document or a stored run, whichever the file is.
func loadFile(path string) (model.Document, error) {
	f, err := os.Open(path)
	if err != nil {
		return model.Document{}, fmt.Errorf("load run: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return model.Document{}, fmt.Errorf("load run: %w", err)
	}
	if len(b) > maxFile {
		return model.Document{}, fmt.Errorf("load run: %s is larger than %d bytes", path, maxFile)
	}
	return decode(b, path)
}

func decode(b []byte, name string) (model.Document, error) {
	var head struct {
		Format string `json:"format"`
	}
	first, _, _ := bytes.Cut(b, []byte{'\n'})
	if json.Unmarshal(first, &head) == nil && head.Format == LogFormat || filenameIsLog(name) {
		d, _, err := readLog(bytes.NewReader(b), name)
		return d, err
	}
	return model.DecodeDocument(b, name)
}
