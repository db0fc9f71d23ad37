package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"pelt/internal/testenv"
	"pelt/model"
)

func document() model.Document {
	return model.Document{
		Format: model.RunFormat, Started: time.Date(2026, 11, 21, 7, 41, 12, 0,
			time.UTC), Tool: model.Tool{Version: "1"}, Arguments: []string{"curve", "lab:router"},
		Plan: model.Plan{
			Format: model.PlanFormat, Command: "curve", Target: "lab:router", Engine: "auto",
			Flows: []model.Flow{{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver,
				PayloadBytes: 64, Streams: 1}},
			Factors: []model.Factor{{Knob: "payload_bytes",
				Levels: []model.Value{model.Number(64), model.Number(128)}}},
			Design: model.Design{Repeats: 3}, Timing: model.Timing{MeasureSeconds: 1},
		},
		Host: []model.Host{{Node: model.Sender, Name: "a<b"}}, Lab: &model.LabFacts{Topology: "router",
			Nodes: []string{"sender"}},
		PathMTU: []model.PathMTU{{Flow: "up", From: model.Sender, To: model.Receiver, Family: 4, Bytes: 1400,
			PayloadBytes: 1372, Found: model.MTUTold, Probes: 3}},
		Router:  &model.RouterFacts{Node: "router", Source: "ssh://root@192.168.1.1", Model: "a model"},
		Results: []model.Result{}, Findings: []model.Finding{}, Warnings: model.Doubts{},
	}
}

func result(payload, repeat int) model.Result {
	return model.Result{
		Cell: model.Cell{"payload_bytes": model.Number(float64(payload))}, Repeat: repeat, State: model.Valid, Engine: "udp",
		Started: time.Date(2026, 11, 21, 7, 42, repeat, 0,
			time.UTC), Why: model.Reasons{}, Flows: []model.FlowResult{}, Series: []model.Series{},
	}
}

func open(t testing.TB) *Store {
	t.Helper()
	// in memory where that is: a run waits for its disk at each step
	dir, err := os.MkdirTemp("/dev/shm", "pelt-store-")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s, err := Open(filepath.Join(dir, "deep", "data"))
	testenv.Must(t, err)
	return s
}

// stored makes a run of two trials, with an end if findings are given.
func stored(t *testing.T, s *Store, verdicts ...string) string {
	t.Helper()
	r, err := s.Create(document())
	testenv.Must(t, err)
	errs := []error{r.Append(result(64, 0)), r.Append(result(128, 0))}
	for _, v := range verdicts {
		errs = append(errs, r.End(model.Document{Complete: true, Results: make([]model.Result, 2),
			Findings: []model.Finding{{Code: v, Numbers: []model.FindingNumber{}}}}))
	}
	testenv.Must(t, errors.Join(append(errs, r.Close())...))
	return r.ID()
}

func TestRunRoundTrip(t *testing.T) {
	s := open(t)
	if l, err := s.List(); err != nil || len(l) != 0 {
		t.Fatalf("an empty store lists %v, %v", l, err)
	}
	if _, err := os.Stat(s.dir); err == nil {
		t.Error("listing an empty store made its directory")
	}
	id := stored(t, s, "it is fine")
	want := document()
	want.ID, want.Complete = id, true
	want.Results = []model.Result{result(64, 0), result(128, 0)}
	for _, ref := range []string{id, id[:15], "last", s.file(id)} {
		got, err := s.Load(ref)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Load(%q): %v\n got %+v\nwant %+v", ref, err, got, want)
		}
	}
	b, err := model.EncodeDocument(want)
	testenv.Must(t, err)
	path := filepath.Join(t.TempDir(), "out.json")
	testenv.Must(t, os.WriteFile(path, b, 0o600))
	got, err := s.Load(path)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Load of a --json document: %v\n got %+v\nwant %+v", err, got, want)
	}
}

func TestIDs(t *testing.T) {
	base := time.Date(2026, 11, 21, 7, 41, 0, 0, time.UTC)
	var ids []string
	for _, d := range []time.Duration{0, 2 * time.Millisecond, time.Second, 59*time.Second + 999*time.Millisecond,
		time.Minute, time.Hour} {
		ids = append(ids, idAt(base.Add(d), 0))
	}
	if ids[0] != "20261121-0741-000" || !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("ids are not in order of time: %q", ids)
	}
	if got := idAt(base.Add(59999*time.Millisecond), 40); got != "20261121-0742-017" {
		t.Errorf("an id past the minute's last: got %q, want 20261121-0742-017", got)
	}
	for id, want := range map[string]bool{"20261121-0741-k3f": true, "20261121-0741-k3l": false,
		"20261321-0741-k3f": false, "x": false, "../../etc-passwd0": false, "": false} {
		if validID(id) != want {
			t.Errorf("validID(%q) = %v", id, !want)
		}
	}
	s := open(t)
	a, b := stored(t, s), stored(t, s)
	if a >= b {
		t.Errorf("two runs of one moment: %q, %q", a, b)
	}
}

