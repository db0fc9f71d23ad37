package finding

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"pelt/model"
	"pelt/plan"
	"pelt/table"
)

func curveKind() Kind {
	return Kind{
		Preset: plan.Curve,
		Use:    "curve TARGET",
		Short:  "Measure how many packets a path carries at each packet size",
		Long: `curve sends packets of several sizes to TARGET, and shows for each size how many
packets and bits per second arrive, and what limits them.

TARGET is HOST[:PORT] where pelt serve runs, or a lab here: lab:direct, lab:switch,
lab:router, lab:nat, lab:fast (NAT with a fast path), lab:star (many receivers),
lab:loopback (needs no rights), or lab:NAME of pelt lab up. iperf3://HOST[:PORT] is any
iperf3 server.`,
		Example: `  pelt curve lab:router --link rate=1gbit
  pelt curve 192.168.1.5 --proto tcp --payload 64,1460 --direction both`,
		Title:   "Size curve",
		Rules:   []Rule{curveRule, searchRule(false, table.Settings)},
		Repeats: "receive_pps",
	}
}

// Parts of sentences.
const (
	lostTo    = `.[¶Lost: {place}.|¶Losses: {places}.]`
	curveUpTo = `[{of ?}|.¶Received: [{many ?}up to ]{receive_pps:best} and {goodput_bps:wide}]` // of one curve
	lostAlong = `[¶Lost: {place}.|¶Mostly lost: {most}.]`
	saturates = `{path} saturates at {receive_pps:best}`
)

var curveSentences = map[string]string{
	"curve.both": `{path} saturates at {receive_pps:best} of small and {goodput_bps:wide} of large packets.¶` +
		`[{of}: b|B]elow about {payload_bytes:knee} the limit is packets per second; above it, bits per ` +
		`second.` + lostAlong,
	"curve.packets": saturates + ` at every size, up to {goodput_bps:wide}.¶The limit is packets per ` +
		`second.` + lostAlong,
	"curve.bits": `{path} carries at most {goodput_bps:wide}; bits are the limit at every size.` + lostAlong,
	"curve.one":  saturates + `, which is {goodput_bps:wide}, at {best}.` + lostAlong,
	"curve.two":  saturates + ` ({best}) and {goodput_bps:wide} ({wide}).` + lostAlong,
	"curve.unclear": saturates + ` ({best}) and {goodput_bps:wide} ({wide}).¶The sizes fit neither one packet rate ` +
		`nor one bit rate.` + lostAlong,
	"curve.host": `{path} carries at least {receive_pps:best} and {goodput_bps:wide}.¶At {sizes} [the {who} was the ` +
		`limit, not the path|next to nothing was lost].` + lostAlong,
	"curve.kept":   `{path} carries the asked rate at {sizes}` + curveUpTo + `.`,
	"curve.rest":   `{path} carries the asked rate in {trials_count:kept} of {trials_count} trials` + curveUpTo + `.`,
	"curve.living": `The other streams carry the asked rate at {sizes}` + curveUpTo + `.`,
	"curve.short":  `{path} cannot carry the asked rate: {loss_ratio:worst} lost at {worst}` + lostTo,
	"curve.loses":  `{path} loses [{many ?}up to {loss_ratio:worst},|{loss_ratio:worst}] at {worst}` + lostTo,
	"curve.grown": `{path} does not carry the asked rate at {grown}.¶{send_pps:grown} went in and ` +
		`{receive_pps:grown} came out. The rest waited in a queue on the way[, up to {delay_max_ns:grown}].`,
	"curve.mostly": `{path} carried the asked rate in {trials_count:kept} of {trials_count} trials.¶Trial {trial} ` +
		`lost {loss_ratio:worst}[; losses: {places}].`,
	"curve.tcp":  `{path} carries {goodput_bps:wide} of TCP[, {goodput_bps:worst} in writes of {payload_bytes:worst}].`,
	"curve.held": `{path} carries all that the sender's host sent out` + curveUpTo + `, less than was asked.`,
	"curve.unfit": `{refused} {sizes_count does/do} not fit into one packet of the path[.¶Its MTU is ` +
		`{path_mtu_bytes}].`,
	"curve.refused": `The sender's kernel refused every packet of {refused}[ ({errno})].`,
	"curve.few": `{path}: {attempted_packets # packet/# packets} in {duration_s} {attempted_packets is/are} too few ` +
		`to tell a rate.¶[{none ?}None was lost|{lost_packets # was/# were} lost]. Try a longer --time.`,
	"curve.nothing": `{path} carries [{most ?}next to nothing: in most trials |nothing: ]no packet arrived at ` +
		`{sizes}.[¶Lost: {places}.]`,
	"curve.free": `Loss-free up to {receive_pps:free} ({where}).`,
}

