package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pelt/internal/nic"
)

// OwnThread gives what comes in through one of the node's interfaces a kernel
// thread of its own (threaded NAPI) on a core. Without it the thread that sends
// into a virtual cable does the work of the node at its other end as well. It
// matters only to interfaces that use NAPI: those with an XDP program.
func (n *Node) OwnThread(iface string, cpu int) error {
	if err := n.ns.SetAttribute(iface, "threaded", "1"); err != nil {
		return fmt.Errorf("give %s of %s a thread of its own: %w", iface, n.Name(), err)
	}
	threads, _ := n.threads(iface) // before Linux 6.8 nobody tells which they are: the scheduler chooses their core
	set := unix.NewCPUSet(cpu + 1)
	set.Set(cpu)
	for _, id := range threads {
		// Where it is not allowed, the scheduler does what it can.
		_ = unix.SchedSetaffinityDynamic(id, set)
		_ = unix.Setpriority(unix.PRIO_PROCESS, id, napiNice)
	}
	return nil
}

// Urgent lets an interface's own threads run before all usual ones, or ends that. A usual thread that has the core
// keeps it for milliseconds, and a ring of 256 packets is full before. Where it is not allowed, nothing changes.
func (n *Node) Urgent(iface string, on bool) {
	threads, _ := n.threads(iface)
	for _, id := range threads {
		attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: napiNice}
		if on {
			attr = unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
		}
		_ = unix.SchedSetAttr(id, &attr, 0)
	}
}

// ThreadTime is the processor time that an interface's own threads took so far: what
// comes in there, and what the kernel does at once with what goes on from there. The
// error is fs.ErrNotExist if it has none (see OwnThread), or nobody tells which they
// are (before Linux 6.8, and in another process namespace than the machine's first).
func (n *Node) ThreadTime(iface string) (time.Duration, error) {
	var sum time.Duration
	threads, err := n.threads(iface)
	if err == nil && len(threads) == 0 || errors.Is(err, unix.EOPNOTSUPP) {
		err = fs.ErrNotExist
	}
	for _, id := range threads {
		one, readErr := readThreadTime(fmt.Sprintf("/proc/%d/schedstat", id))
		sum, err = sum+one, errors.Join(err, readErr)
	}
	if err != nil {
		return 0, fmt.Errorf("read the processor time of the threads of %s of %s: %w", iface, n.Name(), err)
	}
	return sum, nil
}

// readThreadTime reads the first number of a schedstat file: ns on a processor
// (Documentation/scheduler/sched-stats.rst).
func readThreadTime(path string) (time.Duration, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), " ")
	ns, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return time.Duration(ns), nil
}

// threads lists an interface's own.
func (n *Node) threads(iface string) (ids []int, err error) {
	err = n.Do(func() error {
		link, err := netlink.LinkByName(iface)
		if err != nil {
			return err
		}
		ids, err = napiThreads(link.Attrs().Index)
		return err
	})
	// The numbers are of the machine's first process namespace: in another they are
	// nobody's, or somebody else's.
	return slices.DeleteFunc(ids, func(id int) bool {
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", id))
		return err != nil || !strings.HasPrefix(string(comm), "napi/"+iface+"-")
	}), err
}

// JoinPackets lets the kernel join packets of a flow that come in through one of
// the node's interfaces (generic receive offload), which virtual cables do not by
// themselves.
func (n *Node) JoinPackets(iface string) error {
	if err := n.Do(func() error { return nic.Change(iface, map[string]bool{"rx-gro": true}) }); err != nil {
		return fmt.Errorf("let %s of %s join packets: %w", iface, n.Name(), err)
	}
	return nil
}

// napiNice lets a node's thread go before those that send to it: a sender that
// shares the core needs a tenth of its time to keep it busy. Kernel threads are in
// no group, so that weights against those of whole sessions count.
const napiNice = -10

// The netdev family tells of NAPI instances, include/uapi/linux/netdev.h.
const (
	netdevCmdNapiGet  = 11
	netdevNapiIfindex = 1
	netdevNapiPID     = 4
)

// napiThreads lists the threads of an interface of the calling thread's namespace.
func napiThreads(index int) (ids []int, err error) {
	answers, err := nic.Netdev(netdevCmdNapiGet, unix.NLM_F_DUMP, netdevNapiIfindex, index)
	for _, a := range answers {
		if id := a[netdevNapiPID]; len(id) >= 4 {
			ids = append(ids, int(binary.NativeEndian.Uint32(id)))
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), err
}
