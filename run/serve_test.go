package run

import (
	"strings"
	"testing"
)

// Where each stream has a UDP port of its own, serve must not promise one.
func TestDataPorts(t *testing.T) {
	if got := dataPorts(7359, true); got != "7359/udp and 7359/tcp" {
		t.Error(got)
	}
	if got := dataPorts(7359, false); strings.Contains(got, "7359/udp") || !strings.Contains(got, "any UDP port") {
		t.Error(got)
	}
}
