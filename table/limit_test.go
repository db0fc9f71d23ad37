package table

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pelt/model"
	"pelt/unit"
)

// trialOf is a flood of 1000 packets in a second by an idle sender, with a ledger's lines of what was lost.
func trialOf(edits ...edit) Group {
	d := &model.Document{
		Plan: model.Plan{Flows: []model.Flow{{Name: "up"}}},
		Lab:  &model.LabFacts{Nodes: []string{"sender", "nat", "receiver"}},
		Results: []model.Result{{State: model.Valid, Flows: []model.FlowResult{{Name: "up", Protocol: model.UDP,
			From: "sender", To: "receiver", DurationS: 1, PayloadBytes: 1000, FrameBytes: 1042, Planned: 1000,
			Attempted: 1000, SendPPS: 1000, SenderCPU: model.CPU{ThreadRatio: 0.5},
			ReceiverCPU: model.CPU{ThreadRatio: 0.5}}}}},
	}
	f := &d.Results[0].Flows[0]
	for _, e := range edits {
		e(d, f)
	}
	for _, l := range f.Ledger.Lines {
		f.Lost += l.Packets
	}
	f.Lost += f.Ledger.Unattributed
	f.Received = f.Attempted - f.Lost
	f.LossRatio = float64(f.Lost) / float64(f.Attempted)
	f.ReceivePPS, f.GoodputBPS = float64(f.Received), float64(f.Received)*8000
	return Group{Rows: Rows(d)}
}

const full = model.CauseLinkQueue

type edit = func(d *model.Document, f *model.FlowResult)

func loses(n uint64, layer, host, cause string) edit {
	return func(_ *model.Document, f *model.FlowResult) {
		f.Ledger.Lines = append(f.Ledger.Lines, model.Line{Layer: layer, Host: host, Cause: cause, Packets: n})
	}
}

func unplaced(n uint64) edit {
	return func(_ *model.Document, f *model.FlowResult) { f.Ledger.Unattributed = n }
}

func asked(d *model.Document, _ *model.FlowResult) { d.Plan.Flows[0].Rate = unit.PacketRate(1000) }

func busySender(_ *model.Document, f *model.FlowResult) { f.SenderCPU.ThreadRatio = 1 }

func unread(_ *model.Document, f *model.FlowResult) { f.SenderCPU = model.CPU{} }

// ofLinkOf sets a link of so many bit/s: 1000 frames of this test are 8.4 Mbit/s on it.
func ofLinkOf(bits uint64) edit {
	return func(d *model.Document, _ *model.FlowResult) { d.Plan.Links = []model.Link{{Rate: unit.BitRate(bits)}} }
}

func held(_ *model.Document, f *model.FlowResult) {
	f.Ledger.Pacing = []model.PacingLine{{Cause: model.PacingBackpressure, Host: "sender", Packets: 50,
		Queue: &model.Queue{Kind: "tbf", RateBPS: 1e6}}}
}

func busyRouter(ratio float64) edit {
	return func(d *model.Document, _ *model.FlowResult) {
		d.Results[0].Router = &model.RouterWatch{Node: "nat", ThreadRatio: &ratio}
	}
}

func ofTCP(held float64, real bool) edit {
	return func(d *model.Document, f *model.FlowResult) {
		f.Protocol, f.TCP = model.TCP, &model.TCPFacts{Writes: 1000, BusyS: 1, RwndLimitedS: held}
		if real {
			d.Lab = nil
		}
	}
}

func invalid(code string) edit {
	return func(d *model.Document, _ *model.FlowResult) {
		d.Results[0].State, d.Results[0].Why = model.Invalid, model.Reasons{{Code: code}}
	}
}

