package lab

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pelt/internal/testenv"
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

// seldom is an interval long enough to sleep in.
const seldom = 250 * time.Microsecond

// through sends from the sender to the receiver of a lab.
func through(t *testing.T, l *Lab, p probe) []arrival {
	t.Helper()
	sender, receiver := node(t, l, "sender"), node(t, l, "receiver")
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
		must(t, err)
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
		const waits = 4 // of a silence: a machine that stands still ends one early
		silent := 0
		quiet := unix.NsecToTimeval(int64(p.wait / waits))
		_ = unix.SetsockoptTimeval(in, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &quiet)
		for {
			n, c, _, _, err := unix.Recvmsg(in, b, control, 0)
			if err == unix.EINTR || err == unix.EAGAIN && !sent.Load() {
				continue
			}
			if silent++; err == unix.EAGAIN && silent < waits {
				continue
			}
			if err != nil {
				done <- list
				return
			}
			silent = 0
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
		must(t, unix.SetsockoptInt(out, unix.SOL_UDP, unix.UDP_SEGMENT, p.bytes))
	}
	begin := now()
	for i := 0; i < p.count; i += group {
		for p.interval > 0 && now() < begin+int64(i)*int64(p.interval) {
			if p.interval >= seldom { // leave the core to others
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

// These tests, with those of guests, look at less than a hundred samples. Each look has a false alarm once in 100 000
// times, so all together have one in a thousand runs.
const (
	normalBound  = 4.42 // a normal deviate is farther from 0 once in 100 000 times
	studentBound = 5.07 // so is Student's t with 39 degrees of freedom
	ksBound      = 2.47 // and so is sqrt(n) times the distance of Kolmogorov and Smirnov: 2 exp(-2 * 2.47^2) = 0.00001
)

// conforms opens a lab whose link is as said and looks at what comes through. If that is wrong and the link's own account
// says that the machine stood still, it measures again, at most twice.
func conforms(t *testing.T, link string, p probe, look func([]arrival, int) string) {
	t.Helper()
	const still = 5e6 // ns
	for try := 1; ; try++ {
		l := openLab(t, "direct", link)
		said := look(through(t, l, p), p.count)
		if said == "" {
			return
		}
		ways, err := l.Links()
		must(t, err)
		if late := ways[0].Done.LateNS.Max; try == 3 || late < still {
			t.Errorf("%s: %s; the latest frame was %d ns late", link, said, late)
			return
		}
		t.Logf("%s: %s; once more, for a frame was %d ns late", link, said, ways[0].Done.LateNS.Max)
	}
}

// share wants a share of all. Each of them decides for itself, so the number is binomial.
func share(what string, got, all int, want float64) string {
	bound := normalBound * math.Sqrt(want*(1-want)/float64(all))
	if ratio := float64(got) / float64(all); !(math.Abs(ratio-want) <= bound) {
		return fmt.Sprintf("%s %.4f of %d, want %.4f +- %.4f", what, ratio, all, want, bound)
	}
	return ""
}

// burstShare wants a share of marks that come in bursts. The sample tells its own scatter: by the means of 40 batches, which
// are many times as long as a burst and so are independent.
func burstShare(what string, marks []bool, want float64) string {
	const batches = 40
	var means []float64
	for b := range slices.Chunk(marks, len(marks)/batches) {
		means = append(means, float64(number(b))/float64(len(b)))
	}
	mean, square := 0.0, 0.0
	for _, m := range means {
		mean += m / float64(len(means))
	}
	for _, m := range means {
		square += (m - mean) * (m - mean)
	}
	bound := studentBound * math.Sqrt(square/float64(len(means)-1)/float64(len(means)))
	if !(math.Abs(mean-want) <= bound) {
		return fmt.Sprintf("%s %.4f of %d, want %.4f +- %.4f", what, mean, len(marks), want, bound)
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

func TestClockLossConforms(t *testing.T) {
	testenv.Clock(t)
	usual := probe{count: 20_000, interval: 40 * time.Microsecond, bytes: 64, wait: 300 * time.Millisecond}
	for link, want := range map[string]float64{
		"sender:loss=10%,seed=1":          0.1,
		"sender:loss=1%,delay=5ms,seed=2": 0.01,
	} {
		conforms(t, link, usual, func(list []arrival, count int) string {
			return share("lost", number(lostOf(list, count)), count, want)
		})
	}
	conforms(t, "sender:loss=ge:1%/10%/70%/0.1%,seed=3", usual, func(list []arrival, count int) string {
		return burstShare("lost", lostOf(list, count), (0.1*0.001+0.01*0.7)/0.11)
	})
	conforms(t, "sender:loss=ge:14%/56%/100%/0,seed=6", usual, func(list []arrival, count int) string {
		return lostAfterALoss(lostOf(list, count), 0.2+0.3*0.8)
	})
	// Each segment of a buffer has its own fate.
	segments := probe{count: 20_000, interval: 40 * time.Microsecond, bytes: 1000, segments: 40, wait: 300 * time.Millisecond}
	conforms(t, "sender:loss=10%,seed=7", segments, func(list []arrival, count int) string {
		return segmentLoss(list, count, 40, 0.1)
	})
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

func lostAfterALoss(lost []bool, want float64) string {
	after, both := 0, 0
	for i := 1; i < len(lost); i++ {
		if lost[i-1] {
			after++
			if lost[i] {
				both++
			}
		}
	}
	return share("lost after a loss", both, after, want)
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

// TestClockDelayConforms compares delays with the distribution that was asked for. The way takes time besides: a link that
// only delays shows how much, and the distribution asked for is shifted by each of these times in turn.
func TestClockDelayConforms(t *testing.T) {
	testenv.Clock(t)
	p := probe{count: 4000, interval: seldom, bytes: 64, wait: 250 * time.Millisecond}
	const delay, jitter = 30.0, 5.0 // ms
	var besides []float64           // ms
	conforms(t, "sender:delay=30ms,seed=9", p, func(list []arrival, count int) string {
		besides = nil
		for _, a := range list {
			besides = append(besides, float64(a.received-a.sent)/1e6-delay)
		}
		slices.Sort(besides)
		t.Logf("the way takes %.3f ms besides, at most %.3f ms", besides[len(besides)/2], besides[len(besides)-1])
		return share("came", len(list), count, 1)
	})
	for _, name := range []string{"uniform", "normal", "pareto", "paretonormal"} {
		table, err := impair.Distribution(name)
		must(t, err)
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
			for i, ms := range all {
				want := 0.0
				for b := 0; b < len(besides); b += 40 {
					want += below(table, (ms-besides[b]-delay)/jitter)
				}
				want /= math.Ceil(float64(len(besides)) / 40)
				worst = max(worst, math.Abs(want-float64(i)/float64(count)), math.Abs(want-float64(i+1)/float64(count)))
			}
			limit := ksBound / math.Sqrt(float64(count))
			t.Logf("%s: median %.3f ms, KS %.4f of %.4f", name, all[len(all)/2], worst, limit)
			if worst > limit {
				return fmt.Sprintf("delays are %.4f off the distribution, want at most %.4f", worst, limit)
			}
			return ""
		})
	}
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
		// Bartlett: the correlation of neighbours in n values of an autoregressive process has variance (1-r^2)/n.
		bound := normalBound * math.Sqrt((1-0.75*0.75)/float64(count))
		if r := cross / square; !(math.Abs(r-0.75) <= bound) {
			return fmt.Sprintf("delays are correlated %.3f, want 0.75 +- %.3f", r, bound)
		}
		return ""
	})
}

func TestClockRateConforms(t *testing.T) {
	testenv.Clock(t)
	// 1000 B of payload are 1042 B of frame, which take 833.6 us at 10 Mbit/s.
	const took = 833_600
	l := openLab(t, "direct", "sender:rate=10mbit,queue=50,delay=5ms,mtu=1200")
	list := through(t, l, probe{count: 200, bytes: 1000, wait: 300 * time.Millisecond})
	if len(list) < 50 {
		t.Fatalf("%d of 200 at once passed a queue of 50", len(list))
	}
	first, last := list[0].sent, list[0].sent
	for _, a := range list {
		first, last = min(first, a.sent), max(last, a.sent)
	}
	if room := 51 + int((last-first)/took); len(list) > room { // what left while they were sent made room
		t.Errorf("%d of 200 at once passed a queue of 50; at most %d may", len(list), room)
	}
	var gaps []float64
	for i := 1; i < len(list); i++ {
		gaps = append(gaps, float64(list[i].received-list[i-1].received))
	}
	slices.Sort(gaps)
	// The median of n normal values scatters by 1.25 of their deviation over sqrt(n); their quartiles are 1.35 of it apart.
	n := len(gaps)
	bound := normalBound * 1.25 * (gaps[n*3/4] - gaps[n/4]) / 1.35 / math.Sqrt(float64(n))
	if median := gaps[n/2]; math.Abs(median-took) > bound {
		t.Errorf("the median gap is %.0f ns, want %d +- %.0f", median, took, bound)
	}
	// Any frame may be late, but of ten one is on time: the first ten and the last tell how the whole kept its rate.
	onTime := func(from int) int64 {
		least := int64(math.MaxInt64)
		for i, a := range list[from : from+10] {
			least = min(least, a.received-int64(from+i)*took)
		}
		return least
	}
	ways, err := l.Links()
	if err != nil || ways[0].Done == nil {
		t.Fatalf("%+v, %v", ways, err)
	}
	off := onTime(len(list)-10) - onTime(0)
	latest := ways[0].Done.LateNS.Max + int64(bound)
	t.Logf("median gap %.0f ns +- %.0f, the whole %d ns off, the latest frame %d ns", gaps[n/2], bound, off, latest)
	if max(off, -off) > latest {
		t.Errorf("%d frames took %d ns more than at the rate; the latest was %d ns late", len(list), off, latest)
	}
}

func TestClockOthersConform(t *testing.T) {
	testenv.Clock(t)
	p := probe{count: 10_000, interval: 60 * time.Microsecond, bytes: 200, wait: 300 * time.Millisecond}
	early := func(list []arrival) (n int) {
		for _, a := range list {
			if a.received-a.sent < 5e6 {
				n++
			}
		}
		return n
	}
	conforms(t, "sender:duplicate=10%,seed=11", p, func(list []arrival, count int) string {
		return share("came twice", len(list)-count, count, 0.1)
	})
	conforms(t, "sender:delay=10ms,reorder=25%,seed=12", p, func(list []arrival, count int) string {
		return share("did not wait", early(list), count, 0.25)
	})
	conforms(t, "sender:corrupt=20%,seed=14", p, func(list []arrival, count int) string {
		// A damaged bit is noticed, but for those of the 6 B that name who sent the frame of 242 B.
		return share("were not taken", count-len(list), count, 0.2*(1-6.0/242))
	})
}
