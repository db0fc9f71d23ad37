package counters

import (
	"cmp"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"pelt/model"
	"pelt/unit"
)

// Bounds of what Diff returns.
const (
	// manyLinks is from how many interfaces on those that stood still are left out.
	manyLinks = 32
	moments   = 4
)

const (
	atIdle = iota
	atStart
	atMeasure
	atEnd
)

// merged is one counter of the result with its parts at all moments.
type merged struct {
	series
	parts map[part]*values
}

// part tells apart what is added up in one counter.
type part struct {
	link   int
	number uint64
}

type values struct {
	at    [moments]uint64
	known [moments]bool
}

// Diff returns what the counters of one namespace did over a trial: those that
// moved, and those that a check needs even if they stood still, ordered by
// name. A Counter's Host stays empty.
//
// idle and measure may be zero: IdleHz is then 0, and Measure is Whole; Measure is 0
// of a counter that only measure lacks. Without
// start or end there is nothing to tell, and the result is empty. A counter that
// was there at one of start and end only, or that went back, has Reset set and
// tells nothing else. It takes no notice of which Reader took the snapshots.
func Diff(idle, start, measure, end Snapshot, idleSeconds float64) []model.Counter {
	if start.Taken.IsZero() || end.Taken.IsZero() {
		return nil
	}
	all := map[string]*merged{}
	for at, s := range []Snapshot{idle, start, measure, end} {
		for _, r := range s.readings {
			r, ok := end.ofKind(r)
			if !ok || r.role&(gauge|hidden) != 0 {
				continue
			}
			m := all[r.name]
			if m == nil {
				m = &merged{r.series, map[part]*values{}}
				all[r.name] = m
			}
			v := m.parts[part{r.link, r.part}]
			if v == nil {
				v = &values{}
				m.parts[part{r.link, r.part}] = v
			}
			v.at[at], v.known[at] = r.value, true
		}
	}
	for name, sum := range all {
		if dev, is := strings.CutSuffix(name, "rx_frame_sum"); is {
			sum.divide(all, dev)
		}
	}
	for name, m := range all {
		port := end.links[m.link]
		if of := end.links[port.master]; of.kind == bond && m.role&loss != 0 {
			sum := all["dev."+of.name+strings.TrimPrefix(name, "dev."+port.name)]
			sum.less(part{link: of.index}, m.parts[part{link: port.index}])
		}
	}
	out := make([]model.Counter, 0, len(all))
	for _, m := range all {
		c, ok := m.counter(!measure.Taken.IsZero(), idleSeconds)
		if !ok {
			continue
		}
		if c.Whole > 0 || c.Reset || m.role&primary != 0 && m.wanted(end) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b model.Counter) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// less takes from a part of a bond's counter by how much a port's went on.
func (m *merged) less(of part, port *values) {
	if m == nil || m.parts[of] == nil || port == nil {
		return
	}
	sum, from, least := m.parts[of], -1, uint64(0)
	for at := range moments {
		switch {
		case !sum.known[at] || !port.known[at]:
			continue
		case from < 0:
			from = at
		default: // the two are not read at once, so what is left may seem to go back
			more := port.at[at] - min(port.at[at], port.at[from])
			sum.at[at] = max(least, sum.at[at]-min(sum.at[at], more))
		}
		least = sum.at[at]
	}
}

// divide takes from a sum the one part that moved over the trial: the others were what they had been at the start. If
// several moved, their values are not known. The sum is all that a router tells of damaged frames and of addedErrors
// when the measured part begins.
func (m *merged) divide(all map[string]*merged, dev string) {
	for key, sum := range m.parts {
		left, moved := sum.at[atMeasure], (*values)(nil)
		for _, name := range append([]string{"rx_frame_errors"}, addedErrors...) {
			of, known := all[dev+name]
			if !known || of.parts[key] == nil {
				return
			}
			switch v := of.parts[key]; {
			case v.at[atStart] == v.at[atEnd]:
				left -= min(left, v.at[atStart])
			case moved != nil:
				return
			default:
				moved = v
			}
		}
		if moved != nil && sum.known[atMeasure] && moved.at[atStart] <= left && left <= moved.at[atEnd] {
			moved.at[atMeasure], moved.known[atMeasure] = left, true
		}
	}
}

// wanted reports whether a primary counter that stood still is worth a line:
// those of interfaces only where they are up and few.
func (m *merged) wanted(end Snapshot) bool {
	return m.link == 0 || len(end.links) < manyLinks && end.links[m.link].up
}

// counter adds up the parts. ok is false if neither start nor end knows of it,
// or if what came or went had counted nothing.
func (m *merged) counter(measured bool, idleSeconds float64) (c model.Counter, ok bool) {
	c = model.Counter{Name: m.name, Scope: m.scope, Unit: m.unit}
	idled := uint64(0)
	for _, v := range m.parts {
		if m.fresh && v.known[atEnd] {
			v.begin()
		}
		if !v.known[atStart] && !v.known[atEnd] {
			continue
		}
		ok = true
		c.Before += v.at[atStart]
		c.After += v.at[atEnd]
		if v.known[atStart] != v.known[atEnd] {
			c.Reset = true
			continue
		}
		whole, good := m.advance(v.at[atStart], v.at[atEnd])
		during := whole
		if measured && v.known[atMeasure] {
			warmup, good1 := m.advance(v.at[atStart], v.at[atMeasure])
			rest, good2 := m.advance(v.at[atMeasure], v.at[atEnd])
			// The sum rather than the whole: more than one wrap shows.
			whole, during, good = warmup+rest, rest, good1 && good2
		} else if measured { // the ledger knows how much the warm-up lost
			during = 0
		}
		c.Whole += whole
		c.Measure += during
		c.Reset = c.Reset || !good
		if v.known[atIdle] {
			if n, good := m.advance(v.at[atIdle], v.at[atStart]); good {
				idled += n
			}
		}
	}
	if c.Reset {
		c.Whole, c.Measure = 0, 0
		return c, ok && c.Before|c.After != 0
	}
	c.After = c.Before + c.Whole // wraps undone
	if idleSeconds > 0 {
		c.IdleHz = float64(idled) / idleSeconds
	}
	return c, ok
}

// begin lets a part that was not there before begin at zero.
func (v *values) begin() {
	for at := 0; at < atEnd && !v.known[at]; at++ {
		v.known[at] = true
	}
}

// advance is by how much a value went on; good is false if it went back. It undoes a wrap at the counter's width. A
// counter that was made anew looks the same; it is taken for that if the wrap would have taken half the range.
func (s *series) advance(from, to uint64) (n uint64, good bool) {
	if to >= from {
		return to - from, true
	}
	if s.bits >= 64 {
		return 0, false
	}
	wide, good := unit.Widen(from, uint32(to))
	return wide - from, good && to>>32 == 0
}

// WidenEvery is how often the counters must be read at least: those of 32 bits go on by
// half of their range in 14 s at the fastest, at the 148 million frames a second of 100 Gbit/s.
const WidenEvery = 10 * time.Second

// Snapshots are the snapshots of one trial, whose counters of 32 bits go on beyond them.
type Snapshots struct {
	taken map[model.Moment]Snapshot
	last  Snapshot
}

// Take adds a snapshot of a moment, or of none: see WidenEvery. All come in their order.
func (s *Snapshots) Take(m model.Moment, now Snapshot) {
	type key struct {
		name string
		part part
	}
	before := make(map[key]uint64, len(s.last.readings))
	for _, r := range s.last.readings {
		before[key{r.name, part{r.link, r.part}}] = r.value
	}
	for i := range now.readings {
		r := &now.readings[i]
		if from, known := before[key{r.name, part{r.link, r.part}}]; known && r.bits == 32 && r.role&gauge == 0 &&
			r.value>>32 == 0 {
			r.value, _ = unit.Widen(from, uint32(r.value))
		}
	}
	if s.taken == nil {
		s.taken = map[model.Moment]Snapshot{}
	}
	s.last = now
	if m != "" {
		s.taken[m] = now
	}
}

// At is the snapshot of a moment; of none, the last of all.
func (s *Snapshots) At(m model.Moment) Snapshot {
	if m == "" {
		return s.last
	}
	return s.taken[m]
}

// Moments are those that were taken.
func (s *Snapshots) Moments() iter.Seq[model.Moment] { return maps.Keys(s.taken) }

// Describe adds what the counters did over the trial, what is set at interfaces, and what any reading lacked. It
// reports whether the snapshots of its begin and its end are there.
func (s *Snapshots) Describe(o *model.Observation) bool {
	idle, start := s.At(model.MomentIdle), s.At(model.MomentStart)
	measure, end := s.At(model.MomentMeasure), s.At(model.MomentEnd)
	if !idle.Taken.IsZero() && !start.Taken.IsZero() {
		o.IdleS = start.Taken.Sub(idle.Taken).Seconds()
	}
	o.Counters = Diff(idle, start, measure, end, o.IdleS)
	s.describeLevels(o)
	for _, setting := range end.settings() {
		known := func(k model.HostSetting) bool { return k.Name == setting.Name }
		if !slices.ContainsFunc(o.Knobs, known) {
			o.Knobs = append(o.Knobs, setting)
		}
	}
	for _, snapshot := range []Snapshot{start, measure, end} {
		for _, one := range snapshot.Unread {
			if !slices.ContainsFunc(o.Unread, func(r model.Reason) bool { return reflect.DeepEqual(r, one) }) {
				o.Unread = append(o.Unread, one)
			}
		}
	}
	return !start.Taken.IsZero() && !end.Taken.IsZero()
}

// describeLevels adds the highest of each level.
func (s *Snapshots) describeLevels(o *model.Observation) {
	highest := map[string]uint64{}
	for m := range s.Moments() {
		for name, n := range s.At(m).levels {
			highest[name] = max(highest[name], n)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(highest)) {
		o.Knobs = slices.DeleteFunc(o.Knobs, func(k model.HostSetting) bool { return k.Name == name })
		o.Knobs = append(o.Knobs, model.HostSetting{Name: name, Value: decimal(highest[name])})
	}
}

// Queues are those of the function of that name, by the trial's snapshots.
func (s *Snapshots) Queues() []model.Queue {
	return Queues(s.At(model.MomentStart), s.At(model.MomentMeasure), s.At(model.MomentEnd))
}
