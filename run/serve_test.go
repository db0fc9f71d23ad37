package run

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"pelt/model"
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

// A hub does not tell other hosts on which link a link-local address is.
func TestJoinAtOneLink(t *testing.T) {
	reachable := netip.MustParseAddr("10.0.0.1")
	for _, o := range []JoinOptions{
		{Hub: Hub{Address: "fe80::1%1"}},
		{Hub: Hub{Address: "[fe80::1%1]:7000"}},
		{Hub: Hub{Address: "10.0.0.1"}, Address: netip.MustParseAddr("fe80::1%eth0")},
		{Hub: Hub{Address: "fe80::1%1"}, Address: reachable},
		{Hub: Hub{Address: "169.254.0.1"}, Address: reachable},
	} {
		o.Port, o.Name = -1, "a" // where it is not refused, there is no such port
		err := Join(t.Context(), o)
		var field *model.FieldError
		if got, want := errors.As(err, &field) && field.Field == "address", o.Address != reachable; got != want {
			t.Errorf("hub %s, address %v: %v", o.Hub.Address, o.Address, err)
		}
	}
}
