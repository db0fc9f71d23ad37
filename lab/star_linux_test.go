package lab

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
)

// sender ---- switch ---- receiver-1
//
//	|--------- ...
//	'--------- receiver-20
func TestStar(t *testing.T) {
	for _, c := range []struct {
		name  string
		links []string
		delay time.Duration // of a round trip to the last receiver, at least
	}{
		{"cables", nil, 0},
		{"shaped", []string{"receiver:rate=100mbit"}, 0},
		{"emulated", []string{"receiver:rate=100mbit,delay=1ms", "receiver-20:delay=20ms"}, 40 * time.Millisecond},
		{"one way", []string{"receiver-20:delay=30ms,toward=receiver"}, 30 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := openLab(t, "star:20", c.links...)
			if n := len(l.Facts().Links); n > 6 {
				t.Errorf("%d facts about the links", n)
			}
			sender := node(t, l, "sender")
			for i := range 20 {
				receiver := node(t, l, fmt.Sprintf("receiver-%d", i+1))
				for _, family := range []int{4, 6} {
					asked := time.Now()
					if got := exchange(t, sender, receiver, family); got != sender.Addr(family) {
						t.Errorf("%s was asked by %v", receiver.Name(), got)
					}
					if took := time.Since(asked); i == 19 && took < c.delay {
						t.Errorf("%s answered within %v", receiver.Name(), took)
					}
				}
			}
		})
	}
}

// A star's switch sends nothing to others.
func TestStarDoesNotFlood(t *testing.T) {
	l := openLab(t, "star:5")
	sender, other := node(t, l, "sender"), node(t, l, "receiver-4")
	before := framesIn(t, other)
	for range 100 {
		exchange(t, sender, node(t, l, "receiver-2"), 4)
	}
	if n := framesIn(t, other) - before; n > 20 { // an IPv6 report or two
		t.Errorf("%d frames reached receiver-4", n)
	}
}

func framesIn(t *testing.T, n *Node) (frames uint64) {
	t.Helper()
	err := n.Do(func() error {
		link, err := netlink.LinkByName("eth0")
		if err == nil {
			frames = link.Attrs().Statistics.RxPackets
		}
		return err
	})
	must(t, err)
	return frames
}

func TestStarNames(t *testing.T) {
	spec := star(MaxReceivers)
	for i := range spec.links {
		for _, n := range []int{spec.links[i].a, spec.links[i].b} {
			if name := spec.ifaceName(i, n); len(name) > 15 {
				t.Fatalf("interface %s is longer than 15", name)
			}
		}
		toA, toB := spec.relayNames(i)
		if len(toA) > 15 || len(toB) > 15 {
			t.Fatalf("interfaces %s, %s are longer than 15", toA, toB)
		}
	}
	seen := map[netip.Prefix]bool{}
	for _, p := range spec.ports() {
		if p.host == 0 {
			continue
		}
		for _, a := range p.prefixes() {
			if seen[a] {
				t.Fatalf("%v is given twice", a)
			}
			seen[a] = true
		}
	}
}
