package tuning

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pelt/design"
	"pelt/model"
	"pelt/tune"
	"pelt/unit"
)

// path is one that loses packets for known reasons.
type path struct {
	root    string
	buffer  int // bytes that the receiving socket needs
	backlog int // packets that the host's backlog must hold
	rest    uint64
	runs    int
	cut     int // the trial of all runs that fails, from 1; 0 for none
	invalid int // the run of which no trial is valid, from 1; 0 for none
	trials  int
	tuner   *tune.Tuner // if it is set: a setting that is tried is one that a kill would leave
}

const attempted = 100000

var this = model.Host{Node: model.Receiver, Name: "here", Boot: "b"}

// tree is a host whose backlog is a plain file.
func tree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "proc/sys/net/core")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"netdev_max_backlog": "1000\n", "rmem_max": "212992\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func (p *path) host(name string) int {
	b, err := os.ReadFile(filepath.Join(p.root, "proc/sys/net/core", name))
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(b))) // 0 is wrong in every test
	return n
}

func (p *path) knobs(model.Document) []model.HostSetting {
	return []model.HostSetting{{Name: "net.core.netdev_max_backlog", Value: strconv.Itoa(p.host("netdev_max_backlog"))},
		{Name: "net.core.rmem_max", Value: strconv.Itoa(p.host("rmem_max"))}}
}

// execute plays a run; its trials scatter a little.
func (p *path) execute(ctx context.Context, plan model.Plan, before func(context.Context, model.Trial) error) (model.Document, error) {
	if err := plan.Check(); err != nil {
		return model.Document{}, err
	}
	p.runs++
	doc := model.Document{ID: fmt.Sprint("run-", p.runs), Plan: plan, Host: []model.Host{{Node: model.Sender, Name: "far"}, this}}
	d, err := design.New(plan)
	if err != nil {
		return doc, err
	}
	for {
		cell, repeat, more := d.Next()
		if !more {
			return doc, nil
		}
		trial, err := plan.Trial(cell, repeat)
		if err == nil && before != nil {
			err = before(ctx, trial)
		}
		if p.tuner != nil && err == nil {
			if what, _ := p.tuner.Killed(); (what != "") != (trial.Tuning == model.TuningWith) {
				return doc, fmt.Errorf("a kill in a trial %q the setting would be told as %q", trial.Tuning, what)
			}
		}
		if err != nil {
			return doc, err
		}
		if p.trials++; p.trials == p.cut {
			return doc, errors.New("the network is down")
		}
		result := p.result(trial)
		if p.runs == p.invalid {
			result.State = model.Invalid
		}
		doc.Results = append(doc.Results, result)
		d.Add(&result)
	}
}

func (p *path) result(trial model.Trial) model.Result {
	f := trial.Flows[0]
	granted := f.ReceiveBuffer
	if granted == 0 {
		granted = 16 << 20
	}
	r := model.FlowResult{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, Attempted: attempted, SendPPS: 200e3, Streams: 1, PayloadBytes: 64,
		ReceiveBufferBytes: granted, TruesizeBytes: 832}
	lose := func(n uint64, layer, cause, counter string) {
		if n == 0 {
			return
		}
		r.Lost += n
		r.Ledger.Lines = append(r.Ledger.Lines, model.Line{Layer: layer, Host: model.Receiver, Cause: cause, Packets: n, Evidence: []model.Evidence{{Counter: counter, Role: "primary", Delta: n}}})
	}
	scatter := uint64(trial.Repeat*100 + 50)
	if granted < p.buffer {
		lose(30000+scatter, model.LayerReceiverBuffer, "SOCKET_RCVBUFF", "verdict SOCKET_RCVBUFF")
	}
	if p.host("netdev_max_backlog") < p.backlog {
		lose(10000+scatter, model.LayerReceiverBacklog, "CPU_BACKLOG", "softnet.dropped")
	}
	lose(p.rest, model.LayerNetwork, "wire", "difference of both ends")
	r.LossRatio = float64(r.Lost) / attempted
	r.ReceivePPS = 200e3 * (1 - r.LossRatio)
	r.GoodputBPS = r.ReceivePPS * 512
	r.Ledger.Lost = r.Lost
	return model.Result{Cell: trial.Cell, Repeat: trial.Repeat, State: model.Valid, Engine: "udp", Flows: []model.FlowResult{r}}
}

