package run

import (
	"context"
	"errors"
	"testing"

	"pelt/fleet"
)

// Where packets are known to pass, a trial whose ends missed each other has two more tries.
func TestAgain(t *testing.T) {
	for _, c := range []struct {
		name string
		lab  bool
		met  bool
		err  error
		want int // tries after the first, ten at most
	}{
		{"a lab", true, false, fleet.ErrUnmet, 2}, {"a path that was passed", false, true, fleet.ErrUnmet, 2},
		{"an unknown path", false, false, fleet.ErrUnmet, 0}, {"another error", true, true, errors.New("broken"), 0},
	} {
		r := &runner{met: c.met, site: &site{}}
		if c.lab {
			r.site.local = true
		}
		tries := 0
		for tries < 10 && r.retry(t.Context(), c.err, tries) {
			tries++
		}
		if tries != c.want {
			t.Errorf("%s: %d more tries, want %d", c.name, tries, c.want)
		}
		cut, cancel := context.WithCancel(t.Context())
		if cancel(); r.retry(cut, c.err, 0) {
			t.Errorf("%s: tried again after the run was cut", c.name)
		}
	}
}
