package table

import (
	"slices"

	"pelt/model"
)

var metrics = slices.Concat(
	[]*Metric{
		// Rates. Packets are of UDP: segments of TCP are joined on their way as hosts like.
		define("receive_pps", "Received", Higher, part(func(f flow) float64 { return ofUDP(f, f.ReceivePPS) })),
		define("goodput_bps", "Goodput", Higher, part(goodput)),
		define("connections_per_s", "Connections", Higher,
			whole(func(f flow) float64 { return when(f.Connections != nil, f.ReceivePPS) })),
		define("completion_s", "Time to complete", Lower, tcp(completion)),
		define("unfinished_ratio", "Cut before the end", Lower, tcp(unfinished)).within(tenthPoint),
		define("loss_ratio", "Lost", Lower, part(loss)).within(tenthPoint),
		define("retransmit_ratio", "Sent again", Lower, tcp(resent)).within(tenthPoint),
		define("send_pps", "Sent", Neutral, part(func(f flow) float64 { return ofUDP(f, f.SendPPS) })),
		define("send_bps", "Sent bits", Neutral, part(func(f flow) float64 { return f.SendGoodputBPS })),
		define("wire_bps", "On the wire", Neutral, part(onWire)),
		define("link_ratio", "Of the link", Higher, ofLink),
		define("total_goodput_bps", "Goodput of all flows", Higher,
			trial(func(r Row) float64 { return total(r, goodput) })),
		define("total_receive_pps", "Received by all flows", Higher,
			trial(func(r Row) float64 { return total(r, carried) })),

		// What a search found, of each flow. RFC 9971 section 4.8.
		define("throughput_pps", "Throughput", Higher, search(func(s *Search) float64 { return s.Throughput })),
		define("throughput_bps", "Throughput, bits", Higher, throughputBits),
		define("holds_pps", "Holds at", Neutral, search(func(s *Search) float64 { return s.Lower })),
		define("fails_pps", "Fails at", Neutral, search(func(s *Search) float64 { return s.Upper })),
		define("search_trials", "Trials", Neutral, search(func(s *Search) float64 { return float64(len(s.Trials)) })),
		define("search_s", "Searched for", Neutral, search(searchSeconds)),

		// How the receivers of one flow compare, and its streams.
		define("receiver_goodput_min_bps", "Least receiver", Higher, receivers(slices.Min)),
		define("receiver_goodput_median_bps", "Median receiver", Higher, receivers(median)),
		define("receiver_goodput_max_bps", "Best receiver", Higher, receivers(slices.Max)),
		define("receiver_fairness_index", "Fairness of receivers", Higher, receivers(jain)),
		define("stream_fairness_index", "Fairness of streams", Higher,
			tcp(func(t facts) float64 { return jain(streamGoodputs(t)) })),
		define("control_share_ratio", "Share of the goodput", Neutral, mixShare),
	},

	// Times. Round trips are of the thin probe flow beside the test, or TCP's own.
	percentiles("delay", "Delay", Lower, func(f flow) *model.Percentiles { return f.Delay }),
	percentiles("round_trip", "Round trip", Lower, func(f flow) *model.Percentiles { return f.RoundTrip }),
	[]*Metric{
		define("queueing_p95_ns", "Queueing, 95 %", Lower, queueing),
		define("round_trip_increase_ns", "Round trip increase", Lower, whole(increase)),
		define("round_trips_per_minute", "Round trips a minute", Higher, whole(perMinute)),
		define("probe_loss_ratio", "Thin flow lost", Lower, probed(func(p *model.ProbeFacts) float64 {
			return 1 - float64(p.Answered)/float64(p.Sent)
		})).within(tenthPoint),
		define("probe_jitter_ns", "Jitter of round trips", Lower, probed(func(p *model.ProbeFacts) float64 {
			return when(p.Answered > 1, p.JitterNS)
		})),
		define("delay_variation_ns", "Delay variation", Lower, // RFC 8219 section 7.3.1
			times(func(f flow) *model.Percentiles { return f.Delay },
				func(p *model.Percentiles) float64 { return p.P999 - p.Min })),
		define("jitter_ns", "Jitter", Lower,
			whole(func(f flow) float64 { return when(f.Received > 1, ofUDP(f, f.JitterNS)) })),
	},
	percentiles("up_increase", "Increase up", Lower, func(f flow) *model.Percentiles {
		if f.Probe == nil {
			return nil
		}
		return f.Probe.Up
	}),
	percentiles("down_increase", "Increase down", Lower, func(f flow) *model.Percentiles {
		if f.Probe == nil {
			return nil
		}
		return f.Probe.Down
	}),
	percentiles("set_up", "Set-up", Lower, func(f flow) *model.Percentiles {
		if f.Connections == nil {
			return nil
		}
		return f.Connections.SetUp
	}),

	// Processors of the two ends.
	cpuMetrics("sender", "Sender", func(f flow) model.CPU { return f.SenderCPU }),
	cpuMetrics("receiver", "Receiver", func(f flow) model.CPU { return f.ReceiverCPU }),

	[]*Metric{
		// The router under test. Shares of its processors are of all cores together.
		define("router_thread_ratio", "Router thread", Lower,
			router(func(w watch) float64 { return known(w.ThreadRatio) })),
		define("router_busy_ratio", "Router busy", Lower, trial(routerBusy)),
		define("router_busiest_core_ratio", "Router busiest core", Lower, trial(busiestCore)),
		define("router_kernel_ratio", "Forwarded by the kernel", Neutral, trial(forwardedByKernel)),
		define("router_work_cores", "Router cores at work", Lower, trial(routerWork)).within(fivePercent),
		define("goodput_per_core_bps", "Goodput per core", Higher, trial(goodputPerCore)).within(fivePercent),
		define("router_packet_ns", "Router time per packet", Lower, trial(timePerPacket)),
	},
	splitMetrics("router", "Router", routerSplit),
	[]*Metric{
		define("router_softnet_dropped_packets", "Router backlog drops", Lower,
			router(func(w watch) float64 { return known(w.SoftnetDropped) })),
		define("router_softnet_squeezed", "Router squeezes", Lower,
			router(func(w watch) float64 { return known(w.SoftnetSqueezed) })),
		define("router_connections", "Connections tracked", Neutral,
			router(func(w watch) float64 { return known(w.Connections) })),
		define("router_connections_max", "Connections to track", Neutral,
			router(func(w watch) float64 { return known(w.ConnectionsMax) })),
		define("router_clock_hz", "Router clock", Neutral, router(func(w watch) float64 { return known(w.ClockHz) })),
		define("router_temperature_c", "Router temperature", Lower,
			router(func(w watch) float64 { return known(w.TemperatureC) })),
		define("router_cost_ratio", "Cost of watching", Lower,
			router(func(w watch) float64 { return known(w.CostRatio) })),

		// One core of a watched router.
		define("core_busy_ratio", "Core busy", Neutral, core(split.Busy)),
	},
	splitMetrics("core", "Core", core),

	[]*Metric{
		// One line of a ledger.
		define("ended_packets", "Packets lost there", Lower,
			line(func(l *model.Line, _ flow) float64 { return float64(l.Packets) })),
		define("ended_ratio", "Of all sent", Lower,
			line(func(l *model.Line, f flow) float64 { return float64(l.Packets) / float64(f.Attempted) }),
		).within(tenthPoint),

		// Packets.
		define("duration_s", "Measured for", Neutral, part(func(f flow) float64 { return f.DurationS })),
		define("planned_packets", "Planned packets", Neutral,
			whole(func(f flow) float64 { return when(f.Planned > 0, float64(f.Planned)) })),
		define("attempted_packets", "Packets sent", Neutral,
			part(func(f flow) float64 { return float64(f.Attempted) })),
		define("accepted_packets", "Packets accepted", Neutral,
			whole(func(f flow) float64 { return float64(f.Accepted) })),
		define("received_packets", "Packets received", Neutral,
			part(func(f flow) float64 { return float64(f.Received) })),
		define("lost_packets", "Packets lost", Lower, part(func(f flow) float64 { return float64(f.Lost) })),
		define("unattributed_packets", "Packets unexplained", Lower,
			udpCount(func(f flow) uint64 { return f.Ledger.Unattributed })),
		define("duplicate_packets", "Duplicates", Lower, udpCount(func(f flow) uint64 { return f.Duplicates })),
		define("late_packets", "Packets too late", Lower, udpCount(func(f flow) uint64 { return f.Late })),
		define("reordered_packets", "Packets out of order", Lower,
			udpCount(func(f flow) uint64 { return f.Reordered })),
		define("reordered_ratio", "Out of order", Lower,
			ofReceived(func(f flow) uint64 { return f.Reordered })).within(tenthPoint),
		define("duplicate_ratio", "Duplicated", Lower,
			ofReceived(func(f flow) uint64 { return f.Duplicates })).within(tenthPoint),

		// How the sender kept its schedule.
		define("gap_distance_ratio", "Gaps not as asked", Lower, whole(func(f flow) float64 {
			if f.Pacing == nil {
				return none
			}
			return known(f.Pacing.Distance)
		})),
		define("send_burst_max_packets", "Longest burst", Neutral,
			whole(func(f flow) float64 { return when(f.BurstMax > 0, float64(f.BurstMax)) })),
	},
	percentiles("send_late", "Late by", Lower, func(f flow) *model.Percentiles { return f.SendLate }),
	percentiles("send_gap", "Send gap", Neutral, func(f flow) *model.Percentiles { return f.SendGap }),
	percentiles("asked_gap", "Asked gap", Neutral, func(f flow) *model.Percentiles {
		if f.Pacing == nil {
			return nil
		}
		return f.Pacing.AskedGap
	}),

	// TCP and connections.
	[]*Metric{
		define("tcp_held_back_ratio", "Held back by buffers", Lower, tcp(heldBack)),
		define("tcp_rtt_ns", "TCP round trip", Lower,
			tcp(func(t facts) float64 { return when(t.RTTNanos > 0, t.RTTNanos) })),
		define("tcp_retransmits", "Segments sent again", Lower,
			tcp(func(t facts) float64 { return float64(t.Retransmits) })),
		define("tcp_segment_max_bytes", "Segment size", Neutral,
			tcp(func(t facts) float64 { return when(t.SegmentSizeBytes > 0, float64(t.SegmentSizeBytes)) })),
		define("connections_open_max", "Open at once", Higher,
			connections(func(c *model.ConnectionFacts) float64 { return float64(c.OpenMax) })),
		define("connections_failed", "Failed connections", Lower, connections(failedConnections)),
		define("connections_broken", "Broken connections", Lower,
			connections(func(c *model.ConnectionFacts) float64 { return float64(c.Broken) })),
	},
)
