package run

import (
	"testing"

	"pelt/lab"
	"pelt/model"
)

func TestServerThatEndsFirst(t *testing.T) {
	for name, c := range map[string]struct {
		died, client lab.Ending
		why          model.Reasons
		want         string
	}{
		"served its one client": {lab.Ending{}, lab.Ending{}, nil, ""},
		"left its client":       {lab.Ending{}, lab.Ending{Stopped: true, ExitCode: 143}, nil, "the server nc ended before its client: exit code 0"},
		"both failed":           {lab.Ending{ExitCode: 1}, lab.Ending{ExitCode: 2}, model.Reasons{{Code: model.ClientFailed, Name: "wget", Text: "exit code 2"}}, "the client wget failed: exit code 2; the server nc ended before its client: exit code 1"},
		"it alone failed":       {lab.Ending{ExitCode: 1}, lab.Ending{}, nil, "the server nc ended before its client: exit code 1"},
	} {
		if got := withServer(c.why, "nc", c.died, c.client).String(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
