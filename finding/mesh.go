package finding

import (
	"cmp"
	"math"
	"slices"

	"pelt/change"
	"pelt/plan"
	"pelt/table"
)

func meshKind() Kind {
	return Kind{
		Preset: plan.Mesh,
		Use:    "mesh TARGET",
		Short:  "Measure every pair of a fleet's hosts",
		Long: `mesh sends packets between every two hosts of a fleet, both ways, and shows which pairs lose
packets, where, and which hosts are to blame. TARGET is fleet: for all hosts that joined the
hub, or fleet:A,B,C for some.

A host takes part in one test at a time, so pairs are measured in rounds. With --every the
mesh is measured again and again, and pelt tells what changes.`,
		Example: `  pelt mesh fleet: --rate 1kpps --time 10s
  pelt mesh fleet: --every 5m --for 7d`,
		Title: "Mesh of hosts",
		Rules: []Rule{meshRule}, Cycles: meshCycles,
		Figures: []string{"loss_ratio", "delay_p50_ns", "round_trip_p50_ns"},
	}
}

var meshSentences = map[string]string{
	"mesh.lost": `[{all ?}All|{pairs_count:lossy} of] {pairs_count} pairs lose{pairs_count:lossy s/} more than ` +
		`{loss_ratio:most}; {from} to {to} loses most, {loss_ratio}.[¶Most of the loss from {from} to {to}: ` +
		`{place}.][¶Measured in {cycles_count} cycles.]`,
	"mesh.fine": `No pair of {hosts_count} hosts clearly loses more than {loss_ratio:most}.¶The worst, {from} to ` +
		`{to}, lost {loss_ratio}.`,
	"mesh.whole": `None of {attempted_packets} packets between {hosts_count} hosts was lost.`,
	"mesh.into": `[{all ?}All|{pairs_count:into-lossy} of] {pairs_count:into} hosts lose packets to {host}, ` +
		`{loss_ratio:into} in the median[: {place}].¶Look at {host} first.`,
	"mesh.from": `{host} loses packets to [{all ?}all|{pairs_count:from-lossy} of] {pairs_count:from} hosts, ` +
		`{loss_ratio:from} in the median[: {place}].¶Look at {host} first.`,
	"mesh.both": `{host} and nearly all hosts lose packets both ways: {loss_ratio:into} to {host} and ` +
		`{loss_ratio:from} from {host}[: {place}].¶Look at {host} first.`,
	"mesh.hosts-more": `{more_count} more hosts lose packets with nearly all others; the grid has them.`,
	"mesh.oneway":     `{from} to {to} loses {loss_ratio}[: {place}][; the way back is fine ({loss_ratio:back})].`,
	"mesh.pair": `{from} and {to} lose packets both ways: {loss_ratio} to {to}[, {place}], and ` +
		`{loss_ratio:back} back.`,
	"mesh.more":            `{more_count} more pairs lose packets; the grid has them.`,
	"mesh.gone":            `{host} was not measured with any host[ since {since}]: {why}.`,
	"mesh.gone-more":       `{more_count} more hosts were not measured with any host.`,
	"mesh.unmeasured":      `{from} and {to} were not measured[ since {since}]: {why}.`,
	"mesh.unmeasured-more": `{more_count} more pairs of hosts were not measured.`,
	"mesh.change": `{since}: the [{loss_ratio:after ?}loss|{delay_p50_ns:after ?}delay|round trip] from [{from} to ` +
		`{to}|nearly all hosts to {into}|{out} to nearly all hosts] went from {*metric:before} to {*metric:after}.`,
	"mesh.once":   `All pairs were measured at the same time, so what one pair lost may be due to traffic of another.`,
	"mesh.rounds": `Pairs were measured in rounds: no host had two trials at the same time.`,
	"mesh.page":   `See the grid:`,
}

// way is what one host of a mesh sent to another, over all cycles.
type way struct {
	table.Group
	from, to   string
	sent, lost float64
	burst      float64 // so many packets are lost together
	bad        bool    // it loses more than is usual in this mesh, or changed
}

func (w way) share() float64 { return w.lost / w.sent }

// MeshWays are the groups of a mesh's usable rows: one for each host that sent to another.
func MeshWays(rows []table.Row) []table.Group {
	return table.By(table.Usable(rows), table.KeyOf("from"), table.KeyOf("to"))
}