func asked(t *testing.T) model.Plan {
	t.Helper()
	rate, err := unit.ParseRate("200kpps")
	if err != nil {
		t.Fatal(err)
	}
	return model.Plan{
		Format: model.PlanFormat, Command: "curve", Target: "192.0.2.1", Engine: "auto",
		Flows:  []model.Flow{{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, PayloadBytes: 64, Rate: rate, Streams: 1, ReceiveBuffer: 212992}},
		Design: model.Design{Repeats: 4, Seed: 1}, Timing: model.Timing{MeasureSeconds: 1, DrainSeconds: 1},
	}
}

func TestShortIsNotByTheOddByte(t *testing.T) {
	for granted, want := range map[int]bool{100_000: false, 99_998: true, 0: false} {
		plan := asked(t)
		plan.Flows[0].ReceiveBuffer = 100_001
		s := &search{plan: plan, doc: model.Document{Results: []model.Result{{Flows: []model.FlowResult{{Name: "up", ReceiveBufferBytes: granted}}}}}}
		if got := s.short(); got != want {
			t.Errorf("%d of 100001 B are short: %v, want %v", granted, got, want)
		}
	}
}

func TestSearch(t *testing.T) {
	for name, c := range map[string]struct {
		path    path
		noTuner bool
		steps   string // knob value kept
		last    uint64 // lost in a trial, at least
		limit   string
		verdict string
		backlog int // of the host at the end
	}{
		"nothing lost": {path{buffer: 1000}, false, "", 0, "", "Nothing was lost in 4 trials", 1000},
		"a small buffer": {path{buffer: 1e6}, false, "socket.receive_buffer 1664000 true", 0, "",
			"to 0 %. 1 of 1 setting kept", 1000},
		"a buffer for longer stalls": {path{buffer: 3e6}, false, "socket.receive_buffer 1664000 false", 30000,
			"Of these, 100 % receiver socket buffer full.", "None of 1 setting reduced it.", 1000},
		"both": {path{buffer: 1e6, backlog: 1500}, false, "socket.receive_buffer 1664000 true, net.core.netdev_max_backlog 2000 true", 0, "",
			"to 0 %. 2 of 2 settings kept", 2000},
		"a backlog that does not help": {path{buffer: 1, backlog: 5000}, false, "net.core.netdev_max_backlog 2000 false", 10000,
			"Of these, 100 % CPU backlog at the receiver full.", "None of 1 setting reduced it.", 1000},
		"not this host's to change": {path{buffer: 1, backlog: 1500}, true, "", 10000, "On this host, net.core.netdev_max_backlog from 1000 to 2000: sysctl -w net.core.netdev_max_backlog=2000", "No setting that pelt can change here would reduce it.", 1000},
		"what no setting addresses": {path{buffer: 1, rest: 77}, false, "", 77, "Of these, 100 % on the way at the receiver.", "No setting that pelt can change here would reduce it.", 1000},
	} {
		t.Run(name, func(t *testing.T) {
			c.path.root = tree(t)
			o := Options{Execute: c.path.execute, This: this, Knobs: c.path.knobs}
			if !c.noTuner {
				u, err := tune.Open(tune.Options{Root: c.path.root})
				if err != nil {
					t.Fatal(err)
				}
				defer u.Close()
				o.Tuner, c.path.tuner = u, u
			}
			out, err := Search(t.Context(), asked(t), o)
			if err != nil {
				t.Fatal(err)
			}
			var steps []string
			for _, s := range out.Steps {
				steps = append(steps, fmt.Sprintf("%s %s %v", s.Knob, s.Value, s.Kept))
			}
			if got := strings.Join(steps, ", "); got != c.steps {
				t.Errorf("tried %q, want %q", got, c.steps)
			}
			if out.Last.Lost < c.last || c.last == 0 && out.Last.Lost > 0 {
				t.Errorf("%d lost at last, want %d", out.Last.Lost, c.last)
			}
			if !strings.Contains(out.Verdict, c.verdict) {
				t.Errorf("verdict %q, want %q", out.Verdict, c.verdict)
			}
			if got := strings.Join(out.Limits, "\n"); !strings.Contains(got, c.limit) || got != "" && c.limit == "" {
				t.Errorf("limits %q, want %q", got, c.limit)
			}
			if got := c.path.host("netdev_max_backlog"); got != c.backlog {
				t.Errorf("the backlog is %d, want %d", got, c.backlog)
			}
			if o.Tuner != nil {
				if _, err := o.Tuner.Revert(tune.RevertOptions{}); err != nil && !errors.Is(err, tune.ErrNothing) {
					t.Error(err)
				}
				if got := c.path.host("netdev_max_backlog"); got != 1000 {
					t.Errorf("the backlog is %d after revert", got)
				}
			}
		})
	}
}

