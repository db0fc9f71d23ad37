package lab

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// The tests here open one link by two backends and compare what comes out. Most
// need netem: guests with other kernels run them (test/kernels). Where there is
// none, they hold that to be said.

// withNetem tells whether there is netem, and whether it takes seeds.
func withNetem(t *testing.T) (ok, seeds bool) {
	t.Helper()
	watchHost(t)
	seeds, err := hasNetem()
	if err == nil {
		return true, seeds
	}
	var lack *KernelError
	if !errors.As(err, &lack) {
		t.Fatal(err)
	}
	l, err := Open(t.Context(), "direct", parseLinks(t, []string{"sender:delay=1ms,backend=kernel"}))
	var usage *UsageError
	if !errors.As(err, &usage) || !strings.Contains(err.Error(), "module sch_netem") || strings.Contains(err.Error(), "\n") {
		t.Errorf("opened %v, %v; want one line that names the module", l, err)
	}
	return false, false
}

// differ sends the same through a link by each backend, and looks at what came.
func differ(t *testing.T, link string, p probe, look func(lists [][]arrival, count int) string, backends ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("its figures are of times, which the race detector spoils")
	}
	spaces := map[uint64]bool{}
	defer func() { expectGone(t, spaces) }()
	var said string
	for range 2 {
		var lists [][]arrival
		for _, b := range backends {
			list, wrong := crossing(t, "sender:"+link+",backend="+b, p, spaces)
			lists = append(lists, list)
			if wrong != "" {
				t.Errorf("%s by %s: %s", link, b, wrong)
			}
		}
		if said = look(lists, p.count); said == "" {
			return
		}
		t.Logf("%s: %s; again", link, said)
		p.count *= 4
	}
	t.Errorf("%s: %s", link, said)
}

// crossing sends through a lab of its own, and says what is wrong with its
// account. It adds the namespaces that must be gone now.
func crossing(t *testing.T, link string, p probe, spaces map[uint64]bool) (list []arrival, wrong string) {
	t.Helper()
	l, err := Open(t.Context(), "direct", parseLinks(t, []string{link}))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(spaces, inodes(t, l))
	before := account(t, l)
	list = through(t, l, p)
	wrong = balances(t, l, before, p.count, len(list))
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	return list, wrong
}

