package routerlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Log writes a line for each packet of a group. Its methods may be called
// concurrently, Close once.
type Log struct {
	socket *os.File
	names  map[uint32]string
	done   chan struct{}

	lines, missed atomic.Uint64
	kept          []byte // lines, the reader's until done
}

// Requests to the kernel, include/uapi/linux/netfilter/nfnetlink_log.h.
const (
	messageConfig = 4<<8 | 1 // NFNL_SUBSYS_ULOG, NFULNL_MSG_CONFIG
	configCommand = 1
	configMode    = 2
	configBuffer  = 3
	configAtOnce  = 5
	configFlags   = 6
	commandBind   = 1
	modePacket    = 2
	flagNumber    = 1
)

const (
	copyBytes    = 96       // of a packet: the headers that a line tells of
	roomBytes    = 8 << 20  // the kernel may hold for the log until it is read
	messageBytes = 256      // the kernel sets aside for a packet: it takes more where one needs it
	keptBytes    = 64 << 10 // of lines, as OpenWrt's logd keeps by default
)

// Open begins to log what is sent to a group in the calling thread's network
// namespace. names are its interfaces, by index. Errors: unix.EBUSY if somebody
// else logs that group, and those of the kernel.
func Open(group uint16, names map[uint32]string) (*Log, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("log packets: %w", err)
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, roomBytes) != nil {
		// In a user namespace only as much as is allowed to all.
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, roomBytes)
	}
	socket := os.NewFile(uintptr(fd), "nfnetlink_log")
	be := binary.BigEndian
	for _, a := range [][]*nl.RtAttr{
		{nl.NewRtAttr(configCommand, []byte{commandBind})},
		{nl.NewRtAttr(configMode, append(be.AppendUint32(nil, copyBytes), modePacket, 0)), nl.NewRtAttr(configBuffer, be.AppendUint32(nil, messageBytes)),
			nl.NewRtAttr(configAtOnce, be.AppendUint32(nil, 1)), nl.NewRtAttr(configFlags, be.AppendUint16(nil, flagNumber))},
	} {
		if err := configure(socket, group, a); err != nil {
			return nil, errors.Join(fmt.Errorf("log packets: %w", err), socket.Close())
		}
	}
	return begin(socket, names), nil
}

func begin(socket *os.File, names map[uint32]string) *Log {
	l := &Log{socket: socket, names: names, done: make(chan struct{})}
	go l.read()
	return l
}

// configure sends a request and waits for its answer. No rule logs yet, so
// nothing else comes.
func configure(socket *os.File, group uint16, attributes []*nl.RtAttr) error {
	request := nl.NewNetlinkRequest(messageConfig, unix.NLM_F_ACK)
	request.AddData(&nl.Nfgenmsg{ResId: binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, group))})
	for _, a := range attributes {
		request.AddData(a)
	}
	if _, err := socket.Write(request.Serialize()); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, err := socket.Read(answer)
	if err != nil {
		return err
	}
	messages, err := syscall.ParseNetlinkMessage(answer[:n])
	if err != nil || len(messages) != 1 || messages[0].Header.Type != unix.NLMSG_ERROR || len(messages[0].Data) < 4 {
		return errors.New("the kernel's answer makes no sense")
	}
	if errno := int32(binary.NativeEndian.Uint32(messages[0].Data)); errno != 0 {
		return unix.Errno(-errno)
	}
	return nil
}

// read writes lines until the socket is closed.
func (l *Log) read() {
	defer close(l.done)
	buf, line := make([]byte, 64<<10), make([]byte, 0, 512)
	l.kept = make([]byte, 0, keptBytes)
	next := uint32(0) // number of the packet that comes next, if none is missed
	for {
		n, err := l.socket.Read(buf)
		if errors.Is(err, unix.ENOBUFS) {
			continue // packets were missed, which their numbers tell
		}
		if err != nil {
			return
		}
		at := time.Now()
		eachPacket(buf[:n], l.names, func(p logged) {
			if p.numbered {
				l.missed.Add(uint64(p.number - next))
				next = p.number + 1
			}
			line = appendLine(line[:0], at, p)
			if len(l.kept)+len(line) > keptBytes {
				l.kept = l.kept[:0]
			}
			l.kept = append(l.kept, line...)
			l.lines.Add(1)
		})
	}
}

// Counts are what was done by now.
func (l *Log) Counts() Counts { return Counts{Lines: l.lines.Load(), Missed: l.missed.Load()} }

// Kept are the lines that were kept, of a log that is closed.
func (l *Log) Kept() []byte { return l.kept }

// Close ends the log. What it was not sent or did not read by then is not written.
func (l *Log) Close() error {
	err := l.socket.Close()
	<-l.done
	return err
}
