package gauge

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"pelt/model"
)

// Measure probes all ways at once, for some two seconds at most beside their delay,
// and tells of those whose settings do anything, together where these are the same.
func Measure(ctx context.Context, ways []Way) (list []model.LinkCalibration, err error) {
	w := &wires{}
	defer func() { err = errors.Join(err, w.close()) }()
	var groups []group
	fullAt := time.Duration(0)
	for _, g := range grouped(ways) {
		first := g.ways[0]
		if g.plan.wait >= mostWaiting {
			list = append(list, model.LinkCalibration{From: first.From, To: first.To, Directions: len(g.ways), Settings: first.Words,
				Unmeasured: []string{"loss, delay and rate: frames take longer than a calibration waits"}})
			continue
		}
		groups, fullAt = append(groups, g), max(fullAt, g.plan.fullAt)
	}
	for i := range groups {
		g := &groups[i]
		g.plan.fullAt = fullAt // when no small frame is on its way any more
		for _, way := range g.ways {
			if err := w.add(way, g.plan); err != nil {
				return nil, fmt.Errorf("probe the link from %s to %s: %w", way.From, way.To, err)
			}
		}
	}
	samples, err := w.run(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		n := len(g.ways)
		list = append(list, g.calibration(g.figures(samples[:n]), g.expect()))
		samples = samples[n:]
	}
	return list, nil
}

// wires are the open ways.
type wires []*wire

type wire struct {
	in     int      // a packet socket, as out
	out    *os.File // nil: not open yet
	header [headerBytes]byte
	plan   schedule
}

func (w *wires) add(way Way, plan schedule) error {
	x := &wire{in: -1, plan: plan}
	*w = append(*w, x)
	var to, from net.HardwareAddr
	err := way.Out.Do(func() error {
		fd, address, err := packetSocket(way.Out.Name, true)
		if err == nil {
			x.out, to = os.NewFile(uintptr(fd), "probes"), address
		}
		return err
	})
	if err == nil {
		err = way.In.Do(func() (err error) {
			x.in, from, err = packetSocket(way.In.Name, false)
			return err
		})
	}
	h := x.header[:]
	copy(h, to)
	copy(h[6:], from)
	binary.BigEndian.PutUint16(h[12:], etherType)
	binary.BigEndian.PutUint32(h[14:], magic)
	binary.BigEndian.PutUint16(h[18:], uint16(len(*w)-1))
	return err
}

// packetSocket is bound to an interface of the thread's namespace. If it hears, it hears the
// probes that arrive, with the kernel's time of each. It asks for every type of frame, because
// a port of a bridge gives its frames away before those of one type are heard.
func packetSocket(name string, hears bool) (fd int, address net.HardwareAddr, err error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return -1, nil, err
	}
	if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return -1, nil, err
	}
	at := &unix.SockaddrLinklayer{Ifindex: i.Index}
	if hears {
		at.Protocol = binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL}) // in network byte order
		err = errors.Join(
			unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, probeFilter()),
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS_NEW, 1),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 4<<20))
	}
	if err == nil {
		err = unix.Bind(fd, at)
	}
	if err != nil {
		return -1, nil, errors.Join(err, unix.Close(fd))
	}
	return fd, i.HardwareAddr, nil
}

// probeFilter lets the headers of probes through, and nothing else.
func probeFilter() *unix.SockFprog {
	const (
		loadHalf = unix.BPF_LD | unix.BPF_H | unix.BPF_ABS
		equal    = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		give     = unix.BPF_RET | unix.BPF_K
	)
	code := []unix.SockFilter{{Code: loadHalf, K: 12}, {Code: equal, K: etherType, Jf: 1}, {Code: give, K: headerBytes}, {Code: give}}
	return &unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
}

