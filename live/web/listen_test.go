package web

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"pelt/store"
)

// serve runs Serve until the test ends, and returns what it says.
func serve(t *testing.T, at Place, o Options) (said chan string) {
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
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).AddrPort()
	said := serve(t, Place{Address: taken.Addr(), Port: int(taken.Port())}, Options{})
	if got, want := <-said, fmt.Sprintf("another program has port %d; this is on ", taken.Port()); !strings.HasPrefix(got, want) {
		t.Errorf("said %q, want %q", got, want)
	}
	answer, err := http.Get(<-said)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden || answer.Request.URL.RawQuery != "" {
		t.Errorf("a client without cookies got %s of %s", answer.Status, answer.Request.URL)
	}
}

// The certificate that a browser sees is the one whose fingerprint is said.
func TestFingerprint(t *testing.T) {
	said := serve(t, Place{Address: netip.MustParseAddr("127.0.0.1"), Port: 7390}, Options{Code: "correct horse"})
	address, _, _ := strings.Cut(<-said, " ")
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	answer, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text := <-said; !strings.Contains(text, fmt.Sprintf("%X", sha256.Sum256(answer.TLS.PeerCertificates[0].Raw))) {
		t.Errorf("said %q", text)
	}
	page, err := io.ReadAll(answer.Body)
	if err != nil || !strings.Contains(string(page), `name="code"`) {
		t.Errorf("got %s, %v", page, err)
	}
}
