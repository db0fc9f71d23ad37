package udp

import (
	"errors"
	"slices"
	"syscall"

	"pelt/engine"
	"pelt/internal/icmp"
	"pelt/model"
)

// emit offers up to n packets to the kernel, all stamped with the time now, and returns the
// time after. Every packet that it counts as attempted was accepted or refused. It ends early
// where the socket has no room, or after a row of refusals.
func (w *sendStream) emit(n int, now int64) (after int64, room bool, err error) {
	codec := w.sender.end.codec
	for i := range n {
		h := engine.Header{Trial: w.trial, Sequence: w.sequence + uint64(i), SendNanos: uint64(now)}
		if codec == nil {
			engine.PutHeader(w.bytes[i], h)
		} else {
			codec.Put(w.bytes[i], h)
		}
	}
	untried := 0
	for from := 0; from < n; {
		to := n
		if w.refusals.single > 0 {
			// sendmmsg hides the error of all but its first buffer: after a
			// refusal they go one by one, so that each has its own answer.
			to = min(from+w.segments, n)
			w.refusals.single--
		}
		before := now
		sent, err := w.out.send(from, to)
		isFull := err != nil && isQueueFull(err)
		if !isFull || to == n { // a look at the clock costs too much for each packet of a full queue
			now = w.clock.Now()
		}
		if sendWaits && now-before > longSend {
			w.waited(now - before)
		}
		if sent > 0 {
			w.countAccepted(sent, before, now)
			from += sent
		}
		switch {
		case err == nil && from == to:
		case err == nil:
			// Where a queue had no room, this is a second offer of the same packets.
			w.refusals.single = oneByOne
			if w.measured {
				w.retried += uint64(min(w.segments, n-from))
			}
		case !isFull && temporary(err):
			return now, false, nil
		case !isFull && untried < maxUntried && w.readICMP(err):
			untried++
		default:
			untried = 0
			k := min(w.segments, n-from)
			from += k
			if err := w.countRefused(k, err, now); err != nil || w.refusals.row >= hopelessRow {
				return now, true, err
			}
		}
	}
	return now, true, nil
}

// longSend tells a call that waited for room from one that did not, in ns, where
// the system has no call that never waits.
const longSend = 1_000_000

// maxUntried is how often in a row a packet that was not tried gets another try.
const maxUntried = 8

// readICMP counts the ICMP errors that came back. It says whether err is one of them:
// the packet that it was returned for was not tried. A closed port stays a refusal, as for any program.
func (w *sendStream) readICMP(err error) (ours bool) {
	w.out.icmpErrors(func(e icmp.Error, of []byte) {
		w.sender.icmpErrors.note(e, w.measuredIn(of)...)
		if e.Errno != syscall.ECONNREFUSED && err != nil && errors.Is(err, e.Errno) {
			ours = true
		}
	})
	return ours
}

// measuredIn tells the measured packet whose payload begins so; nil if it is none.
func (w *sendStream) measuredIn(payload []byte) []model.Span {
	h, ok := w.sender.end.parse(payload)
	if !ok || h.Trial != w.sender.end.order.Trial {
		return nil
	}
	return []model.Span{{Stream: w.stream, From: h.Sequence, Count: 1}}
}

// countAccepted counts packets that one call gave to the kernel between two times.
func (w *sendStream) countAccepted(n int, from, to int64) {
	w.sequence += uint64(n)
	w.refusals.take()
	if !w.measured {
		return
	}
	w.accepted += uint64(n)
	w.attempted.Store(w.sequence)
	// Buffers of one call are taken to leave evenly while it lasts, the packets
	// of a buffer at once.
	buffers := (n + w.segments - 1) / w.segments
	each := (to - from) / int64(buffers)
	if w.lastSend != 0 {
		w.sender.gaps.Record(w.stream, from-w.lastSend, 1)
	}
	if buffers > 1 {
		w.sender.gaps.Record(w.stream, each, int64(buffers-1))
	}
	if n > buffers {
		w.sender.gaps.Record(w.stream, 0, int64(n-buffers))
	}
	w.lastSend = from + each*int64(buffers-1)
	w.count(uint64(n), from)
}

// countRefused counts one buffer of packets that the kernel did not take.
func (w *sendStream) countRefused(n int, err error, now int64) error {
	if w.measured {
		mark := w.errnoIndex(err)
		w.byMark[mark] += uint64(n)
		w.list.Add(w.sequence, uint64(n), mark)
		w.attempted.Store(w.sequence + uint64(n))
		w.count(uint64(n), now)
	}
	w.sequence += uint64(n)
	e := w.sender.end
	if w.refusals.hopeless(err, now) {
		w.gaveUp = true
		code := model.SendHopeless
		if w.refusals.all.taken.Load() {
			w.hopelessNanos = max(w.refusals.all.lasted(now), 1)
			code = model.SendOver
		}
		to := w.socket.remote().Addr()
		why := model.NewReason(code, "payload_bytes", float64(e.settings.flow.PayloadBytes), "address", to, "text", err)
		if hint := remedy(err, to, w.socket.pathMTU(), w.segments); hint.Code != "" {
			why.Of = model.Reasons{hint}
		}
		return &engine.Fault{Why: why, Cause: err}
	}
	return nil
}

// maxErrnos bounds the names of errors; further ones share the last.
const maxErrnos = 64

// errnoIndex returns the index of an error among the sender's errnos.
func (w *sendStream) errnoIndex(err error) uint16 {
	if w.lastErr != nil && errors.Is(err, w.lastErr) {
		return w.lastMark
	}
	s := w.sender
	s.mu.Lock()
	defer s.mu.Unlock()
	name := causeName(err)
	if len(s.errnos) >= maxErrnos-1 && !slices.Contains(s.errnos, name) {
		name = "other"
	}
	mark := slices.Index(s.errnos, name)
	if mark < 0 {
		mark, s.errnos = len(s.errnos), append(s.errnos, name)
	}
	for len(w.byMark) <= mark {
		w.byMark = append(w.byMark, 0)
	}
	w.lastErr, w.lastMark = err, uint16(mark)
	return w.lastMark
}

// count adds packets to the series.
func (w *sendStream) count(n uint64, at int64) {
	step := int(max(at-w.sender.start, 0) / engine.StepNanos)
	for len(w.steps) <= step {
		w.steps = append(w.steps, 0)
	}
	w.steps[step] += n
}
