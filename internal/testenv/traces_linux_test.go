package testenv

import (
	"errors"
	"os/exec"
	"testing"
)

// A reader that fails is told: its error would be the same before and after, and hide all traces of its kind.
func TestTracesThatCannotBeRead(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if all, err := Traces("process", "link"); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("%d traces, %v; want an error, for there is no ip", len(all), err)
	}
}
