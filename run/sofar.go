package run

import (
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

// liveAccount is the account of a running trial, from the samples of its ends. It belongs to the goroutine that
// handles the trial's progress. Its times are seconds since the measured part began, by the ends' clocks.
type liveAccount struct {
	trial   model.Trial
	flows   []model.Flow
	watch   *watch
	started time.Time
	counts  map[string]model.Observation // by agent
	ends    [][2]endSamples              // sender and receiver of each flow
	latest  float64                      // of all samples; 0 before the first
	kept    int                          // whole seconds that are stored
	failed  bool
	asked   bool // it is shown and stored while the trial runs
}

// endSamples are the figures of one end, by its samples.
type endSamples struct {
	packets uint64
	before  uint64    // a sample earlier
	reach   uint64    // of the receiver, see fleet.Progress
	sent    uint64    // of the receiver: what had been sent a sample before it was heard last
	at      float64   // of the last sample; 0 before the first
	pps     []float64 // of each second; NaN: unknown
}

// lasting reports whether the account of a plan's trials is stored while they run: they are long, or hosts of a fleet
// may be lost in their midst.
func lasting(p model.Plan) bool {
	return p.Timing.Measure() >= time.Minute || p.Timing.PatienceSeconds > 0 || len(p.Hosts) > 0
}

func newLiveAccount(t model.Trial, placed fleet.Trial, w *watch, started time.Time) *liveAccount {
	s := &liveAccount{trial: t, watch: w, started: started.UTC().Truncate(time.Millisecond),
		counts: map[string]model.Observation{}, ends: make([][2]endSamples, len(placed.Flows))}
	for _, f := range placed.Flows {
		s.flows = append(s.flows, f.Flow)
	}
	return s
}

// take adds a sample. It returns true once a second, when there is something to show.
func (s *liveAccount) take(p fleet.Progress) bool {
	if p.Counts != nil {
		s.counts[p.Agent] = *p.Counts
		return false
	}
	i := slices.IndexFunc(s.flows, func(f model.Flow) bool { return f.Name == p.Flow })
	if i < 0 || p.AtS < 1 { // of no whole second
		return false
	}
	sender, receiver := &s.ends[i][0], &s.ends[i][1]
	if p.Role == engine.Receive {
		receiver.sample(p)
		receiver.sent = sender.before
	} else {
		sender.sample(p)
	}
	before := s.latest
	s.latest = max(before, p.AtS)
	return math.Floor(s.latest) > math.Floor(before)
}

// sample adds a sample. A second without a sample is unknown.
func (e *endSamples) sample(p fleet.Progress) {
	packets := max(p.Packets, e.packets)
	for second := int(p.AtS); len(e.pps) < second; {
		pps := math.NaN()
		if len(e.pps) == second-1 {
			pps = float64(packets-e.packets) / (p.AtS - e.at)
		}
		e.pps = append(e.pps, pps)
	}
	e.before, e.packets, e.reach, e.at = e.packets, packets, p.Reach, p.AtS
}

// attempted returns how many packets had been sent by the receiver's last sample: the highest sequence that came, or
// else the sender's sample before it. It is 0 before the receiver's first sample.
func attempted(ends [2]endSamples) uint64 {
	switch receiver := ends[1]; {
	case receiver.at == 0:
		return 0
	case receiver.reach > 0:
		return max(receiver.reach, receiver.sent)
	}
	return ends[0].packets
}

// checkpoint returns the account by a time, with the series from a second on.
func (s *liveAccount) checkpoint(at float64, from int) model.Checkpoint {
	c := model.Checkpoint{Cell: s.trial.Cell, Repeat: s.trial.Repeat, Started: s.started, ElapsedS: at,
		Series: []model.Series{}}
	for i, f := range s.flows {
		ends := s.ends[i]
		one := model.FlowSoFar{Name: f.Name, Protocol: f.Protocol, From: f.From, To: f.To,
			PayloadBytes: f.PayloadBytes, Streams: f.Streams,
			FrameBytes: model.FrameBytes(f.Protocol, f.Family, f.PayloadBytes), Attempted: attempted(ends),
			Received: ends[1].packets}
		if f.Protocol == model.UDP {
			account := ledger.Balance(ledger.Input{Sender: f.From, Receiver: f.To, Flow: f.Name,
				Planned: one.Attempted, Attempted: one.Attempted, Accepted: one.Attempted,
				Received: min(one.Received, one.Attempted), DurationS: at,
				Nodes: nodesOf(f, s.watch.lossSoFar(f, s.counts))})
			for _, l := range account.Lines {
				if l.Confidence != ledger.Inferred {
					l.Evidence, l.Sequences, l.Confidence = nil, nil, ledger.Bounded // what is on its way blurs it
					one.Lines = append(one.Lines, l)
				}
			}
		}
		c.Flows = append(c.Flows, one)
		for k, metric := range []string{"send_pps", "receive_pps"} {
			if pps := ends[k].pps; len(pps) > from {
				c.Series = append(c.Series, model.Series{Metric: metric, Flow: f.Name, At: []string{f.From, f.To}[k],
					StartSeconds: float64(from), StepSeconds: 1, Values: slices.Clone(pps[from:])})
			}
		}
	}
	return c
}

// silentEnd is how many seconds of the other ends wait for an end that sends no samples.
const silentEnd = 3

// ready returns how many seconds that are not stored yet all ends have samples of.
func (s *liveAccount) ready() int {
	ready := math.MaxInt
	for _, ends := range s.ends {
		for _, e := range ends {
			if n := len(e.pps) - s.kept; n > 0 && s.latest-e.at < silentEnd {
				ready = min(ready, n)
			}
		}
	}
	if ready == math.MaxInt {
		return 0
	}
	return ready
}

// takeSample adds a sample to the account of the running trial. Where that is asked for, it shows and stores the
// account.
func (r *runner) takeSample(s *liveAccount, number int, p fleet.Progress) {
	if !s.take(p) || !s.asked {
		return
	}
	if w := s.watch.router; w != nil && !r.site.local {
		if busy := w.Live().Cores; len(busy) > 0 {
			r.event(Event{Cores: &Cores{number, deviceNode, s.latest, busy}})
		}
	}
	c := s.checkpoint(s.latest, s.kept)
	r.event(Event{SoFar: &SoFar{Number: number, Checkpoint: c}})
	ready := s.ready()
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
	if !r.tellDisk(err) {
		s.failed = true
		r.warn(model.Reason{Code: model.NotStoredNow, Text: bySystem(err).Text})
	}
}

// untilCut returns the account of a trial that was cut, up to the oldest last sample of an
// end that sent any; without samples it has no flows.
func (s *liveAccount) untilCut(out fleet.Outcome) model.Result {
	if s.latest == 0 || out.Cut.Code == "" {
		return model.Result{}
	}
	until := s.latest
	for _, ends := range s.ends {
		for _, e := range ends {
			if e.at > 0 {
				until = min(until, e.at)
			}
		}
	}
	return model.Unfinished([]model.Checkpoint{s.checkpoint(until, 0)})
}

// useCheckpoint replaces the figures of flows that lack the report of an end by those of the
// samples: otherwise all packets would count as lost, or none as sent. r has the flows of out, in its order.
func useCheckpoint(r *model.Result, out fleet.Outcome, known model.Result) {
	for i := range r.Flows {
		f, s := &r.Flows[i], out.Flows[i].Send
		if !missing(out.Flows[i]) {
			continue
		}
		at := slices.IndexFunc(known.Flows, func(k model.FlowResult) bool {
			return k.Name == f.Name && k.Attempted > 0
		})
		var told model.FlowResult
		if at >= 0 {
			told = known.Flows[at]
		} else if f.Protocol == model.UDP && s != nil && s.Send != nil { // the sender alone knows nothing of losses
			told = f.Bare()
			told.Ledger = emptyLedger()
		} else {
			continue
		}
		told.SenderCPU, told.ReceiverCPU, told.SendGap, told.GapCounts, told.SendLate = f.SenderCPU, f.ReceiverCPU,
			f.SendGap, f.GapCounts, f.SendLate
		if s != nil && s.Send != nil && s.Send.Attempted > told.Attempted {
			told.Unheard = &model.Unheard{FromS: told.DurationS, Packets: s.Send.Attempted - told.Attempted}
		}
		*f = told
		for _, x := range known.Series {
			if x.Flow == told.Name && !slices.ContainsFunc(r.Series,
				func(have model.Series) bool { return have.Flow == x.Flow && have.Metric == x.Metric }) {
				r.Series = append(r.Series, x)
			}
		}
		if at >= 0 {
			r.Warnings = append(r.Warnings, model.NewReason(model.ToldInPart, "flow", flowTo(*f), "at_s", f.DurationS))
		}
	}
	sortSeries(r.Series)
}

// leaveOutUnknown takes the flows out of a star's result that lack the report of an end, and of which nothing else is
// known: all their packets would count as lost. A flow of the plan keeps at least one.
func leaveOutUnknown(r *model.Result, out fleet.Outcome, known model.Result) {
	told := map[string]bool{} // flows, and flows of the plan with one
	for _, f := range known.Flows {
		told[f.Name] = f.Attempted > 0
	}
	for i, f := range r.Flows {
		told[f.Name] = told[f.Name] || !missing(out.Flows[i]) || out.Flows[i].Meeting.None
		told[model.PlanFlow(f.Name)] = told[model.PlanFlow(f.Name)] || told[f.Name]
	}
	unknown := func(flow string) bool { return !told[flow] && told[model.PlanFlow(flow)] }
	for _, f := range r.Flows {
		if unknown(f.Name) {
			r.Warnings = append(r.Warnings, model.Reason{Code: model.LeftOut, Flow: flowTo(f)})
		}
	}
	r.Flows = slices.DeleteFunc(r.Flows, func(f model.FlowResult) bool { return unknown(f.Name) })
	r.Series = slices.DeleteFunc(r.Series, func(x model.Series) bool { return unknown(x.Flow) })
}

// flowTo names a flow, one of a star's by its receiver.
func flowTo(f model.FlowResult) string {
	name := model.PlanFlow(f.Name)
	switch {
	case name == f.Name:
		return name
	case f.From == model.Sender:
		return name + " to " + f.To
	}
	return name + " from " + f.From
}
