package table

import (
	"math"
	"slices"

	"pelt/model"
	"pelt/unit"
)

// Short names of what figures are of, and the figure of what was not measured.
type (
	value = func(Row) float64
	flow  = *model.FlowResult
	facts = *model.TCPFacts
	watch = *model.RouterWatch
	split = model.CPUSplit
)

var none = math.NaN()

// Differences that do not matter: of rates and counts, of times, of losses, and of processor time.
const (
	twoPercent  = 0.02
	fivePercent = 0.05
	tenthPoint  = 0.001
	twoPoints   = 0.02
)

// define makes a metric. Its unit is the end of its name, else it counts; value returns NaN
// for a row that has no such figure.
func define(name, label string, better Better, value value) *Metric {
	m := &Metric{Name: name, Label: label, Unit: unit.UnitOf(name), Better: better, Resolution: twoPercent}
	m.Value = func(r Row) (float64, bool) {
		if r.Flow != nil && len(r.Flow.Told) > 0 && !slices.Contains(r.Flow.Told, name) {
			return none, false
		}
		v := value(r)
		return v, !math.IsNaN(v) && !math.IsInf(v, 0)
	}
	switch m.Unit {
	case unit.Word:
		m.Unit = unit.Count
	case unit.Ratio:
		m.Resolution = twoPoints
	case unit.Nanos:
		m.Resolution = fivePercent
	}
	return m
}

func (m *Metric) within(resolution float64) *Metric {
	m.Resolution = resolution
	return m
}

func when(known bool, v float64) float64 {
	if known {
		return v
	}
	return none
}

func known[T uint64 | float64](p *T) float64 {
	if p == nil {
		return none
	}
	return float64(*p)
}

// ofUDP is a figure of UDP: the ledger and the order of packets of TCP are its own affair.
func ofUDP(f flow, v float64) float64 { return when(f.Protocol == model.UDP, v) }

// The kinds of rows that metrics are of. Rows of other kinds have no such figure.

// part is a figure of whole flows, of windows and of receivers.
func part(get func(flow) float64) value {
	return func(r Row) float64 {
		if r.Flow == nil || r.Line != nil || !Measured(r.Flow) {
			return none
		}
		return get(r.Flow)
	}
}

func whole(get func(flow) float64) value {
	return func(r Row) float64 {
		if r.Window != nil || r.Receiver != nil {
			return none
		}
		return part(get)(r)
	}
}

func udpCount(get func(flow) uint64) value {
	return whole(func(f flow) float64 { return ofUDP(f, float64(get(f))) })
}

func ofReceived(get func(flow) uint64) value {
	return whole(func(f flow) float64 { return ofUDP(f, float64(get(f))/float64(f.Received)) })
}

// trial is a figure of a trial as a whole, the same for each of its flows.
func trial(get value) value {
	return func(r Row) float64 {
		if r.Flow == nil || r.Line != nil || r.Window != nil || r.Receiver != nil {
			return none
		}
		return get(r)
	}
}

func router(get func(watch) float64) value {
	return trial(func(r Row) float64 {
		if r.Trial.Router == nil {
			return none
		}
		return get(r.Trial.Router)
	})
}

// routerSplit is a share of the router's time. In a lab its cores are those of the sender and the receiver, too.
func routerSplit(get func(split) float64) value {
	return trial(func(r Row) float64 {
		if r.Trial.Router == nil || r.Trial.Router.CPU == nil || r.Doc.Lab != nil {
			return none
		}
		return get(*r.Trial.Router.CPU)
	})
}

// core is a figure of one processor core. Where a lab's cores were kept from sleep they
// poll while they are idle, and their own account may call that work.
func core(get func(split) float64) value {
	return func(r Row) float64 {
		if r.Core == nil || r.Doc.Lab != nil && r.Doc.Lab.KeptAwake {
			return none
		}
		return get(r.Core.CPUSplit)
	}
}

func line(get func(l *model.Line, f flow) float64) value {
	return func(r Row) float64 {
		if r.Line == nil {
			return none
		}
		return get(r.Line, r.Flow)
	}
}

