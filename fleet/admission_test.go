package fleet

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"pelt/internal/testenv"
)

func addressesOf(text string) (all []netip.Addr) {
	for a := range strings.FieldsSeq(text) {
		all = append(all, netip.MustParseAddr(a))
	}
	return all
}

func TestGuard(t *testing.T) {
	now := time.Now()
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
		later           int // of the first address, sourceAgain later
	}{
		{"an address", "192.0.2.1 ::ffff:192.0.2.1", sourceGuesses, 1},
		{"a /48", "2001:db8::1 2001:db8:0:1::2 2001:db8:0:2::3", sourceGuesses, 1},
		{"many addresses", "10.0.0.1 10.0.0.2 192.0.2.3 192.0.2.4 192.0.2.5 2001:db8::6", allGuesses, 2},
	} {
		g := &guard{sources: map[netip.Prefix]*allowance{}}
		if n := many(g, now, addressesOf(c.addresses)); n != c.most {
			t.Errorf("%s: %d guesses, want %d", c.name, n, c.most)
		}
		if n := many(g, now.Add(sourceAgain+time.Millisecond), addressesOf(c.addresses)[:1]); n != c.later {
			t.Errorf("%s: %d guesses after %v, want %d", c.name, n, sourceAgain, c.later)
		}
	}
	crowd := make([]netip.Addr, 500)
	for i := range crowd {
		crowd[i] = netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)})
	}
	g := &guard{sources: map[netip.Prefix]*allowance{}}
	for hour := range 3 {
		now = now.Add(time.Hour)
		if n := many(g, now, crowd); n != allGuesses {
			t.Errorf("hour %d: strangers have %d guesses, want %d", hour, n, allGuesses)
		}
		now = now.Add(allAgain)
		for range 100 { // a right answer costs nothing
			guess := g.begin(netip.MustParseAddr("203.0.113.1"), now)
			if guess == nil {
				t.Fatalf("hour %d: no guess is left after %v", hour, allAgain)
			}
			g.giveBack(guess)
		}
	}
	for range 1000 { // sources that have used nothing are forgotten, and refused ones are not remembered
		many(g, now, crowd)
		now = now.Add(allAgain)
	}
	if n, most := len(g.sources), allGuesses+int(sourceAgain/allAgain)+1; n > most {
		t.Errorf("%d sources are remembered, want %d at most", n, most)
	}
}

// Few handshakes of a source go on at a time, and so many of all: one more waits. Clients that are in do not count.
func TestPlaces(t *testing.T) { synctest.Test(t, places) }

func places(t *testing.T) {
	d := &admission{waiting: map[*connection]bool{}, clients: map[string]*connection{}, tokens: map[string]string{}}
	d.room.L = &d.mu
	enter := func(from string) (*connection, bool) {
		conn, _ := net.Pipe()
		v := &connection{conn: conn, from: netip.MustParseAddr(from)}
		return v, d.reserve(v)
	}
	first, _ := enter("192.0.2.1")
	for i := 1; i <= maxOfSource; i++ {
		if _, ok := enter("192.0.2.1"); ok != (i < maxOfSource) {
			t.Errorf("connection %d of a source: %v", i, ok)
		}
	}
	if d.end(first); len(d.waiting) != maxOfSource-1 {
		t.Errorf("%d wait once one left", len(d.waiting))
	}
	if _, ok := enter("192.0.2.1"); !ok {
		t.Error("another one does not get the place of one that left")
	}
	in, _ := enter("192.0.2.2")
	last := in
	if !d.admit(in, "client", "token") || len(d.waiting) != maxOfSource {
		t.Errorf("a client that is in counts: %d wait", len(d.waiting))
	}
	for i := maxOfSource; i < maxHandshakes; i++ {
		v, ok := enter(fmt.Sprint("10.0.0.", i/maxOfSource))
		if last = v; !ok {
			t.Errorf("connection %d is refused", i)
		}
	}
	for _, c := range []struct {
		name string
		ends func()
		want bool
	}{
		{"one leaves", func() { d.end(last) }, true},
		{"one is let in", func() { d.admit(last, "another", "token") }, true},
		{"the hub ends", d.refuse, false},
	} {
		entered := make(chan bool, 1)
		go func() {
			v, ok := enter("203.0.113.1")
			last = v
			entered <- ok
		}()
		synctest.Wait()
		if len(entered) > 0 {
			t.Fatal("a connection more than there are places")
		}
		c.ends()
		if got := <-entered; got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestCrowdedSource: few sources that hold all places do not keep another one out; the hosts of a fleet, which have one
// place each, keep theirs.
func TestCrowdedSource(t *testing.T) {
	for _, c := range []struct {
		sources int
		enters  bool
	}{{maxHandshakes / maxOfSource, true}, {maxHandshakes, false}} {
		synctest.Test(t, func(t *testing.T) {
			d := &admission{waiting: map[*connection]bool{}, clients: map[string]*connection{}, tokens: map[string]string{}}
			d.room.L = &d.mu
			enter := func(from netip.Addr) bool {
				conn, _ := net.Pipe()
				v := &connection{conn: conn, from: from}
				if !d.reserve(v) {
					return false
				}
				go func() {
					_, _ = conn.Read(make([]byte, 1)) // until it is closed
					d.end(v)
				}()
				return true
			}
			for i := range maxHandshakes {
				enter(netip.AddrFrom4([4]byte{10, 0, byte(i % c.sources), 1}))
			}
			entered := make(chan bool, 1)
			go func() { entered <- enter(netip.MustParseAddr("203.0.113.1")) }()
			synctest.Wait()
			if got := len(entered) > 0; got != c.enters {
				t.Errorf("%d sources hold all places, and another one enters: %v", c.sources, got)
			}
			d.refuse()
			if got := <-entered; got != c.enters {
				t.Errorf("%d sources held all places, and another one entered: %v", c.sources, got)
			}
		})
	}
}

// hubAt is a hub with a code that listens.
func hubAt(t testing.TB, change func(*HubConfig)) *Hub {
	t.Helper()
	cfg := HubConfig{Listen: netip.MustParseAddrPort("127.0.0.1:0"), Code: testCode}
	if change != nil {
		change(&cfg)
	}
	h, err := StartHub(cfg)
	testenv.Must(t, err)
	t.Cleanup(func() { h.Close() })
	return h
}

// guesserAt is an address of loopback that no other client comes from.
const guesserAt = "127.0.0.9"

func dialGuesser(t *testing.T, h *Hub) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(guesserAt)}, Timeout: 3 * time.Second}
	c, err := d.Dial("tcp", h.Addr().String())
	testenv.Must(t, err)
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

