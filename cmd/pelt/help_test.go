package main

import (
	"bytes"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestIperfFlags(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"curve -t 10 -b 10M -l 1400 -P 4", "payload=1400 rate=10Mbit streams=4 time=10s"},
		{"curve -P4 -R -u -i 1", "direction=down proto=udp streams=4"},
		{"soak -u -b 40kpps -t 2m", "rate=40kpps time=2m"},
		{"curve -b 0", "rate=max"},
		{"cc -u", "unknown shorthand flag: 'u' in -u"},
		{"curve -t", "flag needs an argument: 't' in -t"},
	} {
		root := newRoot(io.Discard, io.Discard)
		command, rest, err := root.Find(strings.Fields(c.in))
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		if err = command.ParseFlags(rest); err != nil {
			words = append(words, err.Error())
		}
		texts := given(command.Flags())
		for _, flag := range slices.Sorted(maps.Keys(texts)) {
			words = append(words, flag+"="+texts[flag][0])
		}
		if got := strings.Join(words, " "); got != c.want {
			t.Errorf("%q set %q, want %q", c.in, got, c.want)
		}
	}
}

// TestHelpFits: --help of each command is read in one look, --help-all has every flag.
func TestHelpFits(t *testing.T) {
	for _, command := range []string{"curve", "sweep", "router", "cc", "soak"} {
		var few, all bytes.Buffer
		if execute([]string{command, "--help"}, &few, &few) != exitOK ||
			execute([]string{command, "--help-all"}, &all, &all) != exitOK {
			t.Fatalf("%s: %s", command, few.String())
		}
		if n := strings.Count(few.String(), "\n      --"); n < 8 || n > mostFlags {
			t.Errorf("%s --help has %d flags, want 8 to %d", command, n, mostFlags)
		}
		if strings.Count(all.String(), "\n      --") <= strings.Count(few.String(), "\n      --") {
			t.Errorf("%s --help-all shows no more than --help", command)
		}
	}
}
