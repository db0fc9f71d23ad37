package web

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"pelt/internal/testenv"
	"pelt/store"
)

// serve runs Serve until the test ends, and returns what it says.
func serve(t *testing.T, at netip.AddrPort, o Options) (said chan string) {
	t.Helper()
	var err error
	if o.Store, err = store.Open(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	said, done := make(chan string, 9), make(chan error)
	go func() { done <- Serve(ctx, at, o, func(text string) { said <- text }) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return said
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testenv.Must(t, err)
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).AddrPort()
	said := serve(t, taken, Options{})
	if got, want := <-said, fmt.Sprintf("another program has port %d; this is on ",
		taken.Port()); !strings.HasPrefix(got, want) {
		t.Errorf("said %q, want %q", got, want)
	}
	answer, err := http.Get(<-said)
	testenv.Must(t, err)
	answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden || answer.Request.URL.RawQuery != "" {
		t.Errorf("a client without cookies got %s of %s", answer.Status, answer.Request.URL)
	}
}
