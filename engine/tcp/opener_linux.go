package tcp

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"pelt/engine"
	"pelt/internal/bind"
	"pelt/model"
)

const opensConnections = true

// spareFiles are left to the rest of this process.
const spareFiles = 256

// mostOpen is how many connections the ends of an engine, which hold some, may keep open: half of
// the descriptors that are left, because in a lab the other end's are its own, too. Go has raised
// the limit to the hard one when the program started.
func mostOpen(held int64) (n int64, why model.Reason) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		why.Text = err.Error()
		return 0, why
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		why.Text = err.Error()
		return 0, why
	}
	n = max(0, (int64(min(limit.Cur, 1<<40))-int64(len(open))+held-spareFiles)/2)
	if n >= model.MaxConnections {
		n = model.MaxConnections
		why.Numbers = map[string]float64{"most": float64(n)}
		return n, why
	}
	why.Numbers = map[string]float64{"most": float64(n), "files": float64(limit.Cur)}
	return n, why
}

// connector opens one stream's connections, on one thread of the sender's host.
type connector struct {
	o      *opener
	s      *stream
	poll   int
	way    unix.Sockaddr
	from   unix.Sockaddr // nil: the system chooses
	family int
	calls  map[int32]*attempt // under way, by descriptor
	kept   map[int32]struct{}
	look   time.Time // when to look for those that took too long
	part   int       // of a flow with a rate: the present one of the stream's phases
	full   time.Time // since when there has been no room for another attempt; zero: there is some
}

// work opens the connections of one stream until the order is over and none is
// under way any more.
func (o *opener) work(s *stream) (err error) {
	c := &connector{o: o, s: s, calls: map[int32]*attempt{}, kept: map[int32]struct{}{}}
	defer func() {
		late, held := s.phases[1].Pacer.GivenUp()
		s.late.Add(late)
		s.heldBack.Add(held)
	}()
	if c.way, c.family, err = engine.Sockaddr(o.e.peer(s.number)); err != nil {
		return err
	}
	if from := o.e.order.Flow.Source(s.number); from.IsValid() { // of the peer's family, see engine.Order.Check
		if c.from, _, err = engine.Sockaddr(netip.AddrPortFrom(from, 0)); err != nil {
			return err
		}
	}
	if c.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	defer unix.Close(c.poll)
	defer c.dropAll()
	if o.keep {
		if c.part = 1; !o.e.wait(o.begun.Add(o.e.order.Timing.Warmup())) {
			return nil
		}
	}
	share := max(1, maxUnderWay/len(o.e.streams))
	events := make([]unix.EpollEvent, 256)
	var ending time.Time // since when nothing is begun any more
	for {
		wait, over := 10, o.over()
		now := time.Now()
		if over && ending.IsZero() {
			ending = now
		}
		if over && (len(c.calls) == 0 || o.e.stopped.Err() != nil || now.Sub(ending) > answerTime+answerTime/4) {
			return nil
		}
		if !over {
			wait = c.start(now, share)
		}
		n, err := unix.EpollWait(c.poll, events, wait)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("epoll: %w", err)
		}
		now = time.Now()
		for _, ev := range events[:max(n, 0)] {
			c.handle(ev, now)
		}
		if n < len(events) { // else answers wait that came in time
			c.expire(now)
		}
	}
}

// start begins what is due and returns how many milliseconds nothing will be.
func (c *connector) start(now time.Time, share int) (wait int) {
	const turn = 32 // answers are not to wait for all of them
	for range turn {
		if len(c.calls) >= share {
			if c.full.IsZero() {
				c.full = now
			}
			return 10
		}
		if !c.full.IsZero() {
			c.s.phases[c.part].Pacer.Blocked(now.Sub(c.full).Nanoseconds())
			c.full = time.Time{}
		}
		if !c.o.e.paced() {
			_, counts := c.o.at(now)
			if !c.begin(now, counts) {
				return 1 // a port comes free when an attempt that is under way has ended
			}
			continue
		}
		p, elapsed := &c.s.phases[c.part].Pacer, now.Sub(c.o.begun)-time.Duration(c.part)*c.o.e.order.Timing.Warmup()
		at, ok := p.Next()
		if !ok && c.part == 0 {
			c.part = 1
			continue
		}
		if !ok {
			return 10
		}
		if due := time.Duration(at); due > elapsed {
			return int(min((due-elapsed)/time.Millisecond, 10))
		}
		n, _ := p.Take(int64(elapsed))
		for range n {
			// By when it is due: one of the warm-up that is late is of the warm-up.
			if !c.begin(now, c.part == 1) {
				return 1
			}
		}
	}
	return 0
}

// begin begins one attempt; false means that this host did not let it. counts: it belongs to the measured part.
func (c *connector) begin(now time.Time, counts bool) bool {
	// The place is taken before the look, so that all streams together stay within it.
	others := c.o.underWay.Add(1) - 1
	if c.o.keep && c.o.e.held.Add(1) > c.o.most {
		c.o.endAttempt()
		if others == 0 {
			c.o.fail("", model.TurnedAway, true, false)
		}
		return false
	}
	if counts {
		step, _ := c.o.at(now)
		c.o.attempted[c.s.number].Add(1)
		c.o.sentStep[step].Add(1)
	}
	fd, err := c.dial()
	if err != nil {
		return c.refuse(err, counts)
	}
	k := &attempt{fd: fd, counts: counts, begun: now}
	if err := unix.EpollCtl(c.poll, unix.EPOLL_CTL_ADD, fd,
		&unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET,
			Fd: int32(fd)}); err != nil {
		unix.Close(fd)
		return c.refuse(err, counts)
	}
	c.calls[int32(fd)] = k
	return true
}

// refuse counts an attempt that this host did not make. It returns false, for begin.
func (c *connector) refuse(err error, counts bool) bool {
	c.o.endAttempt()
	if counts {
		c.o.refused.Add(1)
	}
	name, text := streamError(err)
	if errors.Is(err, unix.EADDRNOTAVAIL) {
		text = "it has no free local port to that peer; more source addresses have more"
	}
	c.o.fail(name, fmt.Sprintf("this host: %s (%s)", text, name), true, counts)
	return false
}

// forget takes an attempt off the list of those under way.
func (c *connector) forget(k *attempt) {
	k.state = gone
	delete(c.calls, int32(k.fd))
	c.o.endAttempt()
}

// dial sends a SYN.
func (c *connector) dial() (fd int, err error) {
	fd, err = unix.Socket(c.family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return -1, err
	}
	err = errors.Join(set(fd, c.o.e.order, 0), bind.FD(fd, c.o.e.device))
	if err == nil && c.from != nil {
		// The port is chosen once the peer is known, so that each peer has them all.
		if err = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1); err == nil {
			err = unix.Bind(fd, c.from)
		}
	}
	if err == nil {
		err = unix.Connect(fd, c.way)
	}
	if err != nil && !errors.Is(err, unix.EINPROGRESS) {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
