package lab

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const controlSetting = "net/ipv4/tcp_congestion_control"

// giveControl has new sockets in the node begin with a congestion control, and
// returns what puts back how it was. One that the host does not allow to everybody
// cannot be the default of a namespace (tcp_set_default_congestion_control,
// net/ipv4/tcp_cong.c); then the node's routes name it, which anybody's connections
// follow.
func (n *Node) giveControl(name string) (putBack func() error, err error) {
	if name == "" {
		return func() error { return nil }, nil
	}
	if !n.controlled.CompareAndSwap(false, true) {
		return nil, fmt.Errorf("another program has node %s's congestion control already", n.Name())
	}
	var before string
	err = n.Do(func() error {
		before = readSetting(controlSetting)
		return setControl(name)
	})
	undo := func() error { return n.Do(func() error { return setControl(before) }) }
	if errors.Is(err, unix.EPERM) {
		undo, err = n.routeControl(name)
	}
	if err != nil {
		n.controlled.Store(false)
		return nil, err
	}
	return func() error {
		err := undo()
		n.controlled.Store(false)
		if err != nil {
			return fmt.Errorf("put back node %s's congestion control: %w", n.Name(), err)
		}
		return nil
	}, nil
}

// setControl makes it the default of the calling thread's namespace.
func setControl(name string) error {
	err := os.WriteFile("/proc/sys/"+controlSetting, []byte(name), 0)
	switch {
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("congestion control %q is not in this kernel; there is %s", name,
			strings.Join(strings.Fields(readSetting("net/ipv4/tcp_available_congestion_control")), ", "))
	case errors.Is(err, unix.EPERM):
		return err
	case err != nil:
		return fmt.Errorf("set congestion control %q (in a container, /proc/sys must be writable): %w", name, err)
	}
	return nil
}

// routeControl names it in every route of the node.
func (n *Node) routeControl(name string) (undo func() error, err error) {
	s, err := openSpace(n.ns)
	if err != nil {
		return nil, err
	}
	defer s.rt.Close()
	before, err := s.routes()
	if err != nil {
		return nil, err
	}
	undo = func() error {
		s, err := openSpace(n.ns)
		if err != nil {
			return err
		}
		defer s.rt.Close()
		return s.replace(before)
	}
	with := append([]netlink.Route{}, before...)
	for i := range with {
		with[i].Congctl = name
	}
	if err = s.replace(with); err != nil {
		return nil, errors.Join(fmt.Errorf("congestion control %q is not allowed to programs here (%s are; sysctl net.ipv4.tcp_allowed_congestion_control of the host says so): %w",
			name, strings.Join(strings.Fields(readSetting("net/ipv4/tcp_allowed_congestion_control")), ", "), err), undo())
	}
	return undo, nil
}

// routes are those that lead out of a node.
func (s *space) routes() (list []netlink.Route, err error) {
	all, err := s.rt.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Table: unix.RT_TABLE_MAIN, Type: unix.RTN_UNICAST}, netlink.RT_FILTER_TABLE|netlink.RT_FILTER_TYPE)
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	return all, nil
}

func (s *space) replace(routes []netlink.Route) error {
	for _, r := range routes {
		if err := s.rt.RouteReplace(&r); err != nil {
			return fmt.Errorf("replace route %v: %w", r.Dst, err)
		}
	}
	return nil
}
