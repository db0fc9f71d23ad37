package lab

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"
)

// listenStep is between two looks at who listens.
const listenStep = 5 * time.Millisecond

// listener is a TCP socket that waits for connections.
type listener struct {
	addr  netip.AddrPort
	inode uint64
}

// WaitListening waits until a TCP socket listens in the program's node that did
// not before the program was started, where other nodes reach it, and returns its
// address. within 0 is 10 s. The errors tell what the program said last.
func (p *Program) WaitListening(ctx context.Context, within time.Duration) (netip.AddrPort, error) {
	within = cmp.Or(within, listenTime)
	late := time.After(within)
	var found, hidden netip.AddrPort
	err := p.node.Do(func() error {
		for {
			var err error
			if found, hidden, err = p.newListener(); err != nil || found.IsValid() {
				return err
			}
			select {
			case <-p.done:
				return p.endedEarly()
			case <-ctx.Done():
				return fmt.Errorf("wait for %s to listen in node %s: %w", p.name, p.node.Name(), context.Cause(ctx))
			case <-late:
				return p.mute(within, hidden)
			case <-time.After(listenStep):
			}
		}
	})
	return found, err
}

func (p *Program) endedEarly() error {
	ending, err := p.Wait()
	if err != nil {
		return err
	}
	hint := ""
	if ending.ExitCode == 0 {
		hint = "; a server must stay in the foreground"
	}
	return fmt.Errorf("%s in node %s ended before it listened: %v%s%s", p.name, p.node.Name(), ending, hint, p.said())
}

func (p *Program) mute(within time.Duration, hidden netip.AddrPort) error {
	if hidden.IsValid() {
		return fmt.Errorf("%s in node %s listens at %v, where no other node reaches it%s", p.name, p.node.Name(), hidden, p.said())
	}
	return fmt.Errorf("%s in node %s does not listen on TCP after %v%s", p.name, p.node.Name(), within, p.said())
}

func (p *Program) said() string {
	if list := p.Tail(); len(list) > 0 {
		return "; it said: " + strings.Join(list, " / ")
	}
	return "; it said nothing"
}

// newListener looks for one, from a thread in the node. hidden is one of the
// loopback's.
func (p *Program) newListener() (found, hidden netip.AddrPort, err error) {
	list, err := readListeners()
	for _, l := range list {
		switch {
		case p.heard[l.inode]:
		case l.addr.Addr().IsLoopback():
			hidden = l.addr
		default:
			return l.addr, hidden, err
		}
	}
	return netip.AddrPort{}, hidden, err
}

// listeners are the inodes of the sockets that listen in the node.
func (n *Node) listeners() (map[uint64]bool, error) {
	set := map[uint64]bool{}
	err := n.Do(func() error {
		list, err := readListeners()
		for _, l := range list {
			set[l.inode] = true
		}
		return err
	})
	return set, err
}

// readListeners reads those of the calling thread's namespace.
func readListeners() (list []listener, err error) {
	for _, name := range []string{"tcp", "tcp6"} {
		b, err := os.ReadFile("/proc/thread-self/net/" + name)
		if errors.Is(err, fs.ErrNotExist) && name == "tcp6" {
			continue // a kernel without IPv6
		}
		if err != nil {
			return nil, fmt.Errorf("read who listens: %w", err)
		}
		list = append(list, parseListeners(b)...)
	}
	return list, nil
}

// parseListeners takes /proc/net/tcp or tcp6 (Documentation/networking/proc_net_tcp.rst).
func parseListeners(text []byte) (list []listener) {
	const stateListen = "0A" // TCP_LISTEN, include/net/tcp_states.h
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) < 10 || fields[3] != stateListen {
			continue
		}
		addr, ok := parseEndpoint(fields[1])
		inode, err := strconv.ParseUint(fields[9], 10, 64)
		if ok && err == nil {
			list = append(list, listener{addr, inode})
		}
	}
	return list
}

// parseEndpoint reads ADDRESS:PORT in hexadecimal, where an address is words of 32
// bits, each a number of this machine's byte order.
func parseEndpoint(s string) (netip.AddrPort, bool) {
	text, portText, _ := strings.Cut(s, ":")
	b, err := hex.DecodeString(text)
	port, portErr := strconv.ParseUint(portText, 16, 16)
	if err != nil || portErr != nil || len(b)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	addr, ok := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(addr.Unmap(), uint16(port)), ok
}
