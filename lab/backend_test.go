package lab

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pelt/lab/impair"
	"pelt/model"
)

func parsed(t *testing.T, texts ...string) []model.Link {
	t.Helper()
	var list []model.Link
	for _, text := range texts {
		l, _, err := model.ParseLink("", text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, l)
	}
	return list
}

func planOf(t *testing.T, texts ...string) linkPlan {
	t.Helper()
	spec, err := findTopology("direct")
	if err != nil {
		t.Fatal(err)
	}
	plans, err := planLinks(spec, parsed(t, texts...))
	if err != nil {
		t.Fatal(err)
	}
	return plans[0]
}

// What each backend can never do is refused before anything is made.
func TestBackendsRefuse(t *testing.T) {
	for text, want := range map[string]string{
		"delay=5ms,jitter=1ms,correlation=50%,backend=kernel":            "does not correlate delays",
		"duplicate=1%,duplicate-correlation=50%,backend=kernel":          "does not keep the share",
		"delay=5ms,reorder=10%,gap=5,backend=kernel":                     "least distance",
		"delay=5s,jitter=3s,backend=kernel":                              "at most 2.147483647s",
		"loss=4state:50%/10%/10%/10%/50%,backend=kernel":                 "cannot add p13 and p14",
		"delay=5ms,reorder=100%,gap=5,backend=kernel":                    "",
		"loss=1%,loss-correlation=50%,delay=1ms,rate=1mbit,backend=auto": "",
		"rate=1mbit,backend=kernel":                                      "",
	} {
		err := Check("direct", parsed(t, text))
		var usage *UsageError
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (!errors.As(err, &usage) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s: %v; want a line that says: %s", text, err, want)
		}
	}
	if err := Check("direct", []model.Link{{Toward: "sender", Backend: "user", DelaySeconds: 1}}); err == nil {
		t.Error("a backend of one direction: no error")
	}
}

func TestChoice(t *testing.T) {
	missing := errors.New("missing")
	have := func(user, kernel, seeds bool) machine {
		is := func(ok bool) error {
			if ok {
				return nil
			}
			return missing
		}
		return machine{func() error { return is(user) }, func() (bool, error) { return seeds, is(kernel) }}
	}
	const usual = "user: does all that the words can say" // or says what is missing
	all, old, none := have(true, true, true), have(true, true, false), have(true, false, false)
	for _, c := range []struct {
		text string
		m    machine
		want string
	}{
		{"delay=1ms", all, usual},
		{"delay=1ms,backend=auto", all, usual},
		{"delay=1ms", have(false, true, true), "kernel: missing"},
		{"delay=1ms,seed=1", have(false, true, false), usual},
		{"delay=5ms,jitter=1ms,correlation=5%", have(false, true, true), usual},
		{"loss=1%,backend=kernel", all, "kernel: asked for"},
		{"loss=1%,backend=kernel", none, "backend kernel: missing; want backend user or auto"},
		{"loss=1%,seed=1,backend=kernel", old, "backend kernel: this kernel's netem takes no seed, as Linux 6.6 and later do; leave the seed out, or want backend user"},
		{"loss=1%,backend=user", have(false, true, true), "backend user: missing; want backend kernel or auto"},
		{"rate=1mbit,backend=user", all, "user: asked for"},
	} {
		got, err := planOf(t, c.text).choose(c.m)
		text := got.backend + ": " + got.reason
		if err != nil {
			text = err.Error()
		}
		if text != c.want {
			t.Errorf("%s: %s\nwant %s", c.text, text, c.want)
		}
	}
	if p := planOf(t, "rate=1mbit,backend=kernel"); p.emulated() {
		t.Error("a plain rate is emulated, though the kernel keeps it")
	}
}

// Each impairment has the stage that the words put it at.
func TestStages(t *testing.T) {
	for text, want := range map[string]string{
		"loss=1%":                 "loss? netem loses",
		"loss=1%,delay=1ms":       "line netem loses",
		"loss=1%,duplicate=1%":    "loss netem loses, line netem adds",
		"loss=1%,rate=1mbit":      "first netem loses, rate tbf limit",
		"rate=1mbit,delay=1ms":    "rate tbf limit, line netem",
		"duplicate=1%,corrupt=1%": "line netem adds",
		"loss=1%,duplicate=1%,rate=1mbit,delay=2ms,jitter=1ms": "loss netem loses, first netem adds, rate tbf limit, line netem",
	} {
		s := planOf(t, text).toward[0]
		got := ""
		for i, st := range s.stages(s.settings(), choice{backend: model.BackendKernel}, 1500) {
			if i > 0 {
				got += ", "
			}
			kind := " netem"
			if st.tbf != nil {
				kind = " tbf"
			}
			got += st.name + kind
			for _, f := range []struct {
				is   bool
				word string
			}{{st.loses, " loses"}, {st.adds, " adds"}, {st.limit, " limit"}} {
				if f.is {
					got += f.word
				}
			}
		}
		if got != strings.Replace(want, "loss? ", "line ", 1) {
			t.Errorf("%s: %s\nwant %s", text, got, want)
		}
	}
	// A correlated loss as the kernel can do it has the same mean and P(loss|loss).
	l := kernelLoss(impair.Loss{Chance: impair.Chance{Ratio: 0.1, Correlation: 0.25}})
	if got := fmt.Sprintf("%.4f %.4f %v %v", l.P, l.R, l.Bad, l.Good); got != "0.0750 0.6750 1 0" {
		t.Errorf("10%% correlated 25%%: %s", got)
	}
	// Stages with draws of their own have seeds of their own.
	s := planOf(t, "loss=1%,duplicate=1%,rate=1mbit,delay=2ms,jitter=1ms,seed=5").toward[0]
	seeds := map[uint64]bool{}
	for _, st := range s.stages(s.settings(), choice{backend: model.BackendKernel, seeds: true}, 1500) {
		if st.netem != nil {
			if !st.netem.Seeded || seeds[st.netem.Seed] {
				t.Errorf("stage %s: seed %d, %v", st.name, st.netem.Seed, st.netem.Seeded)
			}
			seeds[st.netem.Seed] = true
		}
	}
}

