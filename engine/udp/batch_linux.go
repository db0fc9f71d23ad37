package udp

import (
	"encoding/binary"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"pelt/engine"
	"pelt/internal/icmp"
)

// mmsghdr is struct mmsghdr of sendmmsg(2); Go pads it as C does.
type mmsghdr struct {
	unix.Msghdr
	n uint32
}

// messages is room for what one call of recvmmsg brings.
type messages struct {
	room    int    // B of each message
	heads   []byte // of the messages
	control []byte
	vector  []unix.Iovec
	msgs    []mmsghdr
	used    int // of msgs, by the last call
}

const controlRoom = 128 // B of each message's control messages

func newMessages(n, room int) messages {
	m := messages{room, make([]byte, n*room), make([]byte, n*controlRoom), make([]unix.Iovec, n), make([]mmsghdr, n), n}
	for i := range m.msgs {
		m.vector[i].Base = &m.heads[i*room]
		m.vector[i].SetLen(room)
		m.msgs[i].Iov = &m.vector[i]
		m.msgs[i].SetIovlen(1)
		m.msgs[i].Control = &m.control[i*controlRoom]
	}
	return m
}

// read returns how many messages came, without waiting.
func (m *messages) read(fd uintptr, flags uintptr) (int, unix.Errno) {
	for i := range m.msgs[:m.used] {
		m.msgs[i].SetControllen(controlRoom)
	}
	m.used = 0
	n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&m.msgs[0])), uintptr(len(m.msgs)),
		unix.MSG_DONTWAIT|flags, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	m.used = int(n)
	return m.used, 0
}

// controls are the control messages of a message.
func (m *messages) controls(i int) []byte { return m.control[i*controlRoom:][:m.msgs[i].Controllen] }

// batchOut sends through sendmmsg, one message a buffer.
type batchOut struct {
	*errorQueue
	bytes    [][]byte
	segments int // packets of a full buffer
	payload  int // bytes of a packet
	vector   []unix.Iovec
	control  []byte
	msgs     []mmsghdr
}

// newBatchOut makes room for a batch, a multiple of segments.
func newBatchOut(k *linuxSocket, payloadBytes, batch, segments int) *batchOut {
	buffers := batch / segments
	o := &batchOut{
		errorQueue: newErrorQueue(k.fd, k.six), bytes: layOut(payloadBytes, batch),
		segments: segments, payload: payloadBytes,
		vector: make([]unix.Iovec, buffers), msgs: make([]mmsghdr, buffers),
	}
	if segments > 1 { // goes with each send: as a socket option it would cut up consent messages, too
		o.control = controlMessage(unix.SOL_UDP, unix.UDP_SEGMENT,
			binary.NativeEndian.AppendUint16(nil, uint16(payloadBytes)))
	}
	for i := range o.msgs {
		o.vector[i].Base = &o.bytes[i*segments][0] // the packets lie one behind the other
		o.vector[i].SetLen(payloadBytes * segments)
		o.msgs[i].Iov = &o.vector[i]
		o.msgs[i].SetIovlen(1)
		if segments > 1 {
			o.msgs[i].Control = &o.control[0]
			o.msgs[i].SetControllen(len(o.control))
		}
	}
	return o
}

func (o *batchOut) packets() [][]byte { return o.bytes }

func (o *batchOut) icmpErrors(tell func(e icmp.Error, of []byte)) { o.drain(tell) }

func (o *batchOut) send(from, to int) (int, error) {
	if o.segments == 1 && to-from == 1 {
		// A tenth faster than a batch of one.
		_, _, errno := unix.Syscall6(unix.SYS_SENDTO, o.fd, uintptr(unsafe.Pointer(&o.bytes[from][0])),
			uintptr(o.payload), unix.MSG_DONTWAIT, 0, 0)
		if errno != 0 {
			return 0, errno
		}
		return 1, nil
	}
	first, last := from/o.segments, (to-1)/o.segments
	if short := to - last*o.segments; short < o.segments {
		o.vector[last].SetLen(o.payload * short)
		defer o.vector[last].SetLen(o.payload * o.segments)
	}
	n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, o.fd, uintptr(unsafe.Pointer(&o.msgs[first])),
		uintptr(last-first+1), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return min(int(n)*o.segments, to-from), nil
}

