package counters

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pelt/internal/nic"
)

// Reader reads the counters of one network namespace. It holds sockets and
// files of that namespace, so it reads the same one wherever it is called, and
// keeps it alive. Its methods may be called concurrently.
type Reader struct {
	mu        sync.Mutex
	do        func(func() error) error
	namespace uint64
	files     []openFile
	buffer    []byte
	routes    socket
	filter    socket
	drivers   *nic.Conn
	driverOf  map[linkKey]string // "" if it does not tell
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
func Open(do func(func() error) error) (*Reader, error) {
	r := &Reader{
		do: do, buffer: make([]byte, 32<<10), cache: newCache(longBits), driverOf: map[linkKey]string{},
		routes: socket{do: do, family: unix.NETLINK_ROUTE}, filter: socket{do: do, family: unix.NETLINK_NETFILTER},
	}
	err := do(func() (err error) {
		if r.namespace, err = inode(); err != nil {
			return fmt.Errorf("identify the network namespace: %w", err)
		}
		r.openFiles(local)
		if len(r.files) == 0 {
			if _, err := listLinks(&r.routes); err != nil {
				return fmt.Errorf("read the counters: neither /proc/net nor netlink answers: %w", err)
			}
		}
		r.openFilter()
		if r.drivers, err = nic.Open(); err != nil {
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
	for _, f := range r.files {
		errs = append(errs, f.Close())
	}
	errs = append(errs, r.routes.close(), r.filter.close())
	if r.drivers != nil {
		r.drivers.Close()
	}
	return errors.Join(errs...)
}

// openFile is a kernel file that stays open: it belongs to the namespace in
// which it was opened, whichever thread reads it.
type openFile struct {
	*os.File
	file
}

// openFiles opens the files that are read as said, of the calling thread's namespace; it reports whether it opened
// any. /proc/net is the one of the process, hence thread-self.
func (r *Reader) openFiles(as from) (opened bool) {
	for _, f := range files {
		if f.read&as == 0 {
			continue
		}
		tasks := []string{"thread-self"}
		if f.read&first != 0 { // net/core/neighbour.c, neigh_table_init
			tasks = append(tasks, "self", "1")
		}
		var err error
		for _, task := range tasks {
			var open *os.File
			if open, err = os.Open("/proc/" + task + "/" + f.path); err == nil {
				r.files, opened = append(r.files, openFile{open, f}), true
				break
			}
		}
		if err != nil && (f.read&(optional|module) == 0 || !errors.Is(err, fs.ErrNotExist)) {
			r.lacks(f.what(), err)
		}
	}
	return opened
}

// maxFile bounds what is read of one file: some 100 B for each socket of
// /proc/net/udp, of which there may be many.
const maxFile = 16 << 20

var errLong = errors.New("longer than 16 MiB")

func (r *Reader) readFiles(s *Snapshot) {
	for _, f := range r.files {
		b, err := r.content(f.File)
		if err == nil {
			err = f.parse(r.cache, s, b)
		}
		if err != nil {
			s.lacks(f.what(), err)
		}
	}
}

// content reads a file from its beginning into the Reader's buffer.
func (r *Reader) content(f *os.File) ([]byte, error) {
	for n := 0; ; {
		if n == len(r.buffer) {
			if n >= maxFile {
				return nil, errLong
			}
			r.buffer = append(r.buffer, make([]byte, n)...)
		}
		got, err := f.ReadAt(r.buffer[n:], int64(n))
		n += got
		if errors.Is(err, io.EOF) {
			return r.buffer[:n], nil
		}
		if err != nil {
			return nil, err
		}
	}
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

// readDevices adds interfaces, their qdiscs and their drivers' statistics.
func (r *Reader) readDevices(s *Snapshot) {
	links, err := r.links(s)
	if err != nil {
		s.lacks("interfaces", err)
		return
	}
	qdiscs, err := listQdiscs(&r.routes)
	if err != nil {
		s.lacks("qdiscs", err)
	}
	for _, q := range tops(qdiscs) {
		r.cache.readQdisc(s, q)
	}
	for _, l := range links {
		r.readDriver(s, l)
	}
}

func (r *Reader) links(s *Snapshot) ([]link, error) {
	links, err := listLinks(&r.routes)
	for i := range links {
		l := &links[i]
		if l.kind == "" && !l.loopback && r.drivers != nil {
			l.driver = r.driver(linkKey{l.index, l.name})
		}
		s.links[l.index] = *l
		r.cache.readLink(s, *l)
	}
	return links, err
}

type linkKey struct {
	index int
	name  string
}

func (r *Reader) driver(key linkKey) string {
	name, known := r.driverOf[key]
	if !known {
		if len(r.driverOf) > maxCached {
			clear(r.driverOf)
		}
		name, _ = r.drivers.Driver(key.name) // "" stands for unknown
		r.driverOf[key] = name
	}
	return name
}

// readDriver adds the statistics of an interface's own driver, where it may have any.
func (r *Reader) readDriver(s *Snapshot, l link) {
	if r.drivers == nil || l.loopback || !slices.Contains([]string{"", "veth", "dsa", "netdevsim"}, l.kind) {
		return
	}
	all, err := r.drivers.Stats(l.name)
	switch {
	case err == nil:
		r.cache.readDriver(s, l, all)
	case errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENODEV):
	default:
		s.lacks("driver statistics of "+l.name, err)
	}
}
