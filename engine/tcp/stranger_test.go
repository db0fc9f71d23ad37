package tcp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"pelt/engine"
	"pelt/engine/enginetest"
	"pelt/internal/testenv"
	"pelt/model"
)

func mustAddr(s string) netip.Addr { return netip.MustParseAddr(s) }

func call(t *testing.T, port uint16) net.Conn {
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatalf("a stranger's call: %v", err)
	}
	return c
}

// More silent callers than are kept do not keep the peer out: the oldest goes.
func TestOldestStrangerGoes(t *testing.T) {
	p := newPair(t, enginetest.Here{}, "127.0.0.1", false, flow(1, 64, false), timing(0, 50*time.Millisecond, 0))
	var silent []net.Conn
	for range maxGreeted + 50 {
		silent = append(silent, call(t, p.receiver.Ports()[0]))
	}
	p.Connect()
	silent[0].SetReadDeadline(time.Now().Add(testenv.Patience))
	if _, err := silent[0].Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the oldest silent caller reads %v, want its connection closed", err)
	}
	if p.play(); !p.receiver.Account().Warnings.Has(model.StrangersRefused) {
		t.Errorf("strangers are not told: %v", p.receiver.Account().Warnings)
	}
	for _, c := range silent {
		c.Close()
	}
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", ":0")
	testenv.Must(t, err)
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	o := engine.Order{Flow: flow(1, 64, false), Timing: timing(0, time.Second, 0), Role: engine.Receive, Listen: true,
		Key: make([]byte, engine.KeyBytes)}
	_, err = prepare(t, New(Config{Listen: netip.AddrPortFrom(netip.Addr{}, uint16(port))}), enginetest.Here{}, o)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint(port)) || !strings.Contains(err.Error(), model.PortTaken) {
		t.Errorf("listening on a busy port: %v, want its number and that it is in use", err)
	}
	var fault *engine.Fault
	elsewhere := New(Config{Listen: netip.MustParseAddrPort("192.0.2.1:7359")})
	_, err = prepare(t, elsewhere, enginetest.Here{}, o)
	if !errors.As(err, &fault) || fault.Why.Code != model.ListenFailed || strings.Contains(fault.Why.Text, "listen") {
		t.Errorf("listening on another host's address: %v, want what the system said", err)
	}
	o.Listen, o.Role, o.Peer, o.Ports = false, engine.Send, mustAddr("127.0.0.1"), []uint16{uint16(port)}
	o.Flow.SourcePort = port
	e, err := prepare(t, New(Config{}), enginetest.Here{}, o)
	testenv.Must(t, err)
	defer e.Close()
	if err := e.Connect(t.Context()); err == nil ||
		!strings.Contains(err.Error(), fmt.Sprintf("%s: %d", model.LocalPortTaken, port)) {
		t.Errorf("dialing from a busy port: %v", err)
	}
}

func TestOrdersThatCannotRun(t *testing.T) {
	good := engine.Order{Flow: flow(1, 64, false), Timing: timing(0, time.Second, 0), Role: engine.Send}
	if err := check(good); err != nil {
		t.Fatalf("a good order is refused: %v", err)
	}
	for _, c := range []struct {
		name   string
		change func(*engine.Order)
	}{
		{"UDP", func(o *engine.Order) { o.Flow.Protocol = model.UDP }},
		{"probe", func(o *engine.Order) { o.Role = engine.Probe }},
		{"connections that the listening end opens",
			func(o *engine.Order) { o.Listen, o.Flow.Connections = true, model.ConnectionRate }},
	} {
		o := good
		c.change(&o)
		var refusal *engine.Refusal
		if err := check(o); !errors.As(err, &refusal) {
			t.Errorf("%s: %v, want a refusal", c.name, err)
		}
	}
}
