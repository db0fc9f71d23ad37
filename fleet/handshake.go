package fleet

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"io"
	"math/big"
	"net/netip"
	"time"

	"pelt/internal/cpace"
)

// A control connection is TLS 1.3 with a certificate that lives as long as the hub and that nobody
// checks. Inside it both sides prove that they know the same code, bound to this very connection, so
// somebody in the middle, who has two connections, proves nothing. Then NATS follows.
//
//	client: what it knows u8 | CLIENT 16 B | share 32 B
//	server: share 32 B
//	client: tag 64 B
//	server: tag 64 B | secret 32 B | address 16 B that the client comes from, or wrong u8
//
// A server that ends the connection without a word has no room or no time.
const (
	controlALPN = "pelt-control/5"
	channelName = "pelt control 5, client and server: "
	binding     = "EXPORTER-Channel-Binding" // RFC 9266
)

// wrong is all that a client hears whose tag proves nothing.
const wrong byte = 0

// What a client knows.
const (
	knowsCode byte = iota
	knowsSecret
)

const (
	idBytes     = 16
	secretBytes = 32
	addrBytes   = 16
)

// identity is what a client holds after a handshake.
type identity struct {
	client string     // CLIENT of the subjects, 32 hex digits
	token  string     // lets it into NATS, once
	secret []byte     // lets it in again, in place of the code
	seen   netip.Addr // where the server sees it come from
}

func tokenOf(k *cpace.Key) string { return hex.EncodeToString(k.Derive("pelt token")) }

// channelOf names one TLS connection, the same on both sides and on no other connection.
func channelOf(c *tls.Conn) ([]byte, error) {
	state := c.ConnectionState()
	b, err := state.ExportKeyingMaterial(binding, nil, 32)
	return append([]byte(channelName), b...), err
}

// prove is the client's part of a handshake. client is 32 hex digits.
func prove(c *tls.Conn, knows byte, code []byte, client string) (who identity, err error) {
	id, err := hex.DecodeString(client)
	if err != nil || len(id) != idBytes {
		return who, fmt.Errorf("client %q: want %d bytes in hex", client, idBytes)
	}
	if len(code) == 0 {
		return who, errNoCode
	}
	channel, err := channelOf(c)
	if err != nil {
		return who, err
	}
	run, err := cpace.Start(code, channel)
	if err != nil {
		return who, err
	}
	if _, err = c.Write(append(append([]byte{knows}, id...), run.Share...)); err != nil {
		return who, err
	}
	share := make([]byte, cpace.ShareBytes)
	if _, err = io.ReadFull(c, share); err != nil {
		return who, err
	}
	key, err := run.Key(share, true)
	if err != nil {
		return who, err
	}
	if _, err = c.Write(key.Tag()); err != nil {
		return who, err
	}
	last := make([]byte, cpace.TagBytes+secretBytes+addrBytes)
	n, err := io.ReadFull(c, last)
	if n == 1 && last[0] == wrong || err == nil && !key.Proves(last[:cpace.TagBytes]) {
		return who, ErrWrongCode
	}
	secret, seen := last[cpace.TagBytes:][:secretBytes], last[cpace.TagBytes+secretBytes:]
	return identity{client, tokenOf(key), secret, netip.AddrFrom16([addrBytes]byte(seen)).Unmap()}, err
}

// serverTLS has a new certificate, which says nothing of this host.
func serverTLS() (*tls.Config, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0)}
	der, err := x509.CreateCertificate(rand.Reader, t, t, public, private)
	own := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
	return &tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS13,
		NextProtos: []string{controlALPN}, SessionTicketsDisabled: true}, err
}

func clientTLS() *tls.Config {
	return &tls.Config{
		InsecureSkipVerify: true, // the code proves who the server is
		MinVersion:         tls.VersionTLS13, NextProtos: []string{controlALPN},
	}
}
