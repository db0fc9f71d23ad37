package counters

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pelt/model"
)

func here(f func() error) error { return f() }

func TestReadHere(t *testing.T) {
	if _, err := Open(here); err != nil { // the first of a process opens what Go's runtime waits with
		t.Fatal(err)
	}
	before := descriptors(t)
	r, err := Open(here)
	if err != nil {
		t.Fatal(err)
	}
	s := r.Read()
	t.Logf("unread: %q", s.Unread)
	names := map[string]int{}
	for _, x := range s.readings {
		names[x.name]++
	}
	for name, parts := range map[string]int{"Ip.InReceives": 1, "Udp.RcvbufErrors": 1, "TcpExt.IPReversePathFilter": 1, "softnet.dropped": runtime.NumCPU(), "dev.lo.rx_packets": 1} {
		if names[name] != parts {
			t.Errorf("%s was read in %d parts, want %d", name, names[name], parts)
		}
	}
	if os.Geteuid() == 0 && len(s.Unread) > 0 {
		t.Errorf("unread by root: %v", s.Unread)
	}
	want, err := Namespace(here)
	if link, _ := os.Readlink("/proc/self/ns/net"); err != nil || r.Namespace() != want || link != fmt.Sprintf("net:[%d]", want) {
		t.Errorf("namespace %d and %d, %v; the link says %s", r.Namespace(), want, err, link)
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors open before, %d after", before, after)
	}
}

func TestOpenFails(t *testing.T) {
	before := descriptors(t)
	broken := errors.New("no such namespace")
	if _, err := Open(func(func() error) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("Open: %v", err)
	}
	if _, err := Namespace(func(func() error) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("Namespace: %v", err)
	}
	if k := Knobs(func(func() error) error { return broken }, "eth0"); slices.ContainsFunc(k, func(k model.HostSetting) bool { return strings.HasPrefix(k.Name, "eth0") }) {
		t.Errorf("knobs of no namespace: %v", k)
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors open before, %d after", before, after)
	}
}

// Readers of two namespaces, used by many goroutines on whatever threads, each
// tell of their own namespace only, also while its packets come in.
func TestThreadsReadTheirOwn(t *testing.T) {
	w := newBed(t, 1, false)
	out := w.a.socket(t, unix.AF_INET, netip.AddrPort{})
	const closed = 7
	send(t, out, unix.AF_INET, w.b.at(closed), some, payload)
	w.settle(t)
	value := func(s Snapshot, name string) (sum uint64, there bool) {
		for _, r := range s.readings {
			if r.name == name {
				sum, there = sum+r.value, true
			}
		}
		return sum, there
	}
	outside, err := Open(here)
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for i := range 24 {
		wait.Go(func() {
			for range 20 {
				switch i % 3 {
				case 0:
					s := w.a.reader.Read()
					sent, ok := value(s, "Udp.OutDatagrams")
					_, other := value(s, "dev.b0.rx_packets")
					if n, _ := value(s, "Udp.NoPorts"); !ok || other || sent != some || n != 0 {
						t.Errorf("in a: %d sent (%v), %d without a port, sees b0: %v", sent, ok, n, other)
					}
				case 1:
					s := w.b.reader.Read()
					_, other := value(s, "dev.a0.rx_packets")
					if n, ok := value(s, "Udp.NoPorts"); !ok || other || n != some {
						t.Errorf("in b: %d without a port (%v), sees a0: %v", n, ok, other)
					}
				case 2:
					s := outside.Read()
					_, a := value(s, "dev.a0.rx_packets")
					_, b := value(s, "dev.b0.rx_packets")
					if a || b {
						t.Error("the namespace of the process shows a0 or b0")
					}
				}
				runtime.Gosched()
			}
		})
	}
	wait.Wait()
	if links := w.a.reader.Read().links; links[w.a.link.Attrs().Index].name != "a0" {
		t.Errorf("interfaces of a: %v, want a0 at %d", links, w.a.link.Attrs().Index)
	}
	for _, e := range []*end{w.a, w.b, newEnd(t, 3), newEnd(t, 4)} {
		inode, err := e.Inode()
		read, err2 := Namespace(e.Do)
		if err != nil || err2 != nil || read != inode || e.reader != nil && e.reader.Namespace() != inode {
			t.Errorf("%s is in namespace %d (%v), not %d (%v)", e.name, read, err2, inode, err)
		}
	}
	if d := w.a.reader.Read().Settling(); d != 0 {
		t.Errorf("a veth settles in %v", d)
	}
}

func TestInterfaceMadeAnew(t *testing.T) {
	w := newBed(t, 1, false)
	out := w.a.socket(t, unix.AF_INET, netip.AddrPort{})
	send(t, out, unix.AF_INET, w.b.at(testPort), some, payload)
	from, _ := w.settle(t)
	w.a.do(t, "replace a0", func() error {
		if err := netlink.LinkDel(w.a.link); err != nil {
			return err
		}
		attrs := netlink.NewLinkAttrs()
		attrs.Name = "a0"
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "a1"})
	})
	all := Diff(Snapshot{}, from, Snapshot{}, w.a.reader.Read(), 0)
	c, err := find(all, "dev.a0.tx_packets")
	if err != nil || !c.Reset || c.Whole != 0 || c.Before != some {
		t.Errorf("%+v, %v; want a reset after %d", c, err, some)
	}
	if c, err := find(all, "Ip.OutRequests"); err != nil || c.Reset {
		t.Errorf("%+v, %v", c, err)
	}
}

// Without rights, what is out of reach is said once each and the rest is read.
func TestWithoutRights(t *testing.T) {
	w := newBed(t, 1, false)
	w.b.filter(t, func(c *nftables.Conn) { c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "any"}) })
	nobody := func(f func() error) error {
		return w.b.Do(func() error {
			var none [2]unix.CapUserData
			header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
			var held [2]unix.CapUserData
			if err := unix.Capget(&header, &held[0]); err != nil {
				return err
			}
			none[0].Permitted, none[1].Permitted = held[0].Permitted, held[1].Permitted // to come back
			if err := unix.Capset(&header, &none[0]); err != nil {
				return err
			}
			err := f()
			return errors.Join(err, unix.Capset(&header, &held[0]))
		})
	}
	r, err := Open(nobody)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s := r.Read()
		if len(s.Unread) != 1 || !strings.HasPrefix(s.Unread[0], "nft rules: ") || !strings.Contains(s.Unread[0], "not permitted") {
			t.Errorf("unread: %q, want one line about nft rules", s.Unread)
		}
		if !slices.ContainsFunc(s.readings, func(r reading) bool { return r.name == "dev.b0.rx_dropped" }) {
			t.Error("interfaces were not read")
		}
	}
}