// What is gone leaves nothing, and comes back with the secret that it has, also if it missed an answer.
func TestGoneClients(t *testing.T) {
	t.Parallel()
	h := hubAt(t, nil)
	_, who, err := greet(dialGuesser(t, h), knowsCode, []byte(testCode), randomHex(), testenv.Patience)
	testenv.Must(t, err)
	testenv.Await(t, "the first is known", func() bool { // which is after its answer
		h.admission.mu.Lock()
		defer h.admission.mu.Unlock()
		return h.admission.clients[who.client] != nil
	})
	if _, _, err := greet(dialGuesser(t, h), knowsCode, []byte(testCode), who.client,
		testenv.Patience); err == nil {
		t.Error("another client took the name of one that is connected")
	}
	again := dialGuesser(t, h)
	writes := 0
	busy := busyPath{again, func() { // the client's tag is its last write
		if writes++; writes == 4 {
			time.AfterFunc(20*time.Millisecond, func() { again.Close() })
		}
	}}
	_, _, _ = greet(busy, knowsSecret, who.secret, who.client, testenv.Patience)
	again.Close()
	gone := func() bool {
		h.admission.mu.Lock()
		defer h.admission.mu.Unlock()
		return len(h.admission.clients)+len(h.admission.tokens)+len(h.admission.waiting) == 0
	}
	testenv.Await(t, "nothing is left of them", gone)
	last := dialGuesser(t, h)
	if _, _, err := greet(last, knowsSecret, who.secret, who.client, testenv.Patience); err != nil {
		t.Errorf("with the secret: %v", err)
	}
	last.Close()
	testenv.Await(t, "nothing is left of it", gone)
}

// A client has few subscriptions, of few names.
func TestSubscriptionsOfAClient(t *testing.T) {
	t.Parallel()
	h := hubAt(t, nil)
	l, err := dialHub(t.Context(), h.Addr(), []byte(testCode))
	testenv.Must(t, err)
	defer l.close()
	for i := range 3 * maxSubscriptions {
		deep := strings.Repeat(".a", i%2*(maxSubTokens-3))
		if _, err := l.nc.Subscribe(fmt.Sprint(inboxPrefix, l.client, ".", i, deep), func(*nats.Msg) {}); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Must(t, l.nc.Flush())
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
		h.admission.splice(there, 10*time.Millisecond)
		close(ended)
	}()
	testenv.Receive(t, "the end of a client that does not read", ended)
}

// A full server takes a client back, and no other.
func TestFullServer(t *testing.T) {
	d := &admission{tokens: map[string]string{}, clients: map[string]*connection{}}
	visit := func(client int) bool {
		conn, _ := net.Pipe()
		return d.admit(&connection{conn: conn}, fmt.Sprint(client), randomHex())
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
