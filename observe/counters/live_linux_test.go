package counters

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"pelt/internal/netbed"
	"pelt/internal/testenv"
	"pelt/model"
)

func TestReadHere(t *testing.T) {
	if _, err := Open(testenv.Here); err != nil { // the first of a process opens what Go's runtime waits with
		t.Fatal(err)
	}
	testenv.LeakCheck(t)
	r, err := Open(testenv.Here)
	testenv.Must(t, err)
	s := r.Read()
	t.Logf("unread: %v", s.Unread)
	stat, err := os.ReadFile("/proc/stat")
	testenv.Must(t, err)
	online := strings.Count(string(stat), "\ncpu") // also those that this process may not use
	names := map[string]int{}
	for _, x := range s.readings {
		names[x.name]++
	}
	for name, parts := range map[string]int{"Ip.InReceives": 1, "Udp.RcvbufErrors": 1,
		"TcpExt.IPReversePathFilter": 1, "softnet.dropped": online, "dev.lo.rx_packets": 1} {
		if names[name] != parts {
			t.Errorf("%s was read in %d parts, want %d", name, names[name], parts)
		}
	}
	if os.Geteuid() == 0 && len(s.Unread) > 0 {
		t.Errorf("unread by root: %v", s.Unread)
	}
	want, err := Namespace(testenv.Here)
	if link, _ := os.Readlink("/proc/self/ns/net"); err != nil || r.Namespace() != want ||
		link != fmt.Sprintf("net:[%d]", want) {
		t.Errorf("namespace %d and %d, %v; the link says %s", r.Namespace(), want, err, link)
	}
}

func TestOpenFails(t *testing.T) {
	testenv.LeakCheck(t)
	broken := errors.New("no such namespace")
	if _, err := Open(func(func() error) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("Open: %v", err)
	}
	if _, err := Namespace(func(func() error) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("Namespace: %v", err)
	}
	if k := Knobs(func(func() error) error { return broken }, "eth0"); slices.ContainsFunc(k,
		func(k model.HostSetting) bool { return strings.HasPrefix(k.Name, "eth0") }) {
		t.Errorf("knobs of no namespace: %v", k)
	}
}

// Readers of two namespaces, used by many goroutines on whatever threads, each
// tell of their own namespace only, also while its packets come in.
func TestThreadsReadTheirOwn(t *testing.T) {
	w := newWire(t, 1)
	w.send(t, receiverPort)
	w.settle(t)
	outside, err := Open(testenv.Here)
	testenv.Must(t, err)
	var wait sync.WaitGroup
	for _, c := range []struct {
		reader         *Reader
		sent, lost     uint64
		device, absent string
	}{{w.sender, some, 0, "dev.va.rx_packets", "dev.vb.rx_packets"}, {w.receiver, 0, some, "dev.vb.rx_packets",
		"dev.va.rx_packets"}} {
		for range 8 {
			wait.Go(func() {
				for range 20 {
					s := c.reader.Read()
					sent, _ := sum(s, "Udp.OutDatagrams")
					lost, _ := sum(s, "Udp.NoPorts")
					_, own := sum(s, c.device)
					_, other := sum(s, c.absent)
					if sent != c.sent || lost != c.lost || !own || other {
						t.Errorf("%d sent, %d without a port, %s: %v, %s: %v", sent, lost, c.device, own, c.absent,
							other)
					}
					runtime.Gosched()
					s = outside.Read()
					_, a := sum(s, "dev.va.rx_packets")
					if _, b := sum(s, "dev.vb.rx_packets"); a || b {
						t.Error("the namespace of the process shows va or vb")
					}
				}
			})
		}
	}
	wait.Wait()
	for n, r := range map[*netbed.Node]*Reader{w.Sender: w.sender, w.Receiver: w.receiver} {
		if read, err := Namespace(n.Do); err != nil || read != n.ID() || r.Namespace() != n.ID() {
			t.Errorf("namespace %d (%v) and %d, not %d", read, err, r.Namespace(), n.ID())
		}
	}
	if d := w.sender.Read().Settling(); d != 0 {
		t.Errorf("a veth settles in %v", d)
	}
}

// Without rights, what is out of reach is said once each and the rest is read.
func TestWithoutRights(t *testing.T) {
	w := newWire(t, 1)
	w.Receiver.NFT(func(c *nftables.Conn) {
		c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4,
			Name: "any"})
	})
	nobody := func(f func() error) error {
		return w.Receiver.Do(func() error {
			header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
			var none, held [2]unix.CapUserData
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
	testenv.Must(t, err)
	for range 2 {
		s := r.Read()
		if len(s.Unread) != 1 || s.Unread[0].Name != "nft rules" ||
			!strings.Contains(s.Unread[0].Text, "not permitted") {
			t.Errorf("unread: %v, want one line about nft rules", s.Unread)
		}
		if _, there := sum(s, "dev.vb.rx_dropped"); !there {
			t.Error("interfaces were not read")
		}
	}
}