func waysOf(rows []table.Row) (ways []way) {
	var shares []float64
	for _, g := range MeshWays(rows) {
		w := way{Group: g, from: g.Level("from").Text, to: g.Level("to").Text, sent: g.Sum("attempted_packets"),
			lost: g.Sum("lost_packets"), burst: burstOf(g)}
		ways, shares = append(ways, w), append(shares, w.share())
	}
	var bursts []float64
	for _, w := range only(ways, func(w way) bool { return w.lost > 0 }) {
		bursts = append(bursts, w.burst)
	}
	usual := change.Median(shares) + table.MetricOf("loss_ratio").Resolution
	for i := range ways {
		w := &ways[i]
		w.burst = max(w.burst, change.Median(bursts)) // few seconds of one way tell little
		w.bad = w.above(usual, len(ways))
	}
	return ways
}

// above reports whether a way loses more than a share beyond chance: if that was its true share, one of so many
// ways would lose as many packets in one mesh of twenty at most. Packets that are lost together count as one.
func (w way) above(share float64, ways int) bool {
	sent, lost := int(w.sent/w.burst), int(math.Round(w.lost/w.burst))
	return w.share() > share && table.BinomialBeyond(sent, lost, share)*float64(ways) <= change.MostAlarm
}

// burstOf is the variance of the packets that a way lost in each second, by their mean: 1 if each is lost by itself.
func burstOf(g table.Group) float64 {
	var lost []float64
	for _, r := range g.Rows {
		for _, s := range r.Trial.Series {
			if s.Metric == "lost_pps" && s.Flow == r.Flow.Name && s.Layer == "" {
				for _, pps := range s.Values {
					lost = append(lost, pps*s.StepSeconds)
				}
			}
		}
	}
	sum, squares := 0.0, 0.0
	for _, n := range lost {
		sum, squares = sum+n, squares+n*n
	}
	n := float64(len(lost))
	if n < 2 || !(sum > 0) {
		return 1
	}
	return max((squares-sum*sum/n)/(n-1)*n/sum, 1)
}

// meshRule says which pairs lose packets: first hosts that lose with nearly all others, then what these do not explain.
func meshRule(rows []table.Row) []Finding {
	ways := waysOf(rows)
	if len(ways) == 0 {
		return nil
	}
	hosts, rest := badHosts(ways)
	out := append([]Finding{meshAnswer(ways, hosts)}, hostFindings(hosts)...)
	out = append(out, badPairs(rest, ways)...)
	out = append(out, Shown(append(unmeasured(rows), meshChanges(rows, ways)...))...)
	how := say("mesh.rounds", SetUp)
	if rows[0].Doc.Plan.AtOnce {
		how = say("mesh.once", Doubt)
	}
	return append(out, how, nextOf("mesh.page", rows[0].Doc))
}

// meshCycles are all hosts and pairs that could not be measured last, and all changes from cycle to cycle.
func meshCycles(rows []table.Row) []Finding {
	ways := waysOf(rows)
	if len(ways) == 0 {
		return nil
	}
	return append(unmeasured(rows), meshChanges(rows, ways)...)
}

func meshAnswer(ways []way, hosts []side) Finding {
	lossy := only(ways, func(w way) bool { return w.above(table.Lossless, len(ways)) })
	worst := slices.MaxFunc(ways, func(a, b way) int { return cmp.Compare(a.share(), b.share()) })
	names, sent, cycles := map[string]bool{}, 0.0, 0
	for _, w := range ways {
		names[w.from], names[w.to], sent, cycles = true, true, sent+w.sent, max(cycles, len(w.Rows))
	}
	f := worst.tell("mesh.lost", Answer)
	if len(hosts) > 0 { // whose answers say where
		f = f.with("place", "")
	}
	if cycles > 1 {
		f = f.with("cycles_count", cycles)
	}
	switch {
	case worst.lost == 0:
		f.Code = "mesh.whole"
	case len(lossy) == 0:
		f.Code = "mesh.fine"
	}
	return f.with("pairs_count", len(ways), "pairs_count:lossy", len(lossy), "hosts_count", len(names),
		"loss_ratio:most", table.Lossless, "attempted_packets", sent,
		"all", when(len(lossy) == len(ways) && len(ways) > 1, "yes"))
}

// tell says what a way lost, and where it lost most.
func (w way) tell(code string, level Level) Finding {
	return say(code, level, "from", w.from, "to", w.to, "place", mostLost(w.Rows, ""), "loss_ratio", w.share())
}

// mostLost is where most of some rows' packets were lost, at a host if any were lost there; "" is not known.
func mostLost(rows []table.Row, host string) string {
	losses := Losses(rows)
	if there := only(losses, func(l Loss) bool { return l.Host == host }); len(there) > 0 {
		losses = there
	}
	if len(losses) == 0 || losses[0].Layer == table.Unattributed {
		return ""
	}
	return losses[0].Text
}

