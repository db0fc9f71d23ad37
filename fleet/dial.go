package fleet

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

const (
	dialTimeout  = 5 * time.Second
	greetTimeout = 5 * time.Second
	admitTimeout = 15 * time.Second // the guard may hold an answer back for maxQueue
	maxGreeting  = 32 << 10         // bytes of the INFO line
)

// Resolve turns a host name or address into the one address that control and
// data will use: the first of the asked family (4 or 6), or the first of any
// with family 0.
func Resolve(ctx context.Context, host string, family int) (netip.Addr, error) {
	network, kind := "ip", ""
	if family != 0 {
		network, kind = fmt.Sprint("ip", family), fmt.Sprintf(" with an IPv%d address", family)
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, network, host)
	for _, a := range found {
		if a = a.Unmap(); family == 0 || a.Is4() == (family == 4) {
			return a, nil
		}
	}
	var dns *net.DNSError
	var otherFamily *net.AddrError // of an address
	if err == nil || errors.As(err, &otherFamily) || errors.As(err, &dns) && dns.IsNotFound {
		return netip.Addr{}, fmt.Errorf("%s: no such host%s", host, kind)
	}
	return netip.Addr{}, fmt.Errorf("%s: the name cannot be resolved (%w); "+
		"give an address, or mend this host's DNS", host, err)
}

// dialHub connects to a hub on another host; pair is nil without a code. Every way it can fail has its own
// line, with what to do.
func dialHub(ctx context.Context, addr netip.AddrPort, pair nkeys.KeyPair) (*link, error) {
	public := ""
	if pair != nil {
		var err error
		if public, err = pair.PublicKey(); err != nil {
			return nil, fmt.Errorf("deriving the key of the code: %w", err)
		}
	}
	d := net.Dialer{Timeout: dialTimeout}
	raw, err := d.DialContext(ctx, "tcp", addr.String())
	if err != nil {
		return nil, dialError(ctx, addr, err)
	}
	quietTCP(raw)
	greeted, err := greet(raw, addr)
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	defer context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Now()) })()
	client := randomHex()
	l := newLink(client, raw)
	greeted.link, greeted.addr = l, addr
	opts := append(l.options(client), l.reconnecting()...)
	opts = append(opts, nats.Timeout(admitTimeout), nats.SetCustomDialer(greeted))
	if pair != nil {
		opts = append(opts, nats.Nkey(public, pair.Sign))
	}
	nc, err := nats.Connect("nats://"+netip.AddrPortFrom(addr.Addr().WithZone(""), addr.Port()).String(), opts...)
	if err != nil {
		_ = raw.Close()
		return nil, greetError(ctx, addr, pair != nil, err)
	}
	l.use(nc)
	return l, nil
}

func dialError(ctx context.Context, addr netip.AddrPort, err error) error {
	var timeout net.Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case isErrno(err, syscall.ECONNREFUSED, 10061):
		return fmt.Errorf("%v: connection refused: is `pelt serve` running there, on that port?", addr)
	case isErrno(err, syscall.EHOSTUNREACH, 10065), isErrno(err, syscall.ENETUNREACH, 10051):
		return fmt.Errorf("%v: no route to that host: check the address and this host's network", addr)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%v: no answer within %v: is that host up, and does its firewall let TCP port %d in?",
			addr, dialTimeout, addr.Port())
	}
	return fmt.Errorf("%v: connecting: %w", addr, err)
}

func greetError(ctx context.Context, addr netip.AddrPort, coded bool, err error) error {
	text := strings.ToLower(err.Error())
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case strings.Contains(text, "authorization violation") && !coded:
		return fmt.Errorf("%v: it wants a code, and none was given: "+
			"say --code with the words that pelt serve prints there%w", addr, silent{errWrongCode})
	case strings.Contains(text, "authorization violation"):
		return fmt.Errorf("%v: %w: the right one stands in the line that pelt serve printed there; "+
			"it changes with each start", addr, errWrongCode)
	case strings.Contains(text, "maximum connections"):
		return fmt.Errorf("%v: too many connections there: try again in a few seconds", addr)
	case errors.Is(err, nats.ErrTimeout) || strings.Contains(text, "timeout"):
		return fmt.Errorf("%v: pelt serve there did not answer within %v: "+
			"it may be overloaded, or slowing down wrong codes from this address", addr, admitTimeout)
	}
	return fmt.Errorf("%v: connecting to pelt serve: %s", addr, plainText(err.Error()))
}

// greeting is a dialer that hands out one connection whose greeting was read
// already and is replayed; later ones only while the link is held.
type greeting struct {
	conn net.Conn
	addr netip.AddrPort
	link *link
}

func (g *greeting) Dial(string, string) (net.Conn, error) {
	if c := g.conn; c != nil {
		g.conn = nil
		return c, nil
	}
	if !g.link.holds() {
		return nil, errLost
	}
	c, err := net.DialTimeout("tcp", g.addr.String(), redialTimeout)
	if err != nil {
		return nil, err
	}
	quietTCP(c)
	again, _ := g.link.renewed()
	go func() { // a path may go away again before the greetings are over
		select {
		case <-again:
		case <-g.link.lost:
		case <-time.After(regreetTimeout):
			_ = c.Close()
		}
	}()
	return g.link.socket(c), nil
}

type replayed struct {
	net.Conn
	r io.Reader
}

func (r *replayed) Read(b []byte) (int, error) { return r.r.Read(b) }

// greet reads the first line a server sends and tells whether it is a hub's.
func greet(raw net.Conn, addr netip.AddrPort) (*greeting, error) {
	if err := raw.SetReadDeadline(time.Now().Add(greetTimeout)); err != nil {
		return nil, fmt.Errorf("%v: %w", addr, err)
	}
	var seen bytes.Buffer
	line, err := bufio.NewReaderSize(io.TeeReader(raw, &seen), maxGreeting).ReadSlice('\n')
	info, isNATS := strings.CutPrefix(string(line), "INFO ")
	var server struct {
		Name string `json:"server_name"`
	}
	switch {
	case len(line) == 0 && err != nil:
		return nil, fmt.Errorf("%v: something listens there but says nothing: "+
			"is it `pelt serve`, and is the port right?", addr)
	case err != nil || !isNATS || json.Unmarshal([]byte(info), &server) != nil:
		return nil, fmt.Errorf("%v: what listens there is not `pelt serve` (it says %.40q): is the port right?", addr, line)
	case server.Name != serverName:
		return nil, fmt.Errorf("%v: a NATS server listens there, but not the one of `pelt serve`: is the port right?", addr)
	}
	if err := raw.SetReadDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("%v: %w", addr, err)
	}
	return &greeting{conn: &replayed{raw, io.MultiReader(&seen, raw)}}, nil
}
