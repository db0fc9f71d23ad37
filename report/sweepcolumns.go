package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/report/rows"
	"pelt/unit"
)

// KiBPerSecond is the unit of speeds that SweepOptions may ask for: payload
// bytes / 1024 per second.
const KiBPerSecond = "KiB/s"

// SweepOptions choose what a sweep's table shows, and in which order.
type SweepOptions struct {
	Sort      string // one of SweepColumns, or a knob of the run; "" is receive
	Ascending bool   // smallest first
	All       bool   // every row instead of the first 32
	Unit      string // of speeds: KiBPerSecond, or "" for scaled bit/s
}

// sweepColumn is one column of a sweep's table. value is in base units and NaN
// where nobody measured it.
type sweepColumn struct {
	key   string
	head  string
	drop  int // as in field
	value func(r rows.Row) float64
	cell  func(r rows.Row) string
}

// SweepColumns lists the columns that any sweep can be sorted by, in display order.
func SweepColumns() []string {
	var names []string
	for _, c := range sweepFigures(model.Plan{}, "") {
		names = append(names, c.key)
	}
	return names
}

// sweepColumns are the columns of one flow's table: those of SweepColumns, with
// a column for each further knob before them.
func sweepColumns(p model.Plan, keys []string, unitName string) []sweepColumn {
	var columns []sweepColumn
	figures := sweepFigures(p, unitName)
	for _, k := range keys {
		switch k {
		case "interval_ns", rows.PayloadKey:
			continue
		}
		columns = append(columns, sweepColumn{key: k, head: words.Plain(sweepHeadOf(k)),
			value: func(r rows.Row) float64 { return level(p, k, r.Cell) },
			cell: func(r rows.Row) string {
				if v, ok := r.Cell[k]; ok {
					return words.Shorten(knobCell(k, v), 14)
				}
				return "–"
			}})
	}
	for i := range figures {
		if figures[i].key == "interval" && slices.Contains(keys, "rate_pps") {
			figures[i].drop = 8 // it says the same
		}
	}
	return append(columns, figures...)
}

// sweepHeadOf leaves more room to a knob's name than other tables have.
func sweepHeadOf(key string) string {
	if name := strings.TrimSuffix(key, "_buffer_bytes"); name != key {
		return words.Name(name) + " buf"
	}
	return knobHead(key)
}

// level is a knob's setting as a number: words count from 0 in the order of the plan.
func level(p model.Plan, key string, c model.Cell) float64 {
	v, ok := c[key]
	switch {
	case !ok:
		return math.NaN()
	case v.Text == "":
		return v.Number
	}
	for _, f := range p.Factors {
		if f.Knob == key {
			return float64(slices.Index(f.Levels, v))
		}
	}
	return math.NaN()
}

// sweepFigures are the columns that every sweep has.
func sweepFigures(p model.Plan, unitName string) []sweepColumn {
	speed, suffix := unit.FormatBits, ""
	if unitName == KiBPerSecond {
		speed, suffix = func(bps float64) string { return digits(bps / 8 / 1024) }, " KiB/s"
	}
	of := func(key, head string, drop int, value func(rows.Row) float64, format func(float64) string) sweepColumn {
		return sweepColumn{key, head, drop, value, func(r rows.Row) string {
			if v := value(r); finite(v) {
				return format(v)
			}
			return "–"
		}}
	}
	size := of("size", "size", 0, func(r rows.Row) float64 { return float64(r.Payload) }, func(v float64) string { return fmt.Sprintf("%.0f", v) })
	plain := size.cell
	size.cell = func(r rows.Row) string { return plain(r) + mark(r) }
	receive := func(r rows.Row) float64 { return middleOf(r.GoodputBPS) }
	return []sweepColumn{
		of("count", "count", 7, func(r rows.Row) float64 { return packetsOf(p, r) }, func(v float64) string { return unit.FormatCount(uint64(max(v, 0))) }),
		of("interval", "interval", 0, func(r rows.Row) float64 { return intervalOf(p, r) }, intervalText),
		size,
		of("loss", "loss", 0, lossOf, unit.FormatRatio),
		of("send", "send"+suffix, 0, func(r rows.Row) float64 { return middleOf(r.SendBPS) }, speed),
		of("receive", "receive"+suffix, 0, receive, speed),
		of("delta", "delta"+suffix, 2, deltaOf, speed),
		of("send-pps", "send pps", 0, func(r rows.Row) float64 { return middleOf(r.Offered()) }, rateText),
		of("receive-pps", "receive pps", 1, func(r rows.Row) float64 { return middleOf(r.Carried()) }, rateText),
		{"range", "range", 4, func(r rows.Row) float64 {
			if r.GoodputBPS.N == 0 {
				return math.NaN()
			}
			return r.GoodputBPS.Max - r.GoodputBPS.Min
		}, func(r rows.Row) string { return speedRange(r.GoodputBPS, unitName) }},
		{"delay", "delay", 5, delayOf, func(r rows.Row) string {
			if v := delayOf(r); finite(v) {
				return unit.FormatNanos(v)
			}
			return ""
		}},
		{"receivers", "per receiver", 6, func(r rows.Row) float64 {
			if r.Receivers == nil {
				return math.NaN()
			}
			return middleOf(r.Receivers.Least)
		}, func(r rows.Row) string { return receiversText(r, unitName) }},
	}
}

