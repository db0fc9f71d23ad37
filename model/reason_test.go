package model

import (
	"strings"
	"testing"
)

func TestReasonWords(t *testing.T) {
	late := func(flow string, kept float64) Reason {
		return Reason{Code: SenderStarved, Flow: flow,
			Numbers: map[string]float64{"run_ratio": 0.3, "kept_pps": kept, "asked_pps": 30e3}}
	}
	for name, c := range map[string]struct {
		list Reasons
		want string
	}{
		"none": {nil, ""},
		"one": {Reasons{late("up", 25.7e3)},
			"the sender was starved of CPU (its thread ran 30 % of the time that it was late): it kept 25.7 kpps of 30.0 kpps"},
		"of one flow": {Reasons{{Code: NothingSent, Flow: "up"}, {Code: AccountMissing, Flow: "up"}},
			"nothing was sent; the account of one end is missing"},
		"of two flows": {Reasons{{Code: NothingSent, Flow: "up"}, {Code: NothingSent, Flow: "down"}},
			"flow up: nothing was sent; flow down: nothing was sent"},
		"many": {Reasons{{Code: NothingSent}, {Code: NothingSent}, {Code: NothingSent}, {Code: NothingSent},
			{Code: NothingSent}, {Code: Interrupted}},
			"nothing was sent; nothing was sent; nothing was sent; and 2 more of the kind; interrupted"},
		"a code to come": {Reasons{{Code: "sender-asleep"}}, "sender-asleep"},
	} {
		if got := c.list.String(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if a, b := (Reasons{late("up", 1)}).Kind(), (Reasons{late("down", 2)}).Kind(); a != b {
		t.Errorf("reasons that differ in numbers are of kinds %q and %q", a, b)
	}
}

// Every row of the table has a state, and every placeholder of its sentence is a
// field of a reason or a number in a unit that can be printed.
func TestReasonTable(t *testing.T) {
	fields := []string{"node", "link", "name", "text"}
	for i, w := range reasonWordings {
		if w.state != Invalid && w.state != Aborted {
			t.Errorf("%s: state %q", w.code, w.state)
		}
		for _, other := range reasonWordings[:i] {
			if other.code == w.code {
				t.Errorf("%s has two rows", w.code)
			}
		}
		for _, part := range strings.Split(w.text, "{")[1:] {
			name, _, closed := strings.Cut(part, "}")
			known := false
			for _, f := range fields {
				known = known || f == name
			}
			for _, suffix := range []string{"_ratio", "_pps", "_s", "_frames", "_bytes", "packets"} {
				known = known || strings.HasSuffix(name, suffix)
			}
			if !closed || !known {
				t.Errorf("%s: placeholder %q", w.code, name)
			}
		}
	}
}

func TestStateOfReasons(t *testing.T) {
	for name, c := range map[string]struct {
		list Reasons
		want State
	}{
		"none":                {nil, Valid},
		"the generator":       {Reasons{{Code: SenderLate}}, Invalid},
		"a cut beats a doubt": {Reasons{{Code: SenderLate}, {Code: TrialCut}, {Code: LinkBehind}}, Aborted},
	} {
		if got := c.list.State(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
