package finding

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pelt/ledger"
	"pelt/model"
	"pelt/table"
	"pelt/words"
)

func commandRule(rows []table.Row) []Finding {
	if len(rows) == 0 || len(rows[0].Doc.Arguments) == 0 {
		return nil
	}
	return []Finding{say("setup.command", SetUp, "command", CommandLine(rows[0].Doc.Arguments))}
}

// CommandLine is a command of pelt as a user types it in a shell.
func CommandLine(args []string) string {
	words := []string{"pelt"}
	for _, a := range args {
		words = append(words, ShellWord(model.PrintableText(a)))
	}
	return strings.Join(words, " ")
}

func enginesRule(rows []table.Row) []Finding {
	sizes, why := map[string][]string{}, map[string]model.Doubts{}
	for _, g := range table.By(rows, table.KeyOf("engine"), table.KeyOf("payload_bytes")) {
		name := g.Level("engine").Text
		if valid, _, _ := g.Trials(); name == "" || valid == 0 {
			continue
		}
		sizes[name] = append(sizes[name], g.Keys[1].FormatIn(g.Language(), g.Level("payload_bytes")))
		if why[name] == nil {
			why[name] = g.Rows[0].Trial.EngineReason
		}
	}
	var out []Finding
	names, in := slices.Sorted(maps.Keys(sizes)), table.Language(rows)
	for _, name := range names {
		out = append(out, say("setup.engine", SetUp, "engine", name, "why", WhyIn(in, model.Reasons(why[name])),
			"sizes", when(len(names) > 1, span(in, sizes[name]))))
	}
	switch {
	case len(names) > 1 && slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "xdp") }):
		out = append(out, say("engine.mixed", Doubt))
	case len(names) == 1 && strings.Contains(names[0], "xdp"):
		ends := map[string]string{"xdp+udp": "the sender", "udp+xdp": "the receiver"}
		out = append(out, say("engine.frames", Doubt, "where", in.Say(cmp.Or(ends[names[0]], "both hosts"))))
	}
	return out
}

func linksRule(rows []table.Row) []Finding {
	if len(rows) == 0 || rows[0].Doc.Lab == nil {
		return nil
	}
	var out []Finding
	lab, in := rows[0].Doc.Lab, rows[0].Language()
	for _, l := range lab.Links {
		out = append(out, say("setup.link", SetUp, "from", in.Say(l.From), "to", in.Say(l.To), "at", in.Say(l.At),
			"settings", l.Settings.Words(), "kernel", when(l.Backend != model.BackendUser, l.Backend),
			"links_count", some(l.More)))
	}
	if len(lab.Varied) > 0 {
		out = append(out, say("setup.varied", SetUp, "knobs", in.Join(lab.Varied)))
	}
	return append(out, madeLoss(rows)...)
}

// madeLoss compares the share of frames that emulated links lost in valid trials with the share that was asked. Links
// and trials that were asked for the same loss are one finding.
func madeLoss(rows []table.Row) []Finding {
	frames, lost, ways := map[float64]float64{}, map[float64]float64{}, map[float64][]string{} // by what was asked
	for _, r := range table.OneEach(only(rows, table.Row.Valid)) {
		if len(r.Trial.Made) > 0 {
			continue // its links may have been asked for something else after a while
		}
		for _, l := range r.Trial.Links {
			if l.AskedRatio == 0 || l.Lost == nil || l.Frames == 0 {
				continue
			}
			asked, way := l.AskedRatio, r.Sayf("%s to %s", r.Say(l.From), r.Say(l.To))
			frames[asked], lost[asked] = frames[asked]+float64(l.Frames), lost[asked]+float64(*l.Lost)
			if !slices.Contains(ways[asked], way) {
				ways[asked] = append(ways[asked], way)
			}
		}
	}
	var out []Finding
	for _, asked := range slices.Sorted(maps.Keys(ways)) {
		way := ways[asked][0]
		if more := len(ways[asked]) - 1; more > 0 {
			way = table.Language(rows).Sayf("%s and %d more", way, more)
		}
		out = append(out, say("setup.loss", SetUp, "way", way, "loss_ratio:asked", asked,
			"loss_ratio:made", lost[asked]/frames[asked], "frames_count", frames[asked]))
	}
	return out
}

