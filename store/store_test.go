package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pelt/model"
)

func document() model.Document {
	return model.Document{
		Format: model.RunFormat, Started: time.Date(2026, 11, 21, 7, 41, 12, 0, time.UTC), Tool: model.Tool{Version: "1"},
		Plan: model.Plan{
			Format: model.PlanFormat, Command: "curve", Target: "lab:router", Engine: "auto",
			Flows:   []model.Flow{{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, PayloadBytes: 64, Streams: 1}},
			Factors: []model.Factor{{Knob: "payload_bytes", Levels: []model.Value{model.Number(64), model.Number(128)}}},
			Design:  model.Design{Kind: "grid", Repeats: 3}, Timing: model.Timing{MeasureSeconds: 1},
		},
		Host: []model.Host{{Node: model.Sender, Name: "a<b"}}, Lab: &model.LabFacts{Topology: "router", Nodes: []string{"sender"}, Backends: []string{}},
		PathMTU: []model.PathMTU{{Flow: "up", From: model.Sender, To: model.Receiver, Family: 4, Bytes: 1400, PayloadBytes: 1372, Found: model.MTUTold, Probes: 3}},
		Router:  &model.RouterFacts{Node: "router", Source: "ssh://root@192.168.1.1", Model: "a model"},
		Results: []model.Result{}, Findings: []model.Finding{}, Warnings: []string{},
	}
}

func result(payload, repeat int) model.Result {
	return model.Result{
		Cell: model.Cell{"payload_bytes": model.Number(float64(payload))}, Repeat: repeat, State: model.Valid, Engine: "udp",
		Started: time.Date(2026, 11, 21, 7, 42, repeat, 0, time.UTC), Flows: []model.FlowResult{}, Series: []model.Series{},
	}
}

func open(t *testing.T) *Store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "deep", "data"))
}

// openAt opens a store that waits for its index however busy the machine is.
func openAt(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	s.indexTime = 3 * time.Minute
	return s
}

// stored makes a run of two trials, with an end if findings are given.
func stored(t *testing.T, s *Store, verdicts ...string) string {
	t.Helper()
	r, err := s.Create(document())
	if err != nil {
		t.Fatal(err)
	}
	errs := []error{r.Append(result(64, 0)), r.Append(result(128, 0))}
	for _, v := range verdicts {
		errs = append(errs, r.End(model.Document{Complete: true, Findings: []model.Finding{{Kind: "verdict", Text: v, Values: map[string]float64{}}}}))
	}
	if err := errors.Join(append(errs, r.Close())...); err != nil {
		t.Fatal(err)
	}
	return r.ID()
}

func TestRunRoundTrip(t *testing.T) {
	s := open(t)
	id := stored(t, s, "it is fine")
	want := document()
	want.ID, want.Complete = id, true
	want.Results = []model.Result{result(64, 0), result(128, 0)}
	want.Findings = []model.Finding{{Kind: "verdict", Text: "it is fine", Values: map[string]float64{}}}
	for _, ref := range []string{id, id[:15], "last", s.file(id)} {
		got, err := s.Load(ref)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Load(%q): %v\n got %+v\nwant %+v", ref, err, got, want)
		}
	}
	b, err := model.EncodeDocument(want)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "out.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := s.Load(path)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Load of a --json document: %v\n got %+v\nwant %+v", err, got, want)
	}
}