// curveRule says how the rate of a path depends on the size of its packets: one answer
// for each curve, which is a flow under one setting of everything but the size.
func curveRule(rows []table.Row) []Finding {
	var told [][]Finding // of each curve, its answer first
	refused, all := refusedSizes(rows), len(table.OneEach(rows))
	dead := slices.ContainsFunc(rows, func(r table.Row) bool { return r.Trial.Why.Has(model.NothingThrough) })
	rows = table.Usable(rows)
	layout := Curves(rows)
	curves := layout.Conditions
	for _, c := range curves {
		name, l := c.Rows[0].Doc.Plan.Target, c.Language()
		if len(curves) > 1 {
			name = l.Sayf("%s (%s)", name, c.Name())
		}
		found := curve(name, c.Choices())
		for i, f := range found {
			place, answer := f.Words["place"], found[0].Words
			if i > 0 && place != "" && (place == answer["place"] || place == answer["most"]) {
				f = f.with("said", "yes")
			}
			switch {
			case len(curves) < 2:
			case f.Level == Fact:
				f = f.with("where", l.Names(c.Name(), f.Words["where"]))
			case f.Level == Answer:
				f = f.with("of", pathTo(l, name))
			}
			if len(refused) > 0 && f.Words["sizes"] == l.Say(everySize) {
				f = f.with("sizes", l.Sayf("every size but %s", refused[0].Words["refused"]))
			}
			if f.Code == "curve.kept" && dead { // nothingRule tells of these trials
				f = f.with("trials_count:kept", len(table.OneEach(rows)), "trials_count", all)
				f.Code = "curve.rest"
			}
			found[i] = f
		}
		told = append(told, found)
	}
	slices.SortStableFunc(told, func(a, b []Finding) int { return cmp.Compare(b[0].carriesLess(), a[0].carriesLess()) })
	if len(layout.Under) == 1 && layout.Under[0].Name == "rate_pps" {
		told = highestKept(told)
	}
	return append(slices.Concat(told...), refused...)
}

// highestKept leaves out what is told of lower rates than the highest one that is carried.
func highestKept(told [][]Finding) [][]Finding {
	rate := func(all []Finding) float64 {
		if all[0].Code != "curve.kept" {
			return 0
		}
		v, _ := all[0].Number("receive_pps", "best")
		return v
	}
	most := rate(slices.MaxFunc(told, func(a, b []Finding) int { return cmp.Compare(rate(a), rate(b)) }))
	return only(told, func(all []Finding) bool { return rate(all) == 0 || rate(all) == most })
}

// carriesLess puts curves that do not carry what was asked before those that do.
func (f Finding) carriesLess() int {
	if slices.Contains([]string{"curve.nothing", "curve.short", "curve.loses", "curve.grown"}, f.Code) {
		return 1
	}
	return 0
}

