package faults

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pelt/internal/netbed"
	"pelt/test/kernels"
)

// need is what not all kernels have. It says what this one lacks; "" is nothing.
type need func(t testing.TB) string

// inGuest tells whether the machine is a guest of package kernels, which has all that a row needs.
func inGuest() bool { return os.Getenv(kernels.GuestEnv) != "" }

// guest is for what harms all of a machine.
func guest(testing.TB) string {
	if inGuest() {
		return ""
	}
	return "a guest of its own"
}

// linux is a version.
func linux(major, minor int) need {
	return func(testing.TB) string {
		if atLeast(major, minor) {
			return ""
		}
		return fmt.Sprintf("Linux %d.%d", major, minor)
	}
}

// atLeast tells whether this kernel is of a version or newer.
func atLeast(major, minor int) bool {
	var name unix.Utsname
	var have [2]int
	if err := unix.Uname(&name); err != nil {
		panic(err)
	}
	if _, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &have[0], &have[1]); err != nil {
		panic(err)
	}
	return slices.Compare(have[:], []int{major, minor}) >= 0
}

// boundedChains is a machine of one's own whose connection table has an end.
func boundedChains(t testing.TB) string { return cmp.Or(linux(5, 15)(t), guest(t)) }

// module is one that f needs in a namespace.
func module(name string, f func() error) need {
	return func(t testing.TB) string {
		err := netbed.Namespace(t).Do(f)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) {
			return name
		}
		return "" // without options some take nothing
	}
}

// queue is a kind of queue.
func queue(kind string) need {
	return module("sch_"+kind, func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.QdiscAdd(&netlink.GenericQdisc{QdiscType: kind, QdiscAttrs: netlink.QdiscAttrs{
			LinkIndex: lo.Attrs().Index, Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(1, 0)}})
	})
}

// device is a kind of interface.
func device(l netlink.Link) need {
	return module(l.Type(), func() error { return netlink.LinkAdd(l) })
}

func nfqueue(t testing.TB) string {
	n := netbed.Namespace(t)
	return module("nft_queue", func() error {
		c, err := nftables.New(nftables.WithNetNSFd(int(n.File().Fd())))
		if err != nil {
			return err
		}
		chain := netbed.HookChain(c, "probe", forward)
		c.AddRule(&nftables.Rule{Table: chain.Table, Chain: chain, Exprs: []expr.Any{&expr.Queue{}}})
		return c.Flush()
	})(t)
}

func vlanFilter(t testing.TB) string {
	return module("VLAN filters of bridges", func() error {
		on := true
		return netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "b"}, VlanFiltering: &on})
	})(t)
}

func cgroup2(testing.TB) string {
	if groups() == "" {
		return "cgroup2"
	}
	return ""
}

func policer(t testing.TB) string {
	return module("act_police", func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		clsact := netlink.QdiscAttrs{LinkIndex: lo.Attrs().Index, Handle: netlink.MakeHandle(0xffff, 0),
			Parent: netlink.HANDLE_CLSACT}
		if err := netlink.QdiscAdd(&netlink.Clsact{QdiscAttrs: clsact}); err != nil {
			return err
		}
		police := netlink.NewPoliceAction()
		police.Rate, police.Burst = 10_000, 1000
		return netlink.FilterAdd(&netlink.U32{Actions: []netlink.Action{police}, FilterAttrs: netlink.FilterAttrs{
			LinkIndex: lo.Attrs().Index, Parent: netlink.HANDLE_MIN_INGRESS, Priority: 1, Protocol: unix.ETH_P_ALL}})
	})(t)
}
