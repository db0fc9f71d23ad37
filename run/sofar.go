package run

import (
	"fmt"
	"math"
	"slices"
	"time"

	"pelt/engine"
	"pelt/fleet"
	"pelt/ledger"
	"pelt/model"
)

// checkpointSeconds is how much of a long trial is lost at most if this process is
// killed, and how often its stored run grows by a line. A short one is told of sooner.
const checkpointSeconds = 10

// soFar is the account of a running trial. It belongs to the goroutine that handles the
// trial's progress.
type soFar struct {
	trial   model.Trial
	flows   []model.Flow
	watch   *watch
	started time.Time
	begun   time.Time // of the measured part, as the first packets tell; zero before
	counts  map[string]model.Observation
	now     []flowNow
	told    int // whole seconds that were told
	kept    int // ... and stored
	failed  bool
}

// flowNow is the last sample of each end of a flow, and their series.
type flowNow struct {
	ends   [2]endNow // sender, receiver
	series [2][]float64
}

type endNow struct {
	packets uint64
	before  uint64 // a sample earlier
	reach   uint64 // of the receiver, see fleet.Progress
	sent    uint64 // of the receiver: what had been sent a sample before it was heard last
	at      time.Time
	second  int       // of the series, that the next value is for
	base    uint64    // packets at since, where its last value begins
	since   time.Time // zero before the first
}

// lasting reports whether a plan's trials are long enough to be shown while they run.
func lasting(p model.Plan) bool {
	return p.Timing.Measure() >= time.Minute || p.Timing.PatienceSeconds > 0
}

func newSoFar(t model.Trial, placed fleet.Trial, w *watch, started time.Time) *soFar {
	s := &soFar{trial: t, watch: w, started: started.UTC().Truncate(time.Millisecond),
		counts: map[string]model.Observation{}, now: make([]flowNow, len(placed.Flows))}
	for _, f := range placed.Flows {
		s.flows = append(s.flows, f.Flow)
	}
	return s
}

// take adds a sample; it is true once a second.
func (s *soFar) take(p fleet.Progress, now time.Time) bool {
	if p.Counts != nil {
		s.counts[p.Agent] = *p.Counts
		return false
	}
	i := slices.IndexFunc(s.flows, func(f model.Flow) bool { return f.Name == p.Flow })
	if i < 0 || p.Packets == 0 {
		return false
	}
	if s.begun.IsZero() {
		s.begun = now
		if pps, paced := s.flows[i].Rate.PPS(s.flows[i].PayloadBytes); paced {
			s.begun = now.Add(-time.Duration(float64(p.Packets) / pps * 1e9))
		}
	}
	k := 0
	if p.Role == engine.Receive {
		k = 1
		s.now[i].ends[k].sent = s.now[i].ends[0].before
	}
	s.now[i].ends[k].reach = p.Reach
	s.now[i].sample(k, p.Packets, now, s.begun)
	if whole := int(now.Sub(s.begun).Seconds()); whole > s.told {
		s.told = whole
		return true
	}
	return false
}

// Each end samples by its own clock. A sample that arrives sooner than soonest after another
// was delayed by the connection; one that is off by more than astray is of another second.
const (
	soonest = 100 * time.Millisecond
	astray  = 0.75 // seconds
)

// sample adds a sample of one end to its series, which has a value for each second.
func (f *flowNow) sample(k int, packets uint64, now, begun time.Time) {
	e := &f.ends[k]
	packets = max(packets, e.packets)
	defer func() { e.before, e.packets, e.at = e.packets, packets, now }()
	passed := now.Sub(begun).Seconds()
	if e.at.IsZero() {
		f.skip(k, int(math.Round(passed)))
		return
	}
	late := passed - float64(e.second+1)
	if now.Sub(e.at) < soonest || late < -astray { // its last value is of this, too
		if !e.since.IsZero() {
			f.series[k][len(f.series[k])-1] = float64(packets-e.base) / now.Sub(e.since).Seconds()
		}
		return
	}
	if late >= astray {
		f.skip(k, int(math.Round(passed))-1)
	}
	e.base, e.since = e.packets, e.at
	f.series[k] = append(f.series[k], float64(packets-e.base)/now.Sub(e.since).Seconds())
	e.second++
}

