package gauge

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"runtime"
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
	for _, same := range grouped(ways) {
		first := ways[same[0]]
		if idle(first.Settings) {
			continue
		}
		g := group{settings: first.Settings, words: first.Words, small: small(first.Settings, len(ways))}
		var why string
		if g.full, why = full(first.Settings, first.MTU, first.Burst); why != "" {
			g.notes = append(g.notes, why)
		}
		wait := settle(first.Settings, g.small)
		if wait >= mostWaiting {
			list = append(list, model.LinkCalibration{From: first.From, To: first.To, Directions: len(same), Settings: first.Words,
				Unmeasured: []string{"loss, delay and rate: frames take longer than a calibration waits"}})
			continue
		}
		for _, i := range same {
			g.names = append(g.names, [2]string{ways[i].From, ways[i].To})
			if err := w.add(ways[i], g.small, g.full, wait); err != nil {
				return nil, fmt.Errorf("probe the link from %s to %s: %w", ways[i].From, ways[i].To, err)
			}
		}
		groups = append(groups, g)
	}
	if len(w.all) == 0 {
		return list, nil
	}
	small, err := w.run(ctx, func(x *wire) schedule { return x.small })
	if err != nil {
		return nil, err
	}
	full, err := w.run(ctx, func(x *wire) schedule { return x.full })
	if err != nil {
		return nil, err
	}
	for k := 0; len(groups) > 0; groups = groups[1:] {
		g := groups[0]
		n := len(g.names)
		list = append(list, g.calibration(figuresOf(g.settings, small[k:k+n], full[k:k+n]), g.expect()))
		k += n
	}
	return list, nil
}

// wires are the open ways.
type wires struct {
	all   []*wire
	epoll int // 0: not yet
	wait  time.Duration
}

type wire struct {
	in, out     int // packet sockets
	header      [headerBytes]byte
	small, full schedule
}

func (w *wires) add(way Way, small, full schedule, wait time.Duration) error {
	if w.epoll == 0 {
		fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			return err
		}
		w.epoll = fd
	}
	x := &wire{in: -1, out: -1, small: small, full: full}
	w.all = append(w.all, x)
	w.wait = max(w.wait, wait)
	var to, from net.HardwareAddr
	err := way.Out.Do(func() (err error) { x.out, to, err = packetSocket(way.Out.Name); return err })
	if err == nil {
		err = way.In.Do(func() (err error) { x.in, from, err = packetSocket(way.In.Name); return err })
	}
	if err == nil {
		err = listen(x.out)
	}
	if err != nil {
		return err
	}
	h := x.header[:]
	copy(h, to)
	copy(h[6:], from)
	binary.BigEndian.PutUint16(h[12:], etherType)
	binary.BigEndian.PutUint32(h[14:], magic)
	binary.BigEndian.PutUint16(h[18:], uint16(len(w.all)-1))
	return unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, x.out, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(len(w.all) - 1)})
}

// packetSocket is bound to an interface of the thread's namespace, and hears nothing yet.
func packetSocket(name string) (fd int, address net.HardwareAddr, err error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return -1, nil, err
	}
	if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return -1, nil, err
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: i.Index}); err != nil {
		_ = unix.Close(fd)
		return -1, nil, err
	}
	return fd, i.HardwareAddr, nil
}

// listen has a socket hear the probes that arrive, and the kernel stamp them. It
// asks for every type of frame, because a port of a bridge gives its frames away
// before those of one type are heard; a filter leaves the probes alone.
func listen(fd int) error {
	const (
		loadHalf = unix.BPF_LD | unix.BPF_H | unix.BPF_ABS
		equal    = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		give     = unix.BPF_RET | unix.BPF_K
	)
	code := []unix.SockFilter{{Code: loadHalf, K: 12}, {Code: equal, K: etherType, Jf: 1}, {Code: give, K: headerBytes}, {Code: give}}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 4<<20); err != nil {
		return err
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return err
	}
	at := name.(*unix.SockaddrLinklayer)
	return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: everyType, Ifindex: at.Ifindex})
}

// everyType is ETH_P_ALL in network byte order.
var everyType = binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL})

