package tcp

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"pelt/engine"
	"pelt/engine/tcpinfo"
)

// attempt is one connection of the sender.
type attempt struct {
	fd      int
	state   attemptState
	counts  bool // it is of the measured part
	begun   time.Time
	consent *engine.ConsentDialer
	answer  engine.ConsentMessage
	got     int // bytes of the answer
}

type attemptState int

const (
	connecting attemptState = iota
	asking                  // the hello is on its way
	leaving                 // the answer is here, the peer closes
	gone                    // it has ended, or is kept
)

// expire gives up those that took too long.
func (c *connector) expire(now time.Time) {
	if now.Before(c.look) {
		return
	}
	c.look = now.Add(expireEvery)
	for _, k := range c.calls {
		switch {
		case now.Sub(k.begun) < answerTime:
		case k.state == connecting:
			c.fail(k, "ETIMEDOUT", fmt.Sprintf("no answer to a SYN within %v (ETIMEDOUT)", answerTime))
		case k.state == asking:
			c.fail(k, "no answer",
				fmt.Sprintf("a connection was set up, and the receiver did not answer on it within %v", answerTime))
		default: // it counts, only its end did not come
			c.abort(k)
		}
	}
}

func (c *connector) fail(k *attempt, name, text string) {
	c.abort(k)
	c.o.fail(name, text, false, k.counts)
}

// abort ends an attempt. Its connection is reset, unless both sides have closed it.
func (c *connector) abort(k *attempt) {
	if k.state == leaving {
		c.o.opened.Add(-1)
	}
	c.forget(k)
	reset(k.fd)
}

func reset(fd int) {
	// without it the end takes longer
	_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	unix.Close(fd)
}

func (c *connector) dropAll() {
	for _, k := range c.calls {
		if k.state == connecting || k.state == asking {
			c.o.mu.Lock()
			if k.counts {
				c.o.failed["under way"]++
			}
			c.o.mu.Unlock()
		}
		c.abort(k)
	}
	for fd := range c.kept {
		reset(int(fd))
	}
	c.o.e.held.Add(-int64(len(c.kept)))
	c.kept = nil
}

// handle goes on with the connection that something happened to.
func (c *connector) handle(ev unix.EpollEvent, now time.Time) {
	k := c.calls[ev.Fd]
	if k == nil {
		if _, ok := c.kept[ev.Fd]; ok && ev.Events&(unix.EPOLLRDHUP|unix.EPOLLERR|unix.EPOLLHUP) != 0 {
			delete(c.kept, ev.Fd)
			reset(int(ev.Fd))
			c.o.broken.Add(1)
			c.o.opened.Add(-1)
			c.o.e.held.Add(-1)
		}
		return
	}
	if k.state == connecting && !c.ask(k, now) {
		return
	}
	for k.state == asking || k.state == leaving {
		var rest [1]byte
		into := k.answer[k.got:]
		if k.state == leaving {
			into = rest[:]
		}
		n, err := unix.Read(k.fd, into)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return
		case errors.Is(err, unix.EINTR):
		case k.state == leaving: // its end, or a reset in its place
			c.forget(k)
			c.o.opened.Add(-1)
			unix.Close(k.fd)
		case err != nil:
			name, text := streamError(err)
			c.fail(k, name, text)
		case n == 0:
			c.fail(k, "closed", "a connection was closed before the receiver's answer")
		default:
			if k.got += n; k.got == len(k.answer) {
				c.answered(k, now)
			}
		}
	}
}

// ask sends the first message of the consent once the handshake is over; false means not yet, or never.
func (c *connector) ask(k *attempt, now time.Time) bool {
	errno, err := unix.GetsockoptInt(k.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && errno != 0 {
		err = unix.Errno(errno)
	}
	if err != nil {
		name, text := streamError(err)
		c.fail(k, name, fmt.Sprintf("%s (%s)", text, name))
		return false
	}
	if k.counts {
		c.o.setUp.Record(c.s.number, int64(setUpTime(k.fd, now.Sub(k.begun))), 1)
	}
	k.consent = engine.NewConsentDialer(c.o.e.order.StreamKey(c.s.number))
	hello := k.consent.Message()
	if n, err := unix.Write(k.fd, hello[:]); err != nil || n != len(hello) {
		name, text := "short write", "a message did not fit a new connection"
		if err != nil {
			name, text = streamError(err)
		}
		c.fail(k, name, text)
		return false
	}
	k.state = asking
	return true
}

// setUpTime is how long a handshake took: the round trip of the SYN by the kernel, which does not wait for this
// program, or the time here if the SYN had to be repeated.
func setUpTime(fd int, here time.Duration) time.Duration {
	var b [tcpinfo.Bytes]byte
	i, _ := tcpinfo.Parse(b[:option(fd, unix.TCP_INFO, b[:])], nil)
	if rtt := time.Duration(i.Figure[tcpinfo.RTT]) * time.Microsecond; rtt > 0 && i.Figure[tcpinfo.Retransmits] == 0 {
		return rtt
	}
	return here
}

// answered judges the receiver's answer.
func (c *connector) answered(k *attempt, now time.Time) {
	if ours, _ := k.consent.Hear(k.answer[:]); !ours {
		c.fail(k, "EBADMSG", "who answers there is not the peer of this flow")
		return
	}
	if step, ok := c.o.at(now); ok && k.counts {
		c.o.established.Add(1)
		c.o.perStep[step].Add(1)
	}
	c.o.countOpen()
	k.state = leaving
	if c.o.keep {
		c.o.e.held.Add(1) // before its place under way is given up
		c.forget(k)
		c.kept[int32(k.fd)] = struct{}{}
	}
}
