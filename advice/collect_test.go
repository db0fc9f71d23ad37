package advice

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pelt/model"
	"pelt/test/golden"
)

// ran is a run between far (sender) and near (receiver) in which one line lost packets.
func ran(change func(*model.Document, *model.Line)) model.Document {
	line := lost("receiver-backlog", "CPU_BACKLOG", "softnet.dropped")
	line.Advice = []model.Advice{{Knob: "net.core.netdev_max_backlog", Host: "receiver", Present: "500",
		Value: "2000", Why: model.Doubts{{Text: "then"}}, Command: "sysctl"}}
	doc := model.Document{ID: "r", Host: []model.Host{{Node: "sender", Name: "far", Boot: "f"},
		{Node: "receiver", Name: "near", Boot: "n"}}}
	if change != nil {
		change(&doc, &line)
	}
	for i := range 2 {
		doc.Results = append(doc.Results, model.Result{State: model.Valid, Repeat: i, Flows: []model.FlowResult{{
			Name: "up", From: "sender", To: "receiver", SendPPS: 200e3, Streams: 1, PayloadBytes: 64, Attempted: 1000,
			Ledger: model.Ledger{Lines: []model.Line{line}}}}})
	}
	doc.Results = append(doc.Results, model.Result{State: model.Invalid, Flows: doc.Results[0].Flows})
	return doc
}

// TestCollect: what is advised after each run, of which host, and whether it can be applied here, stands in the golden
// file: a knob, what it is and what it should be, and the packets that it is about.
func TestCollect(t *testing.T) {
	near, far := model.Host{Name: "near", Boot: "n"}, model.Host{Name: "elsewhere", Boot: "x"}
	now, set := knobs("net.core.netdev_max_backlog=1000"), knobs("net.core.netdev_max_backlog=2000")
	all := func(string) bool { return true }
	none := func(string) bool { return false }
	of := func(layer, cause, knob string) func(*model.Document, *model.Line) {
		return func(_ *model.Document, l *model.Line) {
			l.Layer, l.Cause, l.Advice[0].Knob = cmp.Or(layer, l.Layer), cause, knob
		}
	}
	inLab := func(more func(*model.Document, *model.Line)) func(*model.Document, *model.Line) {
		return func(d *model.Document, l *model.Line) {
			if d.Lab = (&model.LabFacts{Nodes: []string{"sender", "receiver"}}); more != nil {
				more(d, l)
			}
		}
	}
	ends := []netip.Addr{netip.MustParseAddr("192.0.2.1")}
	at := func(address string) func(*model.Document, *model.Line) {
		return func(d *model.Document, _ *model.Line) { d.Host[1].Address = address }
	}
	unproven := func(_ *model.Document, l *model.Line) { l.Evidence = nil }
	var out strings.Builder
	for _, c := range []struct {
		name   string
		change func(*model.Document, *model.Line)
		ask    Ask
	}{
		{"this host, as it is now", nil, Ask{This: near, Knobs: now, CanApply: all, HostWide: all}},
		{"it cannot be set", nil, Ask{This: near, Knobs: now, CanApply: none, HostWide: all}},
		{"after it was set", nil, Ask{This: near, Knobs: set, CanApply: all, HostWide: all}},
		{"another rate", nil, Ask{This: near, Knobs: now, RatePPS: 1e6, CanApply: all, HostWide: all}},
		{"another host", nil, Ask{This: far, Knobs: now, CanApply: all, HostWide: all}},
		{"another host and rate", nil, Ask{This: far, RatePPS: 1e6}},
		{"of the other role", nil, Ask{This: near, Knobs: now, Role: "sender"}},
		{"of its role", nil, Ask{This: far, Role: "receiver", Device: "eth9"}},
		{"of another interface", of("", "odd", "eth1.rx_ring"), Ask{This: far, Device: "eth9"}},
		{"what only the run knows", of("", "odd", "eth1.rx_ring"), Ask{This: far, RatePPS: 1}},
		{"after a restart, by its name", nil,
			Ask{This: model.Host{Name: "near", Boot: "later"}, Knobs: now, CanApply: all}},
		{"a lab's node: what is the host's", inLab(nil), Ask{This: near, Knobs: now, CanApply: all, HostWide: all}},
		{"a lab's node: what is its own", inLab(nil), Ask{This: near, Knobs: now, CanApply: all, HostWide: none}},
		{"another host's queue, of which the run knows more", of("sender-qdisc", "QDISC_DROP", "eth0.txqueuelen"),
			Ask{This: far}},
		{"another host's memory, in pages of a size that only the run knows",
			func(d *model.Document, l *model.Line) {
				of("receiver-memory", "PROTO_MEM", "net.ipv4.udp_mem")(d, l)
				l.Advice[0].Present = "500 600 700"
			}, Ask{This: far}},
		{"a lab's node: its own interface, whose other settings are gone",
			inLab(of("receiver-ring", "FULL_RING", "eth0.threaded")),
			Ask{This: near, Knobs: now, CanApply: all, HostWide: none}},
		{"this host, an address of this namespace", at("192.0.2.1"),
			Ask{This: near, Addresses: ends, Knobs: now, CanApply: all, HostWide: none}},
		{"a namespace of this host: what is its own", at("192.0.2.2"),
			Ask{This: near, Addresses: ends, Knobs: now, CanApply: all, HostWide: none}},
		{"a namespace of this host: what is the host's", at("192.0.2.2"),
			Ask{This: near, Addresses: ends, Knobs: now, CanApply: all, HostWide: all}},
		{"this host, which has another address since it started again", at("192.0.2.2"),
			Ask{This: model.Host{Name: "near", Boot: "later"}, Addresses: ends, Knobs: now, CanApply: all}},
		{"this host, over loopback", at("127.0.0.1"),
			Ask{This: near, Addresses: ends, Knobs: now, CanApply: all, HostWide: none}},
		{"of many receivers", unproven, Ask{This: near, Knobs: now, CanApply: all, HostWide: all}},
		{"of many receivers, after it was set", unproven, Ask{This: near, Knobs: set, CanApply: all, HostWide: all}},
		{"no counter moved", func(_ *model.Document, l *model.Line) { l.Evidence, l.Advice = nil, nil },
			Ask{This: near, Knobs: now, CanApply: all}},
	} {
		fmt.Fprintf(&out, "%s:\n", c.name)
		for _, a := range Collect(ran(c.change), c.ask) {
			fmt.Fprintf(&out, "\t%s %s: %s -> %s, %d of %d packets; here %v, apply %v, a limit %v [%s] [%s]\n", a.Host,
				a.Knob, a.Present, a.Value, a.Packets, a.Attempted, a.Here, a.Apply, !a.Proposes(), a.Command, a.Undo)
		}
	}
	golden.File(t, "testdata/collected.txt", out.String())
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
		"eth0.rx_ring": "eth0", "eth0.100.txqueuelen": "eth0.100",
		"net.core.rmem_max": "", "socket.receive_buffer": "", "cpu.governor": "",
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