// sendWaits says whether a call to send may wait for room.
const sendWaits = false

// roomWait bounds how long a sender waits for room before it looks at the clock.
const roomWait = 20 * time.Millisecond

func (o *batchOut) room() {
	t := unix.NsecToTimespec(int64(roomWait))
	// an error only shortens the wait
	unix.Ppoll([]unix.PollFd{{Fd: int32(o.fd), Events: unix.POLLOUT}}, &t, nil)
}

// controlMessage is one control message of a datagram.
func controlMessage(level, kind int32, data []byte) []byte {
	b := make([]byte, unix.CmsgSpace(len(data)))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	h.Level, h.Type = level, kind
	h.SetLen(unix.CmsgLen(len(data)))
	copy(b[unix.CmsgLen(0):], data)
	return b
}

// Receiving takes naps when packets come faster than one every napNanos/napLeast:
// while nobody waits on the socket, the kernel need not wake a thread for each
// packet, which would cost the sending side of a lab more than the packet
// itself. The buffer must hold what comes meanwhile; arrival times are the kernel's.
const (
	napNanos = 200_000
	napLeast = 4
	batchIn  = 128 // datagrams a call

	// What the kernel joins (UDP_GRO) is one IP packet's worth, of at most so many.
	batchJoined = 32 // buffers a call, less with many streams
	joinedRoom  = 1 << 16
	mostJoined  = 64      // UDP_GRO_CNT_MAX, net/ipv4/udp_offload.c
	allJoined   = 8 << 20 // B for the buffers of all streams of an end, or one each
)

// batchInbox receives through recvmmsg. Only the head of each datagram is
// copied; with MSG_TRUNC the kernel still tells its length. Of joined ones all is.
type batchInbox struct {
	messages
	fd     uintptr
	clock  engine.Clock
	poll   []unix.PollFd
	joined bool
	out    []datagram
	nap    bool
	size   truesize
	// What is read next came after notBefore: the socket was found empty then.
	notBefore, lastTake int64
	emptied             bool // by the last read
}

func newBatchInbox(fd, batch int, joined bool, c engine.Clock) *batchInbox {
	room, most := headBytes, batch
	if joined {
		room, most = joinedRoom, batch*mostJoined
	}
	return &batchInbox{
		messages: newMessages(batch, room), fd: uintptr(fd), clock: c, joined: joined,
		poll: []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, out: make([]datagram, 0, most),
	}
}

func (in *batchInbox) receive(wait time.Duration) ([]datagram, error) {
	if in.nap {
		engine.Nap(napNanos)
	}
	n, err := in.take()
	if n == 0 && err == nil && wait > 0 {
		t := unix.NsecToTimespec(int64(wait))
		if ready, _ := unix.Ppoll(in.poll, &t, nil); ready > 0 {
			n, err = in.take()
		}
	}
	in.nap = n >= napLeast && n < len(in.msgs)
	return in.out, err
}

// take reads the datagrams that the socket holds, without waiting, and returns how many messages they came in.
func (in *batchInbox) take() (int, error) {
	in.out = in.out[:0]
	if len(in.msgs) > 1 && !in.joined && in.size.due(in.lastTake) {
		if m, ok := memoryOf(int(in.fd)); ok {
			in.size.look(in.clock.Now(), m.queued, in.emptied)
		}
	}
	n, errno := in.read(in.fd, unix.MSG_TRUNC)
	switch errno {
	case 0:
	case unix.EAGAIN, unix.EINTR:
		in.found(0, in.clock.Now())
		return 0, nil
	default:
		return 0, errno
	}
	toMonotonic, now := in.clock.SinceWall()
	notBefore := in.notBefore
	in.found(n, now)
	for i := range n {
		c := readControl(in.controls(i))
		d := datagram{bytes: int(in.msgs[i].n), nanos: arrived(c.wall, toMonotonic, notBefore, now), dropped: c.dropped}
		in.out = appendParts(in.out, d, in.heads[i*in.room:][:in.room], c.segment)
	}
	in.size.read(in.out, n < len(in.msgs))
	return n, nil
}