// Every way a writer can die leaves a file that loads and resumes.
func TestCutAnywhere(t *testing.T) {
	s := open(t)
	id := stored(t, s, "done")
	whole, err := os.ReadFile(s.file(id))
	testenv.Must(t, err)
	headerEnd := bytes.IndexByte(whole, '\n')
	for cut := range len(whole) + 1 {
		testenv.Must(t, os.WriteFile(s.file(id), whole[:cut], 0o600))
		doc, err := s.Load(id)
		if cut < headerEnd {
			if err == nil {
				t.Fatalf("cut at %d inside the header: no error", cut)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		r, resumed, err := s.Resume(id)
		if err != nil {
			t.Fatalf("cut at %d: resume: %v", cut, err)
		}
		if len(resumed.Results) != len(doc.Results) || resumed.Complete != doc.Complete {
			t.Fatalf("cut at %d: Resume and Load differ", cut)
		}
		testenv.Must(t, errors.Join(r.Append(result(128, 2)), r.Close()))
		again, err := s.Load(id)
		if err != nil || len(again.Results) != len(doc.Results)+1 || again.Complete || len(again.Findings) != 0 ||
			len(again.Warnings) != 0 {
			t.Fatalf("cut at %d, resumed: %v, %d results, want %d and no end\n%+v", cut, err, len(again.Results),
				len(doc.Results)+1, again)
		}
	}
}

// Whatever becomes of one byte, all other lines are read, and a doubt says which line is not.
func TestDamagedByte(t *testing.T) {
	s := open(t)
	id := stored(t, s, "done")
	whole, err := os.ReadFile(s.file(id))
	testenv.Must(t, err)
	begin := bytes.IndexByte(whole, '\n') + 1
	second := begin + bytes.IndexByte(whole[begin:], '\n') // of the first result, its newline
	for at := begin; at < second; at++ {
		damaged := bytes.Clone(whole)
		damaged[at] ^= 1
		testenv.Must(t, os.WriteFile(s.file(id), damaged, 0o600))
		files := testenv.OpenFiles()
		doc, err := s.Load(id)
		if err != nil || len(doc.Results) != 1 || len(doc.Warnings) != 1 || !doc.Complete {
			t.Fatalf("byte %d: %v, %d results, warnings %v", at, err, len(doc.Results), doc.Warnings)
		}
		if now := testenv.OpenFiles(); at == begin && now > files {
			t.Fatalf("%d files are open after a run was loaded, %d before", now, files)
		}
		if first := doc.Warnings[0].Names["first"]; first != "2" {
			t.Fatalf("byte %d: %v, want line 2", at, doc.Warnings[0])
		}
	}
	r, doc, err := s.Resume(id)
	if err != nil || len(doc.Results) != 1 {
		t.Fatalf("Resume: %v, %d results", err, len(doc.Results))
	}
	testenv.Must(t, errors.Join(r.Append(result(64, 0)), r.Close()))
	if doc, err := s.Load(id); err != nil || len(doc.Results) != 2 || len(doc.Warnings) != 1 {
		t.Errorf("after the missing trial was made again: %v, %d results, warnings %v", err, len(doc.Results),
			doc.Warnings)
	}
	newer, err := encodeLine(map[string]int{"later": 1}) // of a version to come
	testenv.Must(t, err)
	whole = append(whole, newer...)
	testenv.Must(t, os.WriteFile(s.file(id), whole, 0o600))
	if r, _, err = s.Resume(id); err != nil {
		t.Fatal(err)
	}
	testenv.Must(t, errors.Join(r.Append(result(64, 0)), r.Close()))
	if kept, err := os.ReadFile(s.file(id)); err != nil || !bytes.HasPrefix(kept, whole) {
		t.Errorf("a last line that nobody understands was written over: %v", err)
	}
}

// A document of format 1 stays readable.
func TestVersion1(t *testing.T) {
	var s Store
	d, err := s.Load(filepath.Join("testdata", "version1", "run.json"))
	testenv.Must(t, err)
	if len(d.Results) != 2 || d.Plan.Format != model.PlanFormat || d.Plan.Timing.MeasureSeconds != 1 ||
		len(d.Plan.Factors[0].Levels) != 2 ||
		d.Plan.Flows[0].PayloadBytes != 64 || !d.Results[1].Why.Has(model.NothingSent) ||
		d.Findings[0].Text == "" {
		t.Errorf("read as %+v", d)
	}
}

func FuzzReadLog(f *testing.F) {
	log, err := encodeLine(header{Format: logFormat})
	testenv.Must(f, err)
	f.Add(append(log, log...))
	f.Fuzz(func(t *testing.T, b []byte) {
		doc, tail, err := readLog(bytes.NewReader(b), "f")
		if tail.good+tail.cut > int64(len(b)) {
			t.Fatalf("%+v of %d bytes", tail, len(b))
		}
		if err != nil {
			return
		}
		// What was read is what is left when the cut part is taken away.
		again, rest, err := readLog(bytes.NewReader(b[:tail.good]), "f")
		if err != nil || rest.cut != 0 || len(again.Results) != len(doc.Results) {
			t.Fatalf("without its cut tail: %v, %+v, %d results of %d", err, rest, len(again.Results), len(doc.Results))
		}
		if line, err := encodeLine(model.Finite(record{Result: &model.Result{State: model.Valid}})); err != nil ||
			!json.Valid(line) || whole(line) != nil || bytes.Count(line, []byte{'\n'}) != 1 {
			t.Fatalf("a line is %q, %v", line, err)
		}
	})
}
