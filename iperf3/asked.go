package iperf3

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"

	"pelt/finding"
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
	codeNotSent   = 205 // a stream could not be written to
)

// Denial says why a client's test is refused or ended, and the code by which the client knows it.
type Denial struct {
	Code int32
	err  error
}

func (d *Denial) Error() string { return d.err.Error() }
func (d *Denial) Unwrap() error { return d.err }

// deny makes a denial of a reason: see model.NewReason.
func deny(code int32, why string, named ...any) *Denial {
	return &Denial{code, finding.NewFault(why, named...)}
}

// TooFast refuses a test because of the rate that it asks for.
func TooFast(err error) *Denial { return &Denial{codeRate, err} }

func TooLong(err error) *Denial { return &Denial{codeTooLong, err} }

// TooLarge refuses a test because of the memory that it would take. iperf3 has no code for that.
func TooLarge(err error) *Denial { return &Denial{codeStreams, err} }

// TooMany refuses a test because of its streams: with it there would be so many, and this host carries fewer.
func TooMany(streams, most int) *Denial {
	return deny(codeStreams, model.IperfStreamsMost, "streams", float64(streams), "most", float64(most))
}

// mostWindow bounds the socket buffer that a client asks for, in bytes of each stream.
const mostWindow = 64 << 20

// controlName is what the name of a congestion control may be. iperf3 takes any other for one that it has not.
var controlName = regexp.MustCompile(`^[a-z0-9_]{1,15}$`)

// asked is what a client asks for.
type asked struct {
	udp       bool   // else TCP
	up, down  bool   // the client sends, and this host; one at least
	seconds   int    // omitted ones included; 0: another bound ends the test
	omit      int    // s
	bytes     uint64 // of all streams of a direction, likewise
	blocks    bool   // these are asked for as a number of blocks
	streams   int    // of a direction
	payload   int
	bandwidth int64 // payload bit/s of each stream; 0: no limit
	window    int   // bytes; 0: none is asked for
	tos       int
	noDelay   bool
	control   string // of this host's TCP; "": its own
	version   string // of the client
	wide      bool   // the sequences have 64 bits
	output    bool   // it wants the server's text
}

// readAsked decodes a client's parameters. Keys of other versions are left out, and those of a wrong type, as iperf3
// does.
func readAsked(b []byte) (a asked, err error) {
	var keys map[string]json.RawMessage
	if json.Unmarshal(b, &keys) != nil || keys == nil {
		return a, deny(codeParams, model.IperfParams)
	}
	flag := func(name string) bool { // the mere presence is true, but no version sends these to mean true
		text := string(keys[name])
		return text != "" && text != "false" && text != "0" && text != "null"
	}
	text := func(name string) (value string) {
		_ = json.Unmarshal(keys[name], &value) // of a wrong type it is left out
		return value
	}
	var denied *Denial
	number := func(name string, without, low, high int64, code int32) int64 {
		var n float64
		if keys[name] == nil || json.Unmarshal(keys[name], &n) != nil || n != math.Trunc(n) {
			n = float64(without)
		}
		if denied == nil && (n < float64(low) || n > float64(high)) {
			denied = deny(code, model.IperfParam, "name", name, "value", fmt.Sprint(n), "least", fmt.Sprint(low),
				"most", fmt.Sprint(high))
		}
		return int64(n)
	}
	if flag("sctp") {
		return a, deny(codeNotDone, model.IperfSCTP)
	}
	both := flag("bidirectional")
	a.down = both || flag("reverse")
	a.up = both || !a.down
	const most = 1 << 53 // what a JSON number holds exactly
	a.seconds = int(number("time", 10, 0, 86400, codeTime))
	a.omit = int(number("omit", 0, 0, 600, codeOmit))
	bytes := number("num", 0, 0, most, codeParams)
	blocks := number("blockcount", 0, 0, most/model.MaxTCPWrite, codeParams)
	a.streams = int(number("parallel", 1, 1, mostStreams, codeStreams))
	least, usual, longest, code := int64(1), int64(128<<10), int64(model.MaxTCPWrite), int32(codeBlock)
	if a.udp = flag("udp"); a.udp {
		least, usual, longest, code = model.MinUDPPayload, 1460, model.MaxUDPPayload, codePayload
	}
	a.payload = int(number("len", 0, 0, longest, code))
	a.bandwidth = number("bandwidth", 0, 0, most/mostStreams, codeRate)
	a.window = int(number("window", 0, 0, mostWindow, codeWindow))
	a.tos = int(number("TOS", 0, 0, 255, codeTOS))
	a.wide, a.output, a.noDelay = flag("udp_counters_64bit"), flag("get_server_output"), flag("nodelay")
	if a.control = text("congestion"); !controlName.MatchString(a.control) {
		a.control = ""
	}
	a.version = text("client_version")
	switch {
	case denied != nil:
		return a, denied
	case a.payload == 0:
		a.payload = int(usual) // as servers have it
	case int64(a.payload) < least:
		return a, deny(code, model.IperfShort, "payload_bytes", float64(a.payload), "least_bytes", float64(least))
	}
	switch {
	case bytes > 0:
		a.bytes = uint64(bytes)
	case blocks > 0:
		a.bytes, a.blocks = uint64(blocks)*uint64(a.payload), true
	case a.seconds == 0:
		return a, deny(codeTime, model.IperfEndless)
	}
	if a.bytes > 0 {
		a.seconds = 0
	} else {
		a.seconds += a.omit
	}
	return a, nil
}

// flows are those of the test, in the order in which their streams are opened.
func (a asked) flows() (list []model.Flow, err error) {
	f := model.Flow{Protocol: model.TCP, PayloadBytes: a.payload, Streams: a.streams, DSCP: a.tos >> 2, Bulk: !a.udp}
	if a.udp {
		f.Protocol = model.UDP
	}
	if a.bandwidth > 0 {
		if f.Rate, err = unit.ParseRate(fmt.Sprintf("%dbit", a.bandwidth*int64(a.streams))); err != nil {
			return nil, TooFast(err)
		}
	}
	if a.up {
		list = append(list, a.upFlow(f))
	}
	if a.down {
		list = append(list, a.downFlow(f))
	}
	return list, nil
}

func (a asked) upFlow(f model.Flow) model.Flow {
	f.Name, f.From, f.To = "up", model.Sender, model.Receiver
	if a.udp {
		f.Packets, f.ReceiveBuffer = (a.bytes+uint64(a.payload)-1)/uint64(a.payload), a.buffer()
	} else if f.Bytes = a.bytes; f.Bytes > 0 {
		f.Rate = unit.Rate{} // a transfer of TCP goes as fast as its sender lets it
	}
	return f
}

// downFlow is sent for as long as the client waits for more: a client counts an amount by what it has received since
// the omitted seconds. Only of TCP all that is sent arrives, so there it can be sent and no more.
func (a asked) downFlow(f model.Flow) model.Flow {
	f.Name, f.From, f.To = "down", model.Receiver, model.Sender
	if a.udp {
		f.SendBuffer = a.buffer()
		return f
	}
	f.Control, f.Bulk = a.control, !a.noDelay
	if f.Bulk && a.bandwidth == 0 && a.omit == 0 && !a.blocks {
		f.Bytes = a.bytes
	}
	return f
}

// buffer is the socket buffer of UDP that is asked for, as the kernel accounts it: twice.
func (a asked) buffer() int {
	if a.window == 0 {
		return 0
	}
	return max(2*a.window, model.MinSocketBuffer)
}
