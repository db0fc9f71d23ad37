package routerlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Log writes a line for each packet of a group. Its methods may be called
// concurrently, Close once.
type Log struct {
	conn  *netlink.Conn
	names map[uint32]string
	done  chan struct{}

	lines, missed atomic.Uint64

	// The reader's until done:
	next uint32 // number of the packet that comes next, if none is missed
	line []byte
	kept []byte // lines
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
	wrong := func(err error) error { return fmt.Errorf("log packets: %w", err) }
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return nil, wrong(err)
	}
	_ = conn.SetReadBuffer(roomBytes) // in a user namespace only as much as is allowed to all
	attributes := netlink.NewAttributeEncoder()
	attributes.ByteOrder = binary.BigEndian
	attributes.Bytes(configCommand, []byte{commandBind})
	attributes.Bytes(configMode, append(binary.BigEndian.AppendUint32(nil, copyBytes), modePacket, 0))
	attributes.Uint32(configBuffer, messageBytes)
	attributes.Uint32(configAtOnce, 1)
	attributes.Uint16(configFlags, flagNumber)
	request, err := attributes.Encode()
	if err == nil {
		_, err = conn.Execute(netlink.Message{
			Header: netlink.Header{Type: messageConfig, Flags: netlink.Request | netlink.Acknowledge},
			Data:   append([]byte{unix.AF_UNSPEC, 0, byte(group >> 8), byte(group)}, request...),
		})
	}
	if err != nil {
		return nil, errors.Join(wrong(err), conn.Close())
	}
	l := &Log{conn: conn, names: names, done: make(chan struct{})}
	go l.read()
	return l, nil
}

// read writes lines until the socket is closed.
func (l *Log) read() {
	defer close(l.done)
	for {
		messages, err := l.conn.Receive()
		if errors.Is(err, unix.ENOBUFS) {
			continue // packets were missed, which their numbers tell
		}
		if err != nil {
			return
		}
		at := time.Now()
		for _, m := range messages {
			if m.Header.Type == messagePacket && len(m.Data) >= headerBytes {
				l.write(parsePacket(m.Data[headerBytes:], l.names), at)
			}
		}
	}
}

// write adds the line of a packet.
func (l *Log) write(p logged, at time.Time) {
	if p.numbered {
		l.missed.Add(uint64(p.number - l.next))
		l.next = p.number + 1
	}
	l.line = p.appendLine(l.line[:0], at)
	if len(l.kept)+len(l.line) > keptBytes {
		l.kept = l.kept[:0]
	}
	l.kept = append(l.kept, l.line...)
	l.lines.Add(1)
}

// Counts are what was done by now.
func (l *Log) Counts() Counts { return Counts{Lines: l.lines.Load(), Missed: l.missed.Load()} }

// Kept are the lines that were kept, of a log that is closed.
func (l *Log) Kept() []byte { return l.kept }

// Close ends the log. What it was not sent or did not read by then is not written.
func (l *Log) Close() error {
	err := l.conn.Close()
	<-l.done
	return err
}