// run sends each wire's schedule and collects what arrives.
func (w wires) run(ctx context.Context) ([]sample, error) {
	samples := make([]sample, len(w))
	wait := time.Duration(0)
	for _, x := range w {
		wait = max(wait, x.plan.wait)
		if x.plan.full > 0 {
			wait = max(wait, x.plan.wait+rateSpread)
		}
	}
	until := func(end time.Time) {
		for _, x := range w {
			_ = x.out.SetReadDeadline(end) // of a socket, which has deadlines
		}
	}
	until(time.Time{})
	defer context.AfterFunc(ctx, func() { until(time.Now()) })()
	var hearing sync.WaitGroup
	for i, x := range w {
		hearing.Go(func() { samples[i].arrivals = x.hear(i) })
	}
	err := w.send(ctx, samples)
	if err != nil {
		wait = 0
	}
	until(time.Now().Add(wait))
	hearing.Wait()
	return samples, cmp.Or(err, ctx.Err())
}

// send gives the frames to the links, each at its time, one way's after the other.
func (w wires) send(ctx context.Context, samples []sample) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// A thread of Go's sleeps 50 us longer than asked otherwise.
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err == nil {
		defer func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) }() // 0: the thread's own
	}
	room := make([]byte, 65536)
	begin := now()
	for {
		next := int64(math.MaxInt64)
		for i, x := range w {
			for s := &samples[i]; len(s.sent) < x.plan.small+x.plan.full; {
				due, bytes := x.plan.frame(len(s.sent))
				if at := begin + int64(due) + int64(i)*int64(x.plan.interval)/int64(len(w)); now() < at {
					next = min(next, at)
					break
				}
				if err := x.write(room[:bytes], len(s.sent), s); err != nil {
					return err
				}
			}
		}
		if err := ctx.Err(); err != nil || next == math.MaxInt64 {
			return err
		}
		rest := unix.NsecToTimespec(max(next-now(), 0))
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &rest, nil)
	}
}

// write sends one frame, waiting for room; its time is the last before it could go.
func (x *wire) write(frame []byte, sequence int, s *sample) error {
	copy(frame, x.header[:])
	binary.BigEndian.PutUint32(frame[headerBytes-4:], uint32(sequence))
	for end := time.Now().Add(mostWaiting); ; {
		stamp := now()
		_, err := unix.Write(x.in, frame)
		switch {
		case err == nil:
			s.sent = append(s.sent, stamp)
			return nil
		case (errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOBUFS)) && time.Now().Before(end):
			time.Sleep(time.Millisecond)
		case !errors.Is(err, unix.EINTR):
			return fmt.Errorf("send a probe: %w", err)
		}
	}
}

// hear reads what arrives over a way until the socket's deadline.
func (x *wire) hear(way int) (arrivals []arrival) {
	raw, err := x.out.SyscallConn()
	if err != nil {
		return nil
	}
	frame, control := make([]byte, headerBytes), make([]byte, 64)
	_ = raw.Read(func(fd uintptr) bool {
		for {
			size, c, _, _, err := unix.Recvmsg(int(fd), frame, control, unix.MSG_TRUNC)
			if err != nil {
				return false // nothing more for now
			}
			if size < headerBytes || binary.BigEndian.Uint32(frame[14:]) != magic || int(binary.BigEndian.Uint16(frame[18:])) != way {
				continue
			}
			if at, ok := stampOf(control[:c]); ok {
				arrivals = append(arrivals, arrival{int(binary.BigEndian.Uint32(frame[headerBytes-4:])), at})
			}
		}
	})
	return arrivals
}

// stampOf reads the kernel's time of a packet.
func stampOf(control []byte) (int64, bool) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0, false
	}
	for _, m := range messages {
		if b := m.Data; m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS_NEW && len(b) >= 16 {
			return int64(binary.NativeEndian.Uint64(b))*1e9 + int64(binary.NativeEndian.Uint64(b[8:])), true
		}
	}
	return 0, false
}

// now is the clock of the kernel's stamps.
func now() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_REALTIME, &t)
	return t.Nano()
}

func (w wires) close() (err error) {
	for _, x := range w {
		if x.in >= 0 {
			err = errors.Join(err, unix.Close(x.in))
		}
		if x.out != nil {
			err = errors.Join(err, x.out.Close())
		}
	}
	return err
}
