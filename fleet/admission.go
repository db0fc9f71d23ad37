package fleet

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"pelt/internal/cpace"
	"pelt/model"
	"pelt/words"
)

const (
	firstByte     = 3 * time.Second  // for a client to begin its handshake
	handshakeTime = 15 * time.Second // for all of it: a path may lose many packets
	guessWait     = time.Second
	maxHandshakes = 256
	maxOfSource   = 16 // of one source
)

// admission takes connections from outside. It hands those of clients that know the code to the NATS server, as pipes
// of this process. Connections of this process are admitted by a token.
type admission struct {
	server   *server.Server
	listener net.Listener // nil: none from outside
	tls      *tls.Config
	guard    *guard
	events   func(said error)
	joins    bool           // agents of other hosts may come
	secrets  []byte         // what each client's secret is made from
	work     chan struct{}  // bounds the shares that are made at a time
	live     sync.WaitGroup // goroutines of connections
	code     []byte

	mu      sync.Mutex
	tokens  map[string]string      // CLIENT that may come with it; "" is this process
	waiting map[*connection]bool   // in their handshake
	room    sync.Cond              // tells, with mu, that one of these has left
	clients map[string]*connection // after it, by CLIENT
	closed  bool
}

// connection is one connection from outside.
type connection struct {
	from   netip.Addr
	conn   net.Conn
	client string // "" in its handshake
	host   string // name of an agent that joined; "" for a controller
	token  string
}

// Check admits a connection to NATS by its token.
func (d *admission) Check(c server.ClientAuthentication) bool {
	token := c.GetOpts().Token
	d.mu.Lock()
	client, known := d.tokens[token]
	delete(d.tokens, token)
	d.mu.Unlock()
	if !known || client == "" {
		return known
	}
	own := "pelt.session." + client + ".>"
	speaks, hears := []string{helloSubject, orderSubject("*", "*", client), own}, []string{own}
	if id, found := strings.CutPrefix(c.GetOpts().Name, agentPrefix); found && id != "" {
		if !d.joins || !model.IsHostName(id) || id == controllerName {
			return false
		}
		d.setHost(client, id)
		speaks = []string{inboxPrefix + ">", "pelt.session.*.*." + id, orderSubject(id, verbHello, client)}
		hears = []string{helloSubject, orderSubject(id, "*", "*"), "pelt.session.*.*." + controllerName}
	}
	// A client speaks to agents, an agent answers clients, and each hears only what is meant for it.
	c.RegisterUser(&server.User{Permissions: &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: speaks},
		Subscribe: &server.SubjectPermission{Allow: append(hears, inboxPrefix+client+".>")},
	}})
	return true
}

// setHost notes which agent a client is, and tells that it joined.
func (d *admission) setHost(client, id string) {
	d.mu.Lock()
	v := d.clients[client]
	if v != nil {
		v.host = id
	}
	d.mu.Unlock()
	if v != nil {
		d.events(words.Errorf("%s joined from %v", id, v.from))
	}
}

func (d *admission) connected() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.clients) > 0
}

// ownToken lets one connection of this process in.
func (d *admission) ownToken() string {
	token := randomHex()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tokens[token] = ""
	return token
}

// serve takes connections until the listener is closed.
func (d *admission) serve() {
	for {
		conn, err := d.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no file descriptors: wait for some
			time.Sleep(10 * time.Millisecond)
			continue
		}
		v := &connection{conn: conn, from: conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()}
		if !d.reserve(v) {
			_ = conn.Close()
			continue
		}
		d.live.Go(func() { d.receive(v) })
	}
}

// reserve takes one of the places for handshakes, few of one source and so many in all; false if the source has its
// few. While all are taken, the source with the most places gives one up, if it has two more at least: few sources
// cannot keep others out. Else it waits: others that a fleet calls with wait in the listener's queue, and are not sent
// away.
func (d *admission) reserve(v *connection) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for !d.closed {
		places := map[netip.Prefix]int{}
		for other := range d.waiting {
			places[SourceOf(other.from)]++
		}
		has := func(v *connection) int { return places[SourceOf(v.from)] }
		if has(v) >= maxOfSource {
			return false
		}
		if len(d.waiting) < maxHandshakes {
			d.waiting[v] = true
			return true
		}
		most := v
		for other := range d.waiting {
			if has(other) > has(most) {
				most = other
			}
		}
		if has(most) > has(v)+1 {
			_ = most.conn.Close() // its handshake ends, and leaves
		}
		d.room.Wait()
	}
	return false
}

// end closes a connection and takes it off all lists. It tells when the connection was that of an agent.
func (d *admission) end(v *connection) {
	_ = v.conn.Close()
	d.mu.Lock()
	d.left(v)
	delete(d.tokens, v.token)
	current := d.clients[v.client] == v
	if current {
		delete(d.clients, v.client)
	}
	tells := current && !d.closed && v.host != ""
	d.mu.Unlock()
	if tells {
		d.events(words.Errorf("%s left", v.host))
	}
}

// receive serves one connection from outside until it ends.
func (d *admission) receive(v *connection) {
	defer d.end(v)
	quietTCP(v.conn)
	_ = v.conn.SetDeadline(time.Now().Add(firstByte)) // fails only if it is closed, as reading it does then
	begun := begunConn{Conn: v.conn, read: bufio.NewReader(v.conn)}
	if _, err := begun.read.Peek(1); err != nil {
		return
	}
	_ = v.conn.SetDeadline(time.Now().Add(handshakeTime))
	c := tls.Server(begun, d.tls)
	client, token, err := d.greet(c, v.from)
	if err != nil || !d.admit(v, client, token) || v.conn.SetDeadline(time.Time{}) != nil {
		return
	}
	d.splice(c, writeDeadline)
}

