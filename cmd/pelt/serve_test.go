package main

import (
	"net/netip"
	"strings"
	"testing"

	"pelt/docs"
	"pelt/run"
)

// The line that serve prints is one that it does not refuse.
func TestInvitation(t *testing.T) {
	for _, c := range []struct {
		listen, rate, time string
		memory             float64
		want, allowed      string
	}{
		{"192.0.2.7", "", "1h", 4.2e9, " --rate 100mbit\n",
			"16 clients, 4.2 GB of memory, trials of 1 h, 100 Mbit/s (any rate to private addresses and this host's subnets)"},
		{"10.1.2.3", "", "1h", 17e6, "\n", "16 clients, 17 MB of memory"},
		{"10.1.2.3", "100 kpps", "5s", 0, " --rate 100kpps\n", " trials of 5 s, 100 kpps\n"},
		{"192.0.2.7", "none", "none", 0, "\n", " trials of any length, any rate\n"},
	} {
		s := run.ServeOptions{EndOptions: run.EndOptions{Listen: netip.MustParseAddr(c.listen)}, Port: 7358,
			Code: "tiger-42-amber"}
		var err error
		if s.Limits, err = serveLimits(c.rate, c.time, 16); err != nil {
			t.Fatal(err)
		}
		s.Limits.MemoryBytes = c.memory
		got := invitation(s, "PELT_CODE=tiger-42-amber ", "")
		if want := "\n    PELT_CODE=tiger-42-amber pelt curve " + c.listen + c.want; !strings.Contains(got, want) {
			t.Errorf("--max-rate %q: it prints %q, want %q in it", c.rate, got, want)
		}
		if !strings.Contains(got, "\nAllowed: ") || !strings.Contains(got, c.allowed) {
			t.Errorf("--max-rate %q: it prints %q, want %q in it", c.rate, got, c.allowed)
		}
	}
	page, err := docs.Pages.ReadFile("start.md")
	if err != nil {
		t.Fatal(err)
	}
	at := run.ServeOptions{EndOptions: run.EndOptions{Listen: netip.MustParseAddr("192.168.2.5")}, Port: 7358}
	_, shown, _ := strings.Cut(invitation(at, "PELT_CODE=tiger-42-amber ", ""), "\n\n")
	if !strings.Contains(string(page), "```\n"+shown+"```\n") {
		t.Errorf("docs/start.md shows another invitation than %q", shown)
	}
	for observe, want := range map[bool]string{false: "\n    PELT_CODE='two words' pelt curve 10.1.2.3\n",
		true: ": PELT_CODE=FAR,'two words'\n"} {
		s := run.ServeOptions{EndOptions: run.EndOptions{Listen: netip.MustParseAddr("10.1.2.3")}, Port: 7358,
			Observe: observe}
		code, note := toldCode("two words", "")
		if got := invitation(s, code, note); !strings.Contains(got, want) || strings.Contains(got, "--code") {
			t.Errorf("a code with a space: %q, want %q", got, want)
		}
	}
	code, note := toldCode("tiger-42-amber", "/etc/code") // standard output is no terminal
	if got := invitation(run.ServeOptions{Port: 7358}, code, note); strings.Contains(got, "tiger") ||
		!strings.Contains(got, "which is in /etc/code") {
		t.Errorf("a code of a file, for a journal: %q", got)
	}
}
