package lab

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pelt/lab/impair"
)

// The model is tested on its own. These tests ask whether frames meet it as they
// should: they send through a link and look at what comes out, with the kernel's
// time stamps.

// arrival is one datagram that came out.
type arrival struct {
	sequence       int
	sent, received int64 // ns, of one clock
}

// probe is a run of numbered datagrams.
type probe struct {
	count    int
	interval time.Duration // between them; 0: at once
	bytes    int           // of payload
	segments int           // handed to the kernel as one buffer; 0: singly
	wait     time.Duration // for the last, longer than any delay
	frame    time.Duration // that one takes on a link with a queue; 0: the queue is long enough
}

// through sends from the sender to the receiver of a lab.
func through(t *testing.T, l *Lab, p probe) []arrival {
	t.Helper()
	return throughTo(t, l, "receiver", p)
}

func throughTo(t *testing.T, l *Lab, name string, p probe) []arrival {
	t.Helper()
	if testing.Short() {
		t.Skip("its figures are of times, which the race detector spoils")
	}
	sender, receiver := node(t, l, "sender"), node(t, l, name)
	var opened []int
	defer func() { // the next run through the same lab binds again
		for _, fd := range opened {
			unix.Close(fd)
		}
	}()
	open := func(n *Node, f func(fd int) error) (fd int) {
		t.Helper()
		err := n.Do(func() (err error) {
			if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
				return err
			}
			opened = append(opened, fd)
			return f(fd)
		})
		if err != nil {
			t.Fatal(err)
		}
		return fd
	}
	to := &unix.SockaddrInet4{Port: 9999, Addr: receiver.Addr(4).As4()}
	in := open(receiver, func(fd int) error {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
			return err
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20); err != nil {
			return err
		}
		return unix.Bind(fd, to)
	})
	out := open(sender, func(fd int) error {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 64<<20); err != nil {
			return err
		}
		return unix.Connect(fd, to)
	})
	done := make(chan []arrival)
	var sent atomic.Bool // until then silence is not the end
	go func() {
		var list []arrival
		b, control := make([]byte, 65536), make([]byte, 128)
		quiet := unix.NsecToTimeval(int64(p.wait))
		_ = unix.SetsockoptTimeval(in, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &quiet)
		for {
			n, c, _, _, err := unix.Recvmsg(in, b, control, 0)
			if err == unix.EINTR || err == unix.EAGAIN && !sent.Load() {
				continue
			}
			if err != nil {
				done <- list
				return
			}
			messages, _ := unix.ParseSocketControlMessage(control[:c])
			if n >= 12 && len(messages) > 0 {
				stamp := messages[0].Data
				list = append(list, arrival{int(binary.BigEndian.Uint32(b)), int64(binary.BigEndian.Uint64(b[4:])),
					int64(binary.NativeEndian.Uint64(stamp))*1e9 + int64(binary.NativeEndian.Uint64(stamp[8:]))})
			}
		}
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	now := func() int64 {
		var ts unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_REALTIME, &ts)
		return ts.Nano()
	}
	group := max(p.segments, 1)
	b := make([]byte, group*p.bytes)
	if p.segments > 1 {
		if err := unix.SetsockoptInt(out, unix.SOL_UDP, unix.UDP_SEGMENT, p.bytes); err != nil {
			t.Fatal(err)
		}
	}
	begin := now()
	for i := 0; i < p.count; i += group {
		for p.interval > 0 && now() < begin+int64(i)*int64(p.interval) {
			if p.interval >= time.Millisecond { // seldom enough to leave the core to others
				time.Sleep(time.Duration(begin + int64(i)*int64(p.interval) - now()))
			}
		}
		stamp := now()
		for k := range group {
			binary.BigEndian.PutUint32(b[k*p.bytes:], uint32(i+k))
			binary.BigEndian.PutUint64(b[k*p.bytes+4:], uint64(stamp))
		}
		if _, err := unix.Write(out, b); err != nil {
			t.Fatal(err)
		}
	}
	sent.Store(true)
	return <-done
}

// conforms opens a lab whose link is as said and looks at it; what does not hold
// must not hold again, twice, with four times the packets: of many looks some fail by
// chance, and a machine that is busy makes any link late.
func conforms(t *testing.T, link string, p probe, look func([]arrival, int) string) {
	t.Helper()
	l := openLab(t, "direct", link)
	said := look(through(t, l, p), p.count)
	if said == "" {
		return
	}
	p.count *= 4
	for range 2 {
		t.Logf("%s: %s; again", link, said)
		if said = look(through(t, l, p), p.count); said == "" {
			return
		}
	}
	t.Errorf("%s: %s", link, said)
}

