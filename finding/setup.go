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

func Command(rows []table.Row) []Finding {
	if len(rows) == 0 || len(rows[0].Doc.Arguments) == 0 {
		return nil
	}
	return []Finding{say("setup.command", SetUp).word("command", CommandLine(rows[0].Doc.Arguments))}
}

// CommandLine is a command of pelt as a user types it in a shell.
func CommandLine(args []string) string {
	words := []string{"pelt"}
	for _, a := range args {
		words = append(words, ShellWord(printable(a)))
	}
	return strings.Join(words, " ")
}

func Engines(rows []table.Row) []Finding {
	sizes, why := map[string][]string{}, map[string]string{}
	for _, g := range table.By(rows, table.KeyOf("engine"), table.KeyOf("payload_bytes")) {
		name := g.Level("engine").Text
		if valid, _, _ := g.Trials(); name == "" || valid == 0 {
			continue
		}
		sizes[name] = append(sizes[name], g.Keys[1].FormatIn(g.Language(), g.Level("payload_bytes")))
		why[name] = cmp.Or(why[name], g.Rows[0].Trial.EngineReason)
	}
	var out []Finding
	names := slices.Sorted(maps.Keys(sizes))
	for _, name := range names {
		f := say("setup.engine", SetUp).word("engine", name).word("why", table.Language(rows).Say(why[name]))
		if len(names) > 1 {
			f.Words["sizes"] = span(table.Language(rows), sizes[name])
		}
		out = append(out, f)
	}
	switch {
	case len(names) > 1:
		out = append(out, say("engine.mixed", Doubt))
	case len(names) == 1 && strings.Contains(names[0], "xdp"):
		ends := map[string]string{"xdp+udp": "the sender", "udp+xdp": "the receiver"}
		out = append(out, say("engine.frames", Doubt).word("where",
			table.Language(rows).Say(cmp.Or(ends[names[0]], "both hosts"))))
	}
	return out
}

func Links(rows []table.Row) []Finding {
	if len(rows) == 0 || rows[0].Doc.Lab == nil {
		return nil
	}
	var out []Finding
	lab := rows[0].Doc.Lab
	for _, l := range lab.Links {
		in := rows[0].Language()
		f := say("setup.link", SetUp).word("from", in.Say(l.From)).word("to", in.Say(l.To)).word("at", in.Say(l.At)).
			word("settings", l.Settings.Words())
		if l.Backend != model.BackendUser {
			f.Words["kernel"] = l.Backend
		}
		if l.More > 0 {
			f = f.number("links_count", "", float64(l.More))
		}
		out = append(out, f)
	}
	if len(lab.Varied) > 0 {
		out = append(out, say("setup.varied", SetUp).word("knobs", rows[0].Language().Join(lab.Varied)))
	}
	return append(out, madeLoss(rows)...)
}

// madeLoss compares the share of frames that emulated links lost in valid trials with the share that was asked. Links
// and trials that were asked for the same loss are one finding.
func madeLoss(rows []table.Row) []Finding {
	type made struct {
		ways         []string
		frames, lost float64
	}
	by := map[float64]*made{}
	for _, r := range oneEach(only(rows, table.Row.Valid)) {
		if len(r.Trial.Made) > 0 {
			continue // its links may have been asked for something else after a while
		}
		for _, l := range r.Trial.Links {
			if l.AskedRatio == 0 || l.Lost == nil || l.Frames == 0 {
				continue
			}
			m := by[l.AskedRatio]
			if m == nil {
				m = &made{}
				by[l.AskedRatio] = m
			}
			m.frames, m.lost = m.frames+float64(l.Frames), m.lost+float64(*l.Lost)
			if way := r.Sayf("%s to %s", r.Say(l.From), r.Say(l.To)); !slices.Contains(m.ways, way) {
				m.ways = append(m.ways, way)
			}
		}
	}
	var out []Finding
	for _, asked := range slices.Sorted(maps.Keys(by)) {
		m := by[asked]
		f := say("setup.loss", SetUp).word("way", m.ways[0]).number("loss_ratio", "asked", asked).
			number("loss_ratio", "made", m.lost/m.frames).number("frames_count", "", m.frames)
		if more := len(m.ways) - 1; more > 0 {
			f.Words["way"] = table.Language(rows).Sayf("%s and %d more", f.Words["way"], more)
		}
		out = append(out, f)
	}
	return out
}

