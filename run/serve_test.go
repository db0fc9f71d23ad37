package run

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"pelt/model"
	"pelt/words"
)

// Where each stream has a UDP port of its own, serve must not promise one.
func TestDataPorts(t *testing.T) {
	if got := dataPorts(words.English, 7359, true); got != "7359/udp and 7359/tcp" {
		t.Error(got)
	}
	if got := dataPorts(words.English, 7359, false); strings.Contains(got, "7359/udp") || !strings.Contains(got, "any UDP port") {
		t.Error(got)
	}
}

// A hub does not tell other hosts on which link a link-local address is.
func TestJoinAtOneLink(t *testing.T) {
	reachable := netip.MustParseAddr("10.0.0.1")
	for _, c := range []struct {
		hub     Hub
		address netip.Addr
		refused string // the option; "" is none
	}{
		{Hub{Address: "fe80::1%1"}, netip.Addr{}, "address"},
		{Hub{Address: "[fe80::1%1]:7000"}, netip.Addr{}, "address"},
		{Hub{Address: "10.0.0.1"}, netip.MustParseAddr("fe80::1%eth0"), "address"},
		{Hub{Address: "fe80::1%1"}, reachable, ""},
		{Hub{Address: "169.254.0.1"}, reachable, ""},
		{Hub{NATS: "nats://[fe80::1%251]:4222"}, netip.Addr{}, "address"},
		{Hub{NATS: "nats://[fe80::1%251]:4222"}, reachable, ""},
		{Hub{NATS: "nats://10.0.0.2,[fe80::1]:4222"}, reachable, "nats"},
		{Hub{NATS: "tls://[fe80::1]"}, reachable, "nats"},
	} { // where it is not refused, there is no such port
		err := Join(t.Context(), JoinOptions{Hub: c.hub, Port: -1, Name: "a", Address: c.address})
		field := &model.FieldError{}
		if errors.As(err, &field); field.Field != c.refused {
			t.Errorf("hub %v, address %v: %v", c.hub, c.address, err)
		}
	}
}
