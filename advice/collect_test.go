package advice

import (
	"fmt"
	"strings"
	"testing"

	"pelt/model"
)

// ran is a run between far (sender) and near (receiver) in which one line lost packets.
func ran(change func(*model.Document, *model.Line)) model.Document {
	line := lost("receiver-backlog", "CPU_BACKLOG", "softnet.dropped")
	line.Advice = []model.Advice{{Knob: "net.core.netdev_max_backlog", Host: "receiver", Present: "500",
		Value: "2000", Why: "then", Command: "sysctl"}}
	doc := model.Document{ID: "r", Host: []model.Host{{Node: "sender", Name: "far", Boot: "f"},
		{Node: "receiver", Name: "near", Boot: "n"}}}
	if change != nil {
		change(&doc, &line)
	}
	for i := range 2 {
		doc.Results = append(doc.Results, model.Result{State: model.Valid, Repeat: i, Flows: []model.FlowResult{{
			Name: "up", From: "sender", To: "receiver", SendPPS: 200e3, Streams: 1, PayloadBytes: 64, Attempted: 1000, Ledger: model.Ledger{Lines: []model.Line{line}}}}})
	}
	doc.Results = append(doc.Results, model.Result{State: model.Invalid, Flows: doc.Results[0].Flows})
	return doc
}

