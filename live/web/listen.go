package web

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Place is where a server listens.
type Place struct {
	Address   netip.Addr
	Port      int
	Cert, Key string // files for TLS; "" with a code: a certificate that the server makes itself
}

// DefaultPort is where pelt web listens unless told otherwise.
const DefaultPort = 7360

// mostPorts is how many ports are tried, the wanted one first.
const mostPorts = 20

// Serve serves until ctx ends. It says where, how to get in, and what is unusual.
func Serve(ctx context.Context, at Place, o Options, say func(string)) error {
	var pair *tls.Certificate
	if o.Code != "" {
		var err error
		if pair, err = certificate(at); err != nil {
			return err
		}
		o.Certificate = pair.Leaf
	}
	l, err := listen(at, say)
	if err != nil {
		return err
	}
	s := New(o)
	defer s.Close()
	stopped, stop := context.WithCancel(ctx)
	defer stop()
	h := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return stopped }}
	address := l.Addr().String()
	if pair == nil {
		say(fmt.Sprintf("http://%s%s?token=%s", address, s.home(), s.Token))
	} else {
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{*pair}, MinVersion: tls.VersionTLS13})
		say("https://" + address + "/ asks for the code")
		if at.Cert == "" {
			say(fmt.Sprintf("the browser will warn of a certificate that this pelt made; its SHA-256 fingerprint is\n%X",
				sha256.Sum256(pair.Leaf.Raw)))
		}
	}
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(l) }()
	select {
	case err = <-failed:
		return fmt.Errorf("serve pages: %w", err)
	case <-ctx.Done():
	}
	stop()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if h.Shutdown(end) != nil {
		return h.Close() // a request that takes longer is cut
	}
	return nil
}

// home is the path of the page to open.
func (s *Server) home() string {
	if s.o.Watch == nil {
		return "/"
	}
	return "/test/" + s.o.Watch.ID
}

// listen takes the first free port from the wanted one on.
func listen(at Place, say func(string)) (net.Listener, error) {
	var first error
	for port := at.Port; port < at.Port+mostPorts && port < 1<<16; port++ {
		l, err := net.Listen("tcp", net.JoinHostPort(at.Address.String(), strconv.Itoa(port)))
		if err == nil {
			if port != at.Port {
				say(fmt.Sprintf("another program has port %d; this is on %d", at.Port, port))
			}
			return l, nil
		}
		if first == nil {
			first = err
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return nil, fmt.Errorf("serve pages: %w", first)
}

// certificate reads the one of the place, or makes one.
func certificate(at Place) (*tls.Certificate, error) {
	if at.Cert != "" {
		c, err := tls.LoadX509KeyPair(at.Cert, at.Key)
		if err != nil {
			return nil, fmt.Errorf("read certificate: %w", err)
		}
		return &c, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	now := time.Now()
	t := &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "pelt web"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0), DNSNames: []string{"localhost"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if name, err := os.Hostname(); err == nil {
		t.DNSNames = append(t.DNSNames, name)
	}
	if !at.Address.IsUnspecified() {
		t.IPAddresses = []net.IP{at.Address.AsSlice()}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}
