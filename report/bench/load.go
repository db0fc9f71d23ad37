package bench

import (
	"math"

	"pelt/model"
)

// Load is what a row took of the router: means over the trials that saw it.
type Load struct {
	CPU     model.CPUSplit // over all cores
	Busy    Figure         // 0..1 of all cores
	Busiest Figure         // of the busiest core of each trial, 0..1
	Core    int            // that core; -1 if it was not the same in all trials

	PerPercent Figure // payload bit/s for each percent of the processor that was busy
	// PacketNanos is the router's processor time for each packet it passed on. In
	// a lab it is of the router's own threads only, where they are known: the
	// sender and the receiver share the machine.
	PacketNanos Figure

	Dropped, Squeezed           Figure // softnet, per trial
	Connections, ConnectionsMax Figure
	ClockHz, TemperatureC       Figure
}

// leastBusy is what must be busy of a router for figures per time that it took:
// below, the resolution of its clock ticks makes them up.
const leastBusy = 0.005

// MetricOwnThreads is the series of what a lab's router took on threads of its
// own, in cores; see PacketNanos.
const MetricOwnThreads = "cpu_thread_ratio"

// newLoad also counts the trials that saw the router.
func newLoad(doc model.Document, r Row) (l *Load, trials int) {
	var split [8][]float64
	var busy, busiest, each, nanos, dropped, squeezed, conn, most, clock, hot []float64
	core := -2
	for _, i := range r.Trials {
		result := doc.Results[i]
		w := result.Router
		if w == nil || w.CPU == nil {
			continue
		}
		trials++
		for n, v := range Split(*w.CPU) {
			split[n] = append(split[n], v)
		}
		b := w.CPU.Busy()
		busy = append(busy, b)
		if at, top, ok := Busiest(w.Cores); ok {
			busiest = append(busiest, top)
			if core != -2 && core != at {
				at = -1
			}
			core = at
		}
		pps, bps := carried(result)
		if b >= leastBusy && !r.Light {
			each = append(each, bps/(b*100))
		}
		if cores, known := coresTaken(doc, result, b); known && pps > 0 && !r.Light {
			nanos = append(nanos, cores/pps*1e9)
		}
		dropped, squeezed = addCount(dropped, w.SoftnetDropped), addCount(squeezed, w.SoftnetSqueezed)
		conn, most = addCount(conn, w.Connections), addCount(most, w.ConnectionsMax)
		clock, hot = addNumber(clock, w.ClockHz), addNumber(hot, w.TemperatureC)
	}
	if trials == 0 {
		return nil, 0
	}
	l = &Load{Busy: figure(busy), Busiest: figure(busiest), Core: max(core, -1), PerPercent: figure(each), PacketNanos: figure(nanos), Dropped: figure(dropped), Squeezed: figure(squeezed),
		Connections: figure(conn), ConnectionsMax: figure(most), ClockHz: figure(clock), TemperatureC: figure(hot)}
	l.CPU = model.CPUSplit{Core: -1, User: figure(split[0]).Mean, System: figure(split[1]).Mean, Nice: figure(split[2]).Mean, Idle: figure(split[3]).Mean,
		IOWait: figure(split[4]).Mean, IRQ: figure(split[5]).Mean, Softirq: figure(split[6]).Mean, Steal: figure(split[7]).Mean}
	return l, trials
}

// Split lists a processor's time in the order of top: usr sys nic idle io irq sirq, then steal.
func Split(c model.CPUSplit) [8]float64 {
	return [8]float64{c.User, c.System, c.Nice, c.Idle, c.IOWait, c.IRQ, c.Softirq, c.Steal}
}

// Busiest is the core that was busy most, 0..1; ok is false without any.
func Busiest(cores []model.CPUSplit) (core int, busy float64, ok bool) {
	for _, c := range cores {
		if b := c.Busy(); !ok || b > busy {
			core, busy, ok = c.Core, b, true
		}
	}
	return core, busy, ok
}

func carried(r model.Result) (pps, bps float64) {
	for _, f := range r.Flows {
		pps, bps = pps+packets(f), bps+f.GoodputBPS
	}
	return pps, bps
}

// coresTaken is how many cores the router's work took.
func coresTaken(doc model.Document, r model.Result, busy float64) (cores float64, known bool) {
	if doc.Lab == nil {
		return busy * float64(len(r.Router.Cores)), len(r.Router.Cores) > 0 && busy >= leastBusy
	}
	sum, n := 0.0, 0
	for _, s := range r.Series {
		if s.Metric != MetricOwnThreads || s.At != r.Router.Node {
			continue
		}
		for _, v := range s.Values {
			if !math.IsNaN(v) {
				sum, n = sum+v, n+1
			}
		}
	}
	if n == 0 {
		return 0, false
	}
	return sum / float64(n), true
}

func addCount(to []float64, n *uint64) []float64 {
	if n == nil {
		return to
	}
	return append(to, float64(*n))
}

func addNumber(to []float64, v *float64) []float64 {
	if v == nil {
		return to
	}
	return append(to, *v)
}
