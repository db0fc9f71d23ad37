package tcp

import (
	"crypto/hmac"
	"encoding/binary"

	"pelt/model"
)

// Of a flow of connections only those that are its streams go through the whole
// opening. Every other one carries one message in each direction:
//
//	ticket  magic u64 | trial u16 | tag u16 | stream u16 | number u64 | 0 u64 | MAC
//	stub    MAC over the ticket
//
// The flow's key, which both ends have used for their streams already, signs both;
// a ticket has the length of a hello, so that the listener reads either.
const (
	ticketMagic = magic + 1
	ticketBytes = helloBytes
	stubBytes   = macBytes
)

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

func isTicket(b []byte) bool {
	return len(b) == ticketBytes && binary.BigEndian.Uint64(b) == ticketMagic
}

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
