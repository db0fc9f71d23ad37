package fleet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	dialTimeout  = 5 * time.Second
	greetTimeout = 5 * time.Second
)

// Resolve turns a host name or address into the one address that control and
// data will use: the first of the asked family (4 or 6), or the first of any
// with family 0.
func Resolve(ctx context.Context, host string, family int) (netip.Addr, error) {
	network, kind := "ip", ""
	if family != 0 {
		network, kind = fmt.Sprint("ip", family), fmt.Sprintf(" with an IPv%d address", family)
	}
	address, err := netip.ParseAddr(host)
	if zone := address.Zone(); zone != "" {
		_, number := strconv.Atoi(zone)
		if _, name := net.InterfaceByName(zone); name != nil && number != nil {
			return netip.Addr{}, fmt.Errorf("%s: this host has no interface %s: want one of its own after the %%", host, zone)
		}
	}
	found := []netip.Addr{address}
	if err != nil { // the resolver would drop the zone of an address
		found, err = net.DefaultResolver.LookupNetIP(ctx, network, host)
	}
	for _, a := range found {
		if a = a.Unmap(); family == 0 || a.Is4() == (family == 4) {
			return a, nil
		}
	}
	var dns *net.DNSError
	if err == nil || errors.As(err, &dns) && dns.IsNotFound {
		return netip.Addr{}, fmt.Errorf("%s: no such host%s", host, kind)
	}
	return netip.Addr{}, fmt.Errorf("%s: the name cannot be resolved (%w); "+
		"give an address, or mend this host's DNS", host, err)
}

// dial connects a new link to a hub on another host; code is nil without one. Every way it can fail has its own
// line, with what to do.
func (l *link) dial(ctx context.Context, addr netip.AddrPort, code []byte) (*link, error) {
	raw, err := l.knock(ctx, addr, dialTimeout)
	if err != nil {
		return nil, l.dialError(ctx, addr, err)
	}
	quietTCP(raw)
	defer context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Now()) })()
	conn, who, err := greet(raw, knowsCode, code, l.client, greetTimeout)
	if err != nil {
		return nil, errors.Join(l.greetError(ctx, addr, err), raw.Close())
	}
	l.raw, l.seen = raw, who.seen
	dialer := &redialer{addr: addr, link: l, first: conn, who: who}
	if l.stays {
		dialer.code = code
	}
	opts := append(l.options(), l.reconnecting()...)
	opts = append(opts, nats.IgnoreDiscoveredServers(), nats.SkipHostLookup(), nats.Timeout(greetTimeout), nats.SetCustomDialer(dialer), nats.TokenHandler(dialer.token))
	nc, err := nats.Connect("nats://"+netip.AddrPortFrom(addr.Addr().WithZone(""), addr.Port()).String(), opts...)
	if err != nil {
		_ = raw.Close()
		return nil, l.greetError(ctx, addr, err)
	}
	l.use(nc)
	return l, nil
}

// knock opens a connection that is not admitted yet.
func (l *link) knock(ctx context.Context, addr netip.AddrPort, within time.Duration) (net.Conn, error) {
	d := net.Dialer{Timeout: within}
	if l.from.IsValid() {
		d.LocalAddr = &net.TCPAddr{IP: l.from.AsSlice(), Zone: l.from.Zone()}
	}
	return d.DialContext(ctx, "tcp", addr.String())
}

// greet makes an admitted connection of a new one.
func greet(raw net.Conn, knows byte, code []byte, client string, within time.Duration) (*tls.Conn, identity, error) {
	if err := raw.SetDeadline(time.Now().Add(within)); err != nil {
		return nil, identity{}, err
	}
	c := tls.Client(raw, clientTLS())
	if err := c.Handshake(); err != nil {
		if errors.Is(err, io.EOF) || isErrno(err, syscall.ECONNRESET, 10054) {
			err = errMute
		}
		return nil, identity{}, err
	}
	who, err := prove(c, knows, code, client)
	if err == nil {
		err = raw.SetDeadline(time.Time{})
	}
	return c, who, err
}

// program is what shall listen where a link is dialed.
func (l *link) program() string {
	if l.stays {
		return "pelt hub"
	}
	return "pelt serve"
}

func (l *link) dialError(ctx context.Context, addr netip.AddrPort, err error) error {
	var timeout net.Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case isErrno(err, syscall.EADDRNOTAVAIL, 10049) && l.from.IsValid():
		return fmt.Errorf("%v is no address of this host: want one for --source-address that it has", l.from)
	case isErrno(err, syscall.ECONNREFUSED, 10061):
		return fmt.Errorf("%v: connection refused: is `%s` running there, on that port?", addr, l.program())
	case isErrno(err, syscall.EHOSTUNREACH, 10065), isErrno(err, syscall.ENETUNREACH, 10051):
		return fmt.Errorf("%v: no route to that host: check the address and this host's network", addr)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%v: no answer within %v: is that host up, and does its firewall let TCP port %d in?",
			addr, dialTimeout, addr.Port())
	}
	return fmt.Errorf("%v: connecting: %w", addr, err)
}