// side is a host with all ways into it, or all out of it.
type side struct {
	host string
	into bool
	ways []way
}

func (s side) has(w way) bool { return s.into && w.to == s.host || !s.into && w.from == s.host }

func badOf(ways []way) int { return len(only(ways, func(w way) bool { return w.bad })) }

// badHosts names the sides to blame, the surest first, and returns the ways that these do not explain.
func badHosts(ways []way) (hosts []side, rest []way) {
	for rest = ways; ; {
		s, found := surest(rest)
		if !found {
			return hosts, rest
		}
		hosts, rest = append(hosts, s), only(rest, func(w way) bool { return !s.has(w) })
	}
}

// nearlyAll is the share of a host's ways that are bad if the host is: a trial is short, so one may be spared. Where
// fewer are bad, a part of their paths is what they have in common, not the host.
const nearlyAll = 0.75

// surest is, of the sides with nearly all ways bad, the one that chance explains least: by chance its ways would be bad
// as often as those beside it.
func surest(ways []way) (host side, found bool) {
	var sides []side
	for _, w := range ways {
		for _, s := range []side{{host: w.to, into: true}, {host: w.from}} {
			if !slices.ContainsFunc(sides, func(o side) bool { return o.host == s.host && o.into == s.into }) {
				s.ways = only(ways, s.has)
				sides = append(sides, s)
			}
		}
	}
	least := change.MostAlarm
	for _, s := range sides {
		all, bad := len(s.ways), badOf(s.ways)
		// Laplace's rule of succession: what was not seen among few is not impossible.
		usual := float64(badOf(ways)-bad+1) / float64(len(ways)-all+2)
		chance := table.BinomialBeyond(all, bad, usual) * float64(len(sides))
		if float64(bad) >= nearlyAll*float64(all) && chance < least {
			host, found, least = s, true, chance
		}
	}
	return host, found
}

// hostFindings tell of hosts that lose with nearly all others. Their packets lie on the ways of all others, which
// are not to blame.
func hostFindings(hosts []side) (out []Finding) {
	at := map[string]int{}
	for _, s := range hosts {
		var rows []table.Row
		var shares []float64
		for _, w := range s.ways {
			rows, shares = append(rows, w.Rows...), append(shares, w.share())
		}
		code, role := "mesh.from", "from"
		if s.into {
			code, role = "mesh.into", "into"
		}
		f := say(code, Answer, "host", s.host, "place", mostLost(rows, s.host), "loss_ratio:"+role, middleOf(shares),
			"pairs_count:"+role, len(s.ways), "pairs_count:"+role+"-lossy", badOf(s.ways),
			"all", when(badOf(s.ways) == len(s.ways) && len(s.ways) > 1, "yes"))
		if i, named := at[s.host]; named {
			out[i].Code, out[i].Numbers = "mesh.both", append(out[i].Numbers, f.Numbers...)
			continue
		}
		at[s.host] = len(out)
		out = append(out, f)
	}
	return firstOf(out, "mesh.hosts-more")
}

// middleOf is the value in the middle, or the greater of two: the table of pairs has it.
func middleOf(values []float64) float64 { return slices.Sorted(slices.Values(values))[len(values)/2] }

// badPairs tell of ways that lose packets without a host to blame. One of all the ways leads back.
func badPairs(rest, all []way) (out []Finding) {
	bad := only(rest, func(w way) bool { return w.bad })
	slices.SortStableFunc(bad, func(a, b way) int { return cmp.Compare(b.share(), a.share()) })
	for i, w := range bad {
		back := func(o way) bool { return o.from == w.to && o.to == w.from }
		if slices.ContainsFunc(bad[:i], back) {
			continue // told with the other way
		}
		f := w.tell("mesh.oneway", Fact)
		if i := slices.IndexFunc(all, back); i >= 0 {
			if f = f.with("loss_ratio:back", all[i].share()); all[i].bad {
				f.Code = "mesh.pair"
			}
		}
		out = append(out, f)
	}
	return firstOf(out, "mesh.more")
}

// mostTold is how many findings of one kind are told one by one.
const mostTold = 4

func firstOf(found []Finding, more string) []Finding {
	n := len(found)
	if n <= mostTold {
		return found
	}
	return append(found[:mostTold-1], say(more, found[n-1].Level, "more_count", n-mostTold+1))
}
