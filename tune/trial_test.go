package tune

import (
	"errors"
	"strings"
	"testing"
)

// A setting that a trial was killed with is told until it is taken back, with the command for that.
func TestKilledTrial(t *testing.T) {
	const last, all = "pelt tune revert --last", "pelt tune revert"
	tried := func(text string) func(*testing.T, *Tuner) {
		return func(t *testing.T, u *Tuner) { applies(t, u, Request{Changes: changes(t, text), Tried: true}) }
	}
	kept := func(text string) func(*testing.T, *Tuner) {
		return func(t *testing.T, u *Tuner) { applies(t, u, Request{Changes: changes(t, text)}) }
	}
	back := func(o RevertOptions) func(*testing.T, *Tuner) {
		return func(t *testing.T, u *Tuner) {
			if _, err := u.Revert(o); err != nil && !errors.Is(err, ErrNothing) {
				t.Fatal(err)
			}
		}
	}
	const rmem, queue = "net.core.rmem_max=5000", "eth0.txqueuelen=5000"
	for name, c := range map[string]struct {
		steps  []func(*testing.T, *Tuner)
		remedy string
	}{
		"nothing":         {nil, ""},
		"kept":            {[]func(*testing.T, *Tuner){kept(rmem)}, ""},
		"killed":          {[]func(*testing.T, *Tuner){kept(queue), tried(rmem)}, last},
		"taken back":      {[]func(*testing.T, *Tuner){tried(rmem), back(RevertOptions{Last: true})}, ""},
		"others since":    {[]func(*testing.T, *Tuner){tried(rmem), kept(queue)}, all},
		"others reverted": {[]func(*testing.T, *Tuner){tried(rmem), kept(queue), back(RevertOptions{Last: true})}, last},
		"after a restart": {[]func(*testing.T, *Tuner){tried(rmem), func(_ *testing.T, u *Tuner) {
			u.journal.list[0].Boot, u.boot = "before", "now"
		}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			root := newTree(t)
			what, remedy := "", ""
			for _, step := range c.steps {
				with(t, root, func(u *Tuner) { // each in a process of its own
					step(t, u)
					what, remedy = u.Killed()
				})
			}
			if remedy != c.remedy || (c.remedy != "") != strings.Contains(what, "killed while it tried net.core.rmem_max") {
				t.Errorf("%q, %q; want %q", what, remedy, c.remedy)
			}
		})
	}
}

func applies(t *testing.T, u *Tuner, r Request) {
	t.Helper()
	if _, err := u.Apply(r); err != nil {
		t.Fatal(err)
	}
}
