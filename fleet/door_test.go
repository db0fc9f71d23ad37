package fleet

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

func TestGuard(t *testing.T) {
	now := time.Now()
	list := func(text string) (all []netip.Addr) {
		for a := range strings.FieldsSeq(text) {
			all = append(all, netip.MustParseAddr(a))
		}
		return all
	}
	many := func(g *guard, now time.Time, addresses []netip.Addr) (n int) {
		for i := range 1000 {
			if g.begin(addresses[i%len(addresses)], now) != nil {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		name, addresses string
		most            int
		later           int // of the first address, addressAgain later
	}{
		{"an address", "192.0.2.1 ::ffff:192.0.2.1", addressGuesses, 1},
		{"a /64", "2001:db8::1 2001:db8::2", addressGuesses, 1},
		{"a /48", "fd00:0:0:1:: fd00:0:0:2:: fd00:0:0:3:: fd00:0:0:4:: fd00:0:0:5:: fd00:0:0:6::", siteGuesses, 2},
		{"own addresses", "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6", 6 * addressGuesses, 1},
		{"strangers", "192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4 192.0.2.5 192.0.2.6", codeGuesses + networkGuesses, 2},
	} {
		g := newGuard()
		if n := many(g, now, list(c.addresses)); n != c.most {
			t.Errorf("%s: %d guesses, want %d", c.name, n, c.most)
		}
		if n := many(g, now.Add(addressAgain+time.Millisecond), list(c.addresses)[:1]); n != c.later {
			t.Errorf("%s: %d guesses after %v, want %d", c.name, n, addressAgain, c.later)
		}
	}
	crowd := make([]netip.Addr, 50)
	for i := range crowd {
		crowd[i] = netip.AddrFrom4([4]byte{198, 18, 0, byte(i)})
	}
	g := newGuard()
	in := netip.MustParseAddr("198.18.1.1")
	g.giveBack(g.begin(in, now), true)
	for hour := range 3 {
		now = now.Add(time.Hour)
		many(g, now, crowd)
		for i := range 2 * networkGuesses {
			if may := g.begin(netip.MustParseAddr("203.0.113.9"), now) != nil; hour == 0 && may != (i < networkGuesses) {
				t.Errorf("guess %d from another network, among strangers: %v", i, may)
			}
		}
		for _, other := range list("192.0.2.9 2001:db8::9 198.18.1.1") {
			for range 100 { // a right answer costs nothing
				guess := g.begin(other, now)
				if guess == nil {
					t.Fatalf("hour %d: strangers of one network keep out %v", hour, other)
				}
				g.giveBack(guess, other == in)
			}
		}
	}
	before := len(g.sources)
	if many(g, now, crowd); len(g.sources) != before {
		t.Errorf("%d refused sources are remembered", len(g.sources)-before)
	}
	for i := range 2 * maxSources {
		g.begin(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), now)
	}
	if len(g.sources) > maxSources {
		t.Errorf("%d sources are remembered", len(g.sources))
	}
}

// A connection that comes when too many are in their handshake makes one end.
func TestWhoGivesWay(t *testing.T) {
	address := func(n int) netip.AddrPort {
		return addrPort(netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}), 4000)
	}
	for _, c := range []struct {
		name  string
		from  func(i int) int // address of the i-th
		began []int           // addresses with a guess under way
		wrong []int           // addresses that guessed wrong
		gone  int             // which ends
	}{
		{"all are alike", func(i int) int { return i }, nil, nil, 0},
		{"one has two", func(i int) int { return max(i, 9) - 9 }, nil, nil, 0},
		{"late ones have two", func(i int) int { return min(i, 250) }, nil, nil, 250},
		{"one is guessing", func(i int) int { return i }, []int{7}, nil, 0},
		{"one guessed wrong", func(i int) int { return i }, []int{7}, []int{8}, 8},
		{"one guessed wrong, another has many", func(i int) int { return max(i, 9) - 9 }, nil, []int{100}, 109},
	} {
		d := &door{guard: newGuard(), from: map[netip.Prefix]int{}}
		for _, n := range c.began {
			d.guard.begin(address(n).Addr(), time.Now())
		}
		for _, n := range c.wrong {
			d.guard.fail(d.guard.begin(address(n).Addr(), time.Now()))
		}
		var all []*visitor
		for i := range maxHandshakes + 1 {
			conn, _ := net.Pipe()
			all = append(all, &visitor{conn: conn, addr: address(c.from(i))})
			if i == maxHandshakes {
				all[i].addr = address(5000)
			}
			if !d.enter(all[i]) {
				t.Fatalf("%s: connection %d was refused", c.name, i)
			}
		}
		for i, v := range all {
			if gone := !slices.Contains(d.waiting, v); gone != (i == c.gone) {
				t.Errorf("%s: connection %d ended: %v; want %d", c.name, i, gone, c.gone)
			}
		}
	}
}

// One address holds so many connections, and makes so many a second.
func TestConnectionsOfAnAddress(t *testing.T) {
	d := &door{guard: newGuard(), from: map[netip.Prefix]int{}}
	try := func(begun time.Time) bool {
		conn, _ := net.Pipe()
		v := &visitor{conn: conn, addr: netip.MustParseAddrPort("192.0.2.1:4000"), begun: begun}
		entered := d.enter(v)
		if entered {
			d.leave(v)
		}
		return entered
	}
	begun := time.Now().Add(50*time.Millisecond - countedFor)
	for i := range maxOfAddress + 1 {
		if entered := try(begun); entered != (i < maxOfAddress) {
			t.Errorf("connection %d of this second: %v", i, entered)
		}
	}
	within(t, time.Second, "a second later another may come", func() bool { return try(begun) })
}