func TestCollect(t *testing.T) {
	near, far := model.Host{Name: "near", Boot: "n"}, model.Host{Name: "elsewhere", Boot: "x"}
	now := knobs("net.core.netdev_max_backlog=1000")
	all := func(string) bool { return true }
	none := func(string) bool { return false }
	for name, c := range map[string]struct {
		doc  model.Document
		ask  Ask
		want string
	}{
		"this host, as it is now": {ran(nil), Ask{This: near, Knobs: now, CanApply: all, HostWide: all},
			"receiver net.core.netdev_max_backlog 1000 -> 2000 here apply 200 of 2000"},
		"it cannot be set": {ran(nil), Ask{This: near, Knobs: now, CanApply: none, HostWide: all},
			"receiver net.core.netdev_max_backlog 1000 -> 2000 here 200 of 2000"},
		"after it was set": {ran(nil),
			Ask{This: near, Knobs: knobs("net.core.netdev_max_backlog=2000"), CanApply: all, HostWide: all},
			"receiver net.core.netdev_max_backlog 2000 ->  here limit 200 of 2000"},
		"another rate": {ran(nil), Ask{This: near, Knobs: now, RatePPS: 1e6, CanApply: all, HostWide: all},
			"receiver net.core.netdev_max_backlog 1000 -> 10000 here apply 200 of 2000"},
		"another host": {ran(nil), Ask{This: far, Knobs: now, CanApply: all, HostWide: all},
			"receiver net.core.netdev_max_backlog 500 -> 2000 200 of 2000"},
		"another host and rate": {ran(nil), Ask{This: far, RatePPS: 1e6},
			"receiver net.core.netdev_max_backlog 500 -> 10000 200 of 2000"},
		"of the other role": {ran(nil), Ask{This: near, Knobs: now, Role: "sender"}, ""},
		"of its role": {ran(nil), Ask{This: far, Role: "receiver", Device: "eth9"},
			"receiver net.core.netdev_max_backlog 500 -> 2000 200 of 2000"},
		"of another interface": {ran(func(_ *model.Document,
			l *model.Line) {
			l.Advice[0].Knob = "eth1.rx_ring"
			l.Cause = "odd"
		}),
			Ask{This: far, Device: "eth9"}, ""},
		"what only the run knows": {ran(func(_ *model.Document,
			l *model.Line) {
			l.Advice[0].Knob = "eth1.rx_ring"
			l.Cause = "odd"
		}),
			Ask{This: far, RatePPS: 1}, "receiver eth1.rx_ring 500 -> 2000 200 of 2000"},
		"after a restart, by its name": {ran(nil),
			Ask{This: model.Host{Name: "near", Boot: "later"}, Knobs: now, CanApply: all},
			"receiver net.core.netdev_max_backlog 1000 -> 2000 here apply 200 of 2000"},
		"a lab's node: what is the host's": {ran(func(d *model.Document,
			_ *model.Line) {
			d.Lab = &model.LabFacts{Nodes: []string{"sender", "receiver"}}
		}),
			Ask{This: near, Knobs: now, CanApply: all,
				HostWide: all}, "receiver net.core.netdev_max_backlog 1000 -> 2000 here apply 200 of 2000"},
		"a lab's node: what is its own": {ran(func(d *model.Document,
			_ *model.Line) {
			d.Lab = &model.LabFacts{Nodes: []string{"sender", "receiver"}}
		}),
			Ask{This: near, Knobs: now, CanApply: all,
				HostWide: none}, "receiver net.core.netdev_max_backlog 500 -> 2000 here 200 of 2000"},
		"another host's queue, of which the run knows more": {ran(func(_ *model.Document, l *model.Line) {
			l.Layer, l.Cause, l.Advice[0].Knob = "sender-qdisc", "QDISC_DROP", "eth0.txqueuelen"
		}), Ask{This: far}, "receiver eth0.txqueuelen 500 -> 2000 200 of 2000"},
		"another host's memory, in pages of a size that only the run knows": {ran(func(_ *model.Document,
			l *model.Line) {
			l.Layer, l.Cause, l.Advice[0].Knob, l.Advice[0].Present = "receiver-memory", "PROTO_MEM", "net.ipv4.udp_mem", "500 600 700"
		}), Ask{This: far}, "receiver net.ipv4.udp_mem 500 600 700 -> 2000 200 of 2000"},
		"a lab's node: its own interface, whose other settings are gone": {ran(func(d *model.Document, l *model.Line) {
			d.Lab = &model.LabFacts{Nodes: []string{"sender", "receiver"}}
			l.Layer, l.Cause, l.Advice[0].Knob = "receiver-ring", "FULL_RING", "eth0.threaded"
		}), Ask{This: near, Knobs: now, CanApply: all, HostWide: none}, "receiver eth0.threaded 500 -> 2000 here 200 of 2000"},
		"of many receivers": {ran(func(_ *model.Document, l *model.Line) { l.Evidence = nil }),
			Ask{This: near, Knobs: now, CanApply: all,
				HostWide: all}, "receiver net.core.netdev_max_backlog 500 -> 2000 here apply 200 of 2000"},
		"of many receivers, after it was set": {ran(func(_ *model.Document, l *model.Line) { l.Evidence = nil }),
			Ask{This: near, Knobs: knobs("net.core.netdev_max_backlog=2000"), CanApply: all, HostWide: all}, ""},
		"no counter moved": {ran(func(_ *model.Document, l *model.Line) { l.Evidence = nil; l.Advice = nil }),
			Ask{This: near, Knobs: now, CanApply: all}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var list []string
			for _, a := range Collect(c.doc, c.ask) {
				words := []string{a.Host, a.Knob, a.Present, "->", a.Value}
				for _, flag := range []struct {
					word string
					is   bool
				}{{"here", a.Here}, {"apply", a.Apply}, {"limit", !a.Proposes()}} {
					if flag.is {
						words = append(words, flag.word)
					}
				}
				if c.doc.Lab != nil && !a.Apply && a.Command+a.Undo != "" {
					t.Errorf("a lab's node is not this host: %q", a.Command+a.Undo)
				}
				list = append(list, strings.Join(append(words, fmt.Sprint(a.Packets), "of", fmt.Sprint(a.Attempted)),
					" "))
			}
			if got := strings.Join(list, "; "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// The largest of several values is meant, and what is not the limit for one trial is not told beside it.
func TestCollectMerges(t *testing.T) {
	doc := ran(nil)
	doc.Results[1].Flows[0].SendPPS = 400e3
	got := Collect(doc, Ask{This: model.Host{Boot: "n"}, Knobs: knobs("net.core.netdev_max_backlog=3000")})
	if len(got) != 1 || got[0].Value != "4000" || got[0].Packets != 100 {
		t.Errorf("got %+v", got)
	}
	if got := Collect(doc, Ask{This: model.Host{Boot: "n"},
		Knobs: knobs("net.core.netdev_max_backlog=1000")}); len(got) != 1 || got[0].Value != "4000" ||
		got[0].Packets != 200 {
		t.Errorf("got %+v", got)
	}
}

func TestDeviceOf(t *testing.T) {
	for knob, want := range map[string]string{
		"eth0.rx_ring": "eth0", "eth0.100.txqueuelen": "eth0.100", "net.core.rmem_max": "", "socket.receive_buffer": "", "cpu.governor": "",
		"net.ipv4.conf.eth0/100.rp_filter": "eth0.100", "net.ipv4.neigh.eth1.unres_qlen_bytes": "eth1", "x": "",
	} {
		if got := deviceOf(knob); got != want {
			t.Errorf("deviceOf(%q) = %q, want %q", knob, got, want)
		}
	}
}

// A host of the same make and name is another one, as clones of one image are.
func TestHere(t *testing.T) {
	clone := func(node, boot string) model.Host {
		return model.Host{Node: node, Name: "debian", OS: "linux", CPU: "x", Boot: boot}
	}
	ends := model.Document{Host: []model.Host{clone("sender", "a"), clone("receiver", "b")}}
	one := model.Document{Host: []model.Host{clone("sender", "a"), clone("receiver", "a")}}
	for _, c := range []struct {
		name string
		doc  model.Document
		boot string
		want string
	}{
		{"one of two clones", ends, "b", "[receiver]"},
		{"one of two clones, started again", ends, "c", "[]"},
		{"both ends", one, "a", "[sender receiver]"},
		{"both ends, started again", one, "c", "[sender receiver]"},
	} {
		if got := fmt.Sprint(Here(c.doc, clone("", c.boot))); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
