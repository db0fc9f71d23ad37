package udp

import (
	"golang.org/x/sys/unix"

	"pelt/engine"
	"pelt/internal/icmp"
)

// batchICMP is how many messages one call takes from the error queue.
const batchICMP = 16

// errorQueue reads what IP_RECVERR gathers. A queue that is not read fills up
// the receive buffer, and leaves the error of its newest message to be
// returned for a packet to come.
type errorQueue struct {
	messages
	fd uintptr
}

// newErrorQueue makes the kernel tell what becomes of this socket's packets:
// ICMP errors in its error queue, and a packet that a queue of this host has no
// room for as ENOBUFS of its send (net/ipv4/ip_output.c ip_send_skb).
func newErrorQueue(fd int, six bool) *errorQueue {
	icmp.Gather(fd, six, true)
	return &errorQueue{newMessages(batchICMP, engine.HeaderBytes), uintptr(fd)}
}

// drain tells each ICMP error in the queue, with as much of the packet's payload as there is room for.
func (q *errorQueue) drain(tell func(e icmp.Error, of []byte)) {
	for range 64 { // more come as long as packets are sent
		n, _ := q.read(q.fd, unix.MSG_ERRQUEUE)
		for i := range n {
			if e, ok := icmp.Read(q.controls(i)); ok {
				tell(e, q.heads[i*q.room:][:min(int(q.msgs[i].n), q.room)])
			}
		}
		if n < batchICMP {
			return
		}
	}
}
