package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestIperfArgs(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"curve lab:nat -t 10 -b 10M -l 1400 -P 4", "curve lab:nat --time 10s --rate 10Mbit --payload 1400 --streams 4"},
		{"curve lab:nat -P4 -R -u -i 1", "curve lab:nat --streams 4 --direction down --proto udp --progress 1s"},
		{"soak lab:nat -u -b 40kpps -t 2m", "soak lab:nat --rate 40kpps --time 2m"},
		{"curve lab:nat -b 0", "curve lab:nat --rate max"},
		{"lab exec x y -- iperf3 -t 10", "lab exec x y -- iperf3 -t 10"},
		{"cc lab:nat -- -t 10", "cc lab:nat -- -t 10"},
		{"curve -t", "curve --time"},
	} {
		if got := strings.Join(iperfArgs(strings.Fields(c.in)), " "); got != c.want {
			t.Errorf("%q became %q, want %q", c.in, got, c.want)
		}
	}
}

// TestHelpFits: --help of each command is read in one look, --help-all has every flag.
func TestHelpFits(t *testing.T) {
	for _, command := range []string{"curve", "sweep", "router", "cc", "soak"} {
		var few, all bytes.Buffer
		if execute([]string{command, "--help"}, &few, &few) != exitOK || execute([]string{command, "--help-all"}, &all, &all) != exitOK {
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

func TestSuggestions(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"curv lab:nat", `unknown command "curv"; did you mean curve?`},
		{"curve lab:nat --paylod 64", "did you mean --payload?"},
		{"curve lab:nat --nonsense 64", "pelt curve --help lists the flags"},
	} {
		var out, err bytes.Buffer
		if code := execute(strings.Fields(c.in), &out, &err); code != exitUsage || !strings.Contains(err.String(), c.want) {
			t.Errorf("%q: exit code %d, %q; want %d and %q", c.in, code, err.String(), exitUsage, c.want)
		}
	}
}
