package tcp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
)

// The opening of a connection, big endian:
//
//	hello   magic u64 | trial u16 | tag u16 | stream u16 | nonce 16 B | MAC
//	welcome nonce 16 B | MAC over hello and this
//	confirm MAC over hello and welcome
//
// A MAC is HMAC-SHA256 with the flow's key; each kind has its own prefix, so
// that none can be given back as another.
const (
	magic        = 0x70656c742f746301 // "pelt/tc", version 1
	nonceBytes   = 16
	macBytes     = sha256.Size
	helloBytes   = 8 + 3*2 + nonceBytes + macBytes
	welcomeBytes = nonceBytes + macBytes
	confirmBytes = macBytes
	keyBytes     = 32
)

type hello struct {
	trial, tag, stream uint16
	nonce              [nonceBytes]byte
}

func mac(key []byte, kind string, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(kind))
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

func (h hello) marshal(key []byte) []byte {
	b := make([]byte, 0, helloBytes)
	b = binary.BigEndian.AppendUint64(b, magic)
	b = binary.BigEndian.AppendUint16(b, h.trial)
	b = binary.BigEndian.AppendUint16(b, h.tag)
	b = binary.BigEndian.AppendUint16(b, h.stream)
	b = append(b, h.nonce[:]...)
	return append(b, mac(key, "hello", b)...)
}

// parseHello reads a hello without judging its MAC, which takes the key of the
// flow it names. ok is false if b is no hello.
func parseHello(b []byte) (h hello, ok bool) {
	if len(b) != helloBytes || binary.BigEndian.Uint64(b) != magic {
		return hello{}, false
	}
	h.trial = binary.BigEndian.Uint16(b[8:])
	h.tag = binary.BigEndian.Uint16(b[10:])
	h.stream = binary.BigEndian.Uint16(b[12:])
	copy(h.nonce[:], b[14:])
	return h, true
}

func helloSigned(b, key []byte) bool {
	const at = helloBytes - macBytes
	return len(b) == helloBytes && hmac.Equal(b[at:], mac(key, "hello", b[:at]))
}

func makeWelcome(hello []byte, nonce [nonceBytes]byte, key []byte) []byte {
	return append(nonce[:], mac(key, "welcome", hello, nonce[:])...)
}

func welcomeSigned(hello, welcome, key []byte) bool {
	return len(welcome) == welcomeBytes &&
		hmac.Equal(welcome[nonceBytes:], mac(key, "welcome", hello, welcome[:nonceBytes]))
}

func makeConfirm(hello, welcome, key []byte) []byte { return mac(key, "confirm", hello, welcome) }

func confirmSigned(hello, welcome, confirm, key []byte) bool {
	return hmac.Equal(confirm, makeConfirm(hello, welcome, key))
}
