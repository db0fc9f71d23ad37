package lab

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pelt/internal/nic"
	"pelt/lab/fastpath"
	"pelt/lab/routerlog"
	"pelt/model"
)

// routerState is what a lab's router was made to be.
type routerState struct {
	mu   sync.Mutex
	now  routerSetup
	log  *routerlog.Log // nil: it logs nothing
	fast *fastpath.Path // nil: the topology has none
}

func (s *routerState) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.endLog()
	if s.fast != nil {
		err = errors.Join(err, s.fast.Close())
		s.fast = nil
	}
	return err
}

func (s *routerState) endLog() error {
	if s.log == nil {
		return nil
	}
	err := s.log.Close()
	s.log = nil
	return err
}

// SetRouter makes the router or switch between the ends what the words say, and
// no longer what it was before:
//
//	plain or ""   nothing more than its topology makes it
//	rules=N       N rules that match nothing are evaluated for each packet it forwards
//	log           each packet it forwards is logged: a daemon writes a line
//	fast          lab fast: known connections pass by its kernel, and so by rules and log
//
// joined by +, as rules=100+log. Packets on their way are forwarded all the while,
// by what there is at that moment. If an error comes from the kernel the router is
// plain. The error is a *UsageError for words that CheckRouter refuses, and for
// a lab that another process holds.
func (l *Lab) SetRouter(words string) error {
	if l.holder != nil {
		return usagef("the router of lab %s stays as it is, because pelt lab up keeps that lab; want lab:%s, "+
			"which is made for the run", l.holder.name, l.Facts().Topology)
	}
	c, err := l.spec.parseRouter(words)
	if err != nil {
		return err
	}
	s := &l.router
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == c {
		return nil
	}
	err = l.resetRouter()
	if err == nil {
		err = l.setUpRouter(c)
	}
	if err != nil {
		return errors.Join(explain(fmt.Sprintf("make the router %v", c), err), l.resetRouter())
	}
	return nil
}

// resetRouter makes the router plain.
func (l *Lab) resetRouter() error {
	s, n := &l.router, l.nodes[l.spec.middle()]
	var errs []error
	if s.fast != nil {
		errs = append(errs, s.fast.Carry(false))
	}
	if s.now.rules > 0 || s.now.log {
		errs = append(errs, n.Do(func() error { return takeFilter(l.filterFamily()) }))
	}
	s.now = routerSetup{}
	return errors.Join(append(errs, s.endLog())...)
}

// setUpRouter makes a plain router something else. On error some of it may be there.
func (l *Lab) setUpRouter(c routerSetup) (err error) {
	s, n := &l.router, l.nodes[l.spec.middle()]
	if c.log {
		names, err := n.interfaceNames()
		if err != nil {
			return err
		}
		err = n.Do(func() (err error) {
			s.log, err = routerlog.Open(logGroup, names)
			return err
		})
		if errors.Is(err, unix.EINVAL) { // nfnetlink's answer where nobody takes such messages
			err = fmt.Errorf("%w: %w", unix.EOPNOTSUPP, err)
		}
		if err != nil {
			return missing("log of packets", "CONFIG_NETFILTER_NETLINK_LOG, module nfnetlink_log", err)
		}
	}
	if c.rules > 0 || c.log {
		s.now = c // what is to be undone if the rest fails
		if err := n.Do(func() error { return addFilter(l.filterFamily(), c) }); err != nil {
			return err
		}
	}
	if c.fast {
		if err := s.fast.Carry(true); err != nil {
			return err
		}
	}
	s.now = c
	return nil
}

// interfaceNames are all of the node's, by index.
func (n *Node) interfaceNames() (map[uint32]string, error) {
	names := map[uint32]string{}
	err := n.Do(func() error {
		links, err := netlink.LinkList()
		for _, link := range links {
			names[uint32(link.Attrs().Index)] = link.Attrs().Name
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the interfaces of %s: %w", n.Name(), err)
	}
	return names, nil
}

// RouterAccount reads what the router did by its setup.
func (l *Lab) RouterAccount() (RouterAccount, error) {
	s := &l.router
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.holder != nil || l.spec.middle() < 0 {
		return RouterAccount{}, usagef("lab %s has no router of this process's", l.Facts().Topology)
	}
	a := RouterAccount{Setup: s.now.String()}
	if s.log != nil {
		counts := s.log.Counts() // before what they are part of
		a.Lines, a.Missed = counts.Lines, counts.Missed
		err := l.nodes[l.spec.middle()].Do(func() (err error) {
			a.Logged, err = readLogged(l.filterFamily())
			return err
		})
		if err != nil {
			return a, fmt.Errorf("read what the router logged: %w", err)
		}
	}
	if s.fast == nil {
		return a, nil
	}
	var err error
	a.Fast, err = s.fast.Counts()
	return a, err
}

// fastConfig is what a kernel needs for a fast path.
const fastConfig = "Linux 6.0 or later, CONFIG_NF_CONNTRACK, CONFIG_DEBUG_INFO_BTF"

// redirected is how an interface is that takes frames which a program at the other end of its cable sends: they come
// in by its NAPI. It sums its packets itself, for the program knows of none that hardware would.
var redirected = map[string]bool{"rx-gro": true, "tx-checksum-ip-generic": false, "tx-checksum-sctp": false}

// openFast gives the router its fast path, turned on, and makes what is at the
// other ends of its cables fit for it.
func (b *builder) openFast() error {
	at := b.spec.middle()
	s, n := b.spaces[at], b.lab.nodes[at]
	for _, c := range b.cables {
		for i, far := range c {
			if c[1-i].s != s {
				continue
			}
			if err := far.s.ns.Do(func() error { return nic.Change(far.name, redirected) }); err != nil {
				return fmt.Errorf("make %s take the frames of a fast path: %w", far.name, err)
			}
		}
	}
	var ports [2]fastpath.Port
	for i, own := range n.info.Interfaces {
		link, err := s.link(own.Name)
		if err != nil {
			return err
		}
		ports[i] = fastpath.Port{Index: link.Attrs().Index, Address: [6]byte(link.Attrs().HardwareAddr)}
	}
	return s.ns.Do(func() error {
		// The kernel does not see what TCP sends past it: else it takes the end of a
		// connection for one that is not of it.
		if err := writeSettings([][2]string{{"net/netfilter/nf_conntrack_tcp_be_liberal", "1"}}); err != nil {
			return err
		}
		t, err := readTimeouts()
		if err != nil {
			return err
		}
		path, err := fastpath.Load(ports, t)
		if errors.Is(err, errors.ErrUnsupported) {
			return kernelLacks("fast path", fastConfig, err)
		}
		if errors.Is(err, unix.EPERM) {
			return lacksRights(model.LabFastRights, b.spec.name, unix.EPERM)
		}
		if err != nil {
			return err
		}
		b.lab.router.fast = path // closed with the lab
		for _, p := range ports {
			if err := path.Attach(p.Index); err != nil {
				return err
			}
		}
		b.lab.router.now, n.info.Frames = routerSetup{fast: true}, true
		return path.Carry(true)
	})
}

// readTimeouts reads those of the calling thread's namespace.
func readTimeouts() (t fastpath.Timeouts, err error) {
	for name, to := range map[string]*time.Duration{"udp_timeout": &t.UDP, "udp_timeout_stream": &t.UDPStream,
		"tcp_timeout_established": &t.TCP} {
		text, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_" + name)
		if err != nil {
			return t, err
		}
		seconds, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			return t, fmt.Errorf("nf_conntrack_%s: %w", name, err)
		}
		*to = time.Duration(seconds) * time.Second
	}
	return t, nil
}