// The account is made of the kernel's counters, which wrap; what they do not tell is nil.
func TestSince(t *testing.T) {
	netemStage := kernelStage{Kind: "netem", Loses: true}
	for name, c := range map[string]struct {
		way         kernelWay
		before, now wayReading
		want        string
	}{
		"loss": {kernelWay{Stages: []kernelStage{netemStage}},
			wayReading{hops: []hopReading{{in: 1<<32 - 10, out: 1<<32 - 5, dropped: 7}}}, wayReading{hops: []hopReading{{in: 90, out: 85, dropped: 17}}},
			"100 passed 90 lost 10 full 0 twice 0 damaged 0 overrun 0"},
		"the delay line overflowed": {kernelWay{Stages: []kernelStage{netemStage}},
			wayReading{hops: []hopReading{{}}}, wayReading{hops: []hopReading{{in: 100, refused: 4, dropped: 14, out: 86}}, missed: 3},
			"100 passed 90 lost 10 full 0 twice 0 damaged 0 overrun 7"},
		"netem's own limit": {kernelWay{Stages: []kernelStage{{Kind: "netem", Loses: true, Limit: true}}},
			wayReading{hops: []hopReading{{}}}, wayReading{hops: []hopReading{{in: 100, refused: 30, dropped: 40, out: 60}}},
			"100 passed 60 lost 10 full 30 twice 0 damaged 0 overrun 0"},
		"netem's copies, of which some were lost": {kernelWay{Stages: []kernelStage{{Kind: "netem", Loses: true, Adds: true, Limit: true}}},
			wayReading{hops: []hopReading{{}}}, wayReading{hops: []hopReading{{in: 100, dropped: 12, out: 98}}},
			"100 passed ? lost ? full 0 twice ? damaged 0 overrun 0"},
		"copies, some still on their way": {kernelWay{Stages: []kernelStage{{Kind: "netem", Adds: true}}, Corrupts: true},
			wayReading{hops: []hopReading{{in: 10, out: 5, waiting: 6}}}, wayReading{hops: []hopReading{{in: 110, out: 100, waiting: 20}}},
			"100 passed 100 lost 0 full 0 twice 9 damaged ? overrun 0"},
		"loss, then a queue": {kernelWay{Stages: []kernelStage{netemStage, {Kind: "tbf", Limit: true}}},
			wayReading{hops: []hopReading{{}, {}}}, wayReading{hops: []hopReading{{in: 100, dropped: 10, out: 90}, {in: 90, refused: 20, dropped: 20, out: 70}}},
			"100 passed 70 lost 10 full 20 twice 0 damaged 0 overrun 0"},
	} {
		r := c.way.since(c.before, c.now)
		show := func(n *uint64) string {
			if n == nil {
				return "?"
			}
			return fmt.Sprint(*n)
		}
		got := fmt.Sprintf("%d passed %s lost %s full %s twice %s damaged %s overrun %d", r.Frames, show(r.Passed), show(r.Lost), show(r.QueueFull), show(r.Duplicated), show(r.Corrupted), r.Overrun)
		if got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
		if (r.LossRatio == nil) != (r.Lost == nil) {
			t.Errorf("%s: loss ratio %v beside %v lost", name, r.LossRatio, r.Lost)
		}
	}
}

// Drops at a stage that both loses and limits are named by what the trial's account tells.
func TestStageCauses(t *testing.T) {
	n := func(v uint64) *uint64 { return &v }
	way := kernelWay{Stages: []kernelStage{{Iface: "a", Loses: true, Limit: true}, {Iface: "b", Limit: true}, {Iface: "c", Loses: true}}}
	for want, did := range map[string]model.LinkResult{
		"map[a:link-loss b:link-queue c:link-loss]":  {Lost: n(3), QueueFull: n(0)},
		"map[a:link-queue b:link-queue c:link-loss]": {Lost: n(0), QueueFull: n(3)},
		"map[a:link-drop b:link-queue c:link-loss]":  {Lost: n(3), QueueFull: n(3)},
	} {
		if got := way.causes(did); fmt.Sprint(got) != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
	if got := way.causes(model.LinkResult{QueueFull: n(1)}); got["a"] != model.CauseLinkDrop {
		t.Errorf("lost unknown: %v", got)
	}
}
