package fleet

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"

	"pelt/finding"
	"pelt/internal/bind"
	"pelt/internal/icmp"
	"pelt/model"
)

const (
	dialTimeout  = 5 * time.Second
	greetTimeout = 5 * time.Second
)

// dial connects a new link to a hub on another host, at the first of its addresses that admits it; code is nil without
// one. Every way it can fail has its own line, with what to do.
func (l *link) dial(ctx context.Context, code []byte, addresses ...netip.AddrPort) (*link, error) {
	in, err := l.admitted(ctx, code, addresses)
	if err != nil {
		return nil, err
	}
	l.client, l.addr, l.raw, l.seen = in.who.client, in.addr, in.raw, in.who.seen
	dialer := &redialer{attempt: in, link: l}
	if l.fleet {
		dialer.code = code
	}
	opts := append(l.options(), l.reconnecting()...)
	opts = append(opts, nats.IgnoreDiscoveredServers(), nats.SkipHostLookup(), nats.Timeout(2*greetTimeout),
		nats.SetCustomDialer(dialer), nats.TokenHandler(dialer.token))
	defer context.AfterFunc(ctx, func() { _ = in.raw.Close() })()
	nc, err := nats.Connect("nats://"+netip.AddrPortFrom(in.addr.Addr().WithZone(""), in.addr.Port()).String(), opts...)
	if err != nil {
		err = l.greetError(ctx, in, err)
		_ = in.raw.Close()
		return nil, err
	}
	l.use(nc)
	return l, nil
}

// attempt is one try to be admitted.
type attempt struct {
	addr  netip.AddrPort
	small bool // only small packets are sent and asked for
	raw   net.Conn
	conn  *tls.Conn
	who   identity
	err   error
}

// Attempts begin one after the other (RFC 8305); a connection that is open gets more time before the next one begins.
// Then each address is tried once more with small packets: the path may lose many packets, or all large ones.
const (
	attemptDelay = 250 * time.Millisecond
	secondDelay  = 2 * time.Second
)

// admitted tries all addresses, each with full and then with small packets, and returns the first connection that the
// hub admits.
func (l *link) admitted(asked context.Context, code []byte, addresses []netip.AddrPort) (attempt, error) {
	ctx, cancel := context.WithCancel(asked)
	tries := 2 * len(addresses)
	results, opened := make(chan attempt, tries), make(chan struct{}, tries)
	var running sync.WaitGroup
	defer func() {
		cancel()
		running.Wait()
		for close(results); len(results) > 0; {
			if late := <-results; late.raw != nil {
				_ = late.raw.Close()
			}
		}
	}()
	failed := map[netip.AddrPort]error{}
	next := time.After(0)
	for begun := 0; len(failed) < len(addresses); {
		select {
		case <-next:
			addr, small := addresses[begun%len(addresses)], begun >= len(addresses)
			if begun++; failed[addr] == nil {
				running.Go(func() { results <- l.attempt(ctx, addr, code, small, opened) })
			}
			switch {
			case begun < len(addresses):
				next = time.After(attemptDelay)
			case begun < tries:
				next = time.After(secondDelay)
			}
		case <-opened:
			if begun < tries {
				next = time.After(secondDelay)
			}
		case one := <-results:
			switch {
			case one.err == nil:
				return one, nil
			case errors.Is(one.err, ErrWrongCode): // the host was found
				return attempt{}, one.err
			case failed[one.addr] == nil:
				failed[one.addr] = one.err
			}
			if begun < len(addresses) {
				next = time.After(0)
			}
		}
	}
	if len(addresses) == 1 || asked.Err() != nil {
		return attempt{}, cmp.Or(asked.Err(), failed[addresses[0]])
	}
	why := finding.NewFault(model.AddressesUseless, "addresses", float64(len(addresses)))
	for _, addr := range addresses {
		why.Of = append(why.Of, finding.ReasonOf(failed[addr]))
	}
	return attempt{}, why
}

