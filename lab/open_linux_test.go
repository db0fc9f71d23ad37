package lab

import (
	"strings"
	"testing"
	"time"
)

func childParts() map[string]func() int { return nil }

// direct:  sender ------------- receiver
// switch:  sender -- switch --- receiver
// router:  sender -- router --- receiver
// nat:     sender -- [router -- receiver
func TestTopologies(t *testing.T) {
	for _, top := range Topologies() {
		for _, links := range [][]string{nil, {"rate=100mbit"}, {"rate=50mbit,queue=20", "sender:mtu=1300"}, {"rate=10mbit,toward=sender"}} {
			t.Run(top.Name+"/"+strings.Join(links, ";"), func(t *testing.T) {
				began := time.Now()
				l := openLab(t, top.Name, links...)
				t.Logf("open with the check of the host: %v", time.Since(began))
				sender, receiver := node(t, l, "sender"), node(t, l, "receiver")
				for _, family := range []int{4, 6} {
					want := sender.Addr(family)
					if top.Name == "nat" {
						// The router's first address on the receiver's segment.
						want = node(t, l, "router").Interfaces()[1].Addr4.Addr()
						if family == 6 {
							want = node(t, l, "router").Interfaces()[1].Addr6.Addr()
						}
					}
					if got := exchange(t, sender, receiver, family); got != want {
						t.Errorf("receiver saw %v, want %v", got, want)
					}
				}
				for _, b := range l.Facts().Backends {
					t.Log(b)
				}
			})
		}
	}
}

func TestOpenTime(t *testing.T) {
	watchHost(t)
	for _, top := range Topologies() {
		for _, links := range [][]string{nil, {"rate=1gbit"}} {
			began := time.Now()
			l, err := Open(t.Context(), top.Name, parseLinks(t, links))
			took := time.Since(began)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s %v: %v", top.Name, links, took)
			set := inodes(t, l)
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			expectGone(t, set)
		}
	}
}