// TestLimit: what held trials back is what a figure or a line of the ledger proves, and else not known.
func TestLimit(t *testing.T) {
	filter := loses(500, model.LayerReceiverFilter, "receiver", "NETFILTER_DROP")
	for _, c := range []struct {
		name  string
		of    []edit
		by    Part
		proof string
	}{
		{"an asked rate of which half is lost", []edit{asked,
			loses(425, model.LayerNetwork, "link nat-receiver", full)}, ByLink, "network link-queue link nat-receiver"},
		{"an asked rate that fills the link", []edit{asked, ofLinkOf(8_500_000)}, ByOffer, "loss_ratio"},
		{"an asked rate that the sender did not keep", []edit{asked, busySender,
			func(_ *model.Document, f *model.FlowResult) { f.Planned = 1040 }}, BySender, "sender_cpu_thread_ratio"},
		{"an asked rate that its own queue held back", []edit{asked, held}, ByQueue, model.PacingBackpressure},
		{"dead streams", []edit{asked, func(_ *model.Document, f *model.FlowResult) {
			f.DeadStreams = []model.DeadStream{{}}
		}}, ByDead, "attempted_packets"},
		{"a full link", []edit{ofLinkOf(8_500_000)}, ByLink, "link_ratio"},
		{"a link that would be full with the checksums of its frames", []edit{ofLinkOf(8_945_000)}, Unproven, ""},
		{"a rule at the receiver", []edit{filter}, ByReceiver, "receiver-filter NETFILTER_DROP receiver"},
		{"a rule at the receiver, the sender busy", []edit{filter, busySender}, ByReceiver,
			"receiver-filter NETFILTER_DROP receiver"},
		{"losses without a place", []edit{unplaced(500), loses(400, model.LayerNetwork, "nat", "QDISC_DROP")},
			Unproven, ""},
		{"no part lost most", []edit{unplaced(200), loses(200, model.LayerNetwork, "nat", "QDISC_DROP"), filter,
			loses(200, model.LayerSendCall, "sender", "EPERM")}, Unproven, ""},
		{"the ring of the receiver's card", []edit{loses(9, model.LayerReceiverRing, "receiver", "rx-missed")},
			ByReceiver, "receiver-ring rx-missed receiver"},
		{"a ring of the router", []edit{loses(500, model.LayerNetwork, "nat", model.CauseRingFull), busySender},
			ByRouter, "network ring-full nat"},
		{"single losses of a busy sender", []edit{loses(9, model.LayerNetwork, "nat", model.CauseRingFull), busySender},
			BySender, "sender_cpu_thread_ratio"},
		{"a busy router", []edit{unplaced(500), busyRouter(0.95)}, ByRouter, "router_thread_ratio"},
		{"a busy router whose packets the receiver loses", []edit{filter, busyRouter(0.95)}, ByReceiver,
			"receiver-filter NETFILTER_DROP receiver"},
		{"a busy router whose ring is full", []edit{loses(500, model.LayerNetwork, "nat", model.CauseRingFull),
			busyRouter(0.95)}, ByRouter, "router_thread_ratio"},
		{"a busy router that loses by elimination", []edit{loses(500, model.LayerNetwork, "nat", model.CauseInside),
			busyRouter(0.95)}, ByRouter, "router_thread_ratio"},
		{"a busy router whose policer drops", []edit{loses(500, model.LayerNetwork, "nat", "POLICER"),
			busyRouter(0.95)}, ByRouter, "network POLICER nat"},
		{"a busy router before a link that drops", []edit{busyRouter(0.95),
			loses(500, model.LayerNetwork, "link nat-receiver", model.CauseLinkLoss)}, ByLink,
			"network link-loss link nat-receiver"},
		{"nothing lost, the router busy", []edit{busyRouter(0.95)}, Unproven, ""},
		{"nothing lost, the sender busy", []edit{busySender}, BySender, "sender_cpu_thread_ratio"},
		{"nothing lost, the sender idle", nil, Unproven, ""},
		{"nothing lost, the sender not read", []edit{unread}, Unproven, ""},
		{"nothing lost, a queue held back", []edit{held}, ByQueue, model.PacingBackpressure},
		{"TCP in a lab", []edit{ofTCP(0, false), ofLinkOf(1e9)}, ByControl, "link_ratio"},
		{"TCP in a lab without a rate", []edit{ofTCP(0, false)}, Unproven, ""},
		{"TCP, the sender not read", []edit{ofTCP(0, false), ofLinkOf(1e9), unread}, Unproven, ""},
		{"TCP between hosts", []edit{ofTCP(0, true), ofLinkOf(1e9)}, Unproven, ""},
		{"TCP that waits for a window", []edit{ofTCP(0.5, true)}, ByBuffers, "tcp_held_back_ratio"},
		{"TCP that fills the link", []edit{ofTCP(0, true), ofLinkOf(8_500_000)}, ByLink, "link_ratio"},
		{"an invalid trial of a late sender", []edit{busyRouter(1), invalid(model.SenderStolen)}, BySender,
			model.SenderStolen},
		{"an invalid trial of a link that was late", []edit{busySender, invalid(model.LinkBehind)}, Unproven, ""},
	} {
		if got := trialOf(c.of...).Limit(); got.By != c.by || got.Proof != c.proof {
			t.Errorf("%s: %s, by %q; want %s, %q", c.name, got.By, got.Proof, c.by, c.proof)
		} else if c.by == Unproven && got.OfRate() {
			t.Errorf("%s: of its rate", c.name)
		}
	}
}

