package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/report/rows"
	"pelt/unit"
)

// lossChart is stacked bars that need no script.
type lossChart struct {
	Causes []lossCause
	Bars   []lossBar
	Scale  string // what the full width means
}

type lossCause struct {
	Class string
	Words string
}

type lossBar struct {
	Label, Total, Title string
	Parts               []lossPart
}

type lossPart struct {
	Class, X, Width, Title string
}

// leastLossScale is the least loss that the full width may stand for: less must not look like much.
const leastLossScale = 0.001

// Causes with a hue of their own; report.css has as many, and one for the rest.
const maxCauses = 7

// newLossChart also returns the colours of the causes by their words.
func newLossChart(t rows.Table, label func(rows.Row) string) (lossChart, map[string]string) {
	var c lossChart
	class := causeClasses(t.Rows, &c)
	most := leastLossScale
	for _, r := range t.Rows {
		if l, ok := r.LossRatio(); ok {
			most = max(most, l)
		}
	}
	if len(class) == 0 {
		return lossChart{}, class
	}
	c.Scale = unit.FormatRatio(most)
	for _, r := range t.Rows {
		total, ok := r.LossRatio()
		if !ok {
			continue
		}
		b := lossBar{Label: label(r), Total: unit.FormatRatio(total), Title: words.Loss(r)}
		x := 0.0
		for _, p := range words.LossParts(r) {
			width := min(p.Ratio/most, 1-x)
			title := fmt.Sprintf("%s: %s", p.Said(), packetCount(p.Packets))
			b.Parts = append(b.Parts, lossPart{class[p.Words], percent(x), percent(width), title})
			x += width
		}
		c.Bars = append(c.Bars, b)
	}
	return c, class
}

func percent(ratio float64) string { return strconv.FormatFloat(max(ratio, 0)*100, 'f', 3, 64) + "%" }

// causeClasses gives each cause a style, the largest first.
func causeClasses(all []rows.Row, c *lossChart) map[string]string {
	packets := map[string]uint64{}
	for _, r := range all {
		for _, p := range words.LossParts(r) {
			packets[p.Words] += p.Packets
		}
	}
	var causes []string
	for w := range packets {
		causes = append(causes, w)
	}
	slices.SortFunc(causes, func(a, b string) int {
		return cmp.Or(cmp.Compare(packets[b], packets[a]), strings.Compare(a, b))
	})
	class := map[string]string{}
	hue := 0
	for _, w := range causes {
		switch {
		case w == "unattributed" || hue >= maxCauses:
			class[w] = "rest"
		default:
			class[w] = fmt.Sprintf("hue%d", hue)
			hue++
		}
		c.Causes = append(c.Causes, lossCause{class[w], w})
	}
	return class
}

// rowWords names a row among the others: size, other knobs, flow.
func rowWords(t rows.Table, r rows.Row) string {
	text := unit.FormatSize(r.Payload)
	if rest := words.Setting(r.Flow, t.Rest(r.Cell, rows.PayloadKey)); rest != "" {
		text += ", " + rest
	}
	if len(t.Flows) > 1 {
		text = words.Name(r.Flow) + " " + text
	}
	return words.Shorten(text, 48)
}

// hostTable is the environment, a column for each end.
type hostTable struct {
	Nodes []string
	Rows  []hostRow
}

type hostRow struct {
	Name  string
	Cells []string
}

func newHostTable(hosts []model.Host) hostTable {
	var t hostTable
	for _, h := range hosts {
		t.Nodes = append(t.Nodes, words.Name(h.Node))
	}
	add := func(name string, get func(model.Host) string) {
		row, known := hostRow{Name: name}, false
		for _, h := range hosts {
			text := words.Plain(get(h))
			known = known || text != ""
			if text == "" {
				text = "–"
			}
			row.Cells = append(row.Cells, text)
		}
		if known {
			t.Rows = append(t.Rows, row)
		}
	}
	size := func(n int) string {
		if n == 0 {
			return ""
		}
		return unit.FormatCount(uint64(max(n, 0))) + " B"
	}
	add("host name", func(h model.Host) string { return h.Name })
	add("address", func(h model.Host) string { return h.Address })
	add("system", func(h model.Host) string { return strings.TrimSpace(h.OS + " " + h.Kernel) })
	add("processor", func(h model.Host) string {
		if h.Cores == 0 {
			return h.CPU
		}
		return strings.TrimSpace(fmt.Sprintf("%d × %s", h.Cores, cmp.Or(h.CPU, "core")))
	})
	add("memory", func(h model.Host) string {
		if h.MemoryBytes == 0 {
			return ""
		}
		return fmt.Sprintf("%.1f GiB", float64(h.MemoryBytes)/(1<<30))
	})
	add("interface", func(h model.Host) string {
		parts := []string{h.Interface, h.Driver}
		if h.LinkSpeedBits > 0 {
			parts = append(parts, unit.FormatBits(float64(h.LinkSpeedBits)))
		}
		return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
	})
	add("MTU", func(h model.Host) string { return size(h.MTUBytes) })
	add("receive buffer, largest", func(h model.Host) string { return size(h.ReceiveBufferB) })
	add("send buffer, largest", func(h model.Host) string { return size(h.SendBufferB) })
	add("clock", func(h model.Host) string { return h.ClockSource })
	add("CPU governor", func(h model.Host) string { return h.Governor })
	add("may administer its network", func(h model.Host) string {
		if h.Privileged {
			return "yes"
		}
		return "no"
	})
	add("pelt", func(h model.Host) string { return h.Version })
	notes := map[string]bool{}
	for _, h := range hosts {
		for k := range h.Notes {
			notes[k] = true
		}
	}
	for _, k := range slices.Sorted(maps.Keys(notes)) {
		add(words.Name(k), func(h model.Host) string { return h.Notes[k] })
	}
	return t
}
