package lab

import (
	"cmp"
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
	var sent atomic.Bool // and taken in by the link; until then silence is not the end
	before := taken(t, l)
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
			if p.interval >= 250*time.Microsecond { // leave the core to others
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
	// A backlog of this machine may drop some on the way to the link.
	for over := time.Now().Add(time.Second); taken(t, l)-before < uint64(p.count) && time.Now().Before(over); {
		time.Sleep(5 * time.Millisecond)
	}
	sent.Store(true)
	return <-done
}

// taken is how many frames have come to those of the lab's links that count them.
func taken(t *testing.T, l *Lab) (frames uint64) {
	t.Helper()
	ways, err := l.Links()
	must(t, err)
	for _, w := range ways {
		if w.Done != nil {
			frames += w.Done.Frames
		}
	}
	return frames
}

// These tests, with those of guests, look at some twenty samples. Each look has a false alarm once in 100 000 times.
const normalBound = 4.42 // a normal deviate is farther from 0 once in 100 000 times

// share wants a share of all. Each of them decides for itself, so the number is binomial.
func share(what string, got, all int, want float64) string {
	bound := normalBound * math.Sqrt(want*(1-want)/float64(all))
	if ratio := float64(got) / float64(all); !(math.Abs(ratio-want) <= bound) {
		return fmt.Sprintf("%s %.4f of %d, want %.4f +- %.4f", what, ratio, all, want, bound)
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

// conformance is what one setting of a link must do to what is sent through. The model draws as it should by its own
// tests; here the frames must meet it.
type conformance struct {
	link, netem string // the words of pelt and of tc
	probe       probe  // without a count: as many as a test likes
	look        func(list []arrival, count int) string
}

var conformances = []conformance{
	{"loss=10%,delay=2ms", "loss 10% delay 2ms", probe{bytes: 64}, func(list []arrival, count int) string {
		return share("lost", number(lostOf(list, count)), count, 0.1)
	}},
	{"loss=ge:14%/56%/100%/0", "loss gemodel 14% 56% 100% 0%", probe{bytes: 64},
		func(list []arrival, count int) string {
			lost, after, both := lostOf(list, count), 0, 0
			for i := 1; i < count; i++ {
				if lost[i-1] {
					after++
					if lost[i] {
						both++
					}
				}
			}
			return share("lost after a loss", both, after, 1-0.56)
		}},
	{"loss=10%", "loss 10%", probe{bytes: 1000, segments: 40}, func(list []arrival, count int) string {
		lost := lostOf(list, count)
		for i := 0; i < count; i += 40 {
			if number(lost[i:i+40]) == 40 {
				return "a buffer was lost as a whole"
			}
		}
		return share("lost of the segments", number(lost), count, 0.1)
	}},
	{"delay=100ms,reorder=25%", "delay 100ms reorder 25%", probe{bytes: 64}, func(list []arrival, count int) string {
		early, waits := 0, []int64{0}
		for _, a := range list {
			if waited := a.received - a.sent; waited < 50e6 {
				early++
			} else {
				waits = append(waits, waited)
			}
		}
		slices.Sort(waits)
		if middle := waits[len(waits)/2]; middle < 99e6 || middle > 105e6 {
			return fmt.Sprintf("half of those who waited did so for %d ns, want 100 ms", middle)
		}
		return share("did not wait", early, count, 0.25)
	}},
	{"duplicate=10%", "duplicate 10%", probe{bytes: 200}, func(list []arrival, count int) string {
		return share("came twice", len(list)-count, count, 0.1)
	}},
	{"corrupt=20%", "corrupt 20%", probe{bytes: 200}, func(list []arrival, count int) string {
		// A damaged bit is noticed, but for those of the 6 B that name who sent the frame of 242 B.
		return share("were not taken", count-len(list), count, 0.2*(1-6.0/242))
	}},
	// At once, and the queue of 1000 holds all.
	{"rate=2mbit,delay=20ms", "rate 2mbit delay 20ms", probe{bytes: 1000, count: 60},
		func(list []arrival, count int) string {
			const took = 4_168_000 // ns that 1042 B of frame take
			slices.SortFunc(list, func(a, b arrival) int { return cmp.Compare(a.received, b.received) })
			if len(list) != count {
				return fmt.Sprintf("%d of %d came", len(list), count)
			}
			if gap := (list[count-1].received - list[0].received) / int64(count-1); gap < took*97/100 ||
				gap > took*103/100 {
				return fmt.Sprintf("they came every %d ns, want %d", gap, took)
			}
			return ""
		}},
}

// sent is what is sent: so many in turn, or what must be sent at once.
func (c conformance) sent(count int, interval time.Duration) probe {
	p := c.probe
	p.wait = 300 * time.Millisecond
	if p.count == 0 {
		p.count, p.interval = count, interval
	}
	return p
}

// TestClockLinkConforms measures once more if a link did otherwise and its own account says that the machine stood
// still.
func TestClockLinkConforms(t *testing.T) {
	testenv.Clock(t)
	const still = 5e6 // ns
	for _, c := range conformances {
		p := c.sent(10_000, 60*time.Microsecond)
		for try := 1; ; try++ {
			l := openLab(t, "direct", "sender:mtu=1200,seed=1,"+c.link)
			said := c.look(through(t, l, p), p.count)
			if said == "" {
				break
			}
			ways, err := l.Links()
			must(t, err)
			if late := ways[0].Done.LateNS.Max; try == 3 || late < still {
				t.Errorf("%s: %s; the latest frame was %d ns late", c.link, said, late)
				break
			}
			t.Logf("%s: %s; measured again, for a frame was %d ns late", c.link, said, ways[0].Done.LateNS.Max)
		}
	}
}