// TestPagesOfLimits: pages of the manual tell the shares from which on a limit is told.
func TestPagesOfLimits(t *testing.T) {
	for name, wants := range map[string][]string{
		"router.md": {
			fmt.Sprintf("(%g %% to %g %% of its rate; TCP payload from %g %%)", 100*FullLink, 100*OverLink, 100*fullLinkTCP),
			fmt.Sprintf("at least %g %% busy (in a lab %g %%)", 100*busyHost, 100*busyThread),
			fmt.Sprintf("less than %g %% was lost", 100*Overload)},
		"words.md": {fmt.Sprintf("each trial lost less than %g %%", 100*Lossless)},
	} {
		page, err := os.ReadFile("../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(page), want) {
				t.Errorf("docs/%s does not say %q", name, want)
			}
		}
	}
}

// TestLimitOfLayers: each place that loses packets is of one part, at whatever rate; only full queues and rings on the
// way are of the rate.
func TestLimitOfLayers(t *testing.T) {
	for _, layer := range model.Layers() {
		want := ByReceiver
		if at := slices.Index(model.Layers(), layer); at < slices.Index(model.Layers(), model.LayerNetwork) {
			want = BySender
		} else if layer == model.LayerNetwork {
			continue
		}
		for _, host := range []string{"", "sender", "receiver", "nat"} {
			got := trialOf(loses(500, layer, host, "any")).Limit()
			if got.By != want || !strings.HasPrefix(got.Proof, layer) {
				t.Errorf("%s at %q: %s by %s", layer, host, got.By, got.Proof)
			}
		}
	}
	for _, c := range []struct {
		host, cause string
		want        Part
		ofRate      bool
	}{
		{"", model.CauseElimination, ByPath, false},
		{"", model.CauseStillQueued, ByPath, true},
		{"192.0.2.1", model.CauseICMP + "host unreachable", ByPath, false},
		{"nat", "ROUTE_REFUSED", ByRouter, false},
		{"nat", model.CauseForwardingOff, ByRouter, false},
		{"nat", "NETFILTER_DROP", ByRouter, false},
		{"nat", model.CauseInside, ByRouter, false},
		{"nat", "QDISC_DROP", ByRouter, true},
		{"nat", "CPU_BACKLOG", ByRouter, true},
		{"router", model.CauseRingMissed, ByRouter, true},
		{"link nat-receiver", model.CauseLinkLoss, ByLink, false},
		{"links to receivers", full, ByLink, true},
		{"sender", "QDISC_DROP", BySender, true},
		{"receiver", "QDISC_DROP", ByReceiver, true},
		{"another namespace of this machine 4026532246", "NETFILTER_DROP", ByPath, false},
	} {
		for _, of := range [][]edit{{}, {asked}} {
			got := trialOf(append(of, loses(500, model.LayerNetwork, c.host, c.cause))...).Limit()
			if got.By != c.want || got.OfRate() != c.ofRate || got.Share != 1 {
				t.Errorf("%s at %q: %s, of its rate %v", c.cause, c.host, got.By, got.OfRate())
			}
		}
	}
}
