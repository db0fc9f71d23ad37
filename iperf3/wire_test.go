package iperf3

import (
	"strings"
	"testing"
)

// What servers sent, as captured.
const (
	results312 = `{"cpu_util_total":1.5,"cpu_util_user":0.5,"cpu_util_system":1,"sender_has_retransmits":18446744073709551615,` +
		`"streams":[{"id":1,"bytes":19800,"retransmits":18446744073709551615,"jitter":1.5e-05,"errors":1,"packets":100,` +
		`"start_time":0,"end_time":1.0}]}`
	results322 = `{"cpu_util_total":1,"cpu_util_user":0,"cpu_util_system":1,"sender_has_retransmits":-1,"congestion_used":"cubic",` +
		`"streams":[{"id":1,"bytes":20000,"retransmits":-1,"jitter":0,"errors":0,"omitted_errors":0,"packets":100,` +
		`"omitted_packets":0,"start_time":0,"end_time":1}]}`
	results31 = `{"cpu_util_total":1,"cpu_util_user":0,"cpu_util_system":1,"sender_has_retransmits":-1,` +
		`"streams":[{"id":1,"bytes":20000,"retransmits":-1,"jitter":0,"errors":7,"packets":100}]}`
)

var newReply = [4]byte{0x36, 0x37, 0x38, 0x39}

func TestResults(t *testing.T) {
	for _, c := range []struct {
		name, text string
		reply      [4]byte
		sent       uint64
		program    string
		received   uint64
		gaps, tail uint64
	}{
		{"3.12, and 3 packets after the last that it saw", results312, newReply, 103, "iperf3 3.12 or 3.13", 99, 1, 3},
		{"3.12, whose reply was not seen", results312, [4]byte{}, 103, "iperf3 3.2 to 3.13", 99, 1, 3},
		{"3.11", results312, oldReply, 100, "iperf3 3.2 to 3.11", 99, 1, 0},
		{"3.22", results322, newReply, 100, "iperf3 3.14 or newer", 100, 0, 0},
		{"3.1, whose gaps count what came out of order", results31, oldReply, 100, "iperf3 3.1 or older", 100, 7, 0},
		{"a packet came twice", strings.Replace(results322, "20000", "20200", 1), newReply, 100, "iperf3 3.14 or newer", 100, 0, 0},
		{"more out of order than gaps", strings.Replace(results322, `"errors":0`, `"errors":-2`, 1), newReply, 100,
			"iperf3 3.14 or newer", 100, 0, 0},
	} {
		r, err := readResults([]byte(c.text), 1)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		tally, peer := report(r.Streams, 200, []uint64{c.sent})
		if program := r.program(c.reply); program != c.program || tally.Received != c.received || peer.Gaps != c.gaps || peer.Tail != c.tail {
			t.Errorf("%s: %s, %+v, %d received; want %s, %d, gaps %d, tail %d", c.name, program, peer, tally.Received, c.program,
				c.received, c.gaps, c.tail)
		}
	}
}

func TestResultsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":           `{`,
		"another stream":    strings.Replace(results322, `"id":1`, `"id":2`, 1),
		"two streams":       strings.Replace(results322, `}]`, `},{"id":3}]`, 1),
		"no streams":        `{}`,
		"bytes below 0":     strings.Replace(results322, "20000", "-20000", 1),
		"packets as a text": strings.Replace(results322, `"packets":100`, `"packets":"100"`, 1),
		"jitter below 0":    strings.Replace(results322, `"jitter":0`, `"jitter":-1`, 1),
		"too long":          strings.Repeat(" ", mostResults) + results322,
	} {
		if r, err := readResults([]byte(text), 1); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// FuzzResults: whatever a server sends, no figure is more than what it says that it got.
func FuzzResults(f *testing.F) {
	for _, text := range []string{results312, results322, results31, `{"streams":[{"id":1,"bytes":1e400}]}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := readResults(b, 1)
		if err != nil {
			return
		}
		tally, peer := report(r.Streams, 16, []uint64{100})
		if came := uint64(r.Streams[0].Bytes) / 16; tally.Received+tally.Duplicates != came || peer.Tail > 100 {
			t.Errorf("%+v, %+v of %d packets", tally, peer, came)
		}
	})
}

// FuzzHeader: what is read is what stands there, for the kernel's watch as for the meter.
func FuzzHeader(f *testing.F) {
	f.Add([]byte{0x9e, 0x17, 0, 3, 0, 0xf, 0x42, 0x40, 0, 0, 0, 1}, false)
	f.Add([]byte("0123456789abcdef"), true)
	f.Fuzz(func(t *testing.T, b []byte, wide bool) {
		c := codec{trial: 3, wide: wide}
		h, ok := c.Parse(b)
		if ok != (h.Trial == 3) {
			t.Errorf("%x: %+v, %v", b, h, ok)
		}
		if !ok {
			return
		}
		again, end := make([]byte, 16), headerBytes
		if c.Put(again, h); wide {
			end += 4
		}
		if string(again[8:end]) != string(b[8:end]) {
			t.Errorf("%x became %x", b[:end], again[:end])
		}
	})
}
