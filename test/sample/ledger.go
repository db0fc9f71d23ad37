package sample

import (
	"pelt/model"
	"pelt/unit"
)

// kind is one cause of loss and all that stands behind it.
type kind struct {
	line  model.Line
	share float64 // of the attempted packets
}

// moved is a counter that went up by delta, of which excess is not the flow's. what is its scope, unit and role.
func moved(host, name string, what [3]string, before, delta, excess uint64) model.Evidence {
	return model.Evidence{Host: host, Counter: name, Scope: what[0], Unit: what[1], Role: what[2],
		Before: before, After: before + delta, Delta: delta, Excess: excess}
}

// kinds are six causes along the path, of growing lack of certainty.
func kinds(attempted uint64) []kind {
	n := func(share float64) uint64 { return uint64(share * float64(attempted)) }
	return []kind{
		{model.Line{Layer: "receiver-buffer", Host: "receiver", Cause: "SOCKET_RCVBUFF", Confidence: "exact-seq",
			Function: "udp_queue_rcv_one_skb", Interface: "r0",
			Evidence: []model.Evidence{
				moved("receiver", "kfree_skb SOCKET_RCVBUFF", [3]string{"packet", "datagram", "primary"}, 0, n(0.026),
					0),
				moved("receiver", "SO_MEMINFO drops", [3]string{"socket", "datagram", "confirms"}, 0, n(0.026), 0),
				moved("receiver", "Udp.RcvbufErrors", [3]string{"namespace", "datagram", "confirms"}, 1204, n(0.026),
					0),
			},
			Advice: []model.Advice{{Knob: "net.core.rmem_max", Host: "receiver", Present: "212992", Value: "4194304",
				Why: model.Doubts{{Code: model.CounterMoved, Name: "SO_MEMINFO drops",
					Numbers: map[string]float64{"packets": float64(n(0.026))}}, {Code: model.NeedBuffer,
					Numbers: map[string]float64{"flow_pps": 150e3, "stall_s": 0.025, "truesize_bytes": 832,
						"measured": 1, "need_bytes": 3120000}}},
				Command: "sysctl -w net.core.rmem_max=4194304", Undo: "sysctl -w net.core.rmem_max=212992",
				Note: model.Doubts{{Code: model.NoteAnyProgram}}}},
		}, 0.026},
		{model.Line{Layer: "receiver-filter", Host: "receiver", Cause: "NETFILTER_DROP", Confidence: "exact-seq",
			Function: "nft_do_chain", Interface: "r0",
			Evidence: []model.Evidence{
				moved("receiver", "kfree_skb NETFILTER_DROP", [3]string{"packet", "datagram", "primary"}, 0, n(0.005),
					0),
				moved("receiver", "nft.inet.filter.input.5.packets", [3]string{"namespace", "skb", "confirms"}, 77,
					n(0.005), 0),
			}}, 0.005},
		{model.Line{Layer: "network", Host: "router", Cause: "QDISC_DROP",
			Confidence: "bounded", Interface: "x1",
			Evidence: []model.Evidence{moved("router", "qdisc.x1.tbf.1:.drops", [3]string{"device", "skb", "primary"},
				10, n(0.012)+310, 310)}}, 0.012},
		{model.Line{Layer: "sender-qdisc", Host: "sender", Cause: "ENOBUFS", Confidence: "exact-seq", Interface: "s0",
			Evidence: []model.Evidence{
				moved("sender", "send errors ENOBUFS", [3]string{"packet", "datagram", "primary"}, 0, n(0.009), 0),
				moved("sender", "Udp.SndbufErrors", [3]string{"namespace", "datagram", "confirms"}, 0, n(0.009), 0),
			}}, 0.009},
		{model.Line{Layer: "receiver-backlog", Host: "receiver", Cause: "CPU_BACKLOG", Confidence: "bounded",
			Function: "enqueue_to_backlog", Interface: "r0",
			Evidence: []model.Evidence{moved("receiver", "softnet.dropped", [3]string{"host", "skb", "primary"},
				4_294_960_000, n(0.004), 0)},
			Advice: []model.Advice{{Knob: "net.core.netdev_max_backlog", Host: "receiver", Present: "1000",
				Value: "3000", Why: model.Doubts{{Code: model.CounterMoved, Name: "softnet.dropped",
					Numbers: map[string]float64{"packets": float64(n(0.004))}}, {Code: model.NeedBurst,
					Numbers: map[string]float64{"flow_pps": 150e3, "stall_s": 0.02, "packets": 3000}}},
				Command: "sysctl -w net.core.netdev_max_backlog=3000",
				Undo:    "sysctl -w net.core.netdev_max_backlog=1000",
				Note:    model.Doubts{{Code: model.NoteWholeHost}}}},
		}, 0.004},
		{model.Line{Layer: "network", Cause: model.CauseElimination, Confidence: "inferred",
			Evidence: []model.Evidence{
				moved("sender", "dev.s0.tx_packets", [3]string{"device", "frame", "primary"}, 100, attempted, 0),
				moved("receiver", "dev.r0.rx_packets", [3]string{"device", "frame", "primary"}, 90,
					attempted-n(0.0021), 0),
			}}, 0.0021},
	}
}

