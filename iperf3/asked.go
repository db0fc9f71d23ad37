package iperf3

import (
	"encoding/json"
	"fmt"
	"math"

	"pelt/model"
	"pelt/unit"
)

// Codes by which a client knows why its test is refused or ended; iperf_api.h of iperf3 3.21.
const (
	codeTime      = 5
	codeStreams   = 6
	codeBlock     = 7
	codeWindow    = 8
	codeOmit      = 12
	codeNotDone   = 13
	codePayload   = 20
	codeTOS       = 21
	codeRate      = 27
	codeTooLong   = 37
	codeUnknown   = 110 // a message that the protocol does not have
	codeParams    = 114
	codeResults   = 117
	codeStranger  = 142
	codeNoData    = 144
	codeRanLong   = 160
	codeStreamNot = 204 // a stream could not be accepted
)

// Denial says why a client's test is refused or ended, and the code by which the client knows it.
type Denial struct {
	Code int32
	Why  string
}

func (d *Denial) Error() string { return d.Why }

func deny(code int32, format string, args ...any) *Denial {
	return &Denial{code, fmt.Sprintf(format, args...)}
}

// TooFast refuses a test because of the rate that it asks for.
func TooFast(err error) *Denial { return deny(codeRate, "%v", err) }

// TooLong refuses a test because of its length.
func TooLong(err error) *Denial { return deny(codeTooLong, "%v", err) }

// TooMany refuses a test because of its streams.
func TooMany(err error) *Denial { return deny(codeStreams, "%v", err) }

// mostWindow bounds the receive buffer that a client asks for, in bytes of each stream.
const mostWindow = 64 << 20

// asked is what a client asks for.
type asked struct {
	udp       bool   // else TCP
	seconds   int    // omitted ones included; 0: another bound ends the test
	bytes     uint64 // of all streams, likewise
	streams   int
	payload   int
	bandwidth int64 // payload bit/s of each stream; 0: no limit
	window    int   // bytes; 0: none is asked for
	tos       int
	wide      bool // the sequences have 64 bits
	output    bool // it wants the server's text
}

// readAsked decodes a client's parameters. Keys of other versions are left out, and those of a wrong type, as iperf3 does.
func readAsked(b []byte) (a asked, err error) {
	var keys map[string]json.RawMessage
	if json.Unmarshal(b, &keys) != nil || keys == nil {
		return a, deny(codeParams, "its parameters are no JSON object")
	}
	flag := func(name string) bool { // the mere presence is true, but no version sends these to mean true
		text := string(keys[name])
		return text != "" && text != "false" && text != "0" && text != "null"
	}
	var denied *Denial
	number := func(name string, without, low, high int64, code int32) int64 {
		var n float64
		if keys[name] == nil || json.Unmarshal(keys[name], &n) != nil || n != math.Trunc(n) {
			n = float64(without)
		}
		if denied == nil && (n < float64(low) || n > float64(high)) {
			denied = deny(code, "its %s is %v, and not %d to %d", name, n, low, high)
		}
		return int64(n)
	}
	switch {
	case flag("sctp"):
		return a, deny(codeNotDone, "pelt takes TCP and UDP only: leave out --sctp")
	case flag("reverse") || flag("bidirectional"):
		return a, deny(codeNotDone, "pelt only receives from iperf3 clients: leave out -R and --bidir")
	}
	const most = 1 << 53 // what a JSON number holds exactly
	a.seconds = int(number("time", 10, 0, 86400, codeTime))
	omit := int(number("omit", 0, 0, 600, codeOmit))
	bytes, blocks := number("num", 0, 0, most, codeParams), number("blockcount", 0, 0, most/model.MaxTCPWrite, codeParams)
	a.streams = int(number("parallel", 1, 1, mostStreams, codeStreams))
	least, usual, longest, code := int64(1), int64(128<<10), int64(model.MaxTCPWrite), int32(codeBlock)
	if a.udp = flag("udp"); a.udp {
		least, usual, longest, code = model.MinUDPPayload, 1460, model.MaxUDPPayload, codePayload
	}
	a.payload = int(number("len", 0, 0, longest, code))
	a.bandwidth = number("bandwidth", 0, 0, most/mostStreams, codeRate)
	a.window = int(number("window", 0, 0, mostWindow, codeWindow))
	a.tos = int(number("TOS", 0, 0, 255, codeTOS))
	a.wide, a.output = flag("udp_counters_64bit"), flag("get_server_output")
	switch {
	case denied != nil:
		return a, denied
	case a.payload == 0:
		a.payload = int(usual) // as servers have it
	case int64(a.payload) < least:
		return a, deny(code, "its payload of %d B is below %d B", a.payload, least)
	}
	switch {
	case bytes > 0:
		a.bytes = uint64(bytes)
	case blocks > 0:
		a.bytes = uint64(blocks) * uint64(a.payload)
	case a.seconds == 0:
		return a, deny(codeTime, "its test has no end")
	}
	if a.bytes > 0 {
		a.seconds = 0
	} else {
		a.seconds += omit
	}
	return a, nil
}

// flow is the flow of the test.
func (a asked) flow() (model.Flow, error) {
	f := model.Flow{Name: "up", Protocol: model.TCP, From: model.Sender, To: model.Receiver, PayloadBytes: a.payload,
		Streams: a.streams, DSCP: a.tos >> 2, Bulk: !a.udp}
	if a.udp {
		f.Protocol, f.Packets = model.UDP, (a.bytes+uint64(a.payload)-1)/uint64(a.payload)
	} else {
		f.Bytes = a.bytes
	}
	if a.udp && a.window > 0 {
		f.ReceiveBuffer = max(2*a.window, model.MinSocketBuffer) // the kernel counts twice what it is asked for
	}
	if a.bandwidth > 0 && f.Bytes == 0 { // a transfer of TCP goes as fast as its sender lets it
		rate, err := unit.ParseRate(fmt.Sprintf("%dbit", a.bandwidth*int64(a.streams)))
		if err != nil {
			return f, TooFast(err)
		}
		f.Rate = rate
	}
	return f, nil
}
