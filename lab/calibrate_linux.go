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
	for _, k := range l.links {
		for _, w := range k.kernel {
			if w.gauged != nil {
				ways = append(ways, *w.gauged)
			}
		}
		if k.cable == nil {
			continue
		}
		for d, s := range k.settings {
			ways = append(ways, gauge.Way{From: k.Ends[d], To: k.Ends[1-d], Settings: s, Words: told(s, inUserSpace(k.seeds[d])), MTU: k.plan.mtu,
				In:  gauge.Port{Do: k.nodes[d].Do, Name: k.names[d]},
				Out: gauge.Port{Do: k.nodes[1-d].Do, Name: k.names[1-d]}})
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
	for _, k := range l.links {
		if k.cable != nil {
			for d := range k.settings {
				k.settings[d].Seed, k.times[d] = seedOf(k.seeds[d], k.number, d), 0
				k.cable.Set(d, k.settings[d])
			}
		}
		for _, w := range k.kernel {
			if w.anew == nil {
				continue
			}
			if e := w.anew(); e != nil {
				err = errors.Join(err, fmt.Errorf("%w from %s to %s: %w", ErrNotAnew, w.From, w.To, e))
			}
		}
	}
	return err
}