// tcp is a figure of a TCP flow that carries data; one of connections has none.
func tcp(get func(facts) float64) value {
	return whole(func(f flow) float64 {
		if f.TCP == nil || f.Connections != nil {
			return none
		}
		return get(f.TCP)
	})
}

func connections(get func(*model.ConnectionFacts) float64) value {
	return whole(func(f flow) float64 {
		if f.Connections == nil {
			return none
		}
		return get(f.Connections)
	})
}

func receivers(get func([]float64) float64) value {
	return whole(func(f flow) float64 {
		var v []float64
		for _, r := range f.Receivers {
			v = append(v, r.GoodputBPS)
		}
		if len(v) == 0 {
			return none
		}
		return get(v)
	})
}

// probed is a figure of the thin probe flow.
func probed(get func(*model.ProbeFacts) float64) value {
	return whole(func(f flow) float64 {
		if f.Probe == nil || f.Probe.Sent == 0 {
			return none
		}
		return get(f.Probe)
	})
}

// times is a figure of a distribution of times, in ns.
func times(of func(flow) *model.Percentiles, get func(*model.Percentiles) float64) value {
	return whole(func(f flow) float64 {
		p := of(f)
		if p == nil || p.Count == 0 {
			return none
		}
		return get(p)
	})
}

// The families of metrics that differ in what they are of.

func percentiles(name, label string, better Better, of func(flow) *model.Percentiles) (out []*Metric) {
	for _, q := range []struct {
		name, label string
		get         func(*model.Percentiles) float64
	}{
		{"min", "least", func(p *model.Percentiles) float64 { return p.Min }},
		{"p50", "median", func(p *model.Percentiles) float64 { return p.P50 }},
		{"p90", "90 %", func(p *model.Percentiles) float64 { return p.P90 }},
		{"p95", "95 %", p95},
		{"p99", "99 %", func(p *model.Percentiles) float64 { return p.P99 }},
		{"p999", "99.9 %", func(p *model.Percentiles) float64 { return p.P999 }},
		{"max", "most", func(p *model.Percentiles) float64 { return p.Max }},
	} {
		out = append(out, define(name+"_"+q.name+"_ns", label+", "+q.label, better, times(of, q.get)))
	}
	return out
}

// p95 is NaN in runs of versions that did not store it.
func p95(p *model.Percentiles) float64 { return when(p.P95 > 0 || p.P90 == 0, p.P95) }

// cpuMetrics are the processor time of one end. All 0: nobody read it.
func cpuMetrics(name, label string, of func(flow) model.CPU) []*Metric {
	one := func(what, word string, get func(model.CPU) float64) *Metric {
		return define(name+"_cpu_"+what+"_ratio", label+" "+word, Neutral,
			whole(func(f flow) float64 { return when(of(f) != model.CPU{}, get(of(f))) }))
	}
	return []*Metric{
		one("thread", "thread", func(c model.CPU) float64 { return c.ThreadRatio }),
		one("host", "host", func(c model.CPU) float64 { return c.HostRatio }),
		one("softirq", "softirq", func(c model.CPU) float64 { return c.SoftirqRatio }),
		one("busiest", "busiest core", func(c model.CPU) float64 { return c.BusiestRatio }),
	}
}

// splitMetrics are the shares of a processor's busy time, named as top has them.
func splitMetrics(name, label string, of func(func(split) float64) value) []*Metric {
	one := func(what, word string, get func(split) float64) *Metric {
		return define(name+"_"+what+"_ratio", label+" "+word, Neutral, of(get))
	}
	return []*Metric{
		one("user", "user", func(c split) float64 { return c.User }),
		one("system", "system", func(c split) float64 { return c.System }),
		one("nice", "nice", func(c split) float64 { return c.Nice }),
		one("irq", "interrupts", func(c split) float64 { return c.IRQ }),
		one("softirq", "softirq", func(c split) float64 { return c.Softirq }),
		one("steal", "steal", func(c split) float64 { return c.Steal }),
	}
}
