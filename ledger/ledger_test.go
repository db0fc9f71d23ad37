package ledger

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"pelt/model"
)

// inWords is a ledger as text: lines, rest, and broken checks.
func inWords(l model.Ledger) string {
	var w []string
	for _, x := range l.Lines {
		s := fmt.Sprintf("%s@%s/%s=%d(%s)", x.Layer, x.Host, x.Cause, x.Packets, x.Confidence)
		if x.Most > 0 {
			s += fmt.Sprintf("≤%d", x.Most)
		}
		for _, e := range x.Evidence {
			if e.Role == model.RoleFact {
				s += fmt.Sprintf("[%s %d %s]", e.Counter, e.After, e.Unit)
			}
		}
		if e := x.Evidence[0]; e.Excess > 0 || e.Delta != x.Packets {
			s += fmt.Sprintf("[%d, %d over]", e.Delta, e.Excess)
		}
		w = append(w, s)
	}
	w = append(w, fmt.Sprintf("lost=%d rest=%d", l.Lost, l.Unattributed))
	for _, p := range l.Possible {
		w = append(w, fmt.Sprintf("maybe %s@%s/%s≤%d", p.Layer, p.Host, p.Cause, p.Most))
	}
	for _, c := range l.Checks {
		if !c.Held {
			w = append(w, "!"+c.Name)
		}
	}
	return strings.Join(w, " ")
}

// marks makes a list of from, count, mark triples.
func marks(triples ...uint64) model.Marks {
	var w model.MarksWriter
	for i := 0; i < len(triples); i += 3 {
		w.Add(triples[i], triples[i+1], uint16(triples[i+2]))
	}
	return w.Marks()
}

// counters makes counters of names in one line that moved by n, those with a !
// by nothing.
func counters(names string, n uint64) (list []model.Counter) {
	for _, name := range strings.Fields(names) {
		c := model.Counter{Name: name, Scope: "namespace", Unit: "skb", Before: 5, After: 5 + n, Whole: n, Measure: n}
		if zero, ok := strings.CutPrefix(name, "!"); ok {
			c.Name, c.After, c.Whole, c.Measure = zero, 5, 0, 0
		}
		switch kind, _, _ := strings.Cut(c.Name, "."); kind {
		case "dev", "qdisc", "ethtool":
			c.Scope = "device"
		case "softnet", "arp_cache":
			c.Scope = "host"
		}
		list = append(list, c)
	}
	return list
}

// agree fails unless the account balances and is in order.
func agree(t rapid.TB, in Input, l model.Ledger) {
	t.Helper()
	for _, c := range l.Checks {
		if Law(c) == c.Name {
			t.Errorf("%+v has no words", c)
		}
	}
	sum := l.Unattributed
	last := -1
	for _, x := range l.Lines {
		if x.Most > 0 && (x.Most <= x.Packets || x.Most > x.Packets+l.Unattributed) {
			t.Fatalf("at most %d of %+v", x.Most, x)
		}
		if x.Packets == 0 || x.Packets > l.Lost-min(l.Lost, sum-l.Unattributed) {
			t.Fatalf("line %+v of %d lost", x, l.Lost)
		}
		sum += x.Packets
		at := slices.Index(model.Layers(), x.Layer)
		if at < 0 || at < last {
			t.Fatalf("%s is out of travel order in %s", x.Layer, inWords(l))
		}
		last = at
		if surest(x.Confidence) < 0 || len(x.Evidence) == 0 || x.Evidence[0].Role != "primary" ||
			len(x.Sequences) > maxSpans {
			t.Fatalf("line %+v lacks confidence or evidence", x)
		}
		for _, e := range x.Evidence {
			if e.Role == "primary" && e.Excess > e.Delta {
				t.Fatalf("more excess than counted: %+v", e)
			}
		}
	}
	for _, p := range l.Possible {
		if p.Most == 0 || p.Most > l.Unattributed || len(p.Evidence) == 0 {
			t.Fatalf("possibly %+v of %d", p, l.Unattributed)
		}
	}
	if want := in.Attempted - min(in.Attempted, in.Received); l.Lost != want || sum != l.Lost {
		t.Fatalf("lost %d, want %d; lines and rest make %d: %s", l.Lost, want, sum, inWords(l))
	}
	if l.Lines == nil || l.Checks == nil {
		t.Fatal("a list is nil")
	}
}