// hubAt is a hub with a code that listens.
func hubAt(t *testing.T, change func(*HubConfig)) *Hub {
	t.Helper()
	cfg := HubConfig{Listen: netip.MustParseAddrPort("127.0.0.1:0"), Code: testCode}
	if change != nil {
		change(&cfg)
	}
	h, err := StartHub(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// dialFrom connects from another loopback address.
func dialFrom(t *testing.T, from string, h *Hub) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 3 * time.Second}
	c, err := d.Dial("tcp", h.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// busyPath does something before each write.
type busyPath struct {
	net.Conn
	before func()
}

func (b busyPath) Write(p []byte) (int, error) {
	b.before()
	return b.Conn.Write(p)
}

// Silent connections from 64 addresses do not keep out a client on a long path.
func TestSilentCrowd(t *testing.T) {
	t.Parallel()
	h := hubAt(t, nil)
	next := 0
	silent := func() {
		here := dialFrom(t, fmt.Sprint("127.0.1.", 1+next%64), h).LocalAddr().String()
		next++
		within(t, 3*time.Second, "a silent connection is in", func() bool {
			h.door.mu.Lock()
			defer h.door.mu.Unlock()
			return slices.ContainsFunc(h.door.waiting, func(v *visitor) bool { return v.addr.String() == here })
		})
	}
	for range maxHandshakes {
		silent()
	}
	c := busyPath{dialFrom(t, "127.0.0.9", h), silent}
	if _, _, err := greet(c, knowsCode, []byte(testCode), randomHex(), 3*time.Second); err != nil {
		t.Error(err)
	}
}

// What is gone leaves nothing, and comes back with the secret that it has, also if it missed an answer.
func TestGoneClients(t *testing.T) {
	t.Parallel()
	h := hubAt(t, nil)
	_, who, err := greet(dialFrom(t, "127.0.0.9", h), knowsCode, []byte(testCode), randomHex(), 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	within(t, 3*time.Second, "the first is known", func() bool { // which is after its answer
		h.door.mu.Lock()
		defer h.door.mu.Unlock()
		return h.door.clients[who.client] != nil
	})
	if _, _, err := greet(dialFrom(t, "127.0.0.9", h), knowsCode, []byte(testCode), who.client, 3*time.Second); err == nil {
		t.Error("another client took the name of one that is connected")
	}
	again := dialFrom(t, "127.0.0.9", h)
	writes := 0
	busy := busyPath{again, func() { // the client's tag is its last write
		if writes++; writes == 4 {
			time.AfterFunc(20*time.Millisecond, func() { again.Close() })
		}
	}}
	_, _, _ = greet(busy, knowsSecret, who.secret, who.client, 3*time.Second)
	again.Close()
	gone := func() bool {
		h.door.mu.Lock()
		defer h.door.mu.Unlock()
		return len(h.door.clients)+len(h.door.tokens)+len(h.door.waiting) == 0
	}
	within(t, time.Second, "nothing is left of them", gone)
	last := dialFrom(t, "127.0.0.9", h)
	if _, _, err := greet(last, knowsSecret, who.secret, who.client, 3*time.Second); err != nil {
		t.Errorf("with the secret: %v", err)
	}
	last.Close()
	within(t, time.Second, "nothing is left of it", gone)
}

// A code of the user's own stays.
func TestOwnCodeStays(t *testing.T) {
	t.Parallel()
	h := hubAt(t, func(c *HubConfig) { c.KeepCode = true })
	for i := range codeGuesses {
		from := dialFrom(t, fmt.Sprint("127.0.1.", 1+i/addressGuesses), h)
		_, _, _ = greet(from, knowsCode, []byte("tiger-42-umber"), randomHex(), 3*time.Second)
	}
	if _, _, err := greet(dialFrom(t, "127.0.0.9", h), knowsCode, []byte(testCode), randomHex(), 3*time.Second); err != nil {
		t.Error(err)
	}
}

// A client has few subscriptions, of few names.
func TestSubscriptionsOfAClient(t *testing.T) {
	t.Parallel()
	h := hubAt(t, nil)
	l, err := dialHub(t.Context(), h.Addr(), []byte(testCode))
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	for i := range 3 * maxSubscriptions {
		deep := strings.Repeat(".a", i%2*(maxSubTokens-3))
		if _, err := l.nc.Subscribe(fmt.Sprint(inboxPrefix, l.client, ".", i, deep), func(*nats.Msg) {}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if n := h.server.NumSubscriptions(); n != maxSubscriptions {
		t.Errorf("%d subscriptions, want %d", n, maxSubscriptions)
	}
}

// A client that does not read is given up.
func TestDeafClient(t *testing.T) {
	t.Parallel()
	h := hubWith(t)
	_, there := net.Pipe()
	ended := make(chan struct{})
	go func() {
		h.door.splice(there, 10*time.Millisecond)
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(3 * time.Second):
		t.Error("it is still written to")
	}
}

// A full server takes a client back, and no other.
func TestFullServer(t *testing.T) {
	d := &door{tokens: map[string]string{}, clients: map[string]*visitor{}}
	visit := func(client int) bool {
		conn, _ := net.Pipe()
		return d.admit(&visitor{conn: conn}, fmt.Sprint(client), randomHex())
	}
	for i := range maxConnections {
		if !visit(i) {
			t.Fatalf("client %d was refused", i)
		}
	}
	if visit(maxConnections) || !visit(7) || len(d.clients) != maxConnections {
		t.Errorf("it has %d clients; want %d, one of them back", len(d.clients), maxConnections)
	}
}