func PathMTU(rows []table.Row) []Finding {
	if len(rows) == 0 {
		return nil
	}
	var out []Finding
	all := rows[0].Doc.PathMTU
	for _, m := range all {
		f := say("setup.mtu", SetUp).word("why", WhyIn(rows[0].Language(), model.Reasons(m.Why)))
		if len(all) > 1 {
			f.Words["flow"] = m.Flow
		}
		switch {
		case m.Bytes <= 0:
			f.Code = "setup.mtu-unknown"
		case m.AtLeast:
			f.Code = "setup.mtu-least"
		case m.Found == model.MTUTold:
			f.Words["told"] = string(m.Found)
		case m.Found == model.MTUSearch:
			f.Words["tried"] = string(m.Found)
		}
		if m.Bytes > 0 {
			f = f.number("path_mtu_bytes", "", float64(m.Bytes)).
				number("payload_bytes", "whole", float64(m.PayloadBytes))
		}
		out = append(out, f)
	}
	return out
}

const (
	// Above this share of packets that arrived twice, or out of order, it is worth a word.
	manyDuplicates = 0.001
	manyReordered  = 0.01
)

func Disorder(rows []table.Row) []Finding {
	var out []Finding
	for _, d := range []struct {
		metric string
		most   float64
		code   string
	}{{"duplicate_ratio", manyDuplicates, "path.twice"}, {"reordered_ratio", manyReordered, "path.disorder"}} {
		groups := table.Settled(table.Usable(rows))
		if len(groups) == 0 {
			return nil
		}
		if g := largest(groups, d.metric); g.Middle(d.metric) > d.most {
			out = append(out, say(d.code, Doubt).place("worst", g).word("where", at(g)))
		}
	}
	return out
}

func Accounts(rows []table.Row) []Finding {
	count, where := map[string]float64{}, map[string]string{}
	for _, r := range rows {
		if r.Flow == nil || r.Flow.Attempted == 0 {
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
		out = append(out, say("ledger.broken", Doubt).number("flows_count", "", count[name]).
			word("where", where[name]))
	}
	return out
}

func Watching(rows []table.Row) []Finding {
	var out []Finding
	for _, r := range rows {
		if r.Flow == nil || r.Flow.Ledger.Lost == 0 || r.Flow.Connections != nil { // no drop is of a connection
			continue
		}
		for _, o := range r.Trial.Observed {
			less := o.Mode == "" || len(o.Why) > 0 && o.Mode != r.Doc.Plan.Drops &&
				(o.Mode == model.DropsOff || o.Mode == model.DropsCount)
			f := Watched(r.Language(), model.Observed{Node: o.Node, Mode: o.Mode, Why: o.Why})
			f.Level = Doubt
			if less && !slices.ContainsFunc(out, f.alike) {
				out = append(out, f)
			}
		}
	}
	return out
}

// Reported says whose figures those of an end are that is no pelt, and how many losses these do not show.
func Reported(rows []table.Row) (list []Finding) {
	for _, code := range []string{"reported", "reported.sent"} {
		program, node, tail := "", "", uint64(0)
		for _, r := range rows {
			at := model.IperfNode(r.Doc.Plan.Target)
			if r.Flow != nil && r.Flow.Peer != nil && (r.Flow.From == at) == (code == "reported.sent") {
				program, node, tail = r.Flow.Peer.Program, at, tail+r.Flow.Peer.Tail
			}
		}
		if program == "" {
			continue
		}
		f := say(code, Doubt).word("program", program).word("node", rows[0].Language().Say(node))
		if tail > 0 {
			f = f.number("lost_packets", "tail", float64(tail))
		}
		list = append(list, f)
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
				out = append(out, say("loss.dead", Answer).word("where", PlaceName(g)).In(g.Language()).number("streams_count",
					"dead", float64(dead)).
					number("streams_count", "", float64(streamsOf(r))))
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
			out = append(out, say("loss.limit", Answer).In(g.Language()).word("where", PlaceName(g)).number(metric, "", v).
				number(metric, "most", most))
		}
	}
	return out
}