// refusedSizes tells of sizes that the sender's kernel refused to send.
func refusedSizes(rows []table.Row) []Finding {
	var names []string
	var f Finding
	for _, g := range table.By(rows, table.KeyOf("payload_bytes")) {
		var whys model.Reasons
		for _, r := range g.Rows {
			whys = append(whys, only(r.Trial.Why, func(why model.Reason) bool {
				return why.Code == model.PacketTooBig || why.Code == model.SendRefused
			})...)
		}
		if len(whys) == 0 || len(table.Usable(g.Rows)) > 0 {
			continue
		}
		names = append(names, g.Name())
		f = say("curve.refused", Answer, "errno", whys[0].Name,
			"path_mtu_bytes", some(whys[0].Numbers["path_mtu_bytes"]))
		if whys[0].Code == model.PacketTooBig {
			f.Code = "curve.unfit"
		}
	}
	if names == nil || len(table.Usable(rows)) == 0 { // then the answer is that no trial is usable, and why
		return nil
	}
	return []Finding{f.with("refused", span(table.Language(rows), names), "sizes_count", len(names))}
}

const everySize = "every size"

// Curves lays rows out by size: each condition is a curve.
func Curves(rows []table.Row) table.Layout {
	size := table.KeyOf("payload_bytes")
	return table.LayBy(rows, table.Vary(rows, size.Name, "frame_bytes"), []table.Key{size})
}

func curve(name string, sizes []table.Group) []Finding {
	fast, wide := largest(sizes, "receive_pps"), largest(sizes, "goodput_bps")
	f := say("curve.unclear", Answer, "best", fast, "wide", wide, pathTarget, name, "many", when(len(sizes) > 1, "yes"))
	if !(wide.Middle("goodput_bps") > 0) {
		f.Code, f.Words["sizes"] = "curve.nothing", everyOf(sizes)
		if len(sizes) > 1 {
			f.Words["sizes"] = sizes[0].Say("any size")
		}
		rows := table.RowsOf(sizes)
		if slices.ContainsFunc(rows, func(r table.Row) bool { return r.Flow.Lost < r.Flow.Attempted }) {
			f.Words["most"] = "yes"
		}
		f.Words["places"], _ = placesOf(rows)
		return []Finding{f}
	}
	if sizes[0].Rows[0].Flow.Protocol == model.TCP {
		f.Code = "curve.tcp"
		return []Finding{f.worstOf(sizes, wide)}
	}
	asked := sizes[0].Asked()
	if most := largest(sizes, "attempted_packets"); asked && most.Middle("attempted_packets") < fewPackets {
		f.Code = "curve.few"
		return []Finding{f.with("", most, "none", when(most.Middle("lost_packets") == 0, "yes"))}
	}
	if asked {
		f.Code, f.Words["sizes"] = "curve.kept", everyOf(sizes)
		worst, limit := largest(sizes, "loss_ratio"), fast.Limit()
		behind := slices.MaxFunc(sizes, func(a, b table.Group) int { return cmp.Compare(a.Grown(), b.Grown()) })
		if worst.Middle("loss_ratio") >= table.Lossless {
			limit = worst.Limit()
			f = f.loses("curve.", limit, worst)
			return []Finding{f, heldBackBy(limit, worst)}
		} else if r, ok := lostBeside(table.Group{Rows: table.RowsOf(sizes)}); ok {
			valid := table.Usable(table.RowsOf(sizes))
			kept := only(valid, func(r table.Row) bool { return r.Flow.LossRatio < table.Lossless })
			f.Code = "curve.mostly"
			f.Words["places"], _ = placesOf([]table.Row{r})
			return []Finding{f.with("trials_count:kept", len(kept), "trials_count", len(valid),
				"loss_ratio:worst", r.Flow.LossRatio, "trial", fmt.Sprint(r.TrialNumber()))}
		} else if behind.Grown() > 0 {
			f.Code = "curve.grown"
			return []Finding{f.with("grown", behind), heldBackBy(behind.Limit(), behind)}
		} else if len(heldRule(table.RowsOf(sizes))) > 0 {
			f.Code = "curve.held"
		} else if limit.By == table.ByDead {
			f.Code = "curve.living"
		}
		return append([]Finding{f, heldBackBy(limit, fast)}, keptWhole(sizes, fast)...)
	}
	knee, below := kneeOf(sizes)
	of := fast
	held := heldBack(sizes)
	switch {
	case len(held) > 0:
		of = largest(held, "receive_pps")
		f.Code, f.Words["sizes"] = "curve.host", span(fast.Language(), namesOf(held))
		if who := ends[of.Limit().By]; who != "" {
			f.Words["who"] = fast.Say(who)
		}
		if len(held) == len(sizes) {
			f.Words["sizes"] = everyOf(sizes)
		}
	case len(sizes) < kneeSizes && fast.Name() == wide.Name():
		f.Code = "curve.one"
	case len(sizes) < kneeSizes:
		f.Code = "curve.two"
	case below == len(sizes):
		f.Code = "curve.packets"
	case below == 0:
		f.Code = "curve.bits"
	case knee > 0:
		f.Code = "curve.both"
		f = f.with("payload_bytes:knee", twoDigits(knee, math.Round))
	}
	if largest(sizes, "loss_ratio").Middle("loss_ratio") >= table.Lossless {
		f = f.lostAt(table.RowsOf(sizes))
	}
	return append([]Finding{f, heldBackBy(of.Limit(), of)}, keptWhole(sizes, fast)...)
}