// share wants a share of all that a binomial law with a probability of one in a
// million does not exceed.
func share(what string, got, all int, want float64) string {
	sd := math.Sqrt(want * (1 - want) / float64(all))
	if ratio := float64(got) / float64(all); math.Abs(ratio-want) > 4.9*sd {
		return fmt.Sprintf("%s %.4f of %d, want %.4f +- %.4f", what, ratio, all, want, 4.9*sd)
	}
	return ""
}

// lostOf marks what did not come.
func lostOf(list []arrival, count int) []bool {
	lost := slices.Repeat([]bool{true}, count)
	for _, a := range list {
		lost[a.sequence] = false
	}
	return lost
}

func number(marks []bool) (n int) {
	for _, m := range marks {
		if m {
			n++
		}
	}
	return n
}

func TestLossConforms(t *testing.T) {
	usual := probe{count: 20_000, interval: 40 * time.Microsecond, bytes: 64, wait: 300 * time.Millisecond}
	for link, want := range map[string]float64{
		"sender:loss=10%,seed=1":                                 0.1,
		"sender:loss=1%,delay=5ms,seed=2":                        0.01,
		"sender:loss=ge:1%/10%/70%/0.1%,seed=3":                  (0.1*0.001 + 0.01*0.7) / 0.11,
		"sender:loss=4state:1%/10%/10%/30%/0.1%,seed=4":          0.0890,
		"sender:loss=10%,loss-correlation=25%,mode=netem,seed=5": 0.0175,
	} {
		conforms(t, link, usual, func(list []arrival, count int) string {
			if strings.Contains(link, ":l") && (strings.Contains(link, "state") || strings.Contains(link, "ge:")) || strings.Contains(link, "netem") {
				// Losses come in bursts: the spread is wider than a binomial law's.
				if ratio := float64(number(lostOf(list, count))) / float64(count); math.Abs(ratio-want) > 0.2*want {
					return fmt.Sprintf("lost %.4f, want %.4f", ratio, want)
				}
				return ""
			}
			return share("lost", number(lostOf(list, count)), count, want)
		})
	}
	conforms(t, "sender:loss=20%,loss-correlation=30%,seed=6", usual, func(list []arrival, count int) string {
		lost := lostOf(list, count)
		after, both := 0, 0
		for i := 1; i < count; i++ {
			if lost[i-1] {
				after++
				if lost[i] {
					both++
				}
			}
		}
		return share("lost after a loss", both, after, 0.2+0.3*0.8)
	})
	// Each segment of a buffer has its own fate.
	conforms(t, "sender:loss=10%,seed=7", probe{count: 20_000, interval: 40 * time.Microsecond, bytes: 1000, segments: 40, wait: 300 * time.Millisecond}, func(list []arrival, count int) string {
		lost := lostOf(list, count)
		whole := 0
		for i := 0; i < count; i += 40 {
			if number(lost[i:i+40]) == 40 {
				whole++
			}
		}
		if whole > 0 {
			return fmt.Sprintf("%d buffers were lost as a whole", whole)
		}
		return share("lost of the segments", number(lost), count, 0.1)
	})
}

// The kernel's own draws: what Linux 6.12 dropped with these seeds.
func TestNetemSeedsConform(t *testing.T) {
	for seed, want := range map[string]string{"42424242": "[5 12 24]", "7": "[2 4 12 16]"} {
		l := openLab(t, "direct", "sender:mtu=1200,loss=10%,mode=netem,seed="+seed) // so short that there is no IPv6, and no frame of its
		lost := lostOf(through(t, l, probe{count: 25, interval: time.Millisecond, bytes: 64, wait: 300 * time.Millisecond}), 25)
		var got []int
		for i, gone := range lost {
			if gone {
				got = append(got, i+1)
			}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("seed %s: lost %v, want %s", seed, got, want)
		}
	}
}

// quantile of a table at a deviation in units of the jitter: the share below.
func below(table *impair.Table, deviation float64) float64 {
	if table == nil {
		return min(max((deviation+1)/2, 0), 1)
	}
	v := deviation * 8192
	i, _ := slices.BinarySearchFunc(table.Values, v, func(x int16, v float64) int {
		if float64(x) < v {
			return -1
		}
		return 1
	})
	return float64(i) / float64(len(table.Values))
}

