package counters

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pelt/internal/nic"
	"pelt/model"
)

// Reader reads the counters of one network namespace. It holds nothing open. Its methods may be called concurrently.
type Reader struct {
	do        func(func() error) error
	namespace uint64

	mu     sync.Mutex
	buffer bytes.Buffer
	tables bool                   // nf_tables is in the kernel
	losses map[driverKey][]string // which statistics of a driver tell of losses
}

// driverKey changes if an interface or what its driver counts does.
type driverKey struct {
	link       int
	name       string
	statistics int
}

// Open readies a Reader for the namespace that do runs functions in, as engine.Host's Do does. Only a namespace that
// cannot be entered, or that gives neither files nor netlink, is an error; whatever else cannot be read is said in
// each Snapshot.
func Open(do func(func() error) error) (*Reader, error) {
	namespace, err := Namespace(do)
	if err != nil {
		return nil, fmt.Errorf("identify the network namespace: %w", err)
	}
	r := &Reader{do: do, namespace: namespace, losses: map[driverKey][]string{}}
	if s := r.Read(); len(s.readings) == 0 {
		return nil, noneRead{s.Unread[0]}
	}
	return r, nil
}

// noneRead is why a Reader can read nothing.
type noneRead struct{ why model.Reason }

func (e noneRead) Error() string { return e.why.String() }

func (e noneRead) Because() model.Reason { return e.why }

// Namespace returns the inode of the namespace, as in the link /proc/PID/ns/net.
func (r *Reader) Namespace() uint64 { return r.namespace }

// Namespace returns the inode of the network namespace that do runs functions in.
func Namespace(do func(func() error) error) (inode uint64, err error) {
	err = do(func() error {
		var s syscall.Stat_t
		const own = "/proc/thread-self/ns/net"
		if err := syscall.Stat(own, &s); err != nil {
			return &os.PathError{Op: "stat", Path: own, Err: err}
		}
		inode = uint64(s.Ino)
		return nil
	})
	return inode, err
}

// Read reads all counters. It never fails as a whole: what could not be read is
// in the Snapshot's Unread. It takes some 0.1 to 1 ms, more on hosts with
// hundreds of interfaces or thousands of rules.
func (r *Reader) Read() Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Snapshot{Taken: time.Now(), links: map[int]link{}}
	err := r.do(func() error {
		for _, f := range files {
			if f.read&local != 0 {
				r.readFile(&s, f)
			}
		}
		r.readDevices(&s)
		r.readFilter(&s)
		return nil
	})
	if err != nil {
		s.lacks("network namespace", err)
	}
	return s
}

// readFile reads a file of the calling thread's namespace. /proc/net is the one of the process, hence thread-self.
func (r *Reader) readFile(s *Snapshot, f file) {
	tasks := []string{"thread-self"}
	if strings.HasPrefix(f.path, "sys/") {
		tasks = []string{""}
	} else if f.read&first != 0 { // net/core/neighbour.c, neigh_table_init
		tasks = append(tasks, "self", "1")
	}
	var open *os.File
	var err error
	for _, task := range tasks {
		if open, err = os.Open("/proc/" + task + "/" + f.path); err == nil {
			break
		}
	}
	if f.read&optional != 0 && errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		defer open.Close()
		r.buffer.Reset()
		_, err = r.buffer.ReadFrom(open)
	}
	if err == nil {
		err = f.parse(s, r.buffer.String())
	}
	if err != nil {
		s.lacks(f.what(), err)
	}
}

// readDevices adds interfaces, their qdiscs and their drivers' statistics.
func (r *Reader) readDevices(s *Snapshot) {
	drivers, err := nic.Open()
	if err != nil {
		s.lacks("driver statistics", err)
	} else {
		defer drivers.Close()
	}
	routes, err := dial(unix.NETLINK_ROUTE)
	if err != nil {
		s.lacks("interfaces", err)
		return
	}
	defer routes.Close()
	links, err := listLinks(routes)
	if err != nil {
		s.lacks("interfaces", err)
		return
	}
	for i := range links {
		l := &links[i]
		if l.kind == "" && !l.loopback && drivers != nil {
			l.driver, _ = drivers.Driver(l.name) // "" stands for unknown
		}
		s.addLink(*l)
	}
	qdiscs, err := listQdiscs(routes)
	if err != nil {
		s.lacks("qdiscs", err)
	}
	s.addQdiscs(qdiscs)
	s.askActions(routes, qdiscs)
	for _, l := range links {
		if drivers != nil && !l.loopback && slices.Contains([]string{"", "veth", "dsa", "netdevsim"}, l.kind) {
			r.readDriver(s, drivers, l)
		}
	}
}

// readDriver adds those statistics of an interface's driver that tell of losses.
func (r *Reader) readDriver(s *Snapshot, drivers *nic.Conn, l link) {
	all, err := drivers.Stats(l.name)
	switch {
	case errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENODEV):
		return
	case err != nil:
		s.lacks("driver statistics", err)
		s.Unread[len(s.Unread)-1].Names = map[string]string{"interface": l.name}
		return
	}
	key := driverKey{l.index, l.name, len(all)}
	names, known := r.losses[key]
	if !known {
		if len(r.losses) == maxDrivers {
			clear(r.losses)
		}
		for name := range all {
			names = append(names, name)
		}
		names = driverLosses(names)
		if l.kind == "veth" || l.driver == "virtio_net" { // what no XDP program drops is in rx_dropped, and met no full ring
			names = slices.DeleteFunc(names, func(name string) bool { return !strings.Contains(name, "xdp") })
		}
		r.losses[key] = names
	}
	for _, name := range names {
		s.addDriver(l, name, all[name])
	}
}

// maxDrivers bounds what is kept on hosts whose interfaces come and go for ever.
const maxDrivers = 10000
