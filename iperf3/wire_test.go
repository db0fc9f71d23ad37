package iperf3

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pelt/engine"
	"pelt/model"
	"pelt/test/golden"
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

// TestWords: each line of the file begins with the name of a function, and is what it is given. Below stands what it
// makes of that.
func TestWords(t *testing.T) {
	golden.Table(t, "testdata/words.txt", func(question string) string {
		what, text, _ := strings.Cut(question, " ")
		words := strings.Fields(text)
		number := func(i int) uint64 {
			n, err := strconv.ParseUint(words[i], 10, 64)
			if err != nil {
				t.Fatalf("%s: %v", question, err)
			}
			return n
		}
		switch what {
		case "results": // the reply to a request, how many were sent, whose results, and what they have in place of what
			said := map[string]string{"3.1": results31, "3.12": results312, "3.22": results322}[words[2]]
			for _, change := range words[3:] {
				from, to, _ := strings.Cut(change, "->")
				if !strings.Contains(said, from) {
					t.Fatalf("%s: there is no %s", question, from)
				}
				said = strings.Replace(said, from, to, 1)
			}
			r, err := readResults([]byte(said), 1)
			if err != nil {
				return err.Error()
			}
			tally, peer := report(r.Streams, 200, []uint64{number(1)})
			reply := map[string][4]byte{"new": {0x36, 0x37, 0x38, 0x39}, "old": oldReply}[words[0]]
			return fmt.Sprintf("%s: %d received, %d missing, %d behind the last", r.program(reply), tally.Received, peer.Gaps,
				peer.Tail)
		case "sending": // udp or tcp, streams, payload, bandwidth, bytes heard, after how long
			after, err := time.ParseDuration(words[5])
			if err != nil {
				t.Fatal(err)
			}
			s := sending{asked: asked{udp: words[0] == "udp", streams: int(number(1)), payload: int(number(2)),
				bandwidth: int64(number(3))}}
			if denied := (*Denial)(nil); errors.As(s.problem(number(4), after), &denied) {
				return fmt.Sprint("code ", denied.Code)
			}
			return "goes on"
		case "leaveOut": // what was sent, what the client counted, what the kernel refused; of which 5 in the last step
			r := engine.SendReport{Planned: 1000, Attempted: number(0), Accepted: number(0), Streams: []uint64{number(0)},
				DurationNanos: 1e9, PerStep: []uint64{995, 5}, Refused: []model.Marks{{Packets: number(2)}}}
			leaveOut(&r, []streamResult{{Packets: count(number(1))}}, 100*time.Millisecond)
			return fmt.Sprintf("%d attempted, %d accepted, streams %v, steps %v", r.Attempted, r.Accepted, r.Streams, r.PerStep)
		}
		t.Fatalf("unknown: %s", question)
		return ""
	})
	long := strings.Repeat(" ", mostResults) + results322
	if r, err := readResults([]byte(long), 1); err == nil {
		t.Errorf("results that are too long: %+v", r)
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