// lostAt adds the place of all losses, or of most.
func (f Finding) lostAt(rows []table.Row) Finding {
	known, _ := sharesOf(rows)
	switch {
	case len(known) == 0 || known[0].Packets <= 0.5:
		return f
	case known[0].Packets > almostAll:
		return f.with("place", where(known[0].Loss))
	}
	return f.with("most", where(known[0].Loss))
}

// loses adds what a group lost. It says that the asked rate is not carried only where the rate was too high for the
// path: a rule of a firewall, or a slow host, is no limit of the path.
func (f Finding) loses(kind string, limit table.Limit, worst table.Group) Finding {
	f.Code = kind + "loses"
	if limit.OfRate() && limit.By != table.ByReceiver && limit.By != table.BySender {
		f.Code = kind + "short"
	}
	f = f.with("worst", worst)
	if limit.Line != nil && limit.Share > almostAll {
		return f.with("place", where(*limit.Line))
	}
	places, _ := placesOf(worst.Rows)
	return f.with("places", places)
}

// almostAll is the share of losses above which one place stands for all.
const almostAll = 0.999

// lostBeside is the valid trial of a group that lost most, if it lost much and others of the same setting nothing.
func lostBeside(g table.Group) (worst table.Row, ok bool) {
	for _, one := range table.Settled(table.Usable(g.Rows)) {
		r := slices.MaxFunc(one.Rows, func(a, b table.Row) int {
			return cmp.Compare(a.Flow.LossRatio, b.Flow.LossRatio)
		})
		kept := slices.ContainsFunc(one.Rows, func(r table.Row) bool { return r.Flow.LossRatio < table.Lossless })
		if kept && r.Flow.LossRatio >= table.Overload && (!ok || r.Flow.LossRatio > worst.Flow.LossRatio) {
			worst, ok = r, true
		}
	}
	return worst, ok
}

// fewPackets of a trial tell nothing of a rate: one packet more or less is a tenth of it.
const fewPackets = 10

// ends are the parts that are no part of the path.
var ends = map[table.Part]string{table.BySender: "sender", table.ByQueue: "sender's queue",
	table.ByReceiver: "receiver"}

// heldBack are the sizes that showed no limit of the path, and had their own for the same reason: of most sizes.
func heldBack(sizes []table.Group) (most []table.Group) {
	held := map[table.Part][]table.Group{}
	for _, g := range sizes {
		if l := g.Limit(); atLeast(l, g) {
			if held[l.By] = append(held[l.By], g); len(held[l.By]) > len(most) {
				most = held[l.By]
			}
		}
	}
	return most
}

func namesOf(groups []table.Group) (names []string) {
	for _, g := range groups {
		names = append(names, g.Name())
	}
	return names
}