func TestIDs(t *testing.T) {
	base := time.Date(2026, 11, 21, 7, 41, 0, 0, time.UTC)
	var ids []string
	for _, d := range []time.Duration{0, 2 * time.Millisecond, time.Second, 59*time.Second + 999*time.Millisecond, time.Minute, time.Hour} {
		ids = append(ids, idAt(base.Add(d), 0))
	}
	if ids[0] != "20261121-0741-000" || !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("ids are not in order of time: %q", ids)
	}
	if got := idAt(base.Add(59999*time.Millisecond), 40); got != "20261121-0742-017" {
		t.Errorf("an id past the minute's last: got %q, want 20261121-0742-017", got)
	}
	for id, want := range map[string]bool{"20261121-0741-k3f": true, "20261121-0741-k3l": false, "20261321-0741-k3f": false, "x": false, "../../etc-passwd0": false, "": false} {
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

func TestFindRefuses(t *testing.T) {
	s := open(t)
	for _, ref := range []string{"last", "20", ""} {
		if _, err := s.Load(ref); !errors.Is(err, ErrNotFound) {
			t.Errorf("Load(%q) of an empty store: %v, want ErrNotFound", ref, err)
		}
	}
	a, b := stored(t, s), stored(t, s)
	if _, err := s.Load(a[:10]); err == nil || !strings.Contains(err.Error(), a) || !strings.Contains(err.Error(), b) {
		t.Errorf("Load of an ambiguous prefix: %v, want both ids named", err)
	}
	for _, ref := range []string{"nothing", "../x.jsonl", "/nowhere/x.json"} {
		if _, err := s.Load(ref); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("Load(%q): %v", ref, err)
		}
	}
	if _, _, err := s.Resume("./x.json"); err == nil {
		t.Error("a file was resumed")
	}
}

// Every way a writer can die leaves a file that loads and resumes.
func TestCutAnywhere(t *testing.T) {
	s := open(t)
	id := stored(t, s, "done")
	whole, err := os.ReadFile(s.file(id))
	if err != nil {
		t.Fatal(err)
	}
	headerEnd := bytes.IndexByte(whole, '\n')
	for cut := range len(whole) + 1 {
		if err := os.WriteFile(s.file(id), whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
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
		if err := errors.Join(r.Append(result(128, 2)), r.Close()); err != nil {
			t.Fatal(err)
		}
		again, err := s.Load(id)
		if err != nil || len(again.Results) != len(doc.Results)+1 || again.Complete || len(again.Findings) != 0 || len(again.Warnings) != 0 {
			t.Fatalf("cut at %d, resumed: %v, %d results, want %d and no end\n%+v", cut, err, len(again.Results), len(doc.Results)+1, again)
		}
	}
}

func TestTornTail(t *testing.T) {
	s := open(t)
	id := stored(t, s)
	whole, err := os.ReadFile(s.file(id))
	if err != nil {
		t.Fatal(err)
	}
	// What a power cut leaves on file systems that grow a file before its data.
	if err := os.WriteFile(s.file(id), append(whole, make([]byte, 4096)...), 0o600); err != nil {
		t.Fatal(err)
	}
	doc, err := s.Load("last")
	if err != nil || len(doc.Results) != 2 || len(doc.Warnings) != 1 {
		t.Errorf("zeros at the end: %v, %d results, warnings %q", err, len(doc.Results), doc.Warnings)
	}
}

func TestDamageIsNamed(t *testing.T) {
	s := open(t)
	id := stored(t, s, "done")
	whole, err := os.ReadFile(s.file(id))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(whole), "\n")
	for name, c := range map[string]struct{ text, want string }{
		"middle not JSON": {lines[0] + "{\"res\n" + lines[2], ":2: is damaged: not a line of JSON"},
		"unknown record":  {lines[0] + "{\"x\":1}\n", ":2: want a result, a checkpoint or an end"},
		"wrong type":      {lines[0] + `{"result":{"repeat":"x"}}` + "\n", ":2: result.repeat: want int, not a JSON string"},
		"bad state":       {lines[0] + `{"result":{"state":"x"}}` + "\n", `:2: result.state: want valid, invalid or aborted, not "x"`},
		"no header":       {lines[1], `:1: format: is ""; this pelt reads pelt/runlog/1`},
		"later format":    {`{"format":"pelt/runlog/2"}` + "\n", `:1: format: is "pelt/runlog/2"; this pelt reads pelt/runlog/1`},
		"empty":           {"", ": holds no run: its writer was cut before the first line was whole"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(s.file(id), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			want := s.file(id) + c.want
			if _, err := s.Load(id); err == nil || err.Error() != want {
				t.Errorf("Load:\n got %v\nwant %s", err, want)
			}
			if _, _, err := s.Resume(id); err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("Resume:\n got %v\nwant ... %s", err, want)
			}
			if list, err := s.List(); err != nil || len(list) != 1 || list[0].State != Damaged || list[0].Headline == "" {
				if name != "bad state" && name != "wrong type" { // a list does not read results
					t.Errorf("List: %v %+v, want one damaged run", err, list)
				}
			}
			if kept, _ := os.ReadFile(s.file(id)); string(kept) != c.text {
				t.Errorf("reading changed a damaged file: %q", kept)
			}
		})
	}
}

