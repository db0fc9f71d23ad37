package counters

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Reader reads the counters of one network namespace. It holds sockets and
// files of that namespace, so it reads the same one wherever it is called, and
// keeps it alive. Its methods may be called concurrently.
type Reader struct {
	mu        sync.Mutex
	options   Options
	do        func(func() error) error
	namespace uint64
	files     []procFile
	hostwide  []procFile
	buffer    []byte
	routes    *netlink.Conn
	filter    *netlink.Conn // nil if there is nothing to ask
	drivers   *drivers
	rules     *rulePlan
	conntrack bool // to be asked through filter
	tracked   bool // connection tracking is read, one way or the other
	cache     *cache
	closed    bool

	filterRefused bool
	unread        []string // for good
}

// Open readies a Reader for the namespace that do runs functions in, as
// engine.Host's Do does. Only a namespace that cannot be entered, or that gives
// neither files nor netlink, is an error; whatever else cannot be read is said
// in each Snapshot. Close frees what it holds.
func Open(do func(func() error) error, o Options) (*Reader, error) {
	r := &Reader{options: o, do: do, buffer: make([]byte, 32<<10), cache: newCache()}
	err := do(func() error {
		var err error
		if r.namespace, err = inode(); err != nil {
			return fmt.Errorf("identify the network namespace: %w", err)
		}
		r.openFiles()
		r.routes, err = netlink.Dial(unix.NETLINK_ROUTE, nil)
		if len(r.files) == 0 && err != nil {
			return fmt.Errorf("read the counters: neither /proc/net nor netlink answers: %w", err)
		}
		r.openFilter()
		if r.drivers, err = openDrivers(); err != nil {
			r.lacks("driver statistics", err)
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Namespace returns the inode of the namespace, as in the link /proc/PID/ns/net.
func (r *Reader) Namespace() uint64 { return r.namespace }

// Close frees the sockets and files. Read then returns an empty Snapshot.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	var errs []error
	for _, f := range append(r.files, r.hostwide...) {
		errs = append(errs, f.Close())
	}
	for _, c := range []*netlink.Conn{r.routes, r.filter} {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	if r.drivers != nil {
		r.drivers.close()
	}
	return errors.Join(errs...)
}

// Namespace returns the inode of the network namespace that do runs functions in.
func Namespace(do func(func() error) error) (n uint64, err error) {
	err = do(func() (err error) {
		n, err = inode()
		return err
	})
	return n, err
}

// inode identifies the calling thread's network namespace.
func inode() (uint64, error) {
	var s syscall.Stat_t
	if err := syscall.Stat("/proc/thread-self/ns/net", &s); err != nil {
		return 0, &os.PathError{Op: "stat", Path: "/proc/thread-self/ns/net", Err: err}
	}
	return uint64(s.Ino), nil
}

func (r *Reader) lacks(what string, err error) {
	r.unread = append(r.unread, what+": "+plain(err))
}

// plain is an error without the layers that only name the library's steps.
func plain(err error) string {
	var op *netlink.OpError
	if errors.As(err, &op) {
		return op.Err.Error()
	}
	return err.Error()
}

// Read reads all counters. It never fails as a whole: what could not be read is
// in the Snapshot's Unread. It takes some 0.1 to 1 ms, more on hosts with
// hundreds of interfaces or thousands of rules.
func (r *Reader) Read() Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return Snapshot{}
	}
	r.openLate()
	s := Snapshot{Taken: time.Now(), Unread: append([]string(nil), r.unread...), links: map[int]link{}}
	r.cache.trim()
	r.readFiles(&s)
	r.readDevices(&s)
	r.readFilter(&s)
	return s
}

func (s *Snapshot) lacks(what string, err error) {
	s.Unread = append(s.Unread, what+": "+plain(err))
}

// maxDumps is how often a listing that changed meanwhile is asked for.
const maxDumps = 5

// answerWithin bounds the wait for an answer; the kernel answers at once.
const answerWithin = 5 * time.Second

// dump asks for a listing and hands over the messages of the wanted type. A
// listing that changed while it was made is asked for again.
func dump(c *netlink.Conn, request, reply uint16, body []byte) (payloads [][]byte, err error) {
	for range maxDumps {
		if err := c.SetDeadline(time.Now().Add(answerWithin)); err != nil {
			return nil, err
		}
		messages, err := c.Execute(netlink.Message{
			Header: netlink.Header{Type: netlink.HeaderType(request), Flags: netlink.Request | netlink.Dump},
			Data:   body,
		})
		if err != nil {
			return nil, err
		}
		payloads = payloads[:0]
		whole := true
		for _, m := range messages {
			whole = whole && m.Header.Flags&netlink.DumpInterrupted == 0
			if m.Header.Type == netlink.HeaderType(reply) {
				payloads = append(payloads, m.Data)
			}
		}
		if whole {
			return payloads, nil
		}
	}
	return payloads, errChanging
}

var errChanging = errors.New("the list kept changing while it was read")

// again opens a socket anew after an error, for what was left unread on it would
// be taken for the next answer.
func (r *Reader) again(c **netlink.Conn, family int) {
	if *c != nil {
		_ = (*c).Close() // nothing was written
		*c = nil
	}
	_ = r.do(func() (err error) { // if it fails, the next reading says so
		*c, err = netlink.Dial(family, nil)
		return err
	})
}

var errNoSocket = errors.New("no netlink socket can be opened")

// readDevices adds interfaces, their qdiscs and their drivers' statistics.
func (r *Reader) readDevices(s *Snapshot) {
	if r.routes == nil {
		if r.again(&r.routes, unix.NETLINK_ROUTE); r.routes == nil {
			s.lacks("interfaces and qdiscs", errNoSocket)
			return
		}
	}
	links, err := r.links(s)
	if err != nil {
		s.lacks("interfaces", err)
		r.again(&r.routes, unix.NETLINK_ROUTE)
		return
	}
	qdiscs, err := listQdiscs(r.routes)
	if err != nil {
		s.lacks("qdiscs", err)
		r.again(&r.routes, unix.NETLINK_ROUTE)
	}
	for _, q := range tops(qdiscs) {
		r.cache.readQdisc(s, q)
	}
	for _, l := range links {
		r.readDriver(s, l)
	}
}

func (r *Reader) links(s *Snapshot) ([]link, error) {
	links, err := listLinks(r.routes)
	if err != nil {
		return nil, err
	}
	for i := range links {
		l := &links[i]
		if l.kind == "" && !l.loopback && r.drivers != nil {
			l.driver = r.drivers.name(linkKey{l.index, l.name})
		}
		s.links[l.index] = *l
		r.cache.readLink(s, *l)
	}
	return links, nil
}

func listLinks(c *netlink.Conn) ([]link, error) {
	payloads, err := dump(c, unix.RTM_GETLINK, unix.RTM_NEWLINK, make([]byte, unix.SizeofIfInfomsg))
	if err != nil {
		return nil, err
	}
	links := make([]link, 0, len(payloads))
	for _, b := range payloads {
		if l, ok := parseLink(b); ok {
			links = append(links, l)
		}
	}
	return links, nil
}

func listQdiscs(c *netlink.Conn) ([]qdisc, error) {
	payloads, err := dump(c, unix.RTM_GETQDISC, unix.RTM_NEWQDISC, make([]byte, 20)) // struct tcmsg
	if err != nil {
		return nil, err
	}
	qdiscs := make([]qdisc, 0, len(payloads))
	for _, b := range payloads {
		if q, ok := parseQdisc(b); ok {
			qdiscs = append(qdiscs, q)
		}
	}
	return qdiscs, nil
}
