package lab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pelt/model"
)

// benchLab opens a lab with emulated links; where that cannot be there is
// nothing to measure.
func benchLab(b *testing.B, topology string, links ...model.Link) *Lab {
	b.Helper()
	l, err := Open(b.Context(), topology, links)
	if err != nil {
		b.Skip(err)
	}
	b.Cleanup(func() {
		if err := l.Close(); err != nil {
			b.Error(err)
		}
	})
	return l
}

func benchNode(b *testing.B, l *Lab, name string) *Node {
	b.Helper()
	n, err := l.Node(name)
	must(b, err)
	return n
}

// used is the processor time of the calling thread, or of the whole process.
func used(who int) time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(who, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkLinkTCP prints what one TCP connection carries over a link of 20 ms
// each way, after its slow start.
func BenchmarkLinkTCP(b *testing.B) {
	const slowStart, room = 1500 * time.Millisecond, 128 << 20
	measure := 2500 * time.Millisecond
	if testing.Short() {
		measure = 500 * time.Millisecond
	}
	l := benchLab(b, "direct", model.Link{DelaySeconds: 0.02})
	from, to := benchNode(b, l, model.Sender), benchNode(b, l, model.Receiver)
	big := func(option int) func(string, string, syscall.RawConn) error {
		return func(_, _ string, c syscall.RawConn) (err error) {
			return errors.Join(c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, option, room) }), err)
		}
	}
	for b.Loop() {
		var bytes atomic.Uint64
		var listener net.Listener
		err := to.Do(func() (err error) {
			listener, err = (&net.ListenConfig{Control: big(unix.SO_RCVBUFFORCE)}).Listen(b.Context(), "tcp4", netip.AddrPortFrom(to.Addr(4), 0).String())
			return err
		})
		must(b, err)
		var out net.Conn
		must(b, from.Do(func() (err error) {
			out, err = (&net.Dialer{Control: big(unix.SO_SNDBUFFORCE)}).Dial("tcp4", listener.Addr().String())
			return err
		}))
		in, err := listener.Accept()
		must(b, err)
		var pumps sync.WaitGroup
		pumps.Go(func() {
			for buf := make([]byte, 1<<20); ; {
				n, err := in.Read(buf)
				if err != nil {
					return
				}
				bytes.Add(uint64(n))
			}
		})
		pumps.Go(func() {
			for buf := make([]byte, 1<<20); ; {
				if _, err := out.Write(buf); err != nil {
					return
				}
			}
		})
		time.Sleep(slowStart)
		before, began, cpu := bytes.Load(), time.Now(), used(unix.RUSAGE_SELF)
		time.Sleep(measure)
		rate := float64(bytes.Load()-before) * 8 / time.Since(began).Seconds()
		cores := (used(unix.RUSAGE_SELF) - cpu).Seconds() / time.Since(began).Seconds()
		_ = errors.Join(listener.Close(), in.Close(), out.Close())
		pumps.Wait()
		fmt.Printf("TCP over a link, round trip 40 ms: %.2f Gbit/s with %.2f cores\n", rate/1e9, cores)
		b.ReportMetric(rate/1e9, "Gbit/s")
	}
}

// stream is a UDP socket at each end.
type stream struct{ in, out int }

// connectUDP opens a flow from one node to another; the receiver's buffer holds a burst.
func connectUDP(b *testing.B, from, to *Node) stream {
	b.Helper()
	s := stream{-1, -1}
	var at unix.Sockaddr
	open := func(f func(fd int) error) (int, error) {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = f(fd)
		}
		return fd, err
	}
	err := to.Do(func() (err error) {
		s.in, err = open(func(fd int) error {
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20); err != nil {
				return err
			}
			if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: to.Addr(4).As4()}); err != nil {
				return err
			}
			at, err = unix.Getsockname(fd)
			return err
		})
		return err
	})
	if err == nil {
		err = from.Do(func() (err error) {
			s.out, err = open(func(fd int) error { return unix.Connect(fd, at) })
			return err
		})
	}
	b.Cleanup(func() { _ = errors.Join(unix.Close(s.in), unix.Close(s.out)) })
	must(b, err)
	return s
}

