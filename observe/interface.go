package observe

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"pelt/internal/bind"
	"pelt/internal/nic"
	"pelt/model"
	"pelt/observe/counters"
)

// Interface is the network interface that carries a test. Zero fields are unknown.
type Interface struct {
	Name   string
	Driver string
	// bit/s, as the driver says; 0 for what has no speed of its own (loopback, veth, tun) and a link that is down
	SpeedBits uint64
	MTUBytes  int
	Address   netip.Addr // local address used toward the peer
}

// Describe writes the interface into the facts of its host.
func (i Interface) Describe(h *model.Host) {
	h.Interface, h.Driver, h.LinkSpeedBits, h.MTUBytes = i.Name, i.Driver, i.SpeedBits, i.MTUBytes
	if i.Address.IsValid() {
		h.Address = i.Address.String()
	}
}

// InterfaceFor returns the interface that carries traffic to addr, or, if addr
// is one of the host's own addresses, the interface that holds it. do runs a
// function inside the host's network namespace, as engine.Host's Do does. device
// is what sockets are bound to, if anything. It sends nothing. The error says that no route or no interface was found.
func InterfaceFor(do func(func() error) error, addr netip.Addr, device string) (found Interface, err error) {
	err = do(func() error {
		held, err := holders()
		if err != nil {
			return fmt.Errorf("list interfaces: %w", err)
		}
		local := addr.Unmap().WithZone("")
		if i, own := held[local]; own {
			found = describe(i, local)
			return nil
		}
		if local, err = source(addr, device); err != nil {
			return fmt.Errorf("find the way to %v: %w", addr, err)
		}
		i, ok := held[local]
		if device != "" { // several interfaces may hold the address
			name := cmp.Or(counters.RouteTo(here, addr, device).Interface, device)
			if named, err := net.InterfaceByName(name); err == nil {
				i, ok = *named, true
			}
		}
		if !ok {
			return fmt.Errorf("no interface holds %v, the address used toward %v", local, addr)
		}
		found = describe(i, local)
		return nil
	})
	return found, err
}

func describe(i net.Interface, local netip.Addr) Interface {
	found := Interface{Name: i.Name, MTUBytes: i.MTU, Address: local}
	drivers, err := nic.Open() // sysfs shows the namespace it was mounted in, not the calling thread's
	if err != nil {
		return found
	}
	defer drivers.Close()
	found.Driver, _ = drivers.Driver(i.Name)             // "" stands for unknown
	if found.Driver != "veth" && found.Driver != "tun" { // whatever these carry, they say 10 Gbit/s
		found.SpeedBits = drivers.Speed(i.Name)
	}
	return found
}

// holders lists which interface holds which address. All of 127.0.0.0/8 is the
// loopback's, but only the addresses it names are here: source covers the rest.
func holders() (map[netip.Addr]net.Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	held := map[netip.Addr]net.Interface{}
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err != nil {
				continue
			}
			local := p.Addr().Unmap()
			if _, taken := held[local]; !taken {
				held[local] = i
			}
		}
	}
	return held, nil
}

// here runs a function where its caller is.
func here(f func() error) error { return f() }

// source asks the kernel's routing by connecting a UDP socket, which sends nothing.
func source(addr netip.Addr, dev string) (netip.Addr, error) {
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error { return bind.Conn(raw, dev) }}
	// Port 9 is discard (RFC 863); any other would do.
	c, err := d.Dial("udp", netip.AddrPortFrom(addr, 9).String())
	if err != nil {
		return netip.Addr{}, err
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap().WithZone(""), nil
}