// greetError says why nothing came of a connection.
func (l *link) greetError(ctx context.Context, addr netip.AddrPort, err error) error {
	var header tls.RecordHeaderError
	var alert tls.AlertError
	var timeout net.Error
	text := strings.ToLower(err.Error())
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errNoCode):
		return fmt.Errorf("%v: it wants a code, and none was given: "+
			"put the words that %s printed there into $PELT_CODE, or a file for --code-file%w", addr, l.program(), silent{errWrongCode})
	case errors.Is(err, errWrongCode) && l.stays:
		return fmt.Errorf("%v: %w: pelt hub printed the right one there; a pelt serve is no hub", addr, errWrongCode)
	case errors.Is(err, nats.ErrAuthorization) && l.stays:
		return noHubError(addr)
	case errors.Is(err, errWrongCode):
		return fmt.Errorf("%v: %w: pelt serve printed the right one there; "+
			"it changes with each start", addr, errWrongCode)
	case errors.As(err, &header):
		return fmt.Errorf("%v: what listens there is not this version of `%s` (it says %.40q): is the port right?",
			addr, l.program(), header.RecordHeader)
	case errors.As(err, &alert):
		return fmt.Errorf("%v: a TLS server listens there, but not `%s`: is the port right?", addr, l.program())
	case strings.Contains(text, "maximum connections"):
		return fmt.Errorf("%v: too many connections there: try again in a few seconds", addr)
	case errors.Is(err, errMute):
		return fmt.Errorf("%v: it ended the connection without a word: it may have too many from this address "+
			"(try again in a few seconds), or it is not `%s` (is the port right?)", addr, l.program())
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, nats.ErrTimeout):
		return fmt.Errorf("%v: it took the connection, but no answer came within %v: many packets may be lost on the way "+
			"(try again), or it is not `%s` (is the port right?)", addr, greetTimeout, l.program())
	case errors.Is(err, io.EOF), isErrno(err, syscall.ECONNRESET, 10054):
		return fmt.Errorf("%v: %s there ended the connection: it may be overloaded, or wrong codes came from "+
			"this address: try again later", addr, l.program())
	}
	return fmt.Errorf("%v: connecting to %s: %s", addr, l.program(), plainText(err.Error()))
}

func noHubError(addr netip.AddrPort) error {
	return fmt.Errorf("%v: a `pelt serve` listens there, and hosts join a `pelt hub`: start one there, "+
		"or test with that host alone: pelt curve %s", addr, withoutUsualPort(addr))
}

// redialer hands out one connection that is admitted already; later ones only while the link is held.
type redialer struct {
	addr  netip.AddrPort
	link  *link
	first *tls.Conn
	code  []byte // of a link that stays: a hub that was started again knows no secret

	mu  sync.Mutex
	who identity // without a secret once the hub did not know it
}

// SkipTLSHandshake keeps NATS from one of its own.
func (*redialer) SkipTLSHandshake() bool { return true }

// token is for the connection that was made last.
func (d *redialer) token() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.who.token
}

// Dial returns an admitted connection.
func (d *redialer) Dial(string, string) (net.Conn, error) {
	if c := d.first; c != nil {
		d.first = nil
		return &incoming{Conn: c}, nil
	}
	if _, held := d.link.renewed(); !held {
		return nil, errLost
	}
	c, err := d.again()
	if errors.Is(err, errWrongCode) && d.forget() {
		c, err = d.again()
	}
	if errors.Is(err, errWrongCode) { // the hub was started again, and knows nothing of what was begun there
		d.link.refused.Store(d.link.stays)
		go d.link.nc.Close() // calls back, so not from here
	}
	return c, err
}

// forget gives up the secret, which a hub that was started again does not know; false: there was none, or there is
// no code in its place.
func (d *redialer) forget() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	had := d.who.secret != nil && d.link.stays
	if had {
		d.who.secret = nil
	}
	return had
}

// again makes the connection anew.
func (d *redialer) again() (net.Conn, error) {
	raw, err := d.link.knock(context.Background(), d.addr, redialTimeout)
	if err != nil {
		return nil, err
	}
	again, _ := d.link.renewed()
	d.mu.Lock()
	knows, word, client := knowsSecret, d.who.secret, d.who.client
	if word == nil {
		knows, word = knowsCode, d.code
	}
	d.mu.Unlock()
	c, who, err := greet(raw, knows, word, client, regreetTimeout)
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	d.mu.Lock()
	d.who = who
	d.mu.Unlock()
	go func() { // a path may go away again before the greetings are over
		select {
		case <-again:
		case <-d.link.lost:
		case <-time.After(regreetTimeout):
			_ = raw.Close()
		}
	}()
	d.link.replace(raw, who.seen)
	return &incoming{Conn: c}, nil
}
