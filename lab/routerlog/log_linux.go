package routerlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Log writes a line for each packet of a group. Its methods may be called
// concurrently, Close once.
type Log struct {
	socket, stop int // descriptors; stop becomes readable to end the reading
	names        map[uint32]string
	done         chan struct{}

	lines, missed atomic.Uint64
	kept          tail
}

// roomBytes is how much the kernel may hold for the log until it is read.
const roomBytes = 8 << 20

// messageBytes is what the kernel sets aside for a packet: it takes more where one needs it.
const messageBytes = 256

// Open begins to log what is sent to a group in the calling thread's network
// namespace. names are its interfaces, by index. Errors: unix.EBUSY if somebody
// else logs that group, and those of the kernel.
func Open(group uint16, names map[uint32]string) (*Log, error) {
	l := &Log{socket: -1, stop: -1, names: names, done: make(chan struct{})}
	if err := l.open(group); err != nil {
		return nil, errors.Join(fmt.Errorf("log packets: %w", err), l.free())
	}
	l.begin()
	return l, nil
}

func (l *Log) begin() {
	go func() {
		defer close(l.done)
		runtime.LockOSThread() // a daemon has a processor's time of its own
		defer runtime.UnlockOSThread()
		l.read()
	}()
}

func (l *Log) open(group uint16) (err error) {
	if l.stop, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		return err
	}
	if l.socket, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER); err != nil {
		return err
	}
	if err := unix.Bind(l.socket, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	if unix.SetsockoptInt(l.socket, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, roomBytes) != nil {
		// In a user namespace only as much as is allowed to all.
		_ = unix.SetsockoptInt(l.socket, unix.SOL_SOCKET, unix.SO_RCVBUF, roomBytes)
	}
	be := binary.BigEndian
	for _, a := range [][]attribute{
		{{configCommand, []byte{commandBind}}},
		{{configMode, append(be.AppendUint32(nil, copyBytes), modePacket, 0)}, {configBuffer, be.AppendUint32(nil, messageBytes)},
			{configAtOnce, be.AppendUint32(nil, 1)}, {configFlags, be.AppendUint16(nil, flagNumber)}},
	} {
		if err := l.configure(request(group, a...)); err != nil {
			return err
		}
	}
	return unix.SetNonblock(l.socket, true)
}

// configure sends a request and waits for its answer. No rule logs yet, so
// nothing else comes.
func (l *Log) configure(b []byte) error {
	if err := unix.Sendto(l.socket, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(l.socket, answer, 0)
	if err != nil {
		return err
	}
	if n < netlinkHeader+4 || binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return errors.New("the kernel's answer makes no sense")
	}
	if errno := int32(binary.NativeEndian.Uint32(answer[netlinkHeader:])); errno != 0 {
		return unix.Errno(-errno)
	}
	return nil
}

// read writes lines until it is told to stop.
func (l *Log) read() {
	buf, line := make([]byte, 64<<10), make([]byte, 0, 512)
	next := uint32(0) // number of the packet that comes next, if none is missed
	for {
		n, err := unix.Read(l.socket, buf)
		switch {
		case err == unix.EAGAIN:
			fds := []unix.PollFd{{Fd: int32(l.socket), Events: unix.POLLIN}, {Fd: int32(l.stop), Events: unix.POLLIN}}
			if _, err := unix.Poll(fds, -1); err == nil && fds[1].Revents != 0 {
				return
			}
			continue
		case err != nil:
			continue // ENOBUFS: packets were missed, which their numbers tell
		}
		at := time.Now()
		eachPacket(buf[:n], l.names, func(p logged) {
			if p.numbered {
				l.missed.Add(uint64(p.number - next))
				next = p.number + 1
			}
			line = appendLine(line[:0], at, p)
			l.kept.add(line)
			l.lines.Add(1)
		})
	}
}

// Counts are what was done by now.
func (l *Log) Counts() Counts { return Counts{Lines: l.lines.Load(), Missed: l.missed.Load()} }

// WriteTo writes the lines that were kept, the oldest first.
func (l *Log) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(l.kept.text())
	return int64(n), err
}

// Close ends the log. What it was not sent or did not read by then is not written.
func (l *Log) Close() error {
	if _, err := unix.Write(l.stop, binary.NativeEndian.AppendUint64(nil, 1)); err != nil {
		return fmt.Errorf("end the log: %w", err)
	}
	<-l.done
	return l.free()
}

func (l *Log) free() (err error) {
	for _, fd := range []int{l.socket, l.stop} {
		if fd >= 0 {
			err = errors.Join(err, unix.Close(fd))
		}
	}
	return err
}
