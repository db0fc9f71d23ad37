package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"pelt/internal/testenv"
	"pelt/model"
	"pelt/store"
)

// TestComplete: a shell gets the values that may stand at the end of a command line, and is told to offer files or not.
func TestComplete(t *testing.T) {
	t.Setenv("PELT_DATA", t.TempDir())
	id := keep(t, "192.0.2.7:7358")
	keep(t, "fleet:a,b")
	for _, c := range []struct {
		line string
		want []string // all values, or some if there is one to lack
		lack string
		end  cobra.ShellCompDirective
	}{
		{"curve ", []string{"lab:router", "lab:loopback", "192.0.2.7:7358"}, "RUN", onlyThese},
		{"curve lab:ro", []string{"lab:router"}, "lab:nat", onlyThese},
		{"curve lab:router ", nil, "", onlyThese},
		{"mesh ", []string{"fleet:", "fleet:a,b"}, "", onlyThese},
		{"router lab:n", []string{"lab:nat"}, "lab:router", onlyThese},
		{"report ", []string{"last", id}, "lab:router", orFiles},
		{"report last ", nil, "", onlyThese},
		{"compare last " + id[:8], []string{id}, "last", orFiles},
		{"run --resume l", []string{"last"}, "", orFiles},
		{"run ", nil, "", orFiles},
		{"lab up s", []string{"switch", "star"}, "", onlyThese},
		{"compare --metric goodput,lo", []string{"goodput,loss", "goodput,loss_free"}, "goodput,goodput", onlyThese},
		{"compare --by con", []string{"control", "connections"}, "", onlyThese},
		{"curve lab:nat --direction ", []string{"up", "down", "both"}, "", onlyThese},
		{"curve lab:nat --direction=up,", []string{"up,down", "up,both"}, "", onlyThese},
		{"soak lab:nat --drops ", []string{"seq", "count", "off"}, "", onlyThese},
		{"curve lab:nat --engine x", []string{"xdp", "xdp:udp", "xdp:xdp"}, "", onlyThese},
		{"curve lab:nat --payload ", []string{"mtu"}, "", onlyThese},
		{"curve lab:nat --time ", nil, "", onlyThese},
		{"curve lab:nat --html ", nil, "", orFiles},
		{"tune advise --role ", []string{"sender", "receiver", "router"}, "", onlyThese},
	} {
		var out bytes.Buffer
		if code := execute(append([]string{"__complete"}, strings.Split(c.line, " ")...), &out, io.Discard); code != exitOK {
			t.Errorf("%s: exit code %d", c.line, code)
		}
		var got []string
		for line := range strings.Lines(out.String()) {
			value, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			got = append(got, value)
		}
		got, end := got[:len(got)-1], got[len(got)-1]
		if want := fmt.Sprintf(":%d", c.end); end != want {
			t.Errorf("%s: ends with %s, want %s", c.line, end, want)
		}
		for _, v := range c.want {
			if !slices.Contains(got, v) {
				t.Errorf("%s: %q, want %q, too", c.line, got, v)
			}
		}
		if c.lack == "" && len(got) != len(c.want) || slices.Contains(got, c.lack) {
			t.Errorf("%s: %q, want only %q", c.line, got, c.want)
		}
	}
}

// keep stores a run to a target.
func keep(t *testing.T, target string) (id string) {
	t.Helper()
	st, err := store.Open("")
	testenv.Must(t, err)
	r, err := st.Create(model.Document{Started: time.Now(), Plan: model.Plan{Command: "curve", Target: target}})
	testenv.Must(t, err)
	testenv.Must(t, r.Close())
	return r.ID()
}
