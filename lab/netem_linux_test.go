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

	"pelt/lab/impair"
)

// The tests here compare the emulated link with the kernel's netem. Guests of test/kernels, whose kernels have it, build
// them by the tag guest; another machine with netem and tc can: go test -tags guest -run Netem ./lab

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

// bothWays asks the same of what an emulated link and netem let through.
func bothWays(t *testing.T, link, netem string, p probe, look func(list []arrival, count int) string) {
	t.Helper()
	for by, list := range map[string][]arrival{"pelt": through(t, openLab(t, "direct", "sender:mtu=1200,"+link), p), "netem": byNetem(t, netem, p)} {
		if said := look(list, p.count); said != "" {
			t.Errorf("%s by %s: %s", link, by, said)
		}
	}
}

func TestNetemLoss(t *testing.T) {
	p := probe{count: 3000, interval: quick, bytes: 64, wait: 300 * time.Millisecond}
	bothWays(t, "loss=10%,delay=2ms", "loss 10% delay 2ms", p, func(list []arrival, count int) string {
		return share("lost", count-len(list), count, 0.1)
	})
	bothWays(t, "loss=ge:14%/56%/100%/0", "loss gemodel 14% 56% 100% 0%", p, func(list []arrival, count int) string {
		return lostAfterALoss(lostOf(list, count), 0.2+0.3*0.8)
	})
	segments := probe{count: 4000, interval: quick, bytes: 1000, segments: 40, wait: 300 * time.Millisecond}
	bothWays(t, "loss=10%", "loss 10%", segments, func(list []arrival, count int) string {
		return segmentLoss(list, count, 40, 0.1)
	})
}

func TestNetemDelay(t *testing.T) {
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
		if said := apart(through(t, openLab(t, "direct", "sender:mtu=1200,"+link), p), byNetem(t, netem, p)); said != "" {
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

func TestNetemOthers(t *testing.T) {
	p := probe{count: 2000, interval: quick, bytes: 200, wait: 300 * time.Millisecond}
	slow := probe{count: 300, interval: time.Millisecond, bytes: 64, wait: 150 * time.Millisecond}
	bothWays(t, "delay=100ms,reorder=25%", "delay 100ms reorder 25%", slow, func(list []arrival, count int) string {
		early := slices.DeleteFunc(list, func(a arrival) bool { return a.received-a.sent >= 50e6 })
		return share("did not wait", len(early), count, 0.25)
	})
	bothWays(t, "duplicate=10%", "duplicate 10%", p, func(list []arrival, count int) string {
		return share("came twice", len(list)-count, count, 0.1)
	})
	bothWays(t, "corrupt=20%", "corrupt 20%", p, func(list []arrival, count int) string {
		if ratio := float64(count-len(list)) / float64(count); ratio < 0.16 || ratio > 0.23 {
			return fmt.Sprintf("%.4f were not taken, want about 0.2", ratio)
		}
		return ""
	})
}

func TestNetemRate(t *testing.T) {
	// 1042 B of frame take 4168 us at 2 Mbit/s. Netem's queue of 1000 holds them all, as the link's does.
	const took = 4_168_000
	p := probe{count: 60, bytes: 1000, wait: 150 * time.Millisecond}
	bothWays(t, "rate=2mbit,delay=20ms", "rate 2mbit delay 20ms", p, func(list []arrival, count int) string {
		if gap := (list[len(list)-1].received - list[0].received) / int64(count-1); len(list) != count || gap < took*97/100 || gap > took*103/100 {
			return fmt.Sprintf("%d of %d came every %d ns, want %d", len(list), count, gap, took)
		}
		return ""
	})
}