// run sends each wire's schedule and collects what arrives.
func (w *wires) run(ctx context.Context, of func(*wire) schedule) ([]sample, error) {
	samples := make([]sample, len(w.all))
	any := false
	for i, x := range w.all {
		p := of(x)
		samples[i] = sample{bytes: p.bytes, burst: p.burst, sent: make([]int64, 0, p.count)}
		any = any || p.count > 0
	}
	if !any {
		return samples, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	heard := make(chan error, 1)
	done := make(chan struct{})
	arrivals := make([][]arrival, len(w.all))
	go func() { heard <- w.hear(done, arrivals) }()
	err := w.send(ctx, of, samples)
	if err == nil {
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(w.wait + w.drain(of)):
		}
	}
	close(done)
	if heardErr := <-heard; err == nil {
		err = heardErr
	}
	for i := range samples {
		samples[i].arrivals = arrivals[i]
	}
	return samples, err
}

// drain is how long the slowest link needs for what is sent over it at once.
func (w *wires) drain(of func(*wire) schedule) time.Duration {
	if p := of(w.all[0]); p.interval > 0 {
		return 0
	}
	return rateSpread
}

// send gives the frames to the links, each at its time, one way's after the other.
func (w *wires) send(ctx context.Context, of func(*wire) schedule, samples []sample) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// A thread of Go's sleeps 50 us longer than asked otherwise.
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err == nil {
		defer func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) }() // 0: the thread's own
	}
	frame := make([]byte, 65536)
	begin := now()
	for left := true; left; {
		left = false
		next := int64(0)
		for i, x := range w.all {
			p, s := of(x), &samples[i]
			for len(s.sent) < p.count {
				due := begin + int64(len(s.sent))*int64(p.interval) + int64(i)*int64(p.interval)/int64(len(w.all))
				if now() < due {
					left = true
					if next == 0 || due < next {
						next = due
					}
					break
				}
				if err := x.write(frame[:p.bytes], len(s.sent), s); err != nil {
					return err
				}
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if left {
			rest := unix.NsecToTimespec(max(next-now(), 0))
			_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &rest, nil)
		}
	}
	return nil
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

// hear reads what arrives until done, and what is there then.
func (w *wires) hear(done <-chan struct{}, arrivals [][]arrival) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	frame, control := make([]byte, headerBytes), make([]byte, 64)
	events := make([]unix.EpollEvent, 64)
	for {
		last := false
		select {
		case <-done:
			last = true
		default:
		}
		n, err := unix.EpollWait(w.epoll, events, 10)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for probes: %w", err)
		}
		for _, e := range events[:max(n, 0)] {
			for range 256 {
				size, c, _, _, err := unix.Recvmsg(w.all[e.Fd].out, frame, control, unix.MSG_TRUNC)
				if err != nil {
					break // nothing more
				}
				i := int(binary.BigEndian.Uint16(frame[18:]))
				if size < headerBytes || binary.BigEndian.Uint32(frame[14:]) != magic || i != int(e.Fd) {
					continue
				}
				if at, ok := stampOf(control[:c]); ok {
					arrivals[i] = append(arrivals[i], arrival{int(binary.BigEndian.Uint32(frame[headerBytes-4:])), at})
				}
			}
		}
		if last && n == 0 {
			return nil
		}
	}
}

// stampOf reads the kernel's time of a packet.
func stampOf(control []byte) (int64, bool) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0, false
	}
	for _, m := range messages {
		if m.Header.Level != unix.SOL_SOCKET || m.Header.Type != unix.SCM_TIMESTAMPNS {
			continue
		}
		switch b := m.Data; { // two words of the machine
		case len(b) >= 16:
			return int64(binary.NativeEndian.Uint64(b))*1e9 + int64(binary.NativeEndian.Uint64(b[8:])), true
		case len(b) >= 8:
			return int64(int32(binary.NativeEndian.Uint32(b)))*1e9 + int64(binary.NativeEndian.Uint32(b[4:])), true
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

func (w *wires) close() (err error) {
	for _, x := range w.all {
		for _, fd := range []int{x.in, x.out} {
			if fd >= 0 {
				err = errors.Join(err, unix.Close(fd))
			}
		}
	}
	if w.epoll != 0 {
		err = errors.Join(err, unix.Close(w.epoll))
	}
	return err
}
