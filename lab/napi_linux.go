package lab

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// OwnThread gives what comes in through one of the node's interfaces a kernel
// thread of its own (threaded NAPI) on a core. Without it the thread that sends
// into a virtual cable does the work of the node at its other end as well. It
// matters only to interfaces that use NAPI: those with an XDP program.
func (n *Node) OwnThread(iface string, cpu int) error {
	index := 0
	err := n.Do(func() error {
		link, err := netlink.LinkByName(iface)
		if err == nil {
			index = link.Attrs().Index
		}
		return err
	})
	if err == nil {
		err = n.setAttribute(iface, "threaded", "1")
	}
	if err != nil {
		return fmt.Errorf("give %s of %s a thread of its own: %w", iface, n.Name(), err)
	}
	var threads []int
	if err := n.Do(func() (err error) { threads, err = napiThreads(index); return err }); err != nil || len(threads) == 0 {
		return nil // before Linux 6.8 nobody tells which thread it is: the scheduler chooses its core
	}
	var set unix.CPUSet
	set.Set(cpu)
	for _, id := range threads {
		// The number is of the machine's first process namespace: in another it is
		// nobody's, or somebody else's.
		if comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", id)); err != nil || !strings.HasPrefix(string(comm), "napi/") {
			continue
		}
		// Where it is not allowed, the scheduler does what it can.
		_ = unix.SchedSetaffinity(id, &set)
		_ = unix.Setpriority(unix.PRIO_PROCESS, id, napiNice)
	}
	return nil
}

// JoinPackets lets the kernel join packets of a flow that come in through one of
// the node's interfaces (generic receive offload), which virtual cables do not by
// themselves.
func (n *Node) JoinPackets(iface string) error {
	err := n.Do(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		value := struct{ command, data uint32 }{unix.ETHTOOL_SGRO, 1}
		request := struct { // struct ifreq, netdevice(7)
			name [unix.IFNAMSIZ]byte
			data unsafe.Pointer
			_    [16]byte
		}{data: unsafe.Pointer(&value)}
		copy(request.name[:unix.IFNAMSIZ-1], iface)
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
			return errno
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("let %s of %s join packets: %w", iface, n.Name(), err)
	}
	return nil
}

// napiNice lets a node's thread go before those that send to it: a sender that
// shares the core needs a tenth of its time to keep it busy. Kernel threads are in
// no group, so that weights against those of whole sessions count.
const napiNice = -10

// setAttribute writes a file of an interface in sysfs, which shows the
// interfaces of the namespace that it is mounted in: so it is mounted in one of
// its own, on a thread that ends with it.
func (n *Node) setAttribute(iface, name, value string) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked
		done <- func() error {
			if err := n.ns.EnterForGood(); err != nil {
				return err
			}
			if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
				return err
			}
			if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
				return err
			}
			if err := unix.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
				return err
			}
			return os.WriteFile("/sys/class/net/"+iface+"/"+name, []byte(value), 0)
		}()
	}()
	return <-done
}

// The netdev family tells of NAPI instances, include/uapi/linux/netdev.h.
const (
	netdevCmdNapiGet  = 11
	netdevNapiIfindex = 1
	netdevNapiPID     = 4
)

// genericHeader is struct genlmsghdr: command, version, and two bytes that the
// kernel wants to be 0. The library's own leaves them as they are.
type genericHeader [4]byte

func (h genericHeader) Len() int          { return len(h) }
func (h genericHeader) Serialize() []byte { return h[:] }

// napiThreads lists the threads of an interface of the calling thread's namespace.
func napiThreads(index int) ([]int, error) {
	h, err := netlink.NewHandle(unix.NETLINK_GENERIC)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	family, err := h.GenlFamilyGet("netdev")
	if err != nil {
		return nil, err
	}
	req := nl.NewNetlinkRequest(int(family.ID), unix.NLM_F_DUMP)
	req.AddData(genericHeader{netdevCmdNapiGet, 1})
	req.AddData(nl.NewRtAttr(netdevNapiIfindex, nl.Uint32Attr(uint32(index))))
	messages, err := req.Execute(unix.NETLINK_GENERIC, 0)
	if err != nil {
		return nil, err
	}
	var ids []int
	for _, m := range messages {
		attrs, err := nl.ParseRouteAttr(m[min(nl.SizeofGenlmsg, len(m)):])
		if err != nil {
			return nil, err
		}
		for _, a := range attrs {
			if a.Attr.Type == netdevNapiPID && len(a.Value) >= 4 {
				ids = append(ids, int(nl.NativeEndian().Uint32(a.Value)))
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}