func everyOf(sizes []table.Group) string {
	if len(sizes) == 1 {
		return sizes[0].Name()
	}
	return sizes[0].Say(everySize)
}

// worstOf adds the write size with which TCP is slower, if it is beyond the spread of
// the repeats and beyond what matters.
func (f Finding) worstOf(sizes []table.Group, wide table.Group) Finding {
	m := table.MetricOf("goodput_bps")
	worst := smallest(sizes, m.Name)
	low, high := worst.Stat(m), wide.Stat(m)
	if low.High < high.Low && low.Median < (1-m.Resolution)*high.Median {
		f = f.with("worst", worst)
	}
	return f
}

// keptWhole is the highest rate that was carried whole; where every size was sent as
// fast as possible and lost some, it was not measured.
func keptWhole(sizes []table.Group, fast table.Group) []Finding {
	if fast.Rows[0].Doc.Plan.Design.Search != nil { // it was measured
		return nil
	}
	clean := only(sizes, func(g table.Group) bool { // each trial of it
		return !slices.ContainsFunc(g.Rows, func(r table.Row) bool { return r.Flow.LossRatio >= table.Lossless })
	})
	if len(clean) > 0 {
		g := largest(clean, "receive_pps")
		return []Finding{say("curve.free", Fact, "free", g, "where", g.Name())}
	}
	return flooded(fast)
}

const (
	// A limit is only told if the sizes miss it by less than this in the mean, as a share.
	mostMiss = 0.15
	// Sizes that miss one limit by no more than this have no second one: the resolution of rates.
	oneLimit = 0.02
	// Two limits fit better than one whatever the sizes are: they must miss by less than half as much.
	twoLimits = 0.5
	// Fewer sizes fit two limits whatever they are.
	kneeSizes = 3
)

// kneeOf finds the payload from which on bits are the limit: the split of the sizes
// into one packet rate and one rate on the wire that fits best. below is how many
// sizes are held by packets, -1 if the sizes fit no split.
func kneeOf(sizes []table.Group) (payload float64, below int) {
	silent := func(g table.Group) bool { return !(g.Middle("receive_pps") > 0) }
	if len(sizes) < kneeSizes || slices.ContainsFunc(sizes, silent) {
		return 0, -1
	}
	n := float64(len(sizes))
	_, packetsOnly := level(sizes, "receive_pps")
	_, bitsOnly := level(sizes, "wire_bps")
	one, two := min(packetsOnly, bitsOnly)/n, math.Inf(1)
	for split := 1; split < len(sizes); split++ {
		packets, misses := level(sizes[:split], "receive_pps")
		bits, more := level(sizes[split:], "wire_bps")
		if (misses+more)/n < two {
			two, below = (misses+more)/n, split
			payload = bits/8/packets - wireHeaders(sizes[split])
		}
	}
	switch {
	case min(one, two) > mostMiss:
		return 0, -1
	case (one <= oneLimit || two > twoLimits*one) && packetsOnly <= bitsOnly:
		return 0, len(sizes)
	case one <= oneLimit || two > twoLimits*one:
		return 0, 0
	}
	low, high := sizes[below-1].Level("payload_bytes").Number, sizes[below].Level("payload_bytes").Number
	return min(max(payload, low), high), below
}

// wireHeaders are the bytes on Ethernet around a payload, preamble and gap included.
func wireHeaders(g table.Group) float64 {
	f := g.Rows[0].Flow
	return float64(f.FrameBytes-f.PayloadBytes) + 20
}

// level is the middle of a metric over groups, and how far they miss it in all, as logarithms.
func level(groups []table.Group, metric string) (middleOf, misses float64) {
	var values []float64
	for _, g := range groups {
		values = append(values, g.Middle(metric))
	}
	middleOf = table.Summary(values).Median
	for _, v := range values {
		misses += math.Abs(math.Log(v / middleOf))
	}
	return middleOf, misses
}
