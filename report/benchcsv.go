package report

import (
	"strconv"
	"strings"

	"pelt/model"
	"pelt/report/bench"
)

// routerColumns are what the trial took of the router under test: the same in
// the rows of flows that ran at once. Empty is not observed.
func routerColumns() []column {
	of := func(name string, get func(*model.RouterWatch) string) column {
		return column{"router_" + name, func(r model.Result, _ model.FlowResult) string {
			if r.Router == nil {
				return ""
			}
			return get(r.Router)
		}}
	}
	split := func(name string, get func(model.CPUSplit) float64) column {
		return of(name+"_ratio", func(w *model.RouterWatch) string {
			if w.CPU == nil {
				return ""
			}
			return csvFloat(get(*w.CPU))
		})
	}
	number := func(name string, get func(*model.RouterWatch) *float64) column {
		return of(name, func(w *model.RouterWatch) string {
			if v := get(w); v != nil {
				return csvFloat(*v)
			}
			return ""
		})
	}
	count := func(name string, get func(*model.RouterWatch) *uint64) column {
		return of(name, func(w *model.RouterWatch) string {
			if v := get(w); v != nil {
				return strconv.FormatUint(*v, 10)
			}
			return ""
		})
	}
	return []column{
		split("user", func(c model.CPUSplit) float64 { return c.User }), split("system", func(c model.CPUSplit) float64 { return c.System }),
		split("nice", func(c model.CPUSplit) float64 { return c.Nice }), split("idle", func(c model.CPUSplit) float64 { return c.Idle }),
		split("iowait", func(c model.CPUSplit) float64 { return c.IOWait }), split("irq", func(c model.CPUSplit) float64 { return c.IRQ }),
		split("softirq", func(c model.CPUSplit) float64 { return c.Softirq }), split("steal", func(c model.CPUSplit) float64 { return c.Steal }),
		of("busiest_core", func(w *model.RouterWatch) string {
			if core, _, ok := bench.Busiest(w.Cores); ok {
				return strconv.Itoa(core)
			}
			return ""
		}),
		of("busiest_core_ratio", func(w *model.RouterWatch) string {
			if _, busy, ok := bench.Busiest(w.Cores); ok {
				return csvFloat(busy)
			}
			return ""
		}),
		of("samples", func(w *model.RouterWatch) string { return strconv.Itoa(w.Samples) }),
		number("cost_ratio", func(w *model.RouterWatch) *float64 { return w.CostRatio }),
		count("softnet_dropped_packets", func(w *model.RouterWatch) *uint64 { return w.SoftnetDropped }),
		count("softnet_squeezed", func(w *model.RouterWatch) *uint64 { return w.SoftnetSqueezed }),
		count("connections", func(w *model.RouterWatch) *uint64 { return w.Connections }),
		count("connections_max", func(w *model.RouterWatch) *uint64 { return w.ConnectionsMax }),
		number("clock_hz", func(w *model.RouterWatch) *float64 { return w.ClockHz }),
		number("temperature_c", func(w *model.RouterWatch) *float64 { return w.TemperatureC }),
		of("gaps", func(w *model.RouterWatch) string { return csvText(strings.Join(w.Gaps, "; ")) }),
	}
}
