package run

import (
	"testing"

	"pelt/model"
)

// Where packets are known to pass, a trial whose ends missed each other has two more tries.
func TestMeets(t *testing.T) {
	for _, c := range []struct {
		name string
		lab  bool
		met  bool
		want int // tries after the first
	}{{"a lab", true, false, 2}, {"a path that was passed", false, true, 2}, {"an unknown path", false, false, 0}} {
		r := &runner{met: c.met}
		at := &current{path: &path{}}
		if c.lab {
			at.path.lab = &model.LabFacts{}
		}
		tries := 0
		for r.meets(at) {
			tries++
		}
		if tries != c.want {
			t.Errorf("%s: %d more tries, want %d", c.name, tries, c.want)
		}
	}
}
