package run

import (
	"testing"

	"pelt/lab"
)

func TestServerThatEndsFirst(t *testing.T) {
	for name, c := range map[string]struct {
		died, client lab.Ending
		why, want    string
	}{
		"served its one client": {lab.Ending{}, lab.Ending{}, "", ""},
		"left its client":       {lab.Ending{}, lab.Ending{Stopped: true, ExitCode: 143}, "", "the server nc ended before its client: exit code 0"},
		"both failed":           {lab.Ending{ExitCode: 1}, lab.Ending{ExitCode: 2}, "the client wget: exit code 2", "the client wget: exit code 2; the server nc ended before its client: exit code 1"},
		"it alone failed":       {lab.Ending{ExitCode: 1}, lab.Ending{}, "", "the server nc ended before its client: exit code 1"},
	} {
		if got := withServer(c.why, "nc", c.died, c.client); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
