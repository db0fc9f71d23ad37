package report

import (
	"slices"
	"strconv"

	"pelt/model"
	"pelt/report/controls"
)

// controlColumns are what a comparison of congestion controls has beside the
// figures of every flow. stream is empty in the row of a whole trial.
func controlColumns(doc model.Document) []column {
	of := func(name string, get func(*model.TCPFacts) string) column {
		return column{name, func(_ model.Result, f model.FlowResult) string {
			if f.TCP == nil {
				return ""
			}
			return get(f.TCP)
		}}
	}
	number := func(name string, get func(*model.TCPFacts) float64) column {
		return of(name, func(t *model.TCPFacts) string { return csvFloat(get(t)) })
	}
	done := func(name string, get func(*model.Completion) string) column {
		return of(name, func(t *model.TCPFacts) string {
			if t.Completion == nil {
				return ""
			}
			return get(t.Completion)
		})
	}
	return []column{
		{"condition", func(r model.Result, _ model.FlowResult) string {
			if !controls.Is(doc) {
				return ""
			}
			return csvText(controls.ConditionOf(doc, r))
		}},
		{"stream", nothingKnown},
		{"stream_start_s", nothingKnown},
		done("completion_s", func(c *model.Completion) string { return csvFloat(c.Seconds) }),
		done("completion_done", func(c *model.Completion) string { return strconv.FormatBool(c.Done) }),
		done("completion_by", func(c *model.Completion) string { return csvText(c.By) }),
		done("completion_bytes", func(c *model.Completion) string { return strconv.FormatUint(c.Bytes, 10) }),
		of("retransmit_ratio", func(t *model.TCPFacts) string {
			if t.SegmentsOut == 0 {
				return ""
			}
			return csvFloat(float64(t.Retransmits) / float64(t.SegmentsOut))
		}),
		of("tcp_min_rtt_ns", func(t *model.TCPFacts) string {
			if t.MinRTTNanos == 0 {
				return ""
			}
			return csvFloat(t.MinRTTNanos)
		}),
		number("tcp_busy_s", func(t *model.TCPFacts) float64 { return t.BusyS }),
		number("tcp_rwnd_limited_s", func(t *model.TCPFacts) float64 { return t.RwndLimitedS }),
		number("tcp_sndbuf_limited_s", func(t *model.TCPFacts) float64 { return t.SndbufLimitedS }),
		of("tcp_samples_missed", func(t *model.TCPFacts) string { return strconv.FormatUint(t.SamplesMissed, 10) }),
	}
}

func nothingKnown(model.Result, model.FlowResult) string { return "" }

// streamRecords are the rows of a trial's streams, without the knobs. What is known
// of the whole trial only is empty.
func streamRecords(r model.Result, f model.FlowResult, columns []column) [][]string {
	if f.TCP == nil {
		return nil
	}
	ofTrial := append(slices.Clone(trialColumns), "condition", "name", "protocol", "from", "to")
	var out [][]string
	for n, s := range f.TCP.PerStream {
		own := map[string]string{
			"stream": strconv.Itoa(n), "stream_start_s": csvFloat(s.StartSeconds), "goodput_bps": csvFloat(s.GoodputBPS), "tcp_control": csvText(s.Control),
			"tcp_sent_bytes": strconv.FormatUint(s.SentBytes, 10), "tcp_received_bytes": strconv.FormatUint(s.ReceivedBytes, 10), "tcp_retransmits": strconv.FormatUint(s.Retransmits, 10),
		}
		var record []string
		for _, c := range columns {
			text := own[c.name]
			if slices.Contains(ofTrial, c.name) {
				text = c.value(r, f)
			}
			record = append(record, text)
		}
		out = append(out, record)
	}
	return out
}