// skip fills the series up to a second with unknown values.
func (f *flowNow) skip(k, second int) {
	for e := &f.ends[k]; e.second < second; e.second++ {
		f.series[k] = append(f.series[k], math.NaN())
	}
}

// attempted returns what was sent by the time of the receiver's last sample: by the highest
// sequence that came, or else by the sender's sample before it.
func (f *flowNow) attempted() uint64 {
	if receiver := f.ends[1]; receiver.reach > 0 {
		return max(receiver.reach, receiver.sent)
	}
	return f.ends[0].packets
}

// checkpoint returns the account so far, with the series from a second on.
func (s *soFar) checkpoint(now time.Time, from int) model.Checkpoint {
	c := model.Checkpoint{Cell: s.trial.Cell, Repeat: s.trial.Repeat, Started: s.started,
		ElapsedS: now.Sub(s.begun).Seconds(), Series: []model.Series{}}
	for i, f := range s.flows {
		nodes := s.watch.soFar(f, s.counts)
		one := model.FlowSoFar{Name: f.Name, Protocol: f.Protocol, From: f.From, To: f.To,
			PayloadBytes: f.PayloadBytes, Streams: f.Streams,
			FrameBytes: model.FrameBytes(f.Protocol, f.Family, f.PayloadBytes), Attempted: s.now[i].attempted(),
			Received: s.now[i].ends[1].packets}
		if f.Protocol == model.UDP {
			account := ledger.Balance(ledger.Input{Sender: f.From, Receiver: f.To, Flow: f.Name,
				Planned: one.Attempted, Attempted: one.Attempted, Accepted: one.Attempted,
				Received: min(one.Received, one.Attempted), DurationS: c.ElapsedS, Nodes: nodesOf(f, nodes)})
			for _, l := range account.Lines {
				if l.Confidence == ledger.ExactSeq || l.Confidence == ledger.ExactCount ||
					l.Confidence == ledger.Bounded {
					l.Evidence, l.Sequences, l.Confidence = nil, nil, ledger.Bounded // what is on its way blurs it
					one.Lines = append(one.Lines, l)
				}
			}
		}
		c.Flows = append(c.Flows, one)
		for k, metric := range []string{"send_pps", "receive_pps"} {
			at := []string{f.From, f.To}[k]
			if values := s.now[i].series[k]; len(values) > from {
				c.Series = append(c.Series, model.Series{Metric: metric, Flow: f.Name, At: at,
					StartSeconds: float64(from), StepSeconds: 1, Values: slices.Clone(values[from:])})
			}
		}
	}
	return c
}

// silentEnd is how long the other ends' seconds wait for an end that sends no samples.
const silentEnd = 3 * time.Second

// ready returns how many seconds that are not stored yet all ends have samples of.
func (s *soFar) ready(now time.Time) int {
	ready := math.MaxInt
	for _, f := range s.now {
		for k, e := range f.ends {
			if n := len(f.series[k]) - s.kept; n > 0 && now.Sub(e.at) < silentEnd {
				ready = min(ready, n)
			}
		}
	}
	if ready == math.MaxInt {
		return 0
	}
	return ready
}

// soFar shows and stores the account of the running trial.
func (r *runner) soFar(s *soFar, number int, p fleet.Progress) {
	now := r.now()
	if s == nil || !s.take(p, now) {
		return
	}
	c := s.checkpoint(now, s.kept)
	r.event(Event{SoFar: &SoFar{Number: number, Checkpoint: c}})
	ready := s.ready(now)
	if ready < min(max(s.kept, 1), checkpointSeconds) || s.failed {
		return
	}
	if err := r.save(); err != nil || r.log == nil {
		return
	}
	for i := range c.Series { // the ends' series grow at their own times
		c.Series[i].Values = c.Series[i].Values[:min(ready, len(c.Series[i].Values))]
	}
	err := r.log.Checkpoint(c)
	if err == nil { // else the next one tells of these seconds, too
		s.kept += ready
	}
	if !r.stored(err) {
		s.failed = true
		r.warn(fmt.Sprintf("what is known of the running trial is no longer stored: %v", err))
	}
}
