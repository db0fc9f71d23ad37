package tcp

import (
	"math"
	"sync"
	"time"

	"pelt/engine/tcpinfo"
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
	rows   [][]tcpinfo.Info // by stream; those not begun yet have nothing acknowledged
	missed uint64           // moments that nobody read; the ones before stand for them
}

// watchInfo begins to read, if the order wants it; stop must be called.
func (e *end) watchInfo() *readings {
	asked := time.Duration(math.Round(e.order.Flow.InfoSeconds * 1e9))
	if asked <= 0 {
		return nil
	}
	t := e.order.Timing
	step := max(asked, (t.Warmup()+t.Measure())*time.Duration(len(e.streams))/mostReadings)
	r := &readings{e: e, step: step, done: make(chan struct{}), rows: make([][]tcpinfo.Info, len(e.streams))}
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
		r.add(func(i int) tcpinfo.Info { return r.e.streams[i].reading() })
		n++
		timer.Reset(time.Until(origin.Add(time.Duration(n) * r.step)))
	}
}

// catchUp fills moments that passed unread with the last reading, n being the next one, and
// returns the moment to read now.
func (r *readings) catchUp(n int, now time.Duration) int {
	for time.Duration(n+1)*r.step <= now && n < r.most() {
		r.missed++
		r.add(r.last)
		n++
	}
	return n
}

// most is how many readings of each stream are kept.
func (r *readings) most() int { return mostReadings / len(r.rows) }

// add adds one reading of each stream.
func (r *readings) add(of func(stream int) tcpinfo.Info) {
	for i := range r.rows {
		r.rows[i] = append(r.rows[i], of(i))
	}
}

func (r *readings) last(i int) tcpinfo.Info {
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

func (s *stream) reading() tcpinfo.Info {
	r, _ := readInfo(s.raw, s.control == "bbr")
	if !s.sending.Load() {
		r.Figure[tcpinfo.Acked] = 0 // the opening is no data of its own
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
	acked := row[end].Figure[tcpinfo.Acked] - row[begin].Figure[tcpinfo.Acked]
	return float64(acked) * 8 / (time.Duration(end-begin) * r.step).Seconds()
}

// series are the readings by metric; a model.Series' flow and node are the reader's
// to say.
func (r *readings) series() (list []model.Series) {
	if r == nil {
		return nil
	}
	for i, row := range r.rows {
		for f := range tcpinfo.Figures {
			metric := tcpinfo.Metric(f)
			if metric == "" || f >= tcpinfo.BBRBandwidth && r.e.streams[i].control != "bbr" {
				continue
			}
			s := model.Series{Metric: metric, StepSeconds: r.step.Seconds()}
			if len(r.rows) > 1 {
				s.Stream = &i
			}
			resent := uint64(0)
			for _, x := range row {
				value := x.Figure[f]
				if f == tcpinfo.Retransmits {
					resent, _ = unit.Widen(resent, uint32(value))
					value = resent
				}
				s.Values = append(s.Values, tcpinfo.Scaled(f, value))
			}
			list = append(list, s)
		}
	}
	return list
}
