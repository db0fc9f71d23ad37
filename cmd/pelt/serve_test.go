package main

import (
	"net/netip"
	"strings"
	"testing"

	"pelt/run"
)

// The line that serve prints is one that it does not refuse.
func TestInvitation(t *testing.T) {
	s := run.ServeOptions{Listen: netip.MustParseAddr("192.0.2.7"), Port: 7358, Code: "tiger-42-amber"}
	for limit, want := range map[string]string{
		"":         "\n    pelt curve 192.0.2.7 --code tiger-42-amber\n",
		"100 kpps": "\n    pelt curve 192.0.2.7 --code tiger-42-amber --rate 100kpps\n",
	} {
		if got := invitation(s, limit); !strings.Contains(got, want) {
			t.Errorf("--max-rate %q: it prints %q, want %q in it", limit, got, want)
		}
	}
}
