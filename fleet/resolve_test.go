package fleet

import (
	"context"
	"net"
	"net/netip"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestResolve: the families of a name take turns; a dead or lossy DNS has its time.
func TestResolve(t *testing.T) {
	real := lookup
	t.Cleanup(func() { lookup = real })
	const dead = ": the name cannot be resolved: no DNS server answered within 5 s; give an address, or mend this host's DNS"
	for _, c := range []struct {
		name, host, answer string
		family             int
		lost               int32 // questions without an answer
		want               string
		after              time.Duration
	}{
		{"an address", "::ffff:10.0.0.1", "", 0, 0, "10.0.0.1", 0},
		{"turns", "x", "fd00::1 fd00::2 10.0.0.1 10.0.0.2 10.0.0.3", 0, 0,
			"fd00::1 10.0.0.1 fd00::2 10.0.0.2 10.0.0.3", 0},
		{"one family", "x", "fd00::1 10.0.0.1 10.0.0.2", 4, 0, "10.0.0.1 10.0.0.2", 0},
		{"not of the family", "x", "10.0.0.1", 6, 0, "x: no such host with an IPv6 address", 0},
		{"none of the family", "x", "", 6, 0, "x: no such host with an IPv6 address", 0},
		{"many", "x", "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6 10.0.0.7 10.0.0.8 10.0.0.9", 0, 0,
			"10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6 10.0.0.7 10.0.0.8", 0},
		{"a lost question", "x", "10.0.0.1", 0, 1, "10.0.0.1", resolveAgain},
		{"dead", "x", "10.0.0.1", 0, 2, "x" + dead, resolveMost},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked atomic.Int32 // two questions may be on the way
				lookup = func(ctx context.Context, _, host string) ([]netip.Addr, error) {
					if asked.Add(1) <= c.lost {
						<-ctx.Done()
						return nil, &net.DNSError{Err: "i/o timeout", Name: host, IsTimeout: true}
					}
					if c.answer == "" { // as of a name in /etc/hosts
						return nil, &net.AddrError{Err: "no suitable address found", Addr: host}
					}
					return addressesOf(c.answer), nil
				}
				begun := time.Now()
				got, err := Resolve(t.Context(), c.host, c.family)
				if took := time.Since(begun); took != c.after {
					t.Errorf("took %v, want %v", took, c.after)
				}
				if err != nil && err.Error() != c.want || err == nil && !reflect.DeepEqual(got, addressesOf(c.want)) {
					t.Errorf("got  %v, %v\nwant %s", got, err, c.want)
				}
			})
		})
	}
}

// TestAddressesInTurn: the first address that admits is used; all that fail are told.
func TestAddressesInTurn(t *testing.T) {
	t.Parallel()
	listen := func(at string, port uint16) net.Listener {
		l, err := net.Listen("tcp", netip.AddrPortFrom(netip.MustParseAddr(at), port).String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	h := hubAt(t, func(c *HubConfig) { c.Listen = netip.MustParseAddrPort("127.0.0.21:0") })
	good, port := h.Addr(), h.Addr().Port()
	refused := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.22"), port)
	silent := listen("127.0.0.23", port).Addr().(*net.TCPAddr).AddrPort()
	for _, c := range []struct {
		name, code string
		addresses  []netip.AddrPort
		want       string // "" admitted by the good one
	}{
		{"refused first", testCode, []netip.AddrPort{refused, good}, ""},
		{"refused last", testCode, []netip.AddrPort{good, refused}, ""},
		{"silent first", testCode, []netip.AddrPort{silent, refused, good}, ""},
		{"wrong code", "otter-11-blue", []netip.AddrPort{refused, good},
			good.String() + ": wrong code: pelt serve printed the right one there; it changes with each start"},
		{"none", testCode, []netip.AddrPort{refused, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.24"), port)},
			strings.ReplaceAll("none of that host's 2 addresses can be used: 127.0.0.22:P: connection refused: is `pelt serve` running there, on that port?; "+
				"127.0.0.24:P: connection refused: is `pelt serve` running there, on that port?", ":P:", strings.TrimPrefix(good.String(), "127.0.0.21")+":")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l, err := newLink().dial(t.Context(), []byte(c.code), c.addresses...)
			if err == nil {
				defer l.close()
			}
			if err != nil && err.Error() != c.want || err == nil &&
				(c.want != "" || l.addr != good || l.remote() != good) {
				t.Errorf("got  %+v, %v\nwant %s", l, err, c.want)
			}
		})
	}
}
