//go:build guest

package lab

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// The tests here compare the user-space link with the kernel's netem. Guests of test/kernels, whose kernels have it, build
// them by the tag guest; another machine with netem can: go test -tags guest -run KernelLink ./lab

func TestKernelLinkLoss(t *testing.T) {
	p := probe{count: 3000, interval: quick, bytes: 64, wait: 300 * time.Millisecond}
	differ(t, "mtu=1200,loss=10%,delay=2ms", p, func(lists [][]arrival, count int) string {
		return first(share("lost by the user link", count-len(lists[0]), count, 0.1), share("lost by the kernel", count-len(lists[1]), count, 0.1))
	}, "user", "kernel")
	differ(t, "mtu=1200,loss=20%,loss-correlation=30%", p, func(lists [][]arrival, count int) string {
		return lostAfterALoss(lostOf(lists[0], count), 0.2+0.3*0.8)
	}, "kernel")
	segments := probe{count: 4000, interval: quick, bytes: 1000, segments: 40, wait: 300 * time.Millisecond}
	differ(t, "mtu=1200,loss=10%", segments, func(lists [][]arrival, count int) string {
		return segmentLoss(lists[0], count, 40, 0.1)
	}, "kernel")
}

func first(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

func TestKernelLinkDelay(t *testing.T) {
	p := probe{count: 300, interval: time.Millisecond, bytes: 64, wait: 300 * time.Millisecond}
	for _, name := range []string{"uniform", "paretonormal"} {
		differ(t, "mtu=1200,delay=150ms,jitter=100ms,distribution="+name, p, func(lists [][]arrival, count int) string {
			return apart(lists[0], lists[1])
		}, "user", "kernel")
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

func TestKernelLinkOthers(t *testing.T) {
	p := probe{count: 2000, interval: quick, bytes: 200, wait: 300 * time.Millisecond}
	early := func(list []arrival) (n int) {
		for _, a := range list {
			if a.received-a.sent < 50e6 {
				n++
			}
		}
		return n
	}
	slow := probe{count: 300, interval: time.Millisecond, bytes: 64, wait: 150 * time.Millisecond}
	differ(t, "mtu=1200,delay=100ms,reorder=25%", slow, func(lists [][]arrival, count int) string {
		return first(share("did not wait on the user link", early(lists[0]), count, 0.25), share("did not wait in the kernel", early(lists[1]), count, 0.25))
	}, "user", "kernel")
	differ(t, "mtu=1200,delay=100ms,reorder=100%,gap=5", slow, func(lists [][]arrival, count int) string {
		for _, list := range lists {
			for _, a := range list {
				if waited := a.received-a.sent >= 50e6; waited != (a.sequence%5 != 4) {
					return fmt.Sprintf("packet %d waited: %v", a.sequence, waited)
				}
			}
		}
		return ""
	}, "user", "kernel")
	differ(t, "mtu=1200,duplicate=10%", p, func(lists [][]arrival, count int) string {
		return first(share("came twice by the user link", len(lists[0])-count, count, 0.1), share("came twice by the kernel", len(lists[1])-count, count, 0.1))
	}, "user", "kernel")
	// Loss, then copies: each where it was asked for.
	differ(t, "mtu=1200,loss=20%,duplicate=30%", p, func(lists [][]arrival, count int) string {
		for i, list := range lists {
			gone, twice := 0, 0
			for _, f := range fates(list, count) {
				switch f {
				case 0:
					gone++
				case 2:
					twice++
				}
			}
			if wrong := first(share("lost", gone, count, 0.2), share("of the rest came twice", twice, count-gone, 0.3)); wrong != "" {
				return fmt.Sprintf("backend %d: %s", i, wrong)
			}
		}
		return ""
	}, "user", "kernel")
	differ(t, "mtu=1200,corrupt=20%", p, func(lists [][]arrival, count int) string {
		for _, list := range lists {
			if ratio := float64(count-len(list)) / float64(count); ratio < 0.16 || ratio > 0.23 {
				return fmt.Sprintf("%.4f were not taken, want about 0.2", ratio)
			}
		}
		return ""
	}, "user", "kernel")
}

func TestKernelLinkQueue(t *testing.T) {
	// 1042 B of frame take 4168 us at 2 Mbit/s, behind a queue of its own.
	const took = 4_168_000
	p := probe{count: 120, bytes: 1000, wait: 150 * time.Millisecond}
	differ(t, "mtu=1200,rate=2mbit,queue=50,delay=20ms", p, func(lists [][]arrival, _ int) string {
		for i, list := range lists {
			if len(list) < 50 {
				return fmt.Sprintf("backend %d: %d passed a queue of 50", i, len(list))
			}
			// The kernel's bucket lets two full frames through at once.
			if gap := (list[len(list)-1].received - list[3].received) / int64(len(list)-4); gap < took*97/100 || gap > took*103/100 {
				return fmt.Sprintf("backend %d: frames came every %d ns, want %d", i, gap, took)
			}
			begin, end := list[0].sent, list[0].sent
			for _, a := range list {
				begin, end = min(begin, a.sent), max(end, a.sent)
			}
			if most := 54 + int((end-begin)/took); len(list) > most {
				return fmt.Sprintf("backend %d: %d passed; at most %d may", i, len(list), most)
			}
		}
		return ""
	}, "user", "kernel")
}

// Each topology's last link can be the kernel's, a star's receivers each have
// their own, and each account is of what came that way alone.
func TestKernelLinkTopologies(t *testing.T) {
	const count, loss = 1000, 0.2
	for _, c := range []struct{ topology, to string }{
		{"direct", "receiver"}, {"switch", "receiver"}, {"router", "receiver"}, {"nat", "receiver"}, {"star:3", "receiver-2"},
	} {
		t.Run(c.topology, func(t *testing.T) {
			l := openLab(t, c.topology, "mtu=1200", "receiver:loss=20%,backend=kernel")
			before := account(t, l)
			list := throughTo(t, l, c.to, probe{count: count, interval: quick, bytes: 64, wait: 200 * time.Millisecond})
			if wrong := share("lost", count-len(list), count, loss); wrong != "" {
				t.Error(wrong)
			}
			links := kernelLinks(l)
			for i, r := range account(t, l) {
				way := links[i].kernel[0].since(before[i][0], r[0])
				want := uint64(0)
				if links[i].Ends[1] == c.to {
					want = count
				}
				if way.Frames != want || way.Passed == nil || want > 0 && *way.Passed != uint64(len(list)) {
					t.Errorf("%v: %d frames, passed %s; %d were sent, %d came", links[i].Ends, way.Frames, said(way.Passed), want, len(list))
				}
			}
			if n := len(links); n == 0 || strings.HasPrefix(c.topology, Star) != (n == 3) {
				t.Errorf("%d links of the kernel", n)
			}
		})
	}
}

// The kernel's netem is measured as well.
func TestKernelLinkCalibrates(t *testing.T) {
	seeds, err := hasNetem()
	if err != nil {
		t.Fatal(err)
	}
	// tbf's timers are late where a guest runs behind everything else on its host; a
	// slow link's bucket outlasts more of that.
	const late = 0.05
	seed := ""
	if seeds {
		seed = "seed=9,"
	}
	calibrates(t, "direct", "sender:rate=5mbit,loss=10%,delay=20ms,jitter=4ms,distribution=normal,"+seed+"backend=kernel", 5e6, late, 0.1, seeds)
}