// appendParts takes a message apart into the datagrams of segment bytes that were
// joined; 0 is one of any length. The last may be shorter.
func appendParts(out []datagram, whole datagram, b []byte, segment int) []datagram {
	if segment <= 0 || segment > whole.bytes {
		segment = max(whole.bytes, 1)
	}
	for at := 0; at == 0 || at < whole.bytes; at += segment {
		d := whole
		d.bytes = min(segment, whole.bytes-at)
		d.head = b[min(at, len(b)):min(at+min(d.bytes, headBytes), len(b))]
		out = append(out, d)
	}
	return out
}

// found notes how many datagrams the socket held at a time.
func (in *batchInbox) found(n int, now int64) {
	if in.emptied = n < len(in.msgs); in.emptied {
		in.notBefore = in.lastTake // a time surely before the socket was empty
	}
	in.lastTake = now
}

// stampSlack is more than a packet waits between the device, where it gets its
// stamp, and the socket.
const stampSlack = 1_000_000_000

// arrived converts a wall clock time stamp to monotonic time. If the wall clock was stepped between arrival and
// reading, the result is impossible, and the time of reading is returned in its place.
func arrived(wall, toMonotonic, notBefore, now int64) int64 {
	nanos := wall + toMonotonic
	if wall == 0 || nanos > now || nanos < notBefore-stampSlack {
		return now
	}
	return nanos
}

func (in *batchInbox) truesize() int { return in.size.bytes() }

// received is what the control messages of a datagram say.
type received struct {
	wall    int64  // the kernel's time stamp, ns of the wall clock; 0 if absent
	dropped uint32 // drops before the packet (SO_RXQ_OVFL); absent while 0
	segment int    // bytes of each of several joined datagrams (UDP_GRO); 0 if it is one
}

func readControl(b []byte) (r received) {
	for len(b) >= unix.SizeofCmsghdr {
		h, data, rest, err := unix.ParseOneSocketControlMessage(b)
		if err != nil {
			break
		}
		switch b = rest; {
		case h.Level == unix.SOL_UDP && h.Type == unix.UDP_GRO && len(data) >= 4:
			r.segment = int(int32(binary.NativeEndian.Uint32(data)))
		case h.Level != unix.SOL_SOCKET:
		case h.Type == unix.SO_RXQ_OVFL && len(data) >= 4:
			r.dropped = binary.NativeEndian.Uint32(data)
		case (h.Type == unix.SO_TIMESTAMPNS_NEW || h.Type == unix.SO_TIMESTAMPNS) && len(data) >= 16:
			r.wall = int64(binary.NativeEndian.Uint64(data))*1e9 + int64(binary.NativeEndian.Uint64(data[8:]))
		case h.Type == unix.SO_TIMESTAMPNS && len(data) >= 8:
			r.wall = int64(int32(binary.NativeEndian.Uint32(data)))*1e9 + int64(binary.NativeEndian.Uint32(data[4:]))
		}
	}
	return r
}

// memoryOf reads SO_MEMINFO; the offsets are those of include/uapi/linux/sock_diag.h.
func memoryOf(fd int) (socketMemory, bool) {
	const skMeminfoRmemAlloc, skMeminfoDrops = 0, 8
	var info [9]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	return socketMemory{queued: info[skMeminfoRmemAlloc], dropped: info[skMeminfoDrops]}, errno == 0 &&
		size > 4*skMeminfoDrops
}