// Whenever a run fails, what was being tried is taken back, and what was kept is told.
func TestSearchThatIsCut(t *testing.T) {
	for cut := 1; cut <= 20; cut++ {
		p := path{root: tree(t), buffer: 1e6, backlog: 1500, cut: cut}
		u, err := tune.Open(tune.Options{Root: p.root})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Search(t.Context(), asked(t), Options{Execute: p.execute, Tuner: u, This: this, Knobs: p.knobs})
		if err == nil || err.Error() != "the network is down" {
			t.Errorf("cut at trial %d: %v", cut, err)
		}
		if got := p.host("netdev_max_backlog"); got != 1000 {
			t.Errorf("cut at trial %d: the backlog is %d", cut, got)
		}
		if left := u.Show(); len(left) > 0 {
			t.Errorf("cut at trial %d: the journal holds %+v", cut, left)
		}
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A run of which nothing is valid tells of no loss, which is not to tell of none.
func TestSearchWithInvalidTrials(t *testing.T) {
	p := path{root: tree(t), buffer: 1, backlog: 1500, invalid: 2}
	u, err := tune.Open(tune.Options{Root: p.root})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	out, err := Search(t.Context(), asked(t), Options{Execute: p.execute, Tuner: u, This: this, Knobs: p.knobs})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Steps) != 1 || !out.Steps[0].Untold || out.Last != out.First || out.Last.Lost == 0 {
		t.Errorf("steps %+v, at first %+v, at last %+v", out.Steps, out.First, out.Last)
	}
	if len(out.Limits) == 0 {
		t.Errorf("verdict %q, limits %q", out.Verdict, out.Limits)
	}
}

// What a host refuses ends that step only.
func TestRefusedSetting(t *testing.T) {
	p := path{root: tree(t), buffer: 1, backlog: 1500}
	u, err := tune.Open(tune.Options{Root: p.root})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	knobs := func(model.Document) []model.HostSetting {
		return []model.HostSetting{{Name: "net.core.netdev_max_backlog", Value: "1000"}}
	}
	if err := os.RemoveAll(filepath.Join(p.root, "proc/sys/net/core")); err != nil {
		t.Fatal(err)
	}
	out, err := Search(t.Context(), asked(t), Options{Execute: p.execute, Tuner: u, This: this, Knobs: knobs})
	if err != nil || len(out.Steps) != 1 || !strings.HasPrefix(out.Steps[0].Text, "could not be set: net.core.netdev_max_backlog cannot be read") {
		t.Errorf("%+v, %v", out.Steps, err)
	}
}

func TestSearchRefuses(t *testing.T) {
	for name, change := range map[string]func(*model.Plan){
		"two repeats": func(p *model.Plan) { p.Design.Repeats = 2 },
		"TCP":         func(p *model.Plan) { p.Flows[0].Protocol = model.TCP },
	} {
		p := asked(t)
		change(&p)
		_, err := Search(t.Context(), p, Options{})
		var field *model.FieldError
		if !errors.As(err, &field) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
