package ledger

import (
	"fmt"
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

func TestBalance(t *testing.T) {
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
			Input{Planned: 120, Attempted: 100, Accepted: 95, SendErrors: map[string]uint64{"ENOBUFS": 3, "EAGAIN": 2}, Received: 60,
				SocketDrops: 10, SocketKnown: true, Late: 4, Unread: 5, WrongLength: 6},
			"send-call@a/EAGAIN=2(exact-seq) send-call@a/ENOBUFS=3(exact-seq) receiver-buffer@b/SOCKET_RCVBUFF=10(exact-count) " +
				"application@b/late=4(exact-seq) application@b/unread=5(exact-count) application@b/wrong-length=6(exact-seq) lost=40 rest=10"},
		"socket counts more than was lost": {
			Input{Planned: 100, Attempted: 100, Accepted: 100, Received: 93, SocketDrops: 50, SocketKnown: true},
			"receiver-buffer@b/SOCKET_RCVBUFF=7(exact-count)[50, 43 over] lost=7 rest=0 !socket"},
		"a verdict goes before a count": {
			Input{Planned: 100, Attempted: 100, Accepted: 100, Received: 90, SocketDrops: 8, SocketKnown: true, Late: 4},
			"receiver-buffer@b/SOCKET_RCVBUFF=6(exact-count)[8, 2 over] application@b/late=4(exact-seq) lost=10 rest=0"},
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
	} {
		t.Run(name, func(t *testing.T) {
			c.in.Sender, c.in.Receiver = "a", "b"
			if got := words(Balance(c.in)); got != c.want {
				t.Errorf("Balance(%+v)\n got %s\nwant %s", c.in, got, c.want)
			}
		})
	}
}

func TestBalanceAlwaysBalances(t *testing.T) {
	count := rapid.OneOf(rapid.Uint64Range(0, 100), rapid.Uint64Max(1<<62))
	rapid.Check(t, func(t *rapid.T) {
		in := Input{
			Planned: count.Draw(t, "planned"), Attempted: count.Draw(t, "attempted"), Accepted: count.Draw(t, "accepted"),
			SendErrors: rapid.MapOfN(rapid.SampledFrom([]string{"EAGAIN", "ENOBUFS", "EPERM", "EMSGSIZE"}), count, 0, 4).Draw(t, "errors"),
			Received:   count.Draw(t, "received"), Late: count.Draw(t, "late"), WrongLength: count.Draw(t, "length"),
			SocketDrops: count.Draw(t, "drops"), SocketKnown: rapid.Bool().Draw(t, "known"), Unread: count.Draw(t, "unread"),
		}
		l := Balance(in)
		sum := l.Unattributed
		for _, x := range l.Lines {
			sum += x.Packets
			if x.Packets == 0 || x.Packets+x.Evidence[0].Excess != x.Evidence[0].Delta {
				t.Fatalf("line %+v: packets and excess are not what the counter says", x)
			}
		}
		if want := in.Attempted - min(in.Attempted, in.Received); l.Lost != want || sum != l.Lost {
			t.Fatalf("lost %d, want %d; lines and rest make %d", l.Lost, want, sum)
		}
		if l.Lines == nil || l.Checks == nil {
			t.Fatal("a list is nil")
		}
	})
}
