package tcp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"

	"pelt/model"
)

// Of a flow of connections only those that are its streams go through the whole
// consent. Every other one carries one message in each direction:
//
//	ticket  magic u64 | trial u16 | tag u16 | stream u16 | number u64 | 0 u64 | MAC
//	stub    MAC over the ticket
//
// The flow's key, which both ends have used for their streams already, signs both
// (HMAC-SHA256). A ticket is longer than a message of the consent.
const (
	ticketMagic = 0x70656c742f746302 // "pelt/tc", version 2
	macBytes    = sha256.Size
	ticketBytes = 8 + 3*2 + 2*8 + macBytes
	stubBytes   = macBytes
)

func mac(key []byte, kind string, text []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(kind))
	h.Write(text)
	return h.Sum(nil)
}

// The model tells people what a connection carries.
var _ = [1]struct{}{}[ticketBytes-model.ConnectionMessageBytes]

func makeTicket(to []byte, trial, tag, stream uint16, number uint64, key []byte) []byte {
	b := to[:0]
	b = binary.BigEndian.AppendUint64(b, ticketMagic)
	b = binary.BigEndian.AppendUint16(b, trial)
	b = binary.BigEndian.AppendUint16(b, tag)
	b = binary.BigEndian.AppendUint16(b, stream)
	b = binary.BigEndian.AppendUint64(b, number)
	b = binary.BigEndian.AppendUint64(b, 0)
	return append(b, mac(key, "ticket", b)...)
}

// isTicket judges by the first bytes.
func isTicket(b []byte) bool { return len(b) >= 8 && binary.BigEndian.Uint64(b) == ticketMagic }

// ticketRoute tells which flow and stream a ticket names, without judging its MAC.
func ticketRoute(b []byte) (to route, stream int) {
	return route{binary.BigEndian.Uint16(b[8:]), binary.BigEndian.Uint16(b[10:])}, int(binary.BigEndian.Uint16(b[12:]))
}

func ticketSigned(b, key []byte) bool {
	const at = ticketBytes - macBytes
	return hmac.Equal(b[at:], mac(key, "ticket", b[:at]))
}

func makeStub(ticket, key []byte) []byte { return mac(key, "stub", ticket) }

func stubSigned(ticket, stub, key []byte) bool { return hmac.Equal(stub, makeStub(ticket, key)) }
