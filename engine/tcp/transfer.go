package tcp

import (
	"math"
	"time"

	"pelt/engine"
	"pelt/engine/tcpinfo"
	"pelt/model"
)

// begin waits for the turn of a stream; false: the trial is over first.
func (e *end) begin(s *stream) bool {
	origin := e.clock.Began.Add(time.Duration(e.origin.Load()))
	if late := time.Duration(e.order.Flow.StaggerSeconds * float64(s.number) * 1e9); late > 0 &&
		!e.wait(origin.Add(late)) {
		return false
	}
	s.begun = time.Since(origin)
	s.sending.Store(true)
	return true
}

// transfer writes as fast as TCP takes it. Of a flow with a number of bytes it writes the stream's share, and waits
// until the peer's TCP has it.
func (e *end) transfer(s *stream) error {
	share := uint64(math.MaxUint64)
	if e.order.Flow.Bytes > 0 {
		share = e.order.Flow.StreamBytes(s.number)
	}
	if e.order.Flow.HTTP {
		if err := beginAnswer(s, share); err != nil {
			return unlessStopped(err)
		}
	}
	for left := share; left > 0; {
		n, err := s.conn.Write(e.message[:min(left, uint64(len(e.message)))])
		s.bytes.Add(uint64(n))
		left -= uint64(n)
		if err != nil {
			return unlessStopped(err)
		}
		s.writes.Add(1)
	}
	if !e.foreign {
		if err := s.conn.CloseWrite(); err != nil {
			return unlessStopped(err)
		}
	}
	if all, err := e.awaitAcked(s); !all {
		return err
	}
	s.done.Store(max(1, int64(time.Since(e.clock.Began))-e.origin.Load()))
	return nil
}

// settleEvery is how often a sender asks whether its peer has all: the resolution of
// a transfer's time where the two hosts have different clocks.
const settleEvery = time.Millisecond

// awaitAcked waits until the peer has acknowledged all that was written. all is false, without an error, if the time
// was over first.
func (e *end) awaitAcked(s *stream) (all bool, err error) {
	for {
		if err := broken(s.raw); err != nil {
			return false, err
		}
		if n, known := outstanding(s.raw); !known || n == 0 {
			return true, nil
		}
		if !e.wait(time.Now().Add(settleEvery)) {
			return false, nil
		}
	}
}

// transferred reports whether a flow of a number of bytes has sent all of them.
func (e *end) transferred() bool {
	if e.order.Flow.Bytes == 0 || e.order.Role != engine.Send {
		return false
	}
	for _, s := range e.streams {
		if s.done.Load() == 0 {
			return false
		}
	}
	return true
}

// completion is the sender's account of a transfer; nil of a flow without an end.
func (e *end) completion(span span) *model.Completion {
	if e.order.Flow.Bytes == 0 {
		return nil
	}
	c := &model.Completion{Bytes: e.order.Flow.Bytes, Done: e.transferred(), By: model.ByAcknowledged,
		Seconds: span.ended.Seconds()}
	if c.Done {
		last := int64(0)
		for _, s := range e.streams {
			last = max(last, s.done.Load())
		}
		c.Seconds = float64(last) / 1e9
	}
	return c
}

// answered is the receiver's account of a transfer by HTTP; nil of others, and of one
// that was cut.
func (e *end) answered() *model.Completion {
	if !e.order.Flow.HTTP {
		return nil
	}
	first, last := e.streams[0].asked, time.Duration(0)
	for _, s := range e.streams {
		if s.answered == 0 {
			return nil
		}
		first, last = min(first, s.asked), max(last, s.answered)
	}
	return &model.Completion{Bytes: e.order.Flow.Bytes, Done: true, By: model.ByAnswer,
		Seconds: (last - first).Seconds()}
}

// perStream are the figures of each of several streams that transfer in bulk.
func (e *end) perStream() (list []model.TCPStream) {
	if len(e.streams) < 2 || !e.order.Flow.Bulk {
		return nil
	}
	first, last, least := e.streams[0].begun, e.streams[0].begun, time.Duration(0)
	for _, s := range e.streams {
		last = max(last, s.begun)
		if done := time.Duration(s.done.Load()); done > 0 && (least == 0 || done < least) {
			least = done
		}
	}
	from := max(last, e.order.Timing.Warmup())
	for i, s := range e.streams {
		list = append(list, model.TCPStream{Control: s.control, StartSeconds: max(0, (s.begun - first).Seconds()),
			SentBytes: s.sentOnce(s.sum), Retransmits: s.sum[tcpinfo.Retransmits],
			GoodputBPS: e.watching.between(i, from, least)})
	}
	return list
}
