package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// listenStep is between two looks at who listens.
const listenStep = 5 * time.Millisecond

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
				return p.notListening(within, hidden)
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

func (p *Program) notListening(within time.Duration, hidden netip.AddrPort) error {
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

// newListener looks for one, from a thread in the node. hidden is one of the loopback's.
func (p *Program) newListener() (found, hidden netip.AddrPort, err error) {
	list, err := listeners()
	for inode, addr := range list {
		switch {
		case p.before[inode].IsValid():
		case addr.Addr().IsLoopback():
			hidden = addr
		default:
			found = addr
		}
	}
	return found, hidden, err
}

// listeners are the TCP sockets that wait for connections in the calling thread's
// namespace, by inode.
func listeners() (map[uint32]netip.AddrPort, error) {
	list := map[uint32]netip.AddrPort{}
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		sockets, err := netlink.SocketDiagTCP(family)
		if err != nil && !(family == unix.AF_INET6 && errors.Is(err, unix.ENOENT)) { // a kernel without IPv6
			return nil, missing("list of TCP sockets", "CONFIG_INET_TCP_DIAG, module tcp_diag", fmt.Errorf("read who listens: %w", err))
		}
		for _, s := range sockets {
			if addr, ok := netip.AddrFromSlice(s.ID.Source); ok && s.State == unix.BPF_TCP_LISTEN {
				list[s.INode] = netip.AddrPortFrom(addr.Unmap(), s.ID.SourcePort)
			}
		}
	}
	return list, nil
}