func TestOneWriter(t *testing.T) {
	s := open(t)
	r, err := s.Create(document())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Resume("last"); !errors.Is(err, ErrBusy) {
		t.Errorf("Resume of a run that is being written: %v, want ErrBusy", err)
	}
	if list, err := s.List(); err != nil || len(list) != 1 || list[0].State != Running {
		t.Errorf("List: %v %+v, want one running", err, list)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Append(result(64, 0)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Append after Close: %v", err)
	}
	again, _, err := s.Resume("last")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(again.Close(), again.Close()); err != nil {
		t.Error(err)
	}
}

// childEnv makes this test binary a writer that dies in the middle.
const childEnv = "PELT_STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		child(dir)
	}
	os.Exit(m.Run())
}

// child stores two trials, says so, and waits to be killed while it holds the run.
func child(dir string) {
	s, err := Open(dir)
	if err != nil {
		panic(err)
	}
	r, err := s.Create(document())
	if err != nil {
		panic(err)
	}
	if err := errors.Join(r.Append(result(64, 0)), r.Append(result(128, 0))); err != nil {
		panic(err)
	}
	fmt.Println(r.ID())
	select {}
}

func TestKilledWriter(t *testing.T) {
	s := open(t)
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childEnv+"="+s.dir)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var id string
	if _, err := fmt.Fscanln(out, &id); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Resume(id); !errors.Is(err, ErrBusy) {
		t.Errorf("another process's run: %v, want ErrBusy", err)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // killed: its error says so
	r, doc, err := s.Resume(id)
	if err != nil || len(doc.Results) != 2 {
		t.Fatalf("Resume after kill -9: %v, %d results", err, len(doc.Results))
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestForeignFilesAreCounted(t *testing.T) {
	s := open(t)
	id := stored(t, s)
	for _, name := range []string{"notes.txt", "x.jsonl", id + ".jsonl.bak"} {
		if err := os.WriteFile(filepath.Join(s.runs(), name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(s.runs(), "20261121-0741-zzz.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	n, err := s.Foreign()
	list, err2 := s.List()
	if n != 4 || len(list) != 1 || err != nil || err2 != nil {
		t.Errorf("%d foreign files, %d runs, %v %v; want 4 and 1", n, len(list), err, err2)
	}
}

// The format of version 1 stays readable for ever.
func TestVersion1(t *testing.T) {
	var s Store
	doc, err := s.Load(filepath.Join("testdata", "version1", "run.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := model.EncodeDocument(doc)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join("testdata", "version1", "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the stored run of version 1 reads as\n%s\nwant\n%s", got, want)
	}
	if doc, err := s.Load(filepath.Join("testdata", "version1", "run.json")); err != nil || len(doc.Results) != 2 {
		t.Errorf("the document of version 1: %v, %d results", err, len(doc.Results))
	}
}

func FuzzReadLog(f *testing.F) {
	for _, path := range []string{"run.jsonl", "run.json"} {
		b, err := os.ReadFile(filepath.Join("testdata", "version1", path))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"format":"pelt/runlog/1"}` + "\n" + `{"result":{"state":"valid"}}` + "\n" + `{"end":{}}`))
	f.Add([]byte(`{"format":"pelt/runlog/1"}` + "\n\n"))
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
		if line, err := encodeLine(model.Finite(record[model.Result]{Result: &model.Result{State: model.Valid}})); err != nil || !json.Valid(line) || bytes.Count(line, []byte{'\n'}) != 1 {
			t.Fatalf("a line is %q, %v", line, err)
		}
	})
}
