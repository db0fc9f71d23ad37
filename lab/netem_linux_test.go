//go:build guest

package lab

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pelt/internal/testenv"
	"pelt/lab/impair"
)

// The tests here compare the emulated link with the kernel's netem. Guests of test/kernels, whose kernels have it,
// build them by the tag guest; another machine with netem and tc can: PELT_CLOCK=1 go test -tags guest -run Netem
// ./lab

// byNetem sends over plain cables, with a router between that does what the words of tc say to what leaves it for the
// receiver. Frames come to it singly.
func byNetem(t *testing.T, words string, p probe) []arrival {
	t.Helper()
	l := openLab(t, "router", "mtu=1200") // no IPv6, whose own packets would be among those that netem counts
	for at, command := range map[string]string{
		"sender": "ip link set eth0 gso_max_segs 1", "router": "tc qdisc replace dev to-receiver root netem limit 100000 " + words,
	} {
		err := node(t, l, at).Do(func() error {
			argv := strings.Fields(command)
			if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w: %s", command, err, out)
			}
			return nil
		})
		must(t, err)
	}
	return through(t, l, p)
}

// TestClockNetemConforms asks the same of what an emulated link and netem let through. A machine that stands still
// harms either, so both are measured again; a link that is wrong is so each time.
func TestClockNetemConforms(t *testing.T) {
	testenv.Clock(t)
	for _, c := range conformances {
		p := c.sent(2000, quick)
		for try := 1; ; try++ {
			link := c.look(through(t, openLab(t, "direct", "sender:mtu=1200,"+c.link), p), p.count)
			netem := c.look(byNetem(t, c.netem, p), p.count)
			if link == "" && netem == "" {
				break
			}
			if try == 3 {
				t.Errorf("%s: by pelt: %s; by netem: %s", c.link, link, netem)
				break
			}
			t.Logf("%s: by pelt: %s; by netem: %s; measured again", c.link, link, netem)
		}
	}
}

// TestClockNetemDelay compares how the delays of an emulated link and of netem are distributed.
func TestClockNetemDelay(t *testing.T) {
	testenv.Clock(t)
	var table strings.Builder
	shape, err := impair.Distribution("paretonormal")
	must(t, err)
	for _, v := range shape.Values {
		fmt.Fprintln(&table, v)
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "paretonormal.dist"), []byte(table.String()), 0o600))
	t.Setenv("TC_LIB_DIR", dir)
	p := probe{count: 300, interval: time.Millisecond, bytes: 64, wait: 300 * time.Millisecond}
	for link, netem := range map[string]string{
		"delay=150ms,jitter=100ms":                           "delay 150ms 100ms",
		"delay=150ms,jitter=100ms,distribution=paretonormal": "delay 150ms 100ms distribution paretonormal",
	} {
		if said := apart(through(t, openLab(t, "direct", "sender:mtu=1200,"+link), p),
			byNetem(t, netem, p)); said != "" {
			t.Errorf("%s: %s", link, said)
		}
	}
}

// apart compares two samples of delays by the largest distance of their
// distributions (Kolmogorov and Smirnov), with one chance in a thousand of an
// error, and what the two ways take besides.
func apart(a, b []arrival) string {
	sorted := func(list []arrival) (d []float64) {
		for _, x := range list {
			d = append(d, float64(x.received-x.sent)/1e6)
		}
		slices.Sort(d)
		return d
	}
	x, y := sorted(a), sorted(b)
	worst := 0.0
	for i, j := 0, 0; i < len(x) && j < len(y); {
		if x[i] <= y[j] {
			i++
		} else {
			j++
		}
		worst = max(worst, math.Abs(float64(i)/float64(len(x))-float64(j)/float64(len(y))))
	}
	n, m := float64(len(x)), float64(len(y))
	if limit := 1.95*math.Sqrt((n+m)/(n*m)) + 0.02; worst > limit || n == 0 || m == 0 {
		return fmt.Sprintf("delays of %d and %d frames are %.4f apart, want at most %.4f", len(x), len(y), worst, limit)
	}
	return ""
}
