package observe

import (
	"errors"
	"testing"

	"pelt/observe/drops"
)

// What passes, as a lack of memory does, must not end the watch of a server that runs for weeks.
func TestKernelIsAskedAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error
		asked int
	}{
		{"no memory", &drops.Error{Passes: true}, 3},
		{"no file descriptor", errors.New("too many open files"), 3},
		{"too old", &drops.Error{}, 1},
	} {
		asked := 0
		k := &Kernel{open: func(int) (*drops.Machine, error) { asked++; return nil, c.err }}
		for range 3 {
			if err := k.Ready(); !errors.Is(err, c.err) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if asked != c.asked {
			t.Errorf("%s: loaded %d times of 3, want %d", c.name, asked, c.asked)
		}
	}
}