func pathMTURule(rows []table.Row) []Finding {
	if len(rows) == 0 {
		return nil
	}
	var out []Finding
	all := rows[0].Doc.PathMTU
	for _, m := range all {
		f := say("setup.mtu", SetUp, "why", WhyIn(rows[0].Language(), model.Reasons(m.Why)),
			"flow", when(len(all) > 1, rows[0].Say(m.Flow)), "path_mtu_bytes", some(m.Bytes),
			"payload_bytes:whole", some(m.PayloadBytes),
			"told", when(m.Found == model.MTUTold, "yes"), "tried", when(m.Found == model.MTUSearch, "yes"))
		switch {
		case m.Bytes <= 0:
			f.Code = "setup.mtu-unknown"
		case m.AtLeast:
			f.Code = "setup.mtu-least"
		}
		out = append(out, f)
	}
	return out
}

// disorderRule doubts that packets arrive once and in order, where more than a share of them did not.
func disorderRule(rows []table.Row) []Finding {
	var out []Finding
	groups := table.Settled(table.Usable(rows))
	tell := func(code, metric string, most float64) {
		if len(groups) > 0 && largest(groups, metric).Middle(metric) > most {
			g := largest(groups, metric)
			out = append(out, say(code, Doubt, "worst", g, "where", at(g)))
		}
	}
	tell("path.twice", "duplicate_ratio", 0.001)
	tell("path.disorder", "reordered_ratio", 0.01)
	return out
}

func accountsRule(rows []table.Row) []Finding {
	count, where := map[string]float64{}, map[string]string{}
	for _, r := range rows {
		if r.Flow.Attempted == 0 {
			continue
		}
		for _, c := range r.Flow.Ledger.Checks {
			if !c.Held {
				count[c.Name]++
				where[c.Name] = cmp.Or(where[c.Name], ledger.LawIn(r.Language(), c))
			}
		}
	}
	var out []Finding
	for _, name := range slices.Sorted(maps.Keys(count)) {
		out = append(out, say("ledger.broken", Doubt, "flows_count", count[name], "where", where[name]))
	}
	return out
}

func watchingRule(rows []table.Row) []Finding {
	var out []Finding
	for _, r := range rows {
		if r.Flow.Ledger.Lost == 0 || r.Flow.Connections != nil { // no drop is of a connection
			continue
		}
		for _, o := range r.Trial.Observed {
			less := o.Mode == "" || len(o.Why) > 0 && o.Mode != r.Doc.Plan.Drops &&
				(o.Mode == model.DropsOff || o.Mode == model.DropsCount)
			f := Watched(r.Language(), model.Observed{Node: o.Node, Mode: o.Mode, Why: o.Why})
			if f.Level = Doubt; less {
				out = append(out, f)
			}
		}
	}
	return out
}

// reportedRule says whose figures those of an end are that is no pelt, and how many losses these do not show.
func reportedRule(rows []table.Row) (list []Finding) {
	for _, code := range []string{"reported", "reported.sent"} {
		program, node, tail := "", "", uint64(0)
		for _, r := range rows {
			at := model.IperfNode(r.Doc.Plan.Target)
			if r.Flow.Peer != nil && (r.Flow.From == at) == (code == "reported.sent") {
				program, node, tail = r.Flow.Peer.Program, at, tail+r.Flow.Peer.Tail
			}
		}
		if program == "" {
			continue
		}
		list = append(list, say(code, Doubt, "program", program, "node", rows[0].Language().Say(node),
			"lost_packets:tail", some(tail)))
	}
	return list
}

// TooLossy are the settings that lost more than a share of their packets, or that TCP sent again, and those with
// streams that carry nothing.
func TooLossy(rows []table.Row, most float64) []Finding {
	rows = table.Usable(rows)
	if len(rows) == 0 {
		return []Finding{say("loss.unjudged", Answer)}
	}
	var out []Finding
	for _, g := range table.By(rows, append(table.Settings(rows), table.KeyOf("flow"))...) {
		metric := "loss_ratio"
		if g.Rows[0].Flow.Protocol == model.TCP {
			metric = "retransmit_ratio"
		}
		for _, r := range g.Rows {
			if dead := len(r.Flow.DeadStreams); dead > 0 {
				out = append(out, say("loss.dead", Answer, "where", PlaceName(g), "streams_count:dead", dead,
					"streams_count", streamsOf(r)).In(g.Language()))
				break
			}
		}
		v := g.Middle(metric)
		for _, r := range g.Rows { // nobody knows better of what was sent into silence
			if u := r.Flow.Unheard; u != nil {
				v = max(v, float64(r.Flow.Lost+u.Packets)/float64(r.Flow.Attempted+u.Packets))
			}
		}
		if v > most {
			out = append(out, say("loss.limit", Answer, "where", PlaceName(g), metric, v,
				metric+":most", most).In(g.Language()))
		}
	}
	return out
}