// begunConn is a connection of which something was read already.
type begunConn struct {
	net.Conn
	read *bufio.Reader
}

func (c begunConn) Read(b []byte) (int, error) { return c.read.Read(b) }

// greet is the server's part of a handshake.
func (d *admission) greet(c *tls.Conn, from netip.Addr) (client, token string, err error) {
	if err = c.Handshake(); err != nil {
		return "", "", err
	}
	first := make([]byte, 1+idBytes+cpace.ShareBytes)
	if _, err = io.ReadFull(c, first); err != nil {
		return "", "", err
	}
	knows, share := first[0], first[1+idBytes:]
	client = hex.EncodeToString(first[1 : 1+idBytes])
	code, err := d.codeOf(knows, client)
	if err != nil {
		return "", "", err
	}
	var guess *allowance
	if knows == knowsCode { // nobody can guess a secret
		if guess = d.takeGuess(from); guess == nil {
			return "", "", ErrWrongCode
		}
	}
	key, err := d.answer(c, client, from, code, share)
	switch {
	case err == nil && guess != nil:
		d.guard.giveBack(guess)
	case guess != nil && errors.Is(err, ErrWrongCode):
		d.events(words.Errorf("wrong code from %v", from))
	case guess != nil && !errors.Is(err, net.ErrClosed): // else this side ends
		d.events(words.Errorf("a connection from %v ended before it proved the code", from))
	}
	if err != nil {
		return "", "", err
	}
	if knows == knowsCode && !d.joins {
		d.events(words.Errorf("client connected from %v", from))
	}
	return client, tokenOf(key), nil
}

// takeGuess takes a guess from the allowance of a source; nil if there is none. It waits for a moment: many hosts
// that come at once, with the right code, give theirs back.
func (d *admission) takeGuess(from netip.Addr) (guess *allowance) {
	for end := time.Now().Add(guessWait); guess == nil && time.Now().Before(end); {
		if guess = d.guard.begin(from, time.Now()); guess == nil {
			time.Sleep(guessWait / 50)
		}
	}
	return guess
}

// answer returns the key if the client proves that it knows the code.
func (d *admission) answer(c *tls.Conn, client string, from netip.Addr, code, share []byte) (*cpace.Key, error) {
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
		_, _ = c.Write([]byte{wrong}) // it may be gone
		return nil, ErrWrongCode
	}
	seen := from.As16()
	_, err = c.Write(slices.Concat(key.Tag(), d.secretOf(client), seen[:]))
	return key, err
}

// codeOf returns the word that a client says it knows: its secret or the code. The code is refused while another
// connection has the client's name.
func (d *admission) codeOf(knows byte, client string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case knows == knowsSecret:
		return d.secretOf(client), nil
	case knows == knowsCode && d.clients[client] == nil: // nobody takes the place of another
		return d.code, nil
	}
	return nil, ErrWrongCode
}

// secretOf returns the secret with which a client is admitted again. It is always the same, because a client may miss
// the end of a handshake.
func (d *admission) secretOf(client string) []byte {
	m := hmac.New(sha256.New, d.secrets)
	m.Write([]byte(client))
	return m.Sum(nil)
}

// left gives the place of a handshake to another. The caller holds mu.
func (d *admission) left(v *connection) {
	delete(d.waiting, v)
	d.room.Signal()
}

// admit makes a client known, in place of the connection that it may have had.
func (d *admission) admit(v *connection, client, token string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.clients[client]
	if d.closed || before == nil && len(d.clients) >= maxConnections {
		return false
	}
	if before != nil {
		_ = before.conn.Close()
	}
	d.left(v)
	v.client, v.token = client, token
	d.clients[client], d.tokens[token] = v, client
	return true
}

// splice joins a connection with the NATS server until either side ends, or the client does not read.
func (d *admission) splice(c net.Conn, writeWithin time.Duration) {
	pipe, err := d.server.InProcessConn()
	if err != nil {
		return
	}
	d.live.Go(func() {
		_, _ = io.Copy(pipe, c)
		_ = pipe.Close()
	})
	_, _ = io.Copy(deadlineWriter{c, writeWithin}, pipe)
	_, _ = pipe.Close(), c.Close()
}

// deadlineWriter is a connection each of whose writes must end within a time.
type deadlineWriter struct {
	conn   net.Conn
	within time.Duration
}

func (t deadlineWriter) Write(b []byte) (int, error) {
	_ = t.conn.SetWriteDeadline(time.Now().Add(t.within))
	return t.conn.Write(b)
}

// addressOf tells where a client is connected from; invalid if it is not.
func (d *admission) addressOf(client string) netip.Addr {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v := d.clients[client]; v != nil {
		return v.from
	}
	return netip.Addr{}
}

// refuse admits nobody from now on.
func (d *admission) refuse() {
	if d.listener != nil {
		_ = d.listener.Close()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.room.Signal()
	for v := range d.waiting {
		_ = v.conn.Close()
	}
}

// close returns once what was written to clients has left, and waits no longer than flushTime for it. The server is
// down.
func (d *admission) close() {
	late := time.AfterFunc(flushTime, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, v := range d.clients {
			_ = v.conn.Close()
		}
	})
	defer late.Stop()
	d.live.Wait()
}
