package tcp

import (
	"math"
	"sync"
	"time"

	"pelt/model"
	"pelt/unit"
)

// mostReadings of all streams of a flow are kept in memory and in the report: a long trial is read less often.
const mostReadings = 60_000

// readings is the series of one sender's TCP_INFO: each stream's at the same moments.
type readings struct {
	e      *end
	step   time.Duration
	done   chan struct{}
	group  sync.WaitGroup
	rows   [][]reading // by stream; those not begun yet have nothing acknowledged
	missed uint64      // moments that nobody read; the ones before stand for them
}

// reading is one stream at one moment.
type reading struct {
	info
	bbr bbrInfo
}

// watchInfo begins to read, if the order wants it; stop must be called.
func (e *end) watchInfo() *readings {
	asked := time.Duration(math.Round(e.order.Flow.InfoSeconds * 1e9))
	if asked <= 0 {
		return nil
	}
	t := e.order.Timing
	step := max(asked, (t.Warmup()+t.Measure())*time.Duration(len(e.streams))/mostReadings)
	r := &readings{e: e, step: step, done: make(chan struct{}), rows: make([][]reading, len(e.streams))}
	r.group.Go(r.run)
	return r
}

func (r *readings) run() {
	origin := r.e.clock.Began.Add(time.Duration(r.e.origin.Load()))
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n := 0; n < r.most(); {
		select {
		case <-timer.C:
		case <-r.done:
			return
		}
		n = r.catchUp(n, time.Since(origin))
		r.take(func(i int) reading { return r.e.streams[i].reading() })
		n++
		timer.Reset(time.Until(origin.Add(time.Duration(n) * r.step)))
	}
}

// catchUp fills moments that passed unread with the last reading, n being the next one, and
// returns the moment to read now.
func (r *readings) catchUp(n int, now time.Duration) int {
	for time.Duration(n+1)*r.step <= now && n < r.most() {
		r.missed++
		r.take(r.last)
		n++
	}
	return n
}

// most is how many readings of each stream are kept.
func (r *readings) most() int { return mostReadings / len(r.rows) }

func (r *readings) take(of func(stream int) reading) {
	for i := range r.rows {
		r.rows[i] = append(r.rows[i], of(i))
	}
}

func (r *readings) last(i int) reading {
	if n := len(r.rows[i]); n > 0 {
		return r.rows[i][n-1]
	}
	return r.e.streams[i].reading()
}

// stop ends the reading; nil is none.
func (r *readings) stop() {
	if r == nil {
		return
	}
	close(r.done)
	r.group.Wait()
}

func (s *stream) reading() (r reading) {
	r.info, _ = readInfo(s.raw)
	if !s.sending.Load() {
		r.acked = 0 // the opening is no data of its own
	}
	if s.control == "bbr" {
		r.bbr, _ = readBBR(s.raw)
	}
	return r
}

// between is what a stream's peer acknowledged, in bit/s, between two moments after the
// origin; until 0 is the last reading. 0 where that is not known.
func (r *readings) between(stream int, from, until time.Duration) float64 {
	if r == nil {
		return 0
	}
	row := r.rows[stream]
	begin, end := int((from+r.step-1)/r.step), len(row)-1
	if until > 0 {
		end = min(end, int(until/r.step))
	}
	if end <= begin {
		return 0
	}
	return float64(row[end].acked-row[begin].acked) * 8 / (time.Duration(end-begin) * r.step).Seconds()
}

// unpaced is the pacing rate of a connection that nothing paces.
const unpaced = math.MaxUint64

// series are the readings by metric; a model.Series' flow and node are the reader's
// to say.
func (r *readings) series() (list []model.Series) {
	if r == nil {
		return nil
	}
	for i, row := range r.rows {
		var stream *int
		if len(r.rows) > 1 {
			stream = new(int)
			*stream = i
		}
		add := func(metric string, value func(reading) float64) {
			s := model.Series{Metric: metric, Stream: stream, StepSeconds: r.step.Seconds()}
			for _, x := range row {
				s.Values = append(s.Values, value(x))
			}
			list = append(list, s)
		}
		truth := map[bool]float64{true: 1}
		add(model.SeriesWindow, func(x reading) float64 { return float64(x.cwnd) })
		add(model.SeriesInflight, func(x reading) float64 { return float64(x.inflight) })
		add(model.SeriesLostSegments, func(x reading) float64 { return float64(x.lost) })
		sent := uint64(0)
		add(model.SeriesRetransmits, func(x reading) float64 {
			sent, _ = unit.Widen(sent, x.retransmits)
			return float64(sent)
		})
		add(model.SeriesRTT, func(x reading) float64 { return float64(x.rttMicros) * 1e3 })
		add(model.SeriesMinRTT, func(x reading) float64 { return float64(x.minRTTMicros%math.MaxUint32) * 1e3 }) // all ones: none yet
		add(model.SeriesDelivery, func(x reading) float64 { return float64(x.delivery) * 8 })
		add(model.SeriesAppLimited, func(x reading) float64 { return truth[x.appLimited] })
		add(model.SeriesPacing, func(x reading) float64 {
			if x.pacing == unpaced {
				return 0
			}
			return float64(x.pacing) * 8
		})
		add(model.SeriesAcked, func(x reading) float64 { return float64(x.acked) })
		add(model.SeriesBusy, func(x reading) float64 { return float64(x.busy) / 1e6 })
		add(model.SeriesRwndLimited, func(x reading) float64 { return float64(x.rwndLimited) / 1e6 })
		add(model.SeriesSndbufLimited, func(x reading) float64 { return float64(x.sndbufLimited) / 1e6 })
		if r.e.streams[i].control == "bbr" {
			add(model.SeriesBBRBandwidth, func(x reading) float64 { return float64(x.bbr.bandwidth) * 8 })
			add(model.SeriesBBRPacingGain, func(x reading) float64 { return x.bbr.pacingGain })
			add(model.SeriesBBRWindowGain, func(x reading) float64 { return x.bbr.windowGain })
		}
	}
	return list
}
