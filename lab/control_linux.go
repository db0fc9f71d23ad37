package lab

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// giveControl has new connections in the node begin with a congestion control, and returns
// what puts back how it was. The node's routes name it: a namespace's own default could not
// be one that the host does not allow to everybody (tcp_set_default_congestion_control,
// net/ipv4/tcp_cong.c).
func (n *Node) giveControl(name string) (putBack func() error, err error) {
	if name == "" {
		return func() error { return nil }, nil
	}
	if !n.controlled.CompareAndSwap(false, true) {
		return nil, fmt.Errorf("another program has node %s's congestion control already", n.Name())
	}
	var before []netlink.Route
	err = n.routes(func(s *space) error {
		if before, err = s.rt.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Table: unix.RT_TABLE_MAIN, Type: unix.RTN_UNICAST},
			netlink.RT_FILTER_TABLE|netlink.RT_FILTER_TYPE); err != nil {
			return fmt.Errorf("list routes: %w", err)
		}
		return s.replace(before, name)
	})
	putBack = func() error {
		defer n.controlled.Store(false)
		return n.routes(func(s *space) error { return s.replace(before, "") })
	}
	if err != nil {
		return nil, errors.Join(err, putBack())
	}
	return putBack, nil
}

// routes calls f with the node's namespace.
func (n *Node) routes(f func(*space) error) error {
	s, err := openSpace(n.ns)
	if err != nil {
		return err
	}
	defer s.rt.Close()
	if err := f(s); err != nil {
		return fmt.Errorf("congestion control of node %s: %w", n.Name(), err)
	}
	return nil
}

// replace has routes name a congestion control.
func (s *space) replace(routes []netlink.Route, control string) error {
	for _, r := range routes {
		r.Congctl = control
		err := s.rt.RouteReplace(&r)
		if errors.Is(err, unix.EINVAL) && control != "" {
			return fmt.Errorf("%q is not in this kernel; there is %s", control,
				strings.Join(strings.Fields(readSetting("net/ipv4/tcp_available_congestion_control")), ", "))
		}
		if err != nil {
			return fmt.Errorf("replace route %v: %w", r.Dst, err)
		}
	}
	return nil
}
