package report

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"pelt/model"
	"pelt/report/bench"
	"pelt/report/controls"
	"pelt/report/internal/words"
	"pelt/report/rows"
)

// column is one CSV column of a flow's row. value is empty where nothing was measured.
type column struct {
	name  string
	value func(r model.Result, f model.FlowResult) string
}

// CSV writes a header and one row per flow of each trial, ordered by cell, then
// repeat, then flow. The cell's knobs come first, then the names of the JSON
// document. A trial that measured no flow has a row with its state; one of several
// TCP streams of a comparison of controls has a row for each below its own. A knob
// that is also a measured figure (loss_ratio) has set_ before its name; a size
// or count that is both stands once, among the knobs.
func CSV(w io.Writer, doc model.Document) error {
	keys := cellKeys(doc)
	columns := flowColumns()
	if paced(doc) {
		columns = append(columns, pacingColumns()...)
	}
	if toMany(doc) {
		columns = append(columns, receiverColumns()...)
	}
	if bench.Is(doc) {
		columns = append(columns, routerColumns()...)
	}
	compared := doc.Plan.Command == controls.Command
	if compared {
		columns = slices.Insert(columns, len(trialColumns), controlColumns(doc)...)
	}
	measured := map[string]column{} // settings that stand among the knobs
	columns = slices.DeleteFunc(columns, func(c column) bool {
		if isSetting(c.name) && slices.Contains(keys, c.name) {
			measured[c.name] = c
			return true
		}
		return false
	})
	var header []string
	for _, k := range keys {
		if !isSetting(k) && slices.ContainsFunc(columns, func(c column) bool { return c.name == k }) {
			k = "set_" + k
		}
		header = append(header, csvText(k))
	}
	for _, c := range columns {
		header = append(header, c.name)
	}
	out := csv.NewWriter(w)
	_ = out.Write(header) // Flush reports the first error
	for _, r := range inCellOrder(doc, keys) {
		flows := r.Flows
		if len(flows) == 0 {
			flows = []model.FlowResult{{}}
		}
		for _, f := range flows {
			var record []string
			for _, k := range keys {
				text := csvLevel(r.Cell, k)
				if c, ok := measured[k]; ok && text == "" && f.Name != "" {
					text = c.value(r, f) // a cell need not set what its flow has
				}
				record = append(record, text)
			}
			for _, c := range columns {
				text := ""
				if f.Name != "" || slices.Contains(trialColumns, c.name) {
					text = c.value(r, f)
				}
				record = append(record, text)
			}
			_ = out.Write(record)
			if compared {
				for _, stream := range streamRecords(r, f, columns) {
					_ = out.Write(append(slices.Clone(record[:len(keys)]), stream...))
				}
			}
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("writing CSV: %w", err)
	}
	return nil
}

// isSetting: what was set and what the flow says of it are the same number.
func isSetting(name string) bool {
	return name == "payload_bytes" || name == "frame_bytes" || name == "streams" || name == "receivers" || name == "protocol"
}

// toMany reports whether any flow went to several receivers.
func toMany(doc model.Document) bool {
	return slices.ContainsFunc(doc.Results, func(r model.Result) bool {
		return slices.ContainsFunc(r.Flows, func(f model.FlowResult) bool { return len(f.Receivers) > 0 })
	})
}

// receiverColumns compare the receivers of a flow to many; its other figures are sums.
func receiverColumns() []column {
	among := func(name string, get func(rows.Stat) float64) column {
		return column{name, func(_ model.Result, f model.FlowResult) string {
			if s := rows.Among(f); s.N > 0 {
				return csvFloat(get(s))
			}
			return ""
		}}
	}
	return []column{
		{"receivers", func(_ model.Result, f model.FlowResult) string { return strconv.Itoa(max(1, len(f.Receivers))) }},
		among("receiver_goodput_min_bps", func(s rows.Stat) float64 { return s.Min }),
		among("receiver_goodput_median_bps", func(s rows.Stat) float64 { return s.Median }),
		among("receiver_goodput_max_bps", func(s rows.Stat) float64 { return s.Max }),
	}
}

func cellKeys(doc model.Document) []string {
	seen := map[string]bool{}
	for _, r := range doc.Results {
		for k := range r.Cell {
			seen[k] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

func inCellOrder(doc model.Document, keys []string) []model.Result {
	results := slices.Clone(doc.Results)
	slices.SortStableFunc(results, func(a, b model.Result) int {
		for _, k := range keys {
			if c := rows.CompareLevels(doc.Plan, k, a.Cell, b.Cell); c != 0 {
				return c
			}
		}
		return cmp.Compare(a.Repeat, b.Repeat)
	})
	return results
}

func csvLevel(c model.Cell, key string) string {
	v, ok := c[key]
	switch {
	case !ok:
		return ""
	case v.Text != "":
		return csvText(v.Text)
	}
	return csvFloat(v.Number)
}

// csvText keeps outside text from being taken for a formula by a spreadsheet.
func csvText(s string) string {
	s = words.Plain(s)
	if s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return "'" + s
	}
	return s
}

func csvFloat(f float64) string {
	if !finite(f) {
		return ""
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// trialColumns are known even of a trial without flows.
var trialColumns = []string{"repeat", "started", "state", "why", "engine"}

func flowColumns() []column {
	text := func(name string, get func(r model.Result, f model.FlowResult) string) column {
		return column{name, func(r model.Result, f model.FlowResult) string { return csvText(get(r, f)) }}
	}
	count := func(name string, get func(f model.FlowResult) uint64) column {
		return column{name, func(_ model.Result, f model.FlowResult) string { return strconv.FormatUint(get(f), 10) }}
	}
	number := func(name string, get func(f model.FlowResult) float64) column {
		return column{name, func(_ model.Result, f model.FlowResult) string { return csvFloat(get(f)) }}
	}
	size := func(name string, get func(f model.FlowResult) int) column {
		return column{name, func(_ model.Result, f model.FlowResult) string { return strconv.Itoa(get(f)) }}
	}
	columns := []column{
		{"repeat", func(r model.Result, _ model.FlowResult) string { return strconv.Itoa(r.Repeat) }},
		{"started", func(r model.Result, _ model.FlowResult) string { return csvTime(r.Started) }},
		text("state", func(r model.Result, _ model.FlowResult) string { return string(r.State) }),
		text("why", func(r model.Result, _ model.FlowResult) string { return r.Why }),
		text("engine", func(r model.Result, _ model.FlowResult) string { return r.Engine }),
		text("name", func(_ model.Result, f model.FlowResult) string { return f.Name }),
		text("protocol", func(_ model.Result, f model.FlowResult) string { return string(f.Protocol) }),
		text("from", func(_ model.Result, f model.FlowResult) string { return f.From }),
		text("to", func(_ model.Result, f model.FlowResult) string { return f.To }),
		size("payload_bytes", func(f model.FlowResult) int { return f.PayloadBytes }),
		size("frame_bytes", func(f model.FlowResult) int { return f.FrameBytes }),
		size("fragments", func(f model.FlowResult) int { return max(f.Fragments, 1) }),
		size("streams", func(f model.FlowResult) int { return f.Streams }),
		number("duration_s", func(f model.FlowResult) float64 { return f.DurationS }),
		count("planned_packets", func(f model.FlowResult) uint64 { return f.Planned }),
		count("attempted_packets", func(f model.FlowResult) uint64 { return f.Attempted }),
		count("accepted_packets", func(f model.FlowResult) uint64 { return f.Accepted }),
		count("received_packets", func(f model.FlowResult) uint64 { return f.Received }),
		count("duplicate_packets", func(f model.FlowResult) uint64 { return f.Duplicates }),
		count("reordered_packets", func(f model.FlowResult) uint64 { return f.Reordered }),
		count("late_packets", func(f model.FlowResult) uint64 { return f.Late }),
		count("lost_packets", func(f model.FlowResult) uint64 { return f.Lost }),
		number("loss_ratio", func(f model.FlowResult) float64 { return f.LossRatio }),
		number("send_pps", func(f model.FlowResult) float64 { return f.SendPPS }),
		number("receive_pps", func(f model.FlowResult) float64 { return f.ReceivePPS }),
		number("goodput_bps", func(f model.FlowResult) float64 { return f.GoodputBPS }),
		number("send_bps", func(f model.FlowResult) float64 { return f.SendGoodputBPS }),
		number("jitter_ns", func(f model.FlowResult) float64 { return f.JitterNS }),
	}
	columns = append(columns, quantileColumns("delay", func(f model.FlowResult) *model.Percentiles { return f.Delay })...)
	columns = append(columns, quantileColumns("round_trip", func(f model.FlowResult) *model.Percentiles { return f.RoundTrip })...)
	columns = append(columns, quantileColumns("send_gap", func(f model.FlowResult) *model.Percentiles { return f.SendGap })...)
	columns = append(columns, tcpColumns()...)
	columns = append(columns,
		number("sender_cpu_thread_ratio", func(f model.FlowResult) float64 { return f.SenderCPU.ThreadRatio }),
		number("sender_cpu_host_ratio", func(f model.FlowResult) float64 { return f.SenderCPU.HostRatio }),
		number("sender_cpu_softirq_ratio", func(f model.FlowResult) float64 { return f.SenderCPU.SoftirqRatio }),
		number("receiver_cpu_thread_ratio", func(f model.FlowResult) float64 { return f.ReceiverCPU.ThreadRatio }),
		number("receiver_cpu_host_ratio", func(f model.FlowResult) float64 { return f.ReceiverCPU.HostRatio }),
		number("receiver_cpu_softirq_ratio", func(f model.FlowResult) float64 { return f.ReceiverCPU.SoftirqRatio }),
		count("unattributed_packets", func(f model.FlowResult) uint64 { return f.Ledger.Unattributed }),
		text("ledger_lines", func(_ model.Result, f model.FlowResult) string { return ledgerText(f.Ledger) }),
	)
	return append(columns, ledgerColumns()...)
}

// ledgerColumns are packets lost in each layer, in travel order: with the
// unattributed ones they make up the lost ones. TCP has no such account.
func ledgerColumns() []column {
	var columns []column
	for _, layer := range model.Layers() {
		columns = append(columns, column{"lost_" + strings.ReplaceAll(layer, "-", "_") + "_packets", func(_ model.Result, f model.FlowResult) string {
			if f.Protocol == model.TCP {
				return ""
			}
			var n uint64
			for _, l := range f.Ledger.Lines {
				if l.Layer == layer {
					n += l.Packets
				}
			}
			return strconv.FormatUint(n, 10)
		}})
	}
	return append(columns,
		column{"checks_broken", func(_ model.Result, f model.FlowResult) string {
			broken := 0
			for _, c := range f.Ledger.Checks {
				if !c.Held {
					broken++
				}
			}
			return strconv.Itoa(broken)
		}},
		column{"observed", func(r model.Result, _ model.FlowResult) string { return csvText(observedText(r.Observed)) }},
	)
}

// observedText is how closely each node was watched: "sender=seq; receiver=no".
func observedText(all []model.Observed) string {
	var list []string
	for _, o := range all {
		list = append(list, o.Node+"="+string(cmp.Or(o.Mode, "no")))
	}
	return strings.Join(list, "; ")
}

func quantileColumns(name string, get func(model.FlowResult) *model.Percentiles) []column {
	one := func(suffix string, of func(*model.Percentiles) float64) column {
		return column{name + "_" + suffix + "_ns", func(_ model.Result, f model.FlowResult) string {
			if p := get(f); p != nil && p.Count > 0 && (suffix != "p95" || p.P95 > 0 || p.P90 == 0) { // runs of before have no P95
				return csvFloat(of(p))
			}
			return ""
		}}
	}
	return []column{
		one("min", func(p *model.Percentiles) float64 { return p.Min }), one("p50", func(p *model.Percentiles) float64 { return p.P50 }),
		one("p90", func(p *model.Percentiles) float64 { return p.P90 }), one("p95", func(p *model.Percentiles) float64 { return p.P95 }), one("p99", func(p *model.Percentiles) float64 { return p.P99 }),
		one("p999", func(p *model.Percentiles) float64 { return p.P999 }), one("max", func(p *model.Percentiles) float64 { return p.Max }),
	}
}

func tcpColumns() []column {
	one := func(name string, get func(*model.TCPFacts) string) column {
		return column{"tcp_" + name, func(_ model.Result, f model.FlowResult) string {
			if f.TCP == nil {
				return ""
			}
			return get(f.TCP)
		}}
	}
	return []column{
		one("writes", func(t *model.TCPFacts) string { return strconv.FormatUint(t.Writes, 10) }),
		one("sent_bytes", func(t *model.TCPFacts) string { return strconv.FormatUint(t.SentBytes, 10) }),
		one("received_bytes", func(t *model.TCPFacts) string { return strconv.FormatUint(t.ReceivedBytes, 10) }),
		one("segments_out", func(t *model.TCPFacts) string { return strconv.FormatUint(t.SegmentsOut, 10) }),
		one("segments_in", func(t *model.TCPFacts) string { return strconv.FormatUint(t.SegmentsIn, 10) }),
		one("retransmits", func(t *model.TCPFacts) string { return strconv.FormatUint(t.Retransmits, 10) }),
		one("segment_max_bytes", func(t *model.TCPFacts) string { return strconv.Itoa(t.SegmentSizeBytes) }),
		one("control", func(t *model.TCPFacts) string { return csvText(t.Control) }),
		one("rtt_ns", func(t *model.TCPFacts) string { return csvFloat(t.RTTNanos) }),
	}
}

func ledgerText(l model.Ledger) string {
	var words []string
	for _, line := range l.Lines {
		words = append(words, fmt.Sprintf("%s/%s/%s=%d", line.Layer, line.Host, line.Cause, line.Packets))
	}
	return strings.Join(words, "; ")
}

func csvTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