// lose puts kinds into a flow's ledger in the order given, which is that of
// travel, and leaves rest of its attempted packets unattributed.
func lose(f *model.FlowResult, rest float64, all ...kind) {
	share := rest
	for _, k := range all {
		share += k.share
	}
	f.Lost = uint64(share * float64(f.Attempted))
	f.Received = f.Attempted - f.Lost
	f.LossRatio = float64(f.Lost) / float64(f.Attempted)
	f.ReceivePPS = f.SendPPS * (1 - f.LossRatio)
	f.GoodputBPS = f.ReceivePPS * float64(f.PayloadBytes) * 8
	l := model.Ledger{Lost: f.Lost, Unattributed: f.Lost, Lines: []model.Line{}}
	for i, k := range all {
		line := k.line
		line.Packets = uint64(k.share * float64(f.Attempted))
		if i == len(all)-1 && rest == 0 {
			line.Packets = l.Unattributed
		}
		l.Unattributed -= line.Packets
		if line.Confidence == "exact-seq" {
			for j := range uint64(5) {
				line.Sequences = append(line.Sequences, model.Span{From: 1000 + j*977, Count: 1 + j*j*3})
			}
		}
		l.Lines = append(l.Lines, line)
	}
	l.Checks = []model.Check{
		{Name: "attempted", Held: true, Law: "attempted", Counts: []uint64{f.Attempted, f.Attempted, 0}},
		{Name: "balance", Held: true, Law: "balance",
			Counts: []uint64{f.Lost, f.Lost - l.Unattributed, l.Unattributed}},
		{Name: "filter", Held: len(all) < 6, Law: "filter", Counts: []uint64{f.Attempted, f.Attempted - 17, 0},
			Words: []string{"Ip.InReceives - InDelivers"}},
	}
	f.Ledger = l
}

// Ledger is a lab whose sizes lose for 0, 1, 3 and 6 reasons.
func Ledger() model.Document {
	sizes := []int{64, 256, 512, 1472}
	d := Base("lab:router", sizes, 2, 2)
	d.Lab = &model.LabFacts{Topology: "router", Nodes: []string{"sender", "router", "receiver"},
		Links: []model.LabLink{{From: "router", To: "receiver", Backend: "tbf", At: "router",
			Settings: model.Link{Rate: 2e8}}}}
	d.Plan.Flows[0].Rate = unit.PacketRate(150e3)
	for repeat := range 2 {
		for i, p := range sizes {
			f := UDP("up", p, 150e3+float64(repeat)*700, 150e3+float64(repeat)*700, 2, 90e3)
			k := kinds(f.Attempted)
			switch i {
			case 0:
				lose(&f, 0.0007, k[3], k[2], k[5], k[4], k[1], k[0])
			case 1:
				lose(&f, 0, k[2], k[1], k[0])
			case 2:
				lose(&f, 0, k[0])
			case 3:
				lose(&f, 0)
			}
			r := Result(p, repeat, f)
			r.Observed = []model.Observed{{Node: "sender", Mode: model.DropsSeq, IdleS: 0.3},
				{Node: "router", Mode: model.DropsSeq, IdleS: 0.3},
				{Node: "receiver", Mode: model.DropsSeq, IdleS: 0.3}}
			r.Counters = []model.Counter{{Host: "receiver", Name: "Udp.RcvbufErrors", Scope: "namespace",
				Unit: "datagram", Before: 1204, After: 1204 + 7800, Whole: 7800, Measure: 7800}}
			d.Results = append(d.Results, r)
		}
	}
	return d
}

// Chain has many nodes between the ends, nearly nothing that arrives, more
// causes than a picture names, and large numbers.
func Chain() model.Document {
	d := Base("lab:chain", []int{64}, 1, 2)
	d.Lab = &model.LabFacts{Topology: "chain",
		Nodes: []string{"sender", "edge-of-the-building", "core1", "core2", "core3", "receiver"}}
	f := UDP("up", 64, 1.9e9, 1.9e9, 2, 90e3)
	k := kinds(f.Attempted)
	k[2].line.Host, k[2].share = "core3", 0.31
	k[0].share = 0.42
	reasons := []string{"IP_RPFILTER", "UDP_CSUM", "NO_SOCKET", "PROTO_MEM"}
	layers := []string{model.LayerReceiverIP, model.LayerReceiverUDP, model.LayerReceiverUDP, model.LayerReceiverMemory}
	all := []kind{k[3], k[2], k[5], k[4], k[1]}
	for i, r := range reasons {
		all = append(all, kind{model.Line{Layer: layers[i], Host: "receiver", Cause: r, Confidence: "exact-count"},
			0.05 / float64(i*i+1)})
	}
	lose(&f, 0.11, append(all, k[0])...)
	r := Result(64, 0, f)
	r.Observed = []model.Observed{{Node: "sender", Mode: model.DropsCount}, {Node: "edge-of-the-building"},
		{Node: "core1", Mode: model.DropsOff}, {Node: "receiver", Mode: model.DropsSeq, Overwritten: 3, Missed: 7}}
	d.Results = append(d.Results, r)
	return d
}

// Unwatched is between two hosts: one without rights, one that went away.
func Unwatched() model.Document {
	d := Base("192.168.2.5", []int{64, 1472}, 1, 2)
	for i, p := range []int{64, 1472} {
		f := UDP("up", p, 150e3, 150e3, 2, 0)
		k := kinds(f.Attempted)
		if i == 0 {
			lose(&f, 0.4, k[3])
		} else {
			lose(&f, 0, k[4], k[5])
		}
		r := Result(p, 0, f)
		r.Observed = []model.Observed{
			{Node: "sender", Mode: model.DropsOff,
				Why:    model.Doubts{{Code: model.NoRights}},
				Unread: model.Doubts{{Code: model.Unread, Name: "nft rules", Text: "operation not permitted"}}},
			{Node: "receiver",
				Why: model.Doubts{{Code: model.TrialCut, Of: fault("its agent went away during the trial")}}},
		}
		d.Results = append(d.Results, r)
	}
	return d
}
