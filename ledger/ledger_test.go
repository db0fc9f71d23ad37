package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/model"
	"pelt/test/golden"
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

// TestBalanceOfTheEndsAlone: what the ends' own counts come to stands in the golden file.
func TestBalanceOfTheEndsAlone(t *testing.T) {
	eperm := func(n uint64) map[string]uint64 { return map[string]uint64{"EPERM": n} }
	list := func(from, n uint64) []model.Marks { return []model.Marks{marks(from, n, 0)} }
	all, errnos := []uint64{100}, []string{"EPERM"}
	inputs := map[string]Input{
		"nothing":    {},
		"all arrive": {Planned: 100, Attempted: 100, Accepted: 100, Received: 100, SocketKnown: true},
		"on the way": {Planned: 100, Attempted: 100, Accepted: 100, Received: 90, SocketKnown: true},
		"each kind": {Planned: 120, Attempted: 100, Accepted: 95,
			SendErrors: map[string]uint64{"ENOBUFS": 3, "EAGAIN": 2}, Received: 60, SocketDrops: 10, SocketKnown: true, Late: 4, Unread: 5, WrongLength: 6},
		"frames past the sockets": {Planned: 100, Attempted: 100, Accepted: 90, PastSockets: true,
			Unsent:   map[string]uint64{model.CauseRingFull: 7, "ENXIO": 3},
			Received: 85, SocketKnown: true, TakenOff: 90, Broken: 2, Overrun: 1},
		"frames that are in no account": {Planned: 100, Attempted: 100, Accepted: 95, PastSockets: true,
			Unsent: map[string]uint64{model.CauseRingFull: 7}, Received: 90},
		"refused by sequence": {Planned: 100, Attempted: 100, Accepted: 95, SendErrors: eperm(5), Received: 90,
			Streams: all, Errnos: errnos, Refused: list(10, 5), Missing: list(10, 10), MissingKnown: true},
		"the list of the refused had no room": {Planned: 100, Attempted: 100, Accepted: 92, SendErrors: eperm(8),
			Received: 90, Streams: all, Errnos: errnos, Refused: list(10, 5), Missing: list(10, 10),
			MissingKnown: true},
		"socket counts more than was lost": {Planned: 100, Attempted: 100, Accepted: 100, Received: 93,
			SocketDrops: 50, SocketKnown: true},
		"what the end saw goes before a count": {Planned: 100, Attempted: 100, Accepted: 100, Received: 90,
			SocketDrops: 8, SocketKnown: true, Late: 4},
		"from a new address that was not known yet": {Planned: 100, Attempted: 100, Accepted: 100, Received: 90,
			Unmoved: 8},
		"socket counter unknown":   {Planned: 100, Attempted: 100, Accepted: 100, Received: 90, SocketDrops: 8},
		"more received than sent":  {Planned: 10, Attempted: 10, Accepted: 10, Received: 12, Late: 1},
		"accounts that contradict": {Planned: 5, Attempted: 10, Accepted: 7, SendErrors: eperm(1), Received: 10},
		"unpaced has no plan":      {Attempted: 10, Accepted: 10, Received: 10},
		"list says more than was lost": {Attempted: 100, Accepted: 92, SendErrors: eperm(8), Received: 95, Streams: all,
			Errnos: errnos, Refused: list(0, 8), Missing: list(0, 8), MissingKnown: true},
		"missing beyond what was attempted": {Attempted: 100, Accepted: 100, Received: 90, Streams: all,
			Missing: list(95, 10), MissingKnown: true},
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		in := inputs[name]
		in.Sender, in.Receiver = "a", "b"
		tell(t, &out, name, in)
	}
	golden.File(t, "testdata/ends.txt", out.String())
}

// tell writes what comes of an input: the account, and checks but those that each account has, unless they do not hold.
func tell(t *testing.T, out *strings.Builder, name string, in Input) {
	t.Helper()
	l := Balance(in)
	agree(t, in, l)
	fmt.Fprintf(out, "%s:\n\t%s\n", name, inWords(l))
	ofEach := []string{"balance", "attempted", "received", "planned", "missing"}
	for _, check := range l.Checks {
		if !check.Held || !slices.Contains(ofEach, check.Name) {
			fmt.Fprintf(out, "\t%s, held %v: %s\n", check.Name, check.Held, Law(check))
		}
	}
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