// rateText leaves the unit to the head: "374 k".
func rateText(v float64) string {
	return strings.TrimSpace(strings.TrimSuffix(unit.FormatPPS(v), "pps"))
}

func middleOf(s rows.Stat) float64 {
	if s.N == 0 {
		return math.NaN()
	}
	return s.Median
}

func lossOf(r rows.Row) float64 {
	if ratio, ok := r.LossRatio(); ok {
		return ratio
	}
	return math.NaN()
}

// deltaOf is what was sent in vain, in payload bits per second. It is not below 0:
// of many receivers, what was sent counts over the time of all, what arrived over
// each one's own.
func deltaOf(r rows.Row) float64 { return max(0, middleOf(r.SendBPS)-middleOf(r.GoodputBPS)) }

func delayOf(r rows.Row) float64 {
	if d := rowDelay(r); d != nil {
		return middleOf(d.P50)
	}
	return math.NaN()
}

// packetsOf is how many packets each receiver was sent in a trial: as the plan
// says, else as it came out.
func packetsOf(p model.Plan, r rows.Row) float64 {
	for _, f := range p.Flows {
		if f.Name == r.Flow && f.Packets > 0 {
			return float64(f.Packets)
		}
	}
	return middleOf(r.PacketsEach)
}

// intervalOf is the time between packets of a flow in nanoseconds, 0 if it is
// not paced.
func intervalOf(p model.Plan, r rows.Row) float64 {
	if v, ok := r.Cell["interval_ns"]; ok {
		return v.Number
	}
	if v, ok := r.Cell["rate_pps"]; ok {
		if v.Number > 0 {
			return 1e9 / v.Number
		}
		return 0
	}
	for _, f := range p.Flows {
		if f.Name != r.Flow {
			continue
		}
		if pps, ok := f.Rate.PPS(r.Payload); ok && pps > 0 {
			return 1e9 / pps
		}
		return 0
	}
	return math.NaN()
}

func intervalText(ns float64) string {
	if ns == 0 {
		return "0"
	}
	return unit.FormatNanos(ns)
}

// speedRange is the range of a speed in the unit of its middle: "94.1..96.3".
func speedRange(s rows.Stat, unitName string) string {
	if unitName != KiBPerSecond {
		return spread(s)
	}
	if !s.Spread() {
		return ""
	}
	return digits(s.Min/8192) + ".." + digits(s.Max/8192)
}

// receiversText is the least, the middle and the most goodput of the receivers:
// "914..951..972 kbit/s".
func receiversText(r rows.Row, unitName string) string {
	if r.Receivers == nil || r.Receivers.Count < 2 || r.Receivers.Middle.N == 0 {
		return ""
	}
	least, middle, most := r.Receivers.Least.Median, r.Receivers.Middle.Median, r.Receivers.Most.Median
	if unitName == KiBPerSecond {
		return digits(least/8192) + ".." + digits(middle/8192) + ".." + digits(most/8192)
	}
	if !finite(middle) {
		return ""
	}
	number, name, _ := strings.Cut(unit.FormatBits(middle), " ")
	div := 1.0
	for v := math.Abs(middle); v >= 999.5 && div < 1e12; v /= 1000 {
		div *= 1000
	}
	return digits(least/div) + ".." + number + ".." + digits(most/div) + " " + name
}

// sortSweep orders a flow's rows by one column, those that are not valid last:
// their figures say nothing about the path. It names the column that it took.
func sortSweep(of []rows.Row, columns []sweepColumn, o SweepOptions) ([]rows.Row, error) {
	at, err := findColumn(columns, o.Sort)
	if err != nil {
		return nil, err
	}
	value := columns[at].value
	of = slices.Clone(of)
	slices.SortStableFunc(of, func(a, b rows.Row) int {
		if x, y := a.State == model.Valid, b.State == model.Valid; x != y {
			return yesFirst(x)
		}
		x, y := value(a), value(b)
		if math.IsNaN(x) != math.IsNaN(y) {
			return yesFirst(!math.IsNaN(x))
		}
		if o.Ascending {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(y, x)
	})
	return of, nil
}

func yesFirst(yes bool) int {
	if yes {
		return -1
	}
	return 1
}

// findColumn knows a column by its name, its knob, or the project's own word for it.
func findColumn(columns []sweepColumn, name string) (int, error) {
	name = cmp.Or(name, "receive")
	if known, ok := map[string]string{"payload": "size", rows.PayloadKey: "size", "interval_ns": "interval", "goodput": "receive"}[name]; ok {
		name = known
	}
	var names []string
	for i, c := range columns {
		if c.key == name || c.head == name || strings.ReplaceAll(c.head, " ", "-") == name {
			return i, nil
		}
		names = append(names, words.Name(c.key))
	}
	return 0, &AskError{fmt.Sprintf("cannot sort by %q; want one of %s", words.Name(name), strings.Join(names, ", "))}
}

// check says what is wrong with the options whatever the run.
func (o SweepOptions) check() error {
	if o.Unit != "" && o.Unit != KiBPerSecond {
		return &AskError{fmt.Sprintf("unit of speeds %q: want %s or none", words.Name(o.Unit), KiBPerSecond)}
	}
	return nil
}