func Profiles(rows []table.Row) []Finding {
	var out []Finding
	for _, r := range table.Usable(rows) {
		p := r.Flow.Pacing
		if p == nil {
			continue
		}
		if slices.ContainsFunc(out, func(o Finding) bool { return o.Words["profile"] == p.Profile }) {
			continue // one flow stands for those alike
		}
		f := say("profile", SetUp, table.Group{Rows: []table.Row{r}}).word("profile", p.Profile)
		if p.Rounds > 0 {
			f = f.number("rounds_index", "", p.Rounds)
		}
		out = append(out, f)
	}
	return out
}

// Pauses doubts that a NAT keeps a flow through the longest pause of a run: pelt's own packets fill it.
func Pauses(rows []table.Row) []Finding {
	longest := 0.0
	for _, r := range table.Usable(rows) {
		if p := r.Flow.Pacing; p != nil && p.AskedGap != nil && r.Flow.Protocol == model.UDP {
			longest = max(longest, p.AskedGap.Max)
		}
	}
	if longest < forgets {
		return nil
	}
	return []Finding{say("profile.pauses", Doubt).number("pause_ns", "", longest)}
}

// forgets is a pause in ns after which a NAT may forget a flow. pelt's checks come every quarter of a second.
const forgets = 1e9

// Held says which queues of the sender's own host held its flows back: the path begins at
// the send call, so such a trial is valid.
func Held(rows []table.Row) []Finding {
	held, planned := map[string]float64{}, 0.0
	for _, r := range table.Usable(rows) {
		planned += float64(r.Flow.Planned)
		for _, l := range r.Flow.Ledger.Pacing {
			if l.Cause == model.PacingBackpressure {
				held[said(r.Language(), l)] += float64(l.Packets)
			}
		}
	}
	var out []Finding
	for _, cause := range slices.Sorted(maps.Keys(held)) {
		if share := held[cause] / planned; share >= lossless {
			out = append(out, say("pacing.held", Doubt).word("cause", cause).number("held_ratio", "", share))
		}
	}
	return out
}

// Moves says that a NAT on the path gave streams another address or port in mid-run, or may have.
func Moves(rows []table.Row) (out []Finding) {
	for _, r := range rows {
		if len(r.Flow.Moved) > 0 {
			out = append(out, moves(r.Language(), r.Flow))
		} else if at := stopped(r); at > 0 {
			out = append(out, say("path.stopped", Doubt).number("at_s", "", at))
		}
	}
	if more := len(out) - mostPlaces; more > 0 {
		out = append(out[:mostPlaces], say("path.moved-more", Doubt).number("trials_count", "", float64(more)))
	}
	return out
}

// leastStill is for how many seconds nothing arrives at the end of a trial before that is told.
const leastStill = 2