func account(t *testing.T, l *Lab) (list []KernelReading) {
	t.Helper()
	for _, k := range l.KernelLinks() {
		r, err := k.Read()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// balances wants the kernel's account of a link to be that of who used it. All
// links here are so short that no frame of IPv6's is among them.
func balances(t *testing.T, l *Lab, before []KernelReading, sent, came int) string {
	t.Helper()
	for i, k := range l.KernelLinks() {
		r := k.Since(before[i], account(t, l)[i])[0]
		text := fmt.Sprintf("frames %d, passed %s, lost %s, full %s, twice %s", r.Frames, said(r.Passed), said(r.Lost), said(r.QueueFull), said(r.Duplicated))
		t.Log(l.Facts().Backends[0], text)
		if int(r.Frames) != sent {
			return fmt.Sprintf("%d were sent: %s", sent, text)
		}
		if r.Passed != nil && r.Duplicated != nil && r.Corrupted != nil && int(*r.Passed+*r.Duplicated) != came {
			return fmt.Sprintf("%d came: %s", came, text)
		}
	}
	return ""
}

func said(n *uint64) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprint(*n)
}

// fates are how often each packet came.
func fates(list []arrival, count int) []int {
	n := make([]int, count)
	for _, a := range list {
		n[a.sequence]++
	}
	return n
}

// same wants the same packets to come by two backends, each as often.
func same(lists [][]arrival, count int) string {
	if slices.Equal(fates(lists[0], count), fates(lists[1], count)) {
		return ""
	}
	return fmt.Sprintf("%d came by the one and %d by the other, not the same", len(lists[0]), len(lists[1]))
}

const quick = 100 * time.Microsecond

// The program loses the frames that the user link loses, by the same seed.
func TestBPFLinkConforms(t *testing.T) {
	watchHost(t)
	p := probe{count: 2000, interval: quick, bytes: 64, wait: 300 * time.Millisecond}
	for _, link := range []string{"loss=10%,seed=3", "loss=20%,loss-correlation=50%,seed=4", "loss=4state:2%/20%/10%/30%/1%,seed=6"} {
		differ(t, "mtu=1200,"+link, p, same, "user", "bpf")
	}
	// Each segment of a buffer has its own fate, and a rate comes after the loss.
	p = probe{count: 4000, interval: quick, bytes: 1000, segments: 40, wait: 200 * time.Millisecond}
	differ(t, "mtu=1200,loss=10%,rate=500mbit,queue=1000,seed=7", p, func(lists [][]arrival, count int) string {
		return segmentLoss(lists[0], count, 40, 0.1)
	}, "bpf")
}

func segmentLoss(list []arrival, count, segments int, want float64) string {
	lost := lostOf(list, count)
	for i := 0; i < count; i += segments {
		if number(lost[i:i+segments]) == segments {
			return "a buffer was lost as a whole"
		}
	}
	return share("lost of the segments", number(lost), count, want)
}

// The kernel's netem and this one's model of it do the same by the same seed.
func TestKernelLinkSeeds(t *testing.T) {
	if _, seeds := withNetem(t); !seeds {
		return // Linux 6.6 and later take them
	}
	p := probe{count: 500, interval: quick, bytes: 64, wait: 300 * time.Millisecond}
	for _, link := range []string{"loss=10%,seed=42424242", "loss=ge:2%/20%/70%/1%,seed=5", "loss=4state:2%/20%/10%/30%/1%,seed=6", "duplicate=10%,seed=7", "duplicate=20%,loss=10%,seed=8"} {
		differ(t, "mtu=1200,mode=netem,"+link, p, same, "user", "kernel")
	}
	// A clone's draws stand between its frame's. What is damaged does not come, but for
	// some whose damage no checksum covers.
	differ(t, "mtu=1200,mode=netem,duplicate=50%,loss=20%,corrupt=10%,seed=12", p, func(lists [][]arrival, count int) string {
		a, b := fates(lists[0], count), fates(lists[1], count)
		other := 0
		for i := range a {
			if a[i] != b[i] {
				other++
			}
		}
		if other > count/25 {
			return fmt.Sprintf("%d of %d packets came by one link and not by the other", other, count)
		}
		return ""
	}, "user", "kernel")
	// Its delays too, and which frames did not wait.
	p = probe{count: 200, interval: time.Millisecond, bytes: 64, wait: 300 * time.Millisecond}
	for _, link := range []string{"delay=150ms,jitter=100ms,distribution=normal,seed=9", "delay=150ms,reorder=30%,gap=3,seed=11"} {
		differ(t, "mtu=1200,mode=netem,"+link, p, func(lists [][]arrival, count int) string {
			a, b := delays(lists[0], count), delays(lists[1], count)
			far := 0
			for i := range a {
				if !(math.Abs(a[i]-b[i]) < 20) { // what a busy machine is late
					far++
				}
			}
			if far > count/10 {
				return fmt.Sprintf("the delays of %d of %d packets differ by 20 ms or more", far, count)
			}
			return ""
		}, "user", "kernel")
	}
}

// delays are those of each packet in ms, NaN for one that did not come.
func delays(list []arrival, count int) []float64 {
	d := slices.Repeat([]float64{math.NaN()}, count)
	for _, a := range list {
		d[a.sequence] = float64(a.received-a.sent) / 1e6
	}
	return d
}

func TestKernelLinkLoss(t *testing.T) {
	if ok, _ := withNetem(t); !ok {
		return
	}
	p := probe{count: 3000, interval: quick, bytes: 64, wait: 300 * time.Millisecond}
	differ(t, "mtu=1200,loss=10%,delay=2ms", p, func(lists [][]arrival, count int) string {
		return first(share("lost by the user link", count-len(lists[0]), count, 0.1), share("lost by the kernel", count-len(lists[1]), count, 0.1))
	}, "user", "kernel")
	differ(t, "mtu=1200,loss=20%,loss-correlation=30%", p, func(lists [][]arrival, count int) string {
		lost, after, both := lostOf(lists[0], count), 0, 0
		for i := 1; i < count; i++ {
			if lost[i-1] {
				after++
				if lost[i] {
					both++
				}
			}
		}
		return share("lost after a loss", both, after, 0.2+0.3*0.8)
	}, "kernel")
	differ(t, "mtu=1200,loss=ge:2%/20%/70%/1%,seed=5", probe{count: 500, interval: quick, bytes: 64, wait: 300 * time.Millisecond}, same, "user", "bpf")
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
	if ok, _ := withNetem(t); !ok {
		return
	}
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
	if ok, _ := withNetem(t); !ok {
		return
	}
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
	if ok, _ := withNetem(t); !ok {
		return
	}
	// netem's limit holds for all that is under way.
	p := probe{count: 100, bytes: 200, wait: 500 * time.Millisecond}
	differ(t, "mtu=1200,delay=300ms,queue=30,rate=1gbit,mode=netem", p, func(lists [][]arrival, count int) string {
		for i, list := range lists {
			if len(list) != 30 {
				return fmt.Sprintf("backend %d: %d passed a limit of 30", i, len(list))
			}
		}
		return ""
	}, "user", "kernel")
	// 1042 B of frame take 4168 us at 2 Mbit/s, behind a queue of its own.
	const took = 4_168_000
	p = probe{count: 120, bytes: 1000, wait: 150 * time.Millisecond}
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
	backends := []string{"bpf"}
	if ok, _ := withNetem(t); ok {
		backends = append(backends, "kernel")
	}
	const count, loss = 1000, 0.2
	for _, backend := range backends {
		for _, c := range []struct{ topology, to string }{
			{"direct", "receiver"}, {"switch", "receiver"}, {"router", "receiver"}, {"nat", "receiver"}, {"star:3", "receiver-2"},
		} {
			t.Run(c.topology+" "+backend, func(t *testing.T) {
				l := openLab(t, c.topology, "mtu=1200", "receiver:loss=20%,backend="+backend)
				before := account(t, l)
				list := throughTo(t, l, c.to, probe{count: count, interval: quick, bytes: 64, wait: 200 * time.Millisecond})
				if wrong := share("lost", count-len(list), count, loss); wrong != "" {
					t.Error(wrong)
				}
				links := l.KernelLinks()
				for i, r := range account(t, l) {
					way := links[i].Since(before[i], r)[0]
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
}