// attempt connects to one address and does the handshake. It writes to opened as soon as there is a TCP connection.
func (l *link) attempt(ctx context.Context, addr netip.AddrPort, code []byte, small bool,
	opened chan<- struct{}) attempt {
	a := attempt{addr: addr, small: small}
	var said icmp.Error
	if a.raw, said, a.err = l.connectTCP(ctx, addr, dialTimeout, small); a.err != nil {
		a.err = l.dialError(ctx, addr, a.err, said)
		return a
	}
	opened <- struct{}{}
	defer context.AfterFunc(ctx, func() { _ = a.raw.Close() })()
	quietTCP(a.raw)
	if a.conn, a.who, a.err = greet(a.raw, knowsCode, code, randomHex(), greetTimeout); a.err != nil {
		a.err = l.greetError(ctx, a, a.err)
		_ = a.raw.Close()
	}
	return a
}

// connectTCP opens a TCP connection, before any handshake. With an error it also returns the ICMP error that refused
// it.
func (l *link) connectTCP(ctx context.Context, addr netip.AddrPort, within time.Duration, small bool) (net.Conn,
	icmp.Error, error) {
	d := net.Dialer{Timeout: within, Control: func(_, _ string, raw syscall.RawConn) error {
		if small {
			smallSegments(raw)
		}
		return bind.Conn(raw, l.device)
	}}
	if l.from.IsValid() {
		d.LocalAddr = &net.TCPAddr{IP: l.from.AsSlice(), Zone: l.from.Zone()}
	}
	c, failed, err := icmp.Dial(ctx, d, addr)
	return c, failed.Error, err
}

// greet does the client's part of the handshake over a new connection. Each of the server's three answers has a time.
func greet(raw net.Conn, knows byte, code []byte, client string, each time.Duration) (*tls.Conn, identity, error) {
	_ = raw.SetDeadline(time.Now().Add(each)) // fails only if it is closed, as reading it does then
	c := tls.Client(raw, clientTLS())
	err := c.Handshake()
	var refused *net.OpError
	switch {
	case errors.Is(err, io.EOF), isErrno(err, syscall.ECONNRESET, 10054):
		err = errMute
	case errors.As(err, &refused) && refused.Op == "remote error", // so crypto/tls calls a server's alert
		err == nil && c.ConnectionState().NegotiatedProtocol != controlALPN:
		err = errOtherTLS
	}
	if err != nil {
		return nil, identity{}, err
	}
	_ = raw.SetDeadline(time.Now().Add(2 * each))
	who, err := prove(c, knows, code, client)
	if err == nil {
		err = raw.SetDeadline(time.Time{})
	}
	return c, who, err
}

// program is what shall listen where a link is dialed.
func (l *link) program() string {
	if l.fleet {
		return "pelt hub"
	}
	return "pelt serve"
}

// dialError says why no connection came about, and what to do.
func (l *link) dialError(ctx context.Context, addr netip.AddrPort, err error, said icmp.Error) error {
	var timeout net.Error
	late := errors.As(err, &timeout) && timeout.Timeout()
	why := func(code string, named ...any) error {
		return finding.NewFault(code, append(named, "address", addr, "port", addr.Port())...).From(err)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case isErrno(err, syscall.EADDRNOTAVAIL, 10049) && l.from.IsValid():
		return finding.NewFault(model.SourceNotOwn, "address", l.from).From(err)
	case isErrno(err, syscall.ECONNREFUSED, 10061) && !said.From.IsValid():
		return why(model.ConnectionRefused, "program", l.program())
	case isErrno(err, syscall.ECONNRESET, 10054): // it took the connection, and ended it at once
		return why(model.EndedMute, "program", l.program())
	}
	if of := noWay(addr, l.from.IsValid(), cmp.Or(l.device, addr.Addr().Zone()), said, err); of.Code != "" {
		return (&finding.Fault{Reason: model.Reason{Code: model.CannotConnect, Of: model.Reasons{of},
			Names: map[string]string{"address": addr.String()}}}).From(err)
	}
	switch {
	case isErrno(err, syscall.EHOSTUNREACH, 10065), isErrno(err, syscall.ENETUNREACH, 10051):
		return why(model.WayUnfound)
	case isErrno(err, syscall.EPERM, 10013), isErrno(err, syscall.EACCES, 10013):
		return why(model.OwnPolicyRefuses)
	case late:
		return why(model.ConnectUnanswered, "within_s", dialTimeout.Seconds())
	}
	return why(model.CannotConnect, "text", err)
}

