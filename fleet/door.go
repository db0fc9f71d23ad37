package fleet

import (
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"pelt/internal/cpace"
)

const (
	handshakeTimeout = 3 * time.Second
	maxHandshakes    = 256
	maxOfAddress     = 16          // connections of one IPv4 address or IPv6 /64
	secretLife       = time.Minute // after a connection ended; the longest reconnect window
)

// door takes connections from outside, and hands those of clients that know the code to the NATS
// server as pipes of this process. Connections of this process come by a token, too.
type door struct {
	server   *server.Server
	listener net.Listener // nil: none from outside
	tls      *tls.Config
	guard    *guard
	events   func(text string)
	open     bool
	work     chan struct{}  // bounds the shares that are made at a time
	live     sync.WaitGroup // goroutines of connections

	mu      sync.Mutex
	code    []byte
	tokens  map[string]string   // CLIENT that may come with it; "" is this process
	clients map[string]*visitor // by CLIENT
	waiting []*visitor          // in their handshake, the oldest first
	from    map[netip.Prefix]int
	closed  bool
}

// visitor is one connection from outside, and after it its client for a while.
type visitor struct {
	addr   netip.AddrPort
	conn   net.Conn // nil: it is gone
	secret []byte
	forget *time.Timer
}

// Check admits a connection to NATS by its token.
func (d *door) Check(c server.ClientAuthentication) bool {
	token := c.GetOpts().Token
	d.mu.Lock()
	client, known := d.tokens[token]
	delete(d.tokens, token)
	d.mu.Unlock()
	if !known || client == "" {
		return known
	}
	// A client speaks to agents and hears only what is meant for it.
	c.RegisterUser(&server.User{Permissions: &server.Permissions{
		Publish: &server.SubjectPermission{
			Allow: []string{helloSubject, "pelt.agent.>", "pelt.session." + client + ".>"}},
		Subscribe: &server.SubjectPermission{
			Allow: []string{"pelt.inbox." + client + ".>", "pelt.session." + client + ".>"}},
	}})
	return true
}

// ownToken lets one connection of this process in.
func (d *door) ownToken() string {
	token := randomHex()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tokens[token] = ""
	return token
}

// serve takes connections until the listener is closed.
func (d *door) serve() {
	for {
		conn, err := d.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no file descriptors: wait for some
			time.Sleep(10 * time.Millisecond)
			continue
		}
		from := conn.RemoteAddr().(*net.TCPAddr).AddrPort()
		v := &visitor{conn: conn, addr: netip.AddrPortFrom(from.Addr().Unmap(), from.Port())}
		if !d.enter(v) {
			_ = conn.Close()
			continue
		}
		d.live.Go(func() { d.receive(v) })
	}
}

// enter finds room for a connection.
func (d *door) enter(v *visitor) bool {
	source := sourceOf(v.addr.Addr())
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.from[source] >= maxOfAddress || len(d.clients) >= maxConnections {
		return false
	}
	if len(d.waiting) >= maxHandshakes { // the oldest has had its time; first of all one that has guessed
		at := 0
		for i, w := range d.waiting {
			if d.guard.suspect(w.addr.Addr()) {
				at = i
				break
			}
		}
		_ = d.waiting[at].conn.Close()
		d.waiting = append(d.waiting[:at:at], d.waiting[at+1:]...)
	}
	d.from[source]++
	d.waiting = append(d.waiting, v)
	return true
}

// handshaken ends the wait of a connection.
func (d *door) handshaken(v *visitor) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, w := range d.waiting {
		if w == v {
			d.waiting = append(d.waiting[:i:i], d.waiting[i+1:]...)
			return
		}
	}
}

func (d *door) leave(v *visitor, client string) {
	_ = v.conn.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	source := sourceOf(v.addr.Addr())
	if d.from[source]--; d.from[source] == 0 {
		delete(d.from, source)
	}
	if client == "" || d.clients[client] != v {
		return
	}
	v.conn = nil
	v.forget = time.AfterFunc(secretLife, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.clients[client] == v {
			delete(d.clients, client)
		}
	})
}

// receive is the life of one connection from outside.
func (d *door) receive(v *visitor) {
	quietTCP(v.conn)
	_ = v.conn.SetDeadline(time.Now().Add(handshakeTimeout))
	c := tls.Server(v.conn, d.tls)
	who, err := d.greet(c, v.addr.Addr())
	d.handshaken(v)
	client := ""
	if err == nil {
		client, err = who.client, d.admit(v, who)
	}
	if err == nil {
		_ = v.conn.SetDeadline(time.Time{})
		d.splice(c)
	}
	d.leave(v, client)
}

