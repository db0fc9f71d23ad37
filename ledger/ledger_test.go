package ledger

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/model"
)

// words is a ledger as text: lines, rest, and broken checks.
func words(l model.Ledger) string {
	var w []string
	for _, x := range l.Lines {
		s := fmt.Sprintf("%s@%s/%s=%d(%s)", x.Layer, x.Host, x.Cause, x.Packets, x.Confidence)
		if e := x.Evidence[0]; e.Excess > 0 || e.Delta != x.Packets {
			s += fmt.Sprintf("[%d, %d over]", e.Delta, e.Excess)
		}
		w = append(w, s)
	}
	w = append(w, fmt.Sprintf("lost=%d rest=%d", l.Lost, l.Unattributed))
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

func TestBalanceOfTheEndsAlone(t *testing.T) {
	for name, c := range map[string]struct {
		in   Input
		want string
	}{
		"nothing": {Input{}, "lost=0 rest=0"},
		"all arrive": {
			Input{Planned: 100, Attempted: 100, Accepted: 100, Received: 100, SocketKnown: true},
			"lost=0 rest=0"},
		"on the way": {
			Input{Planned: 100, Attempted: 100, Accepted: 100, Received: 90, SocketKnown: true},
			"lost=10 rest=10"},
		"each kind": {
			Input{Planned: 120, Attempted: 100, Accepted: 95,
				SendErrors: map[string]uint64{"ENOBUFS": 3, "EAGAIN": 2}, Received: 60,
				SocketDrops: 10, SocketKnown: true, Late: 4, Unread: 5, WrongLength: 6},
			"send-call@a/EAGAIN=2(exact-count) sender-qdisc@a/ENOBUFS=3(inferred) receiver-buffer@b/SOCKET_RCVBUFF=10(exact-count) " +
				"application@b/late=4(exact-count) application@b/unread=5(exact-count) application@b/wrong-length=6(exact-count) lost=40 rest=10"},
		"frames past the sockets": {
			Input{Planned: 100, Attempted: 100, Accepted: 90, PastSockets: true,
				Unsent:   map[string]uint64{model.CauseRingFull: 7, "ENXIO": 3},
				Received: 85, SocketKnown: true, TakenOff: 90, Broken: 2, Overrun: 1},
			"sender-device@a/ENXIO=3(exact-count) sender-device@a/ring-full=7(exact-count) receiver-udp@b/UDP_CSUM=2(exact-count) " +
				"application@b/overrun=1(exact-count) lost=15 rest=2"},
		"frames that are in no account": {
			Input{Planned: 100, Attempted: 100, Accepted: 95, PastSockets: true,
				Unsent: map[string]uint64{model.CauseRingFull: 7}, Received: 90},
			"sender-device@a/ring-full=7(exact-count) lost=10 rest=3 !attempted"},
		"refused by sequence": {
			Input{Planned: 100, Attempted: 100, Accepted: 95, SendErrors: map[string]uint64{"EPERM": 5}, Received: 90,
				Streams: []uint64{100},
				Errnos:  []string{"EPERM"}, Refused: []model.Marks{marks(10, 5, 0)}, Missing: []model.Marks{marks(10,
					10, 0)}, MissingKnown: true},
			"send-call@a/EPERM=5(exact-seq) lost=10 rest=5"},
		"the list of the refused had no room": {
			Input{Planned: 100, Attempted: 100, Accepted: 92, SendErrors: map[string]uint64{"EPERM": 8}, Received: 90,
				Streams: []uint64{100},
				Errnos:  []string{"EPERM"}, Refused: []model.Marks{marks(10, 5, 0)}, Missing: []model.Marks{marks(10,
					10, 0)}, MissingKnown: true},
			"send-call@a/EPERM=8(exact-count)[5, 0 over] lost=10 rest=2"},
		"socket counts more than was lost": {
			Input{Planned: 100, Attempted: 100, Accepted: 100, Received: 93, SocketDrops: 50, SocketKnown: true},
			"receiver-buffer@b/SOCKET_RCVBUFF=7(bounded)[50, 43 over] lost=7 rest=0"},
		"what the end saw goes before a count": {
			Input{Planned: 100, Attempted: 100, Accepted: 100, Received: 90, SocketDrops: 8, SocketKnown: true,
				Late: 4},
			"receiver-buffer@b/SOCKET_RCVBUFF=6(bounded)[8, 2 over] application@b/late=4(exact-count) lost=10 rest=0"},
		"from a new address that was not known yet": {
			Input{Planned: 100, Attempted: 100, Accepted: 100, Received: 90, Unmoved: 8},
			"application@b/new-address=8(exact-count) lost=10 rest=2"},
		"socket counter unknown": {
			Input{Planned: 100, Attempted: 100, Accepted: 100, Received: 90, SocketDrops: 8},
			"lost=10 rest=10"},
		"more received than sent": {
			Input{Planned: 10, Attempted: 10, Accepted: 10, Received: 12, Late: 1},
			"lost=0 rest=0 !received"},
		"accounts that contradict": {
			Input{Planned: 5, Attempted: 10, Accepted: 7, SendErrors: map[string]uint64{"EPERM": 1}, Received: 10},
			"lost=0 rest=0 !attempted !planned"},
		"unpaced has no plan": {
			Input{Attempted: 10, Accepted: 10, Received: 10}, "lost=0 rest=0"},
		"list says more than was lost": {
			Input{Attempted: 100, Accepted: 92, SendErrors: map[string]uint64{"EPERM": 8}, Received: 95,
				Streams: []uint64{100},
				Errnos:  []string{"EPERM"}, Refused: []model.Marks{marks(0, 8, 0)}, Missing: []model.Marks{marks(0, 8,
					0)}, MissingKnown: true},
			"send-call@a/EPERM=5(bounded)[8, 0 over] lost=5 rest=0 !missing"},
		"missing beyond what was attempted": {
			Input{Attempted: 100, Accepted: 100, Received: 90, Streams: []uint64{100},
				Missing: []model.Marks{marks(95, 10, 0)}, MissingKnown: true},
			"lost=10 rest=10 !missing !lists"},
	} {
		t.Run(name, func(t *testing.T) {
			c.in.Sender, c.in.Receiver = "a", "b"
			if got := words(Balance(c.in)); got != c.want {
				t.Errorf("Balance(%+v)\n got %s\nwant %s", c.in, got, c.want)
			}
		})
	}
}

// agree fails unless the account balances and is in order.
func agree(t rapid.TB, in Input, l model.Ledger) {
	t.Helper()
	sum := l.Unattributed
	last := -1
	for _, x := range l.Lines {
		if x.Packets == 0 || x.Packets > l.Lost-min(l.Lost, sum-l.Unattributed) {
			t.Fatalf("line %+v of %d lost", x, l.Lost)
		}
		sum += x.Packets
		at := slices.Index(model.Layers(), x.Layer)
		if at < 0 || at < last {
			t.Fatalf("%s is out of travel order in %s", x.Layer, words(l))
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
	if want := in.Attempted - min(in.Attempted, in.Received); l.Lost != want || sum != l.Lost {
		t.Fatalf("lost %d, want %d; lines and rest make %d: %s", l.Lost, want, sum, words(l))
	}
	if l.Lines == nil || l.Checks == nil {
		t.Fatal("a list is nil")
	}
}
