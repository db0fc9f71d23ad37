package udp

import (
	"net/netip"
	"time"

	"pelt/engine"
	"pelt/internal/icmp"
	"pelt/model"
)

// socketMaker makes sockets: on Linux connected ones, elsewhere plain ones.
type socketMaker interface {
	// dial opens the socket of one stream to the listener.
	dial(host engine.Host, s settings, stream int, peer netip.AddrPort) (socket, error)
	// listen answers the dialers of all streams. f takes what comes later from elsewhere.
	listen(host engine.Host, s settings, consents []*engine.ConsentListener, f *follower) (listening, error)
	// take opens a stream's socket at a port that the caller listens on; see Sockets.Take.
	take(host engine.Host, s settings, at, peer netip.AddrPort) (socket, []Stray, error)
}

// listening answers the dialers of one end's streams, also when they ask again because an answer was lost.
type listening interface {
	// ports lists the port of each stream.
	ports() []uint16
	// meeting has what the dialers came by last and what came back for answers; not what the consents count.
	meeting() engine.Meeting
	// open opens a socket for each stream that lives, and leaves nil for the others; its caller closes them. Called
	// once.
	open(living []int) ([]socket, error)
	close() error
}

// socket is one stream's socket. It brings nothing but what its peer sends. Only one goroutine
// reads and one writes at a time, and close must come after both.
type socket interface {
	local() netip.AddrPort
	remote() netip.AddrPort
	// read waits for one datagram and returns it until the next call; its time
	// is 0 if none came.
	read(wait time.Duration) (datagram, error)
	write(b []byte) error
	// follow makes another address the peer, beside who reads and writes.
	follow(to netip.AddrPort) error
	try(b []byte) error // writes unless there is no room for it now; beside who writes
	// watchICMP begins or ends the time in which icmpErrors hands over ICMP errors that came back for earlier packets.
	watchICMP(on bool)
	icmpErrors(tell func(e icmp.Error, of []byte))
	memory() (m socketMemory, ok bool)
	newOutbox(payloadBytes, batch, segments int) outbox
	newInbox() inbox
	pathMTU() int           // 0 unknown
	forbidFragments() error // here and on the way, from now on; an error where the system cannot
	// bufferBytes returns the size of the buffer that the flow fills, as the system accounts it; granted is 0 if
	// unknown.
	bufferBytes() (granted, asked int)
	close() error
}

// outbox sends a batch of equally long datagrams that were laid out once. It
// hands them to the kernel singly, or in buffers of segments; only the last
// buffer of a batch may be shorter.
type outbox interface {
	packets() [][]byte
	// send hands packets from..to-1 to the kernel and returns how many it took;
	// from begins a buffer. With an error, which comes with none taken, the first
	// buffer was refused; a temporary one means that nothing was tried. Fewer
	// taken without an error means that the kernel refused the next buffer, too,
	// and hides why.
	send(from, to int) (int, error)
	// room waits for a while, until the socket may take packets again.
	room()
	// icmpErrors hands over the ICMP errors that came back for earlier packets, and how the payload of each begins.
	icmpErrors(tell func(e icmp.Error, of []byte))
}

// inbox receives batches.
type inbox interface {
	// receive waits for datagrams and returns them until the next call.
	receive(wait time.Duration) ([]datagram, error)
	// truesize is how much of the receive buffer one datagram takes; 0 if that was not seen.
	truesize() int
}

// socketMemory is what the kernel tells about a socket's receive queue.
type socketMemory struct {
	queued  uint32 // bytes that it accounts for what is queued
	dropped uint32 // datagrams that it had no room for, modulo 2^32
}

// datagram is one received datagram.
type datagram struct {
	head    []byte // its first headBytes at most
	bytes   int    // true length
	nanos   int64  // arrival, monotonic clock
	dropped uint32 // socket drops before it, if the kernel says so
}

// whole returns the datagram if all of it was kept.
func (d datagram) whole() []byte {
	if d.bytes > len(d.head) {
		return nil
	}
	return d.head
}

// headBytes is what a receiver looks at: enough for every header and consent message.
const headBytes = 64

// settings are what the sockets of one end need to know.
type settings struct {
	flow   model.Flow // without options that a probe flow has not
	sends  bool       // the end floods, rather than being flooded
	device string     // see Config; "" of an end that listens
	clock  engine.Clock
}

func settingsOf(o engine.Order, c engine.Clock, device string) settings {
	f := o.Flow
	f.Segments, f.Joined = max(f.Segments, 1), f.Joined && o.Role == engine.Receive
	if !o.Traffic() {
		f.DontFragment, f.SendBuffer, f.ReceiveBuffer, f.SourcePort = false, 0, 0, 0
	}
	if o.Listen {
		device = ""
	}
	return settings{flow: f, sends: o.Role == engine.Send, device: device, clock: c}
}

// from is where a stream that calls a peer is bound.
func (s settings) from(stream int, peer netip.Addr) netip.AddrPort {
	a, port := s.flow.Source(stream), uint16(0)
	if !a.IsValid() {
		a = unspecified(peer)
	}
	if s.flow.SourcePort != 0 {
		port = uint16(s.flow.SourcePort + stream)
	}
	return netip.AddrPortFrom(a, port)
}

func unspecified(like netip.Addr) netip.Addr {
	if like.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// Receive buffers asked for. The streams share receiveAll, as the kernel accounts it,
// but none gets less than receiveMin: 16 MiB hold some 20 000 small packets, over 70 ms
// at the quarter million a second that a core can take in.
const (
	receiveAll = 16 << 20
	receiveMin = 512 << 10
)

// receiveBuffer is in bytes as the kernel accounts them.
func (s settings) receiveBuffer() int {
	if s.flow.ReceiveBuffer > 0 {
		return s.flow.ReceiveBuffer
	}
	return max(receiveAll/s.flow.Streams, receiveMin, 8*s.flow.PayloadBytes)
}

// sendBuffer is small enough that the packets of all streams which the kernel
// holds fit the usual queue of 1000 (txqueuelen) beneath: then a full queue
// makes the sender wait instead of losing packets. A small packet counts 768 B
// (its truesize on 64-bit Linux); the buffer is never below four of what is
// sent at once. It is in bytes as the kernel accounts them.
func (s settings) sendBuffer() int {
	if s.flow.SendBuffer > 0 {
		return s.flow.SendBuffer
	}
	return max(min(208<<10, 768*800/s.flow.Streams), 8<<10, 4*s.flow.PayloadBytes*s.flow.Segments)
}

// layOut makes equal datagrams whose bytes beyond the header do not compress.
func layOut(payloadBytes, batch int) [][]byte {
	all := make([]byte, payloadBytes*batch)
	engine.Fill(all[:payloadBytes])
	out := make([][]byte, batch)
	for i := range out {
		out[i] = all[i*payloadBytes : (i+1)*payloadBytes : (i+1)*payloadBytes]
		copy(out[i], all[:payloadBytes])
	}
	return out
}