// offered is what became of packets that were sent at a rate.
type offered struct {
	received uint64
	cpu      time.Duration
	seconds  float64
}

// offer sends for a while at a rate in packets per second, each packet when it is due. The
// processor time is what the process took beside the sending and the receiving thread.
func offer(s stream, payload int, pps float64, length, settle time.Duration) (o offered) {
	var ends sync.WaitGroup
	var own atomic.Int64
	stop := make(chan struct{})
	cpu := used(unix.RUSAGE_SELF)
	ends.Go(func() {
		runtime.LockOSThread()
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
		f := newBatch(1)
		for over := false; !over; {
			select {
			case <-stop:
				over = true
			default:
				_, _ = unix.Ppoll(nil, &unix.Timespec{Nsec: 1_000_000}, nil)
			}
			for n := len(f.msgs); n == len(f.msgs); {
				n, _ = f.call(unix.SYS_RECVMMSG, uintptr(s.in), n) // 0 on an error
				o.received += uint64(n)
			}
		}
		own.Add(int64(used(unix.RUSAGE_THREAD)))
	})
	ends.Go(func() {
		runtime.LockOSThread()
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
		f, sent := newBatch(payload), uint64(0)
		for began := time.Now(); ; {
			past := time.Since(began)
			if past >= length {
				o.seconds = past.Seconds()
				break
			}
			for due := uint64(past.Seconds() * pps); sent < due; {
				n := min(due-sent, uint64(len(f.msgs)))
				_, _ = f.call(unix.SYS_SENDMMSG, uintptr(s.out), int(n)) // what was not sent did not arrive
				sent += n
			}
			_, _ = unix.Ppoll(nil, &unix.Timespec{Nsec: 50_000}, nil)
		}
		own.Add(int64(used(unix.RUSAGE_THREAD)))
		time.Sleep(settle)
		close(stop)
	})
	ends.Wait()
	o.cpu = used(unix.RUSAGE_SELF) - cpu - time.Duration(own.Load())
	return o
}

// BenchmarkLinkPackets prints how many small packets a second a link of 20 ms
// takes without falling behind, how late they leave it then, and what each costs.
func BenchmarkLinkPackets(b *testing.B) {
	const payload = 64
	length, steps := time.Second, 6
	if testing.Short() {
		length, steps = 200*time.Millisecond, 3
	}
	l := benchLab(b, "direct", model.Link{DelaySeconds: 0.02})
	flow := connectUDP(b, benchNode(b, l, model.Sender), benchNode(b, l, model.Receiver))
	e := l.Emulated()[0]
	for b.Loop() {
		var best string
		try := func(pps float64) bool {
			before := e.cable.Counts(0)
			overrun, err := e.read()
			o := offer(flow, payload, pps, length, 50*time.Millisecond)
			after, err2 := e.read()
			must(b, errors.Join(err, err2))
			now := e.cable.Counts(0)
			left, p50, p99 := now.Lateness(before)
			late := now.Late - before.Late
			if after[0].overrun > overrun[0].overrun || float64(late) > 0.01*float64(left) || o.received < left*999/1000 || float64(left) < 0.98*pps*o.seconds {
				return false
			}
			best = fmt.Sprintf("%.0f kpps, left late by p50 %.1f p99 %.1f us, %.0f ns of processor for each",
				pps/1e3, float64(p50)/1e3, float64(p99)/1e3, float64(o.cpu.Nanoseconds())/float64(left))
			return true
		}
		low, high := 0.0, 25_000.0
		for try(high) {
			low, high = high, 2*high
		}
		for range steps {
			if middle := (low + high) / 2; try(middle) {
				low = middle
			} else {
				high = middle
			}
		}
		fmt.Printf("%d B over a link: %s\n", payload, best)
		b.ReportMetric(low/1e3, "kpps")
	}
}
