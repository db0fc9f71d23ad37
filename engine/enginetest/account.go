package enginetest

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pelt/engine"
	"pelt/model"
)

// Balance checks what holds of every account of a flow: what was attempted was accepted or has a reason, what did not
// come is missing, and streams, seconds and lists say the same.
func Balance(t testing.TB, o engine.Order, send, receive engine.Report) {
	t.Helper()
	s, got := send.Send, receive.Receive
	equal := func(what string, sum, whole uint64) {
		t.Helper()
		if sum != whole {
			t.Errorf("%s: %d, want %d", what, sum, whole)
		}
	}
	equal("attempted by all streams", Total(slices.Values(s.Streams)), s.Attempted)
	equal("attempted in all seconds", Total(slices.Values(s.PerStep)), s.Attempted)
	equal("received in all seconds", Total(slices.Values(got.Tally.PerStep)), got.Tally.Received)
	equal("bytes received in all seconds", Total(slices.Values(got.Tally.StepBytes)), got.Tally.Bytes)
	refused := Total(maps.Values(s.Errors))
	if o.Flow.Protocol != model.TCP { // there an error is of a stream
		equal("accepted, refused and not taken", s.Accepted+refused+Total(maps.Values(s.Unsent)), s.Attempted)
		equal("bytes received", got.Tally.Bytes, got.Tally.Received*uint64(o.Flow.PayloadBytes))
	}
	if s.Attempted+s.Late+s.Held+s.SlotsSilent > s.Planned || len(s.Streams) != o.Flow.Streams {
		t.Errorf("planned %d; attempted %d, late %d, held %d, left when silent %d, in %d streams", s.Planned,
			s.Attempted, s.Late, s.Held,
			s.SlotsSilent, len(s.Streams))
	}
	if s.Refused != nil {
		byName := map[string]uint64{}
		for _, m := range s.Refused {
			for _, x := range Listed(t, m) {
				byName[s.Errnos[x.Mark]] += x.Count
			}
		}
		if !maps.Equal(byName, s.Errors) || len(s.Refused) != len(s.Streams) {
			t.Errorf("refused %v; %d lists say %v", s.Errors, len(s.Refused), byName)
		}
	}
	if got.MissingKnown {
		missing := uint64(0)
		for _, m := range got.Missing {
			missing += uint64(len(Sequences(t, m)))
		}
		equal("sequences missing", missing, s.Attempted-got.Tally.Received)
		equal("lists of what is missing", uint64(len(got.Missing)), uint64(len(s.Streams)))
	}
}

// Undisturbed checks what holds beside Balance of a paced flow of datagrams on a path that loses and changes nothing.
func (r *Trial) Undisturbed(t testing.TB, send, receive engine.Report) {
	t.Helper()
	Balance(t, r.Order, send, receive)
	s, got := send.Send, receive.Receive
	if lost := s.Accepted - got.Tally.Received; !got.MissingKnown || lost > r.Backlog { // also if more was received
		t.Errorf("attempted %d, accepted %d (errors %v, not taken %v), received %d (drops %d, unread %d); "+
			"the machine dropped %d", s.Attempted, s.Accepted, s.Errors, s.Unsent, got.Tally.Received, got.SocketDrops,
			got.Unread, r.Backlog)
	}
	if n := got.Tally.Duplicates + got.Tally.Late + got.Tally.WrongLength + got.SocketDrops + got.Unread +
		got.Broken + got.Strays + got.Overrun; n != 0 {
		t.Errorf("nothing disturbs this path: %+v", got)
	}
	// A sender that the kernel moves to another core may overtake itself: each core has a backlog of its own. How many
	// packets of a path are out of order is what testRelay knows.
	if got.Tally.Reordered > s.Attempted/2 {
		t.Errorf("%d of %d packets out of order", got.Tally.Reordered, s.Attempted)
	}
	tried := uint64(1) // by frames, whether the device takes any
	if got.WarmupReceived > s.WarmupSent || s.WarmupSent > tried && r.Timing.WarmupSeconds == 0 {
		t.Errorf("of the warm-up %d were sent, %d came", s.WarmupSent, got.WarmupReceived)
	}
	schedule, _ := r.Flow.Rate.Schedule(r.Flow.PayloadBytes)
	whole := r.Timing.Measure().Nanoseconds()
	if most := schedule.Count(min(whole, s.DurationNanos)); s.Planned > most+1 || s.DurationNanos >= whole &&
		s.Planned != most {
		t.Errorf("planned %d in %d ns of %d, want %d", s.Planned, s.DurationNanos, whole, most)
	}
	if s.Attempted == 0 || got.Tally.Received == 0 {
		return // the machine stood still all the time
	}
	if d := got.Tally.Delay; d == nil || d.Count != got.Tally.Received || d.Out != 0 || d.P50 <= 0 {
		t.Errorf("delay %+v of %d packets", d, got.Tally.Received)
	}
	between := s.Attempted - uint64(active(s.Streams))
	if between > 0 && (s.Gap == nil || s.Gap.Count+s.Gap.Out != between) {
		t.Errorf("gaps %+v of %d packets in streams of %v", s.Gap, s.Attempted, s.Streams)
	}
}

// Dropped checks that a flood whose sockets overflowed, and which had no warm-up, lost just what they dropped. They
// drop checks of the consent, too, of which a stream gets 64 a second at most.
func (r *Trial) Dropped(t testing.TB, send, receive engine.Report) {
	t.Helper()
	s, got := send.Send, receive.Receive
	lost, checks := s.Accepted-got.Tally.Received, uint64(len(s.Streams))*uint64(64+s.DurationNanos*64/1e9)
	if got.SocketKnown && (lost+checks < got.SocketDrops || lost > got.SocketDrops+r.Backlog) {
		t.Errorf("lost %d, the sockets dropped %d, the backlog %d", lost, got.SocketDrops, r.Backlog)
	}
}

// active counts the streams that sent.
func active(streams []uint64) (n int) {
	for _, k := range streams {
		n += min(int(k), 1)
	}
	return n
}

// Total adds up.
func Total(all func(yield func(uint64) bool)) (sum uint64) {
	for n := range all {
		sum += n
	}
	return sum
}

// Listed reads a list; it must be whole and in order.
func Listed(t testing.TB, m model.Marks) (all []model.Stretch) {
	t.Helper()
	next := uint64(0)
	for s, err := range m.Stretches() {
		if err != nil || s.From < next {
			t.Fatalf("stretch %+v after sequence %d: %v", s, next, err)
		}
		next = s.From + s.Count
		all = append(all, s)
	}
	if m.Unlisted > 0 {
		t.Fatalf("%d sequences are not listed", m.Unlisted)
	}
	return all
}

// Sequences are those of a list, whatever their marks.
func Sequences(t testing.TB, m model.Marks) map[uint64]bool {
	set := map[uint64]bool{}
	for _, s := range Listed(t, m) {
		for n := range s.Count {
			set[s.From+n] = true
		}
	}
	return set
}

// backlogDrops sums up the second column of softnet_stat, modulo 2^32.
func backlogDrops() (sum uint32) {
	text, _ := os.ReadFile("/proc/net/softnet_stat") // Linux only
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 {
			n, _ := strconv.ParseUint(f[1], 16, 32)
			sum += uint32(n)
		}
	}
	return sum
}
