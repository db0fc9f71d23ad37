package ledger

import (
	"fmt"
	"testing"

	"pelt/model"
)

func TestPacingLines(t *testing.T) {
	tbf := model.Queue{Interface: "eth0", Kind: "tbf", Handle: "1:", RateBPS: 50e6}
	counter := func(name string, measure uint64) model.Counter {
		return model.Counter{Name: tbf.Counter(name), Scope: "device", Unit: "event", Whole: measure + 1,
			Measure: measure}
	}
	observed := func(iface string, q []model.Queue, c ...model.Counter) *model.Observation {
		return &model.Observation{Interface: iface, Queues: q, Counters: c}
	}
	waiting := tbf
	waiting.QueuedPackets = 200
	other := tbf
	other.Interface, other.QueuedPackets = "eth1", 900
	const unnamed, named = "a send buffer of 212992 B", "tbf on eth0"
	holder := func(l model.PacingLine) string {
		if l.Queue != nil {
			return l.Queue.Kind + " on " + l.Queue.Interface
		}
		return fmt.Sprintf("a send buffer of %d B", l.BufferBytes)
	}
	for _, c := range []struct {
		name string
		seen *model.Observation
		out  []string
		want string
	}{
		{"overlimits moved", observed("eth0", []model.Queue{tbf}, counter("overlimits", 7)), nil, named},
		{"requeues moved", observed("eth0", []model.Queue{tbf}, counter("requeues", 7)), nil, named},
		{"packets waited in it", observed("eth0", []model.Queue{waiting}), nil, named},
		{"by the path's own interface", observed("eth1", []model.Queue{waiting, other}), []string{"eth0"}, named},
		{"only drops moved", observed("eth0", []model.Queue{tbf}, counter("drops", 7)), nil, unnamed},
		{"moved in the warm-up only", observed("eth0", []model.Queue{tbf}, counter("overlimits", 0)), nil, unnamed},
		{"a queue of another interface", observed("eth0", []model.Queue{other}), nil, unnamed},
		{"the interface is not known", observed("", []model.Queue{waiting}), nil, unnamed},
		{"nobody watched", nil, nil, unnamed},
	} {
		in := Input{Sender: "sender", Receiver: "receiver", Planned: 100, Attempted: 70, Received: 70, Accepted: 70,
			SlotsLate: 10, SlotsHeld: 20, SendBuffer: 212992,
			Nodes: []Node{{Name: "sender", Observation: c.seen, Out: c.out}, {Name: "receiver"}}}
		account := Balance(in)
		if len(account.Pacing) != 2 || account.Pacing[0].Cause != model.PacingLate || account.Pacing[0].Packets != 10 ||
			account.Pacing[1].Packets != 20 || holder(account.Pacing[1]) != c.want {
			t.Errorf("%s: %v, want 10 late and 20 as %q", c.name, account.Pacing, c.want)
		}
		if account.Lost != 0 || len(account.Lines) != 0 {
			t.Errorf("%s: %d lost, lines %v; what was not attempted is no loss", c.name, account.Lost, account.Lines)
		}
		// A flood has no slots to give up: the time that it waited tells.
		in.Planned, in.SlotsLate, in.SlotsHeld, in.DurationS = 70, 0, 0, 10
		for held, lines := range map[float64]int{0: 0, 0.4: 0, 0.5: 1, 9: 1} {
			in.HeldS = held
			account := Balance(in)
			if len(account.Pacing) != lines || lines > 0 &&
				(account.Pacing[0].Packets != 0 || account.Pacing[0].HeldS != held ||
					holder(account.Pacing[0]) != c.want) {
				t.Errorf("%s: a flood that waited %v of 10 s has %v, want %d lines of %q", c.name, held,
					account.Pacing, lines, c.want)
			}
		}
	}
}