func profilesRule(rows []table.Row) []Finding {
	var out []Finding
	for _, r := range table.Usable(rows) {
		p := r.Flow.Pacing
		alike := func(o Finding) bool { return o.Words["profile"] == p.Profile } // one flow stands for those alike
		if p != nil && !slices.ContainsFunc(out, alike) {
			out = append(out, say("profile", SetUp, "", table.Group{Rows: []table.Row{r}}, "profile", p.Profile,
				"rounds_index", some(p.Rounds)))
		}
	}
	return out
}

// heldRule says which queues of the sender's own host held its flows back: the path begins at
// the send call, so such a trial is valid.
func heldRule(rows []table.Row) []Finding {
	held, planned := map[string]float64{}, 0.0
	for _, r := range table.Usable(rows) {
		planned += float64(r.Flow.Planned)
		for _, l := range r.Flow.Ledger.Pacing {
			if l.Cause == model.PacingBackpressure {
				held[said(r, l)] += float64(l.Packets)
			}
		}
	}
	var out []Finding
	for _, cause := range slices.Sorted(maps.Keys(held)) {
		if share := held[cause] / planned; share >= table.Lossless {
			out = append(out, say("pacing.held", Doubt, "cause", cause, "held_ratio", share))
		}
	}
	return out
}

// movesRule says that a NAT on the path gave streams another address or port in mid-run, or may have.
func movesRule(rows []table.Row) (out []Finding) {
	for _, r := range rows {
		if len(r.Flow.Moved) > 0 {
			out = append(out, moves(r.Language(), r.Flow))
		} else if at := stopped(r); at > 0 {
			out = append(out, say("path.stopped", Doubt, "at_s", at))
		}
	}
	return firstOf(out, "path.moved-more")
}

// leastStill is for how many seconds nothing arrives at the end of a trial before that is told.
const leastStill = 2

// stopped is from when on nothing arrived any more of what was sent to the host that calls, in seconds; 0 if packets
// came to the end.
func stopped(r table.Row) (at float64) {
	f := r.Flow
	if f.Protocol != model.UDP || f.From != model.Receiver || f.To != model.Sender || r.Doc.Lab != nil ||
		f.Received == 0 {
		return 0
	}
	for _, s := range r.Trial.Series {
		if s.Metric != "receive_pps" || s.Flow != f.Name {
			continue
		}
		came := len(s.Values)
		for came > 0 && s.Values[came-1] == 0 {
			came--
		}
		still := float64(len(s.Values)-came) * s.StepSeconds
		if came > 0 && still >= leastStill && float64(f.Lost) > f.SendPPS*still/2 { // it was sent to meanwhile
			return s.StartSeconds + float64(came)*s.StepSeconds
		}
	}
	return 0
}

func moves(in words.Language, f *model.FlowResult) Finding {
	first, streams := f.Moved[0], map[int]bool{}
	for _, m := range f.Moved {
		streams[m.Stream] = true
	}
	what, from, to := in.Say("port"), fmt.Sprint(first.From.Port()), fmt.Sprint(first.To.Port())
	if first.From.Addr() != first.To.Addr() {
		what, from, to = in.Say("address"), first.From.String(), first.To.String()
	}
	s := say("path.moved", Doubt, "what", what, "from", from, "to", to, "moved_s", first.AtS)
	if n := f.Streams * max(len(f.Receivers), 1); n > 1 {
		s = s.with("streams_count:moved", len(streams), "streams_count", n)
	}
	if len(f.Moved) > 1 {
		s = s.with("moves_count", len(f.Moved))
	}
	for _, l := range f.Ledger.Lines {
		if l.Layer == model.LayerApplication && l.Cause == model.CauseNewAddress {
			s = s.with("lost_packets:moved", l.Packets)
		}
	}
	return s
}

// unacceptedRule says that a host's queue of new connections was full while some were made.
func unacceptedRule(rows []table.Row) []Finding {
	most, at := uint64(0), ""
	for _, r := range rows {
		if r.Flow.Protocol != model.TCP {
			continue
		}
		for _, c := range r.Trial.Counters {
			if c.Name == "TcpExt.ListenOverflows" && c.Host == r.Flow.To && c.Whole > most {
				most, at = c.Whole, nodeName(r.Language(), spoken(r, c.Host))
			}
		}
	}
	if most == 0 {
		return nil
	}
	return []Finding{say("tcp.unaccepted", Doubt, "host", at, "events_count", most)}
}

