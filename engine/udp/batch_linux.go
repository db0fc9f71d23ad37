package udp

import (
	"encoding/binary"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mmsghdr is struct mmsghdr of sendmmsg(2); Go pads it as C does.
type mmsghdr struct {
	unix.Msghdr
	n uint32
}

// batchOut sends through sendmmsg.
type batchOut struct {
	fd     uintptr
	bytes  [][]byte
	vector []unix.Iovec
	msgs   []mmsghdr
}

func newBatchOut(fd, payloadBytes, batch int) *batchOut {
	o := &batchOut{
		fd: uintptr(fd), bytes: layOut(payloadBytes, batch),
		vector: make([]unix.Iovec, batch), msgs: make([]mmsghdr, batch),
	}
	for i := range o.msgs {
		o.vector[i].Base = &o.bytes[i][0]
		o.vector[i].SetLen(payloadBytes)
		o.msgs[i].Iov = &o.vector[i]
		o.msgs[i].SetIovlen(1)
	}
	return o
}

func (o *batchOut) packets() [][]byte { return o.bytes }

func (o *batchOut) send(from, to int) (int, error) {
	n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, o.fd, uintptr(unsafe.Pointer(&o.msgs[from])), uintptr(to-from), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// Receiving takes naps when packets come faster than one every napNanos/napLeast:
// while nobody waits on the socket, the kernel need not wake a thread for each
// packet, which would cost the sending side of a lab more than the packet
// itself. The buffer must hold what comes meanwhile; arrival times are the kernel's.
const (
	napNanos    = 200_000
	napLeast    = 4
	batchIn     = 128
	controlRoom = 128
)

// batchInbox receives through recvmmsg. Only the head of each datagram is
// copied; with MSG_TRUNC the kernel still tells its length.
type batchInbox struct {
	fd      uintptr
	clock   clock
	waiter  *waiter
	poll    []unix.PollFd
	heads   []byte
	control []byte
	vector  []unix.Iovec
	msgs    []mmsghdr
	out     []datagram
	nap     bool
	// What is read next came after notBefore: the socket was found empty then.
	notBefore, lastTake int64
}

func newBatchInbox(fd int, batch int, b *bell, c clock) *batchInbox {
	in := &batchInbox{
		fd: uintptr(fd), clock: c,
		poll:  []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}},
		heads: make([]byte, batch*headBytes), control: make([]byte, batch*controlRoom),
		vector: make([]unix.Iovec, batch), msgs: make([]mmsghdr, batch), out: make([]datagram, batch),
	}
	if b != nil {
		in.waiter = newWaiter(b, c)
		in.poll = append(in.poll, in.waiter.poll...)
	}
	for i := range in.msgs {
		in.vector[i].Base = &in.heads[i*headBytes]
		in.vector[i].SetLen(headBytes)
		in.msgs[i].Iov = &in.vector[i]
		in.msgs[i].SetIovlen(1)
		in.msgs[i].Control = &in.control[i*controlRoom]
		in.msgs[i].SetControllen(controlRoom)
	}
	return in
}

func (in *batchInbox) receive(wait time.Duration) ([]datagram, error) {
	if in.nap {
		in.waiter.nap(napNanos)
	}
	n, err := in.take()
	if n == 0 && err == nil && wait > 0 {
		t := unix.NsecToTimespec(int64(wait))
		if ready, _ := unix.Ppoll(in.poll, &t, nil); ready > 0 {
			n, err = in.take()
		}
	}
	in.nap = in.waiter != nil && n >= napLeast && n < len(in.msgs)
	return in.out[:n], err
}

// take reads what is there.
func (in *batchInbox) take() (int, error) {
	r, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, in.fd, uintptr(unsafe.Pointer(&in.msgs[0])), uintptr(len(in.msgs)),
		unix.MSG_DONTWAIT|unix.MSG_TRUNC, 0, 0)
	switch errno {
	case 0:
	case unix.EAGAIN, unix.EINTR:
		in.found(0, in.clock.now())
		return 0, nil
	default:
		return 0, errno
	}
	n := int(r)
	toMonotonic, now := in.clock.sinceWall()
	notBefore := in.notBefore
	in.found(n, now)
	for i := range n {
		m, d := &in.msgs[i], &in.out[i]
		room := in.control[i*controlRoom:][:m.Controllen]
		d.bytes = int(m.n)
		d.head = in.heads[i*headBytes:][:min(d.bytes, headBytes)]
		wall, dropped := readControl(room)
		d.dropped = dropped
		d.nanos = arrived(wall, toMonotonic, notBefore, now)
		m.SetControllen(controlRoom)
	}
	return n, nil
}

// found notes that the socket held n datagrams at a time.
func (in *batchInbox) found(n int, now int64) {
	if n < len(in.msgs) {
		in.notBefore = in.lastTake // a time surely before the socket was empty
	}
	in.lastTake = now
}

// stampSlack is more than a packet waits between the device, where it gets its
// stamp, and the socket.
const stampSlack = 1_000_000_000

// arrived converts a time stamp of the wall clock to monotonic time. If that
// clock was stepped between arrival and reading, the result lies outside of
// what is possible, and the time of reading stands for it.
func arrived(wall, toMonotonic, notBefore, now int64) int64 {
	nanos := wall + toMonotonic
	if wall == 0 || nanos > now || nanos < notBefore-stampSlack {
		return now
	}
	return nanos
}

func (in *batchInbox) drops() (uint32, bool) { return socketDrops(int(in.fd)) }

// Offsets in struct cmsghdr {size_t len; int level; int type}.
const (
	wordBytes = int(unsafe.Sizeof(uintptr(0)))
	levelAt   = wordBytes
	typeAt    = wordBytes + 4
)

// readControl finds the kernel's time stamp (ns of the wall clock, 0 if absent)
// and the drops before the packet (SO_RXQ_OVFL; absent while 0).
func readControl(b []byte) (wall int64, dropped uint32) {
	for len(b) >= unix.SizeofCmsghdr {
		size := int(binary.NativeEndian.Uint32(b))
		if wordBytes == 8 {
			size = int(binary.NativeEndian.Uint64(b))
		}
		if size < unix.SizeofCmsghdr || size > len(b) {
			return wall, dropped
		}
		data := b[unix.SizeofCmsghdr:size]
		if binary.NativeEndian.Uint32(b[levelAt:]) == unix.SOL_SOCKET {
			switch t := binary.NativeEndian.Uint32(b[typeAt:]); {
			case t == unix.SO_RXQ_OVFL && len(data) >= 4:
				dropped = binary.NativeEndian.Uint32(data)
			case (t == unix.SO_TIMESTAMPNS_NEW || t == unix.SO_TIMESTAMPNS) && len(data) >= 16:
				wall = int64(binary.NativeEndian.Uint64(data))*1e9 + int64(binary.NativeEndian.Uint64(data[8:]))
			case t == unix.SO_TIMESTAMPNS && len(data) >= 8:
				wall = int64(int32(binary.NativeEndian.Uint32(data)))*1e9 + int64(binary.NativeEndian.Uint32(data[4:]))
			}
		}
		next := (size + wordBytes - 1) &^ (wordBytes - 1)
		if next > len(b) {
			break
		}
		b = b[next:]
	}
	return wall, dropped
}

// socketDrops reads SK_MEMINFO_DROPS (include/uapi/linux/sock_diag.h).
func socketDrops(fd int) (uint32, bool) {
	const skMeminfoDrops = 8
	var info [9]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	return info[skMeminfoDrops], errno == 0 && size > 4*skMeminfoDrops
}