// greet is the server's part of a handshake.
func (d *door) greet(c *tls.Conn, from netip.Addr) (who identity, err error) {
	if err = c.Handshake(); err != nil {
		return who, err
	}
	asks := asksCode
	if d.open {
		asks = asksNothing
	}
	if _, err = c.Write([]byte{asks}); err != nil {
		return who, err
	}
	first := make([]byte, 1+idBytes+cpace.ShareBytes)
	if _, err = io.ReadFull(c, first); err != nil {
		return who, err
	}
	client, share := hex.EncodeToString(first[1:1+idBytes]), first[1+idBytes:]
	code, err := d.codeOf(first[0], client)
	if err != nil {
		return who, err
	}
	guess := first[0] == knowsCode && !d.open // nobody can guess a secret
	if guess && !d.guard.begin(from, time.Now()) {
		return who, errWrongCode
	}
	key, err := d.answer(c, code, share)
	switch {
	case err != nil && guess:
		d.guessed(from)
	case guess:
		d.guard.right(from)
	}
	if err != nil {
		return who, err
	}
	return newIdentity(client, key), nil
}

// answer returns the key if the client proves that it knows the code.
func (d *door) answer(c *tls.Conn, code, share []byte) (*cpace.Key, error) {
	channel, err := channelOf(c)
	if err != nil {
		return nil, err
	}
	d.work <- struct{}{}
	run, err := cpace.Start(code, channel)
	var key *cpace.Key
	if err == nil {
		key, err = run.Key(share, false)
	}
	<-d.work
	if err != nil {
		return nil, err
	}
	if _, err = c.Write(run.Share); err != nil {
		return nil, err
	}
	tag := make([]byte, cpace.TagBytes)
	if _, err = io.ReadFull(c, tag); err != nil {
		return nil, err
	}
	if !key.Proves(tag) {
		return nil, errWrongCode
	}
	_, err = c.Write(key.Tag())
	return key, err
}

// codeOf is what a client has to know.
func (d *door) codeOf(knows byte, client string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.clients[client]
	switch {
	case knows == knowsCode && v == nil:
		return d.code, nil
	case knows == knowsSecret && v != nil:
		return v.secret, nil
	}
	return nil, errWrongCode
}

// guessed counts a wrong guess, and renews the code when it has been tried often enough.
func (d *door) guessed(from netip.Addr) {
	d.events(fmt.Sprintf("wrong code from %v", from))
	if !d.guard.guessed() {
		return
	}
	code, err := NewCode()
	if err != nil {
		return
	}
	d.mu.Lock()
	d.code = []byte(code)
	d.mu.Unlock()
	d.events(fmt.Sprintf("%d wrong guesses: the code is %s from now on", codeGuesses, code))
}

// admit makes a client known, in place of the connection that it may have had.
func (d *door) admit(v *visitor, who identity) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errLost
	}
	if before := d.clients[who.client]; before != nil {
		if before.conn != nil {
			_ = before.conn.Close()
		}
		if before.forget != nil {
			before.forget.Stop()
		}
	} else {
		d.events(fmt.Sprintf("client connected from %v", v.addr.Addr()))
	}
	v.secret = who.secret
	d.clients[who.client], d.tokens[who.token] = v, who.client
	return nil
}

// splice joins a connection with the NATS server until either side ends.
func (d *door) splice(c *tls.Conn) {
	pipe, err := d.server.InProcessConn()
	if err != nil {
		return
	}
	d.live.Go(func() {
		_, _ = io.Copy(pipe, c)
		_ = pipe.Close()
	})
	_, _ = io.Copy(c, pipe)
	_, _ = pipe.Close(), c.Close()
}

// addressOf tells where a client is connected from; invalid if it is not.
func (d *door) addressOf(client string) netip.AddrPort {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v := d.clients[client]; v != nil && v.conn != nil {
		return v.addr
	}
	return netip.AddrPort{}
}

// close ends all connections from outside.
func (d *door) close() {
	if d.listener != nil {
		_ = d.listener.Close()
	}
	d.mu.Lock()
	d.closed = true
	for _, v := range d.waiting {
		_ = v.conn.Close()
	}
	for _, v := range d.clients {
		if v.conn != nil {
			_ = v.conn.Close()
		}
		if v.forget != nil {
			v.forget.Stop()
		}
	}
	d.mu.Unlock()
	d.live.Wait()
}
