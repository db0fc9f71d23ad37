package lab

import (
	"context"
	"errors"
	"fmt"

	"pelt/lab/gauge"
	"pelt/model"
)

// Calibrate probes the emulated links that this process has made, for a second or
// two, and tells what they do. Then they begin anew: the test meets the first draws
// of their seeds. Nothing else may use them, or read their counters, meanwhile.
func (l *Lab) Calibrate(ctx context.Context) ([]model.LinkCalibration, error) {
	var ways []gauge.Way
	for _, e := range l.links {
		for d, s := range e.Ways {
			ways = append(ways, gauge.Way{From: e.Ends[d], To: e.Ends[1-d], Settings: s, Words: told(s, inUserSpace(s, s.Seed)), MTU: l.mtu(e, d), Backend: model.BackendUser,
				In:  gauge.Port{Do: e.nodes[d].Do, Name: e.names[d]},
				Out: gauge.Port{Do: e.nodes[1-d].Do, Name: e.names[1-d]}})
		}
	}
	for _, w := range l.kernel {
		if w.gauged != nil {
			ways = append(ways, *w.gauged)
		}
	}
	list, err := gauge.Measure(ctx, ways)
	return list, errors.Join(err, l.BeginAnew())
}

// BeginAnew has the emulated links that this process has made draw from their
// seeds' beginnings, whatever was changed since. Nothing may use them, or read
// their counters, meanwhile.
func (l *Lab) BeginAnew() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.links {
		e := &l.links[i]
		if e.Cable == nil {
			continue // another process moves its frames
		}
		for d, s := range e.Ways {
			s.Seed, e.times[d] = e.Seeds[d], 0
			s.Seed = seedOf(s, e.link, d)
			e.Ways[d] = s
			e.Cable.Set(d, s)
		}
	}
	for _, w := range l.kernel {
		if w.anew == nil {
			continue
		}
		if e := w.anew(); e != nil {
			err = errors.Join(err, fmt.Errorf("%w from %s to %s: %w", ErrNotAnew, w.From, w.To, e))
		}
	}
	return err
}

// mtu is that of the interface where a direction begins.
func (l *Lab) mtu(e EmulatedLink, d int) int {
	for _, i := range e.nodes[d].info.Interfaces {
		if i.Name == e.names[d] {
			return i.MTU
		}
	}
	return defaultMTU
}