// stopped is from when on nothing arrived any more of what was sent to the host that calls, in seconds; 0 if packets
// came to the end.
func stopped(r table.Row) (at float64) {
	f := r.Flow
	if f.Protocol != model.UDP || f.From != model.Receiver || f.To != model.Sender || r.Doc.Lab != nil || f.Received == 0 {
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
	s := say("path.moved", Doubt).word("what", what).word("from", from).word("to", to).number("moved_s", "", first.AtS)
	if n := f.Streams * max(len(f.Receivers), 1); n > 1 {
		s = s.number("streams_count", "moved", float64(len(streams))).number("streams_count", "", float64(n))
	}
	if len(f.Moved) > 1 {
		s = s.number("moves_count", "", float64(len(f.Moved)))
	}
	for _, l := range f.Ledger.Lines {
		if l.Layer == model.LayerApplication && l.Cause == model.CauseNewAddress {
			s = s.number("lost_packets", "moved", float64(l.Packets))
		}
	}
	return s
}

// Unaccepted says that a host's queue of new connections was full while some were made.
func Unaccepted(rows []table.Row) []Finding {
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
	return []Finding{say("tcp.unaccepted", Doubt).word("host", at).number("events_count", "", float64(most))}
}

// Uneven says that some streams of a flow lost much and the others next to nothing, in the trial that lost most so.
func Uneven(rows []table.Row) []Finding {
	rows = only(rows, func(r table.Row) bool { return r.Flow.Uneven != nil && r.Flow.Uneven.Attempted > 0 })
	if len(rows) == 0 {
		return nil
	}
	r := slices.MaxFunc(rows, func(a, b table.Row) int { return cmp.Compare(a.Flow.Uneven.Lost, b.Flow.Uneven.Lost) })
	f, u := r.Flow, r.Flow.Uneven
	s := say("streams.uneven", Doubt).number("streams_count", "", float64(f.Streams)).
		number("streams_count", "lossy", float64(len(u.Streams))).
		number("streams_count", "others", float64(f.Streams-len(u.Streams))).
		number("loss_ratio", "lossy", float64(u.Lost)/float64(u.Attempted))
	if f.Lost > u.Lost && f.Attempted > u.Attempted {
		s = s.number("loss_ratio", "others", float64(f.Lost-u.Lost)/float64(f.Attempted-u.Attempted))
	}
	if len(r.Trial.Flows) > 1 {
		s = s.word("flow", f.Name)
	}
	noRoom := uint64(0) // which streams find no room in a queue is chance
	for _, l := range f.Ledger.Lines {
		if slices.Contains(roomLayers, l.Layer) || l.Layer == model.LayerNetwork && slices.ContainsFunc(roomCauses,
			func(begin string) bool { return strings.HasPrefix(l.Cause, begin) }) {
			noRoom += l.Packets
		}
	}
	if 2*noRoom < f.Lost {
		s = s.word("chosen", "yes")
	}
	return []Finding{s}
}

// Layers, and beginnings of causes on the way, at which packets are lost for want of room or by chance.
var (
	roomLayers = []string{model.LayerSendCall, model.LayerSenderQdisc, model.LayerReceiverRing,
		model.LayerReceiverBacklog, model.LayerReceiverMemory, model.LayerReceiverBuffer, model.LayerApplication}
	roomCauses = []string{"QDISC_", "queue of ", "link-", "CPU_BACKLOG", "FULL_RING", model.CauseRingFull,
		model.CauseRingMissed}
)

// Carriers says which interfaces of the test lost their carrier, or were set down, in trials that lost packets.
func Carriers(rows []table.Row) (out []Finding) {
	for _, r := range oneEach(only(rows, func(r table.Row) bool { return r.Flow.Lost > 0 })) {
		for _, c := range r.Trial.Counters {
			at := slices.IndexFunc(r.Doc.Host, func(h model.Host) bool {
				return h.Node == c.Host && h.Interface != "" && c.Name == "dev."+h.Interface+"."+model.CarrierDown
			})
			if at < 0 || c.Whole == 0 {
				continue
			}
			host := table.HostName(r, c.Host)
			if host == model.Sender || host == model.Receiver {
				host = theNode(r.Language(), host)
			}
			out = append(out, say("link.down", Doubt).word("interface", r.Doc.Host[at].Interface).word("host", host).
				number("times_count", "", float64(c.Whole)))
		}
	}
	return out
}

// Silent says to which receivers valid trials stopped sending, because these did not answer.
func Silent(rows []table.Row) (out []Finding) {
	told := map[string]bool{}
	for _, r := range table.Usable(rows) {
		for _, s := range r.Flow.Silent {
			if f := Silence(r.Language(), s); !told[f.Text()] {
				told[f.Text()] = true
				out = append(out, f)
			}
		}
	}
	if more := len(out) - mostPlaces; more > 0 {
		out = append(out[:mostPlaces], say("receiver.silent-more", Doubt).number("receivers_count", "", float64(more)))
	}
	return out
}

// Silence says that a test stopped sending to a receiver that did not answer.
func Silence(l words.Language, s model.Silence) Finding {
	who := l.Say("The " + s.Node)
	if n, one := strings.CutPrefix(s.Node, model.Receiver+"-"); one {
		who = l.Sayf("Receiver %s", n)
	} else if s.Node != model.Receiver && s.Node != model.Sender {
		who = s.Node
	}
	f := say("receiver.silent", Doubt).In(l).word("who", who).number("silent_s", "", s.AfterS)
	if s.Streams < s.Of {
		f = f.number("streams_count", "silent", float64(s.Streams)).number("streams_count", "", float64(s.Of))
	}
	return f
}

func Recorded(rows []table.Row) []Finding {
	var files []string
	var packets, bytes, dropped float64
	for _, r := range rows {
		if r.Flow == nil || r.Flow.Record == nil {
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
	return []Finding{say("recorded", SetUp).word("files", strings.Join(files, ", ")).
		number("packets_count", "", packets).number("packet_index", "", bytes/max(packets, 1)).number("dropped_count",
		"", dropped)}
}