// greetError says why nothing came of a connection.
func (l *link) greetError(ctx context.Context, a attempt, err error) error {
	var header tls.RecordHeaderError
	var timeout net.Error
	text := strings.ToLower(err.Error())
	why := func(code string, named ...any) error {
		return finding.NewFault(code, append(named, "address", a.addr, "program", l.program())...).From(err)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errNoCode):
		return finding.NewFault(model.CodeWanted, "address", a.addr, "program", l.program()).From(ErrWrongCode)
	case errors.Is(err, ErrWrongCode) && l.fleet:
		return why(model.CodeWrong, "hub", "yes")
	case errors.Is(err, nats.ErrAuthorization) && l.fleet:
		return noHubError(a.addr)
	case errors.Is(err, ErrWrongCode):
		return why(model.CodeWrong)
	case errors.As(err, &header):
		return why(model.OtherListens, "said", fmt.Sprintf("%.40q", header.RecordHeader))
	case errors.Is(err, errOtherTLS):
		return why(model.TLSListens)
	case errors.Is(err, errMute):
		return why(model.EndedMute)
	case strings.Contains(text, errForeign.Error()): // NATS does not wrap it
		return why(model.SpeaksForeign)
	case lost(a.raw):
		return why(model.PathLosesControl)
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, nats.ErrTimeout):
		return why(model.SaysNothing, "within_s", greetTimeout.Seconds())
	case errors.Is(err, io.EOF), isErrno(err, syscall.ECONNRESET, 10054):
		return why(model.EndedLater)
	}
	return why(model.EndedBeginning)
}

func noHubError(addr netip.AddrPort) error {
	return finding.NewFault(model.ServeNoHub, "address", addr, "host", withoutUsualPort(addr))
}

// redialer gives NATS its connections: first the one that is admitted already, later new ones.
type redialer struct {
	attempt // the first
	link    *link
	used    bool   // the first connection is handed out
	code    []byte // of a fleet: a hub that was started again knows no secret

	mu sync.Mutex // guards who, which is without a secret once the hub did not know it
}

// SkipTLSHandshake keeps NATS from one of its own.
func (*redialer) SkipTLSHandshake() bool { return true }

// token is for the connection that was made last.
func (d *redialer) token() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.who.token
}

func (d *redialer) Dial(string, string) (net.Conn, error) {
	if !d.used {
		d.used = true
		return &incoming{Conn: d.conn}, nil
	}
	c, err := d.redial()
	if errors.Is(err, ErrWrongCode) && d.dropSecret() {
		c, err = d.redial()
	}
	if errors.Is(err, ErrWrongCode) { // the hub was started again, and knows nothing of what was begun there
		d.link.refused.Store(d.link.fleet)
		go d.link.nc.Close() // calls back, so not from here
	}
	return c, err
}

// dropSecret gives up the secret, so that the code is used: a hub that was started again does not know the secret.
// false: there was no secret, or this link has no code.
func (d *redialer) dropSecret() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	had := d.who.secret != nil && d.link.fleet
	if had {
		d.who.secret = nil
	}
	return had
}

// redial connects to the hub anew and does the handshake, with the secret if there is one.
func (d *redialer) redial() (net.Conn, error) {
	raw, _, err := d.link.connectTCP(context.Background(), d.addr, redialTimeout, d.small)
	if err != nil {
		return nil, err
	}
	again := d.link.reconnection()
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
	d.link.mu.Lock()
	d.link.raw, d.link.seen = raw, who.seen
	d.link.mu.Unlock()
	return &incoming{Conn: c}, nil
}
