package udp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pelt/engine"
	"pelt/model"
	"pelt/test/golden"
)

// TestWords: each line of the file begins with the name of a function, and is what it is given. Below stands what it
// makes of that.
func TestWords(t *testing.T) {
	golden.Table(t, "testdata/words.txt", func(question string) string {
		what, text, _ := strings.Cut(question, " ")
		var n []int64
		if what != "hopeless" && what != "drops" {
			for word := range strings.FieldsSeq(text) {
				v, err := strconv.ParseInt(word, 10, 64)
				if err != nil {
					t.Fatalf("%s: %v", question, err)
				}
				n = append(n, v)
			}
		}
		switch what {
		case "share": // packets among streams
			s := &sender{end: &Sockets{order: engine.Order{Flow: model.Flow{Packets: uint64(n[0]), Streams: int(n[1])}}}}
			var each []uint64
			for i := range int(n[1]) {
				each = append(each, (&sendStream{sender: s, stream: i, measured: true}).ownPackets())
			}
			return fmt.Sprint(each)
		case "batchOf": // payload, streams, segments
			got := batchOf(int(n[0]), int(n[1]), int(n[2]))
			if got > 1 && got*int(n[0]*n[1]) > allBatches {
				t.Errorf("%s: %d are too many", question, got)
			}
			return fmt.Sprint(got)
		case "arrived": // the stamp and now by the wall clock, not before, now: in ns since one moment of both clocks
			const wall, mono = 1_700_000_000_000_000_000, 50_000_000_000
			stamp := int64(0)
			if n[0] >= 0 {
				stamp = wall + n[0]
			}
			return fmt.Sprint(arrived(stamp, mono-wall-n[1], mono+n[2], mono+n[3]) - mono)
		case "drops":
			return dropped(t, text)
		case "hopeless":
			return gaveUp(t, text)
		}
		t.Fatalf("unknown: %s", question)
		return ""
	})
}

// dropped is how many drops an account finds in the measured part, in which so many packets were sent.
func dropped(t *testing.T, text string) string {
	var x struct {
		Start, First, After uint32
		Warm, Then          []uint32
		Sequence            uint64 // of the first measured packet
		Cold, None          bool   // no warm-up; no packet came
		Sent                uint64
	}
	if err := json.Unmarshal([]byte(text), &x); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	a := dropAccount{known: true, cold: x.Cold, before: x.Start}
	for _, n := range x.Warm {
		a.warm(n)
	}
	if !x.None {
		a.begin(x.First, x.Sequence)
	}
	for _, n := range x.Then {
		a.note(n)
	}
	a.after = x.After
	return fmt.Sprint(a.measured(cmp.Or(x.Sent, 1000)))
}

// gaveUp plays what the kernel says to streams: take; refuse with an errno each 10 ms, from a time to another one; and
// the end of a stream. Patience is that of all.
func gaveUp(t *testing.T, text string) string {
	const step = 10 * time.Millisecond
	errnos := map[string]syscall.Errno{"EPERM": syscall.EPERM, "EACCES": syscall.EACCES, "EINVAL": syscall.EINVAL,
		"ENETUNREACH": syscall.ENETUNREACH, "EMSGSIZE": syscall.EMSGSIZE, "ENOBUFS": syscall.ENOBUFS}
	all := &allRefusals{}
	list := map[string]*refusals{}
	lasts := func(word string) time.Duration {
		d, err := time.ParseDuration(word)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return d
	}
	var said []string
	for _, event := range strings.Split(text, "; ") {
		words := strings.Fields(event)
		switch words[0] {
		case "streams":
			for _, name := range words[1:] {
				all.streams++
				list[name] = &refusals{all: all}
			}
		case "patience":
			for _, r := range list {
				r.passing, r.patient = lasts(words[1]).Nanoseconds(), true
			}
		case "take":
			for _, name := range words[1:] {
				list[name].take()
			}
		case "end":
			list[words[1]].end(lasts(words[2]).Nanoseconds())
		default: // an errno, from, to, the streams
			if errnos[words[0]] == 0 {
				t.Fatalf("%s: unknown: %s", text, event)
			}
			from, to, gives := lasts(words[1]), lasts(words[2]), "goes on"
			for now := from; now < to && gives == "goes on"; now += step {
				for _, name := range words[3:] {
					if list[name].hopeless(errnos[words[0]], now.Nanoseconds()) {
						gives = fmt.Sprintf("gives up after %v", now-from)
					}
				}
			}
			said = append(said, gives)
		}
	}
	return strings.Join(said, "\n")
}