func TestDelayConforms(t *testing.T) {
	for _, name := range []string{"uniform", "normal", "pareto", "paretonormal"} {
		table, err := impair.Distribution(name)
		if err != nil {
			t.Fatal(err)
		}
		p := probe{count: 4000, interval: 250 * time.Microsecond, bytes: 64, wait: 500 * time.Millisecond}
		conforms(t, "sender:delay=30ms,jitter=5ms,seed=9,distribution="+name, p, func(list []arrival, count int) string {
			if len(list) != count {
				return fmt.Sprintf("%d of %d came", len(list), count)
			}
			var all []float64
			for _, a := range list {
				all = append(all, float64(a.received-a.sent)/1e6)
			}
			slices.Sort(all)
			worst := 0.0
			const base = 0.02 // ms that the way takes besides
			for i, ms := range all {
				want := below(table, (ms-base-30)/5)
				worst = max(worst, math.Abs(want-float64(i)/float64(count)), math.Abs(want-float64(i+1)/float64(count)))
			}
			t.Logf("%s: median %.3f ms, KS %.4f", name, all[len(all)/2], worst)
			if limit := 1.95/math.Sqrt(float64(count)) + 0.01; worst > limit { // what the base varies by
				return fmt.Sprintf("delays are %.4f off the distribution, want at most %.4f", worst, limit)
			}
			return ""
		})
	}
	p := probe{count: 4000, interval: 250 * time.Microsecond, bytes: 64, wait: 500 * time.Millisecond}
	conforms(t, "sender:delay=30ms,jitter=5ms,correlation=75%,distribution=normal,seed=10", p, func(list []arrival, count int) string {
		slices.SortFunc(list, func(a, b arrival) int { return a.sequence - b.sequence })
		var mean, cross, square float64
		for _, a := range list {
			mean += float64(a.received-a.sent) / float64(len(list))
		}
		for i, a := range list {
			d := float64(a.received-a.sent) - mean
			square += d * d
			if i > 0 {
				cross += d * (float64(list[i-1].received-list[i-1].sent) - mean)
			}
		}
		if r := cross / square; math.Abs(r-0.75) > 0.05 {
			return fmt.Sprintf("delays are correlated %.3f, want 0.75", r)
		}
		return ""
	})
}

func TestRateConforms(t *testing.T) {
	// 1000 B of payload are 1042 B of frame, which take 833.6 us at 10 Mbit/s.
	l := openLab(t, "direct", "sender:rate=10mbit,queue=50,delay=5ms,mtu=1200")
	said := ""
	for range 3 { // a frame that leaves late stretches or shortens the whole
		if said = rateConforms(through(t, l, probe{count: 200, bytes: 1000, wait: 300 * time.Millisecond})); said == "" {
			return
		}
		t.Log(said)
	}
	t.Error(said)
}

func rateConforms(list []arrival) string {
	if len(list) < 50 {
		return fmt.Sprintf("%d of 200 at once passed a queue of 50", len(list))
	}
	first, last := list[0].sent, list[0].sent
	for _, a := range list {
		first, last = min(first, a.sent), max(last, a.sent)
	}
	if room := 51 + int((last-first)/833_600); len(list) > room { // what left while they were sent made room
		return fmt.Sprintf("%d of 200 at once passed a queue of 50; at most %d may", len(list), room)
	}
	var gaps []int64
	for i := 1; i < len(list); i++ {
		gaps = append(gaps, list[i].received-list[i-1].received)
	}
	slices.Sort(gaps)
	whole := list[len(list)-1].received - list[0].received
	if median := gaps[len(gaps)/2]; median < 828_000 || median > 839_000 {
		return fmt.Sprintf("the median gap is %d ns, want 833600", median)
	}
	if want := int64(len(list)-1) * 833_600; whole < want-want/100 || whole > want+want/50 {
		return fmt.Sprintf("%d frames took %d ns, want %d", len(list), whole, want)
	}
	return ""
}

func TestOthersConform(t *testing.T) {
	p := probe{count: 10_000, interval: 60 * time.Microsecond, bytes: 200, wait: 300 * time.Millisecond}
	conforms(t, "sender:duplicate=10%,seed=11", p, func(list []arrival, count int) string {
		return share("came twice", len(list)-count, count, 0.1)
	})
	conforms(t, "sender:delay=10ms,reorder=25%,seed=12", p, func(list []arrival, count int) string {
		early := 0
		for _, a := range list {
			if a.received-a.sent < 5e6 {
				early++
			}
		}
		return share("did not wait", early, count, 0.25)
	})
	conforms(t, "sender:delay=10ms,reorder=100%,gap=5,mode=netem,seed=13", p, func(list []arrival, count int) string {
		early := 0
		for _, a := range list {
			if a.received-a.sent < 5e6 {
				early++
			}
		}
		return share("did not wait", early, count, 0.2)
	})
	conforms(t, "sender:corrupt=20%,seed=14", p, func(list []arrival, count int) string {
		// A bit of the Ethernet header may do no harm, all else is noticed.
		if ratio := float64(count-len(list)) / float64(count); ratio < 0.17 || ratio > 0.22 {
			return fmt.Sprintf("%.4f were not taken, want about 0.2", ratio)
		}
		return ""
	})
}
