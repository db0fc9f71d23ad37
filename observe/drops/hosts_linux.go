//go:build amd64 || arm64

package drops

import (
	"errors"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"pelt/internal/netns"
)

// locate finds out, of the sites that came since, what their interfaces are called, and by which address their hosts
// are known: see address. What cannot be entered keeps what the program saw.
func (n *names) locate() {
	type space struct{ cookie, inode uint64 } // both the inode where the program knew no cookie: before Linux 5.17
	unknown := map[space][]uint32{}
	inodes := map[uint64]bool{}
	for id, p := range n.places {
		if p.located || p.space == 0 {
			continue
		}
		s := space{p.key.Cookie, p.space}
		unknown[s], inodes[s.inode] = append(unknown[s], id), true
		p.located = true
		n.places[id] = p
	}
	if len(unknown) == 0 {
		return
	}
	found := netns.Find(inodes)
	for s, ids := range unknown {
		h := found[s.inode]
		if h == nil {
			continue
		}
		_ = inside(h, s.inode, func() error { // as much as it tells
			if cookie, err := currentCookie(); s.cookie != s.inode && (err != nil || cookie != s.cookie) {
				return errors.Join(err, errors.New("another namespace has got the inode"))
			}
			for _, id := range ids {
				p := n.places[id]
				if i, err := net.InterfaceByIndex(int(p.key.Iface)); err == nil && p.name == "" {
					p.name = i.Name
				}
				p.address = p.facing()
				n.places[id] = p
			}
			return nil
		})
	}
	for _, h := range found {
		_ = h.Close() // it was read only
	}
}

// inside runs f in a namespace, also where this process may not enter others and the namespace is its own.
func inside(h *netns.Handle, inode uint64, f func() error) error {
	own, err := netns.Current()
	if err != nil {
		return err
	}
	defer own.Close()
	if number, err := own.Inode(); err == nil && number == inode {
		return f()
	}
	return h.Do(f)
}

func currentCookie() (uint64, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	return unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
}

// facing returns the address of the calling thread's namespace that faced the packets: that of the interface where they
// came in, else that of the interface where they were, else the first; rather of their own family. The zero value is
// none.
func (p place) facing() (first netip.Addr) {
	var lists [][]net.Addr
	for _, index := range []uint32{p.key.From, p.key.Iface} {
		if i, err := net.InterfaceByIndex(int(index)); err == nil {
			addresses, _ := i.Addrs() // none is as good
			lists = append(lists, addresses)
		}
	}
	all, _ := net.InterfaceAddrs()
	for _, list := range append(lists, all) {
		for _, a := range list {
			network, ok := a.(*net.IPNet)
			if !ok {
				continue
			}
			at, ok := netip.AddrFromSlice(network.IP)
			if at = at.Unmap(); !ok || !at.IsGlobalUnicast() {
				continue
			}
			if at.Is6() == (p.key.Flags&uint32(bpfSiteFlagsSITE_IP6) != 0) {
				return at
			}
			if !first.IsValid() {
				first = at
			}
		}
	}
	return first
}