// unevenRule says that some streams of a flow lost much and the others next to nothing, in the trial that lost most so.
func unevenRule(rows []table.Row) []Finding {
	rows = only(rows, func(r table.Row) bool { return r.Flow.Uneven != nil && r.Flow.Uneven.Attempted > 0 })
	if len(rows) == 0 {
		return nil
	}
	r := slices.MaxFunc(rows, func(a, b table.Row) int { return cmp.Compare(a.Flow.Uneven.Lost, b.Flow.Uneven.Lost) })
	f, u := r.Flow, r.Flow.Uneven
	noRoom := uint64(0) // which streams find no room in a queue is chance
	for _, l := range f.Ledger.Lines {
		if slices.Contains(roomLayers, l.Layer) || l.Layer == model.LayerNetwork && slices.ContainsFunc(roomCauses,
			func(begin string) bool { return strings.HasPrefix(l.Cause, begin) }) {
			noRoom += l.Packets
		}
	}
	s := say("streams.uneven", Doubt, "streams_count", f.Streams, "streams_count:lossy", len(u.Streams),
		"streams_count:others", f.Streams-len(u.Streams), "loss_ratio:lossy", float64(u.Lost)/float64(u.Attempted),
		"flow", when(len(r.Trial.Flows) > 1, r.Say(f.Name)), "chosen", when(2*noRoom < f.Lost, "yes"))
	if f.Lost > u.Lost && f.Attempted > u.Attempted {
		s = s.with("loss_ratio:others", float64(f.Lost-u.Lost)/float64(f.Attempted-u.Attempted))
	}
	return []Finding{s}
}

// Layers, and beginnings of causes on the way, at which packets are lost for want of room or by chance.
var (
	roomLayers = []string{model.LayerSendCall, model.LayerSenderQdisc, model.LayerReceiverRing,
		model.LayerReceiverBacklog, model.LayerReceiverMemory, model.LayerReceiverBuffer, model.LayerApplication}
	roomCauses = []string{"QDISC_", "queue of ", "link-", "CPU_", "FULL_RING", model.CauseRingFull,
		model.CauseRingMissed}
)

// carriersRule says which interfaces of the test lost their carrier, or were set down, in trials that lost packets.
func carriersRule(rows []table.Row) (out []Finding) {
	for _, r := range table.OneEach(only(rows, func(r table.Row) bool { return r.Flow.Lost > 0 })) {
		for _, c := range r.Trial.Counters {
			at := slices.IndexFunc(r.Doc.Host, func(h model.Host) bool {
				return h.Node == c.Host && h.Interface != "" && c.Name == "dev."+h.Interface+"."+model.CarrierDown
			})
			if at < 0 || c.Whole == 0 {
				continue
			}
			out = append(out, say("link.down", Doubt, "interface", r.Doc.Host[at].Interface,
				"host", nodeName(r.Language(), table.HostName(r, c.Host)), "times_count", c.Whole))
		}
	}
	return out
}

// silentRule says to which receivers valid trials stopped sending, because these did not answer.
func silentRule(rows []table.Row) (out []Finding) {
	for _, r := range table.Usable(rows) {
		for _, s := range r.Flow.Silent {
			if f := Silence(r.Language(), s); !slices.ContainsFunc(out, f.alike) {
				out = append(out, f)
			}
		}
	}
	return firstOf(out, "receiver.silent-more")
}

// Silence says that a test stopped sending to a receiver that did not answer.
func Silence(l words.Language, s model.Silence) Finding {
	who := l.Say("The " + s.Node)
	if n, one := strings.CutPrefix(s.Node, model.Receiver+"-"); one {
		who = l.Sayf("Receiver %s", n)
	} else if s.Node != model.Receiver && s.Node != model.Sender {
		who = s.Node
	}
	f := say("receiver.silent", Doubt).In(l).with("who", who, "silent_s", s.AfterS)
	if s.Streams < s.Of {
		f = f.with("streams_count:silent", s.Streams, "streams_count", s.Of)
	}
	return f
}

func recordedRule(rows []table.Row) []Finding {
	var files []string
	var packets, bytes, dropped float64
	for _, r := range rows {
		if r.Flow.Record == nil {
			continue
		}
		x := r.Flow.Record
		if !slices.Contains(files, x.File) {
			files = append(files, x.File)
		}
		packets, dropped = packets+float64(x.Packets), dropped+float64(x.Dropped)
		bytes += x.BytesPerPacket * float64(x.Packets)
	}
	if len(files) == 0 {
		return nil
	}
	return []Finding{say("recorded", SetUp, "files", strings.Join(files, ", "), "packets_count", packets,
		"packet_index", bytes/max(packets, 1), "dropped_count", dropped)}
}
