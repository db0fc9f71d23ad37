package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pelt/run"
)

// TestHubCode: a hub's code is made once, known to commands of its own host whatever its port, and made anew where a
// full disk left an empty file.
func TestHubCode(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PELT_DATA", dir)
	t.Setenv("PELT_CODE", "")
	t.Setenv("PELT_HUB", "hub.example:9")
	if code, err := (&hubFlags{}).settled(t.Context()); code != "" || err != nil {
		t.Errorf("without a hub: %q, %v", code, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "hub-code"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	made, err := hubCode(true)
	if err != nil || strings.Count(made, "-") != 5 {
		t.Fatalf("%q, %v", made, err)
	}
	for _, h := range []hubFlags{{}, {Hub: run.Hub{Address: "127.0.0.1:7400"}}} {
		if code, err := h.settled(t.Context()); code != made || err != nil {
			t.Errorf("at %q: code %q, %v; want %q", h.Address, code, err, made)
		}
	}
	h := hubFlags{Hub: run.Hub{NATS: "nats://n1"}}
	if code, err := h.settled(t.Context()); code != "" || err != nil || h.Address != "" {
		t.Errorf("with servers of the user's own: hub %q, code %q, %v", h.Address, code, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "hub-code")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestHubInvitation: the command for the hub's own host names what the default does not reach.
func TestHubInvitation(t *testing.T) {
	for _, c := range []struct {
		listen string
		port   int
		want   string
	}{{"", 7358, "pelt hosts\n"}, {"", 7400, "pelt hosts --hub 127.0.0.1:7400\n"}, {"10.1.2.3", 7358,
		"pelt hosts --hub 10.1.2.3\n"},
		{"10.1.2.3", 7358, "\n    PELT_CODE='tiger 42' pelt join 10.1.2.3 --name NAME\n"}} {
		at, _ := netip.ParseAddr(c.listen)
		if got := hubInvitation(at, c.port, "PELT_CODE='tiger 42' ", ""); !strings.Contains(got, c.want) {
			t.Errorf("%s port %d: %q, want %q in it", c.listen, c.port, got, c.want)
		}
	}
}
