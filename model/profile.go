package model

import (
	"fmt"
	"hash/fnv"
	"reflect"
	"strings"
	"time"

	"pelt/pace"
	"pelt/unit"
	"pelt/words"
)

// Profile says how the packets of a paced UDP flow are spread over time; without one, all gaps are the same. The
// flow's rate is the mean one, but for OnOff, where it is the one while on, and for Ramp, where it is the last one.
type Profile struct {
	Kind         string  `json:"kind"`                    // see below
	Seed         uint64  `json:"seed,omitempty"`          // 0 in a plan: of the plan's seed and the repeat
	BurstPackets int     `json:"burst_packets,omitempty"` // of Burst: leave back to back
	OnSeconds    float64 `json:"on_s,omitempty"`          // of OnOff: sends at the rate for so long
	OffSeconds   float64 `json:"off_s,omitempty"`         // and pauses for so long
	Random       bool    `json:"random,omitempty"`        // of OnOff: these are the means of exponential distributions
	// From is the first rate of Ramp, whose rate changes evenly over the measured
	// part; warm-up packets leave at it.
	From unit.Rate `json:"from,omitzero"`
	// File is where the trace was read from, for people; nothing opens it again.
	File string `json:"file,omitempty"`
	Gaps bool   `json:"gaps,omitempty"` // that file has times between packets without saying so
	// Trace holds the gaps as TraceText writes them. A trace shorter than a trial is
	// repeated, and one whose mean rate is not the flow's is stretched to it.
	Trace []string `json:"trace,omitempty"`
}

// Pacing is what a profile asked of a sender, and how far what it did is from that.
type Pacing struct {
	Profile   string       `json:"profile"` // in the words of --profile
	Seed      uint64       `json:"seed,omitempty"`
	AskedGap  *Percentiles `json:"asked_gap_ns,omitempty"` // between packets of one stream
	AskedGaps []Bucket     `json:"asked_gap_counts,omitempty"`
	// Distance is the least share of gaps that were not as asked: by more than a bar
	// of the histograms, about a quarter. Nil if there were no gaps to compare.
	Distance *float64 `json:"gap_distance_ratio,omitempty"`
	// Rounds is how often the trial's packets go through the trace.
	Rounds float64 `json:"trace_rounds,omitempty"`
}

const (
	Poisson      = "poisson" // independent gaps of the exponential distribution
	Burst        = "burst"   // a full token bucket at a time
	OnOff        = "on-off"
	Ramp         = "ramp"
	TraceProfile = "trace"
)

// ConstantGap is the level of the knob profile that has none.
const ConstantGap = "constant"

const (
	MinOnTime  = time.Microsecond
	MaxOnTime  = 24 * time.Hour
	maxPeriods = 10_000_000  // of random times on and off in a trial: they are drawn from its begin
	maxDrawn   = 100_000_000 // packets of a random schedule that has a number of them: all are drawn to see its end
)

const profileWant = "want poisson, burst=PACKETS, on=TIME,off=TIME[,random], ramp=RATE..RATE, trace=FILE or gaps=FILE"

// ParseProfile reads what --profile says, but for a trace: "poisson", "burst=64",
// "on=10ms,off=90ms", with ",random" for exponential times, "ramp=10kpps..100kpps".
// A ramp also says the flow's rate; of others rate is the zero one.
func ParseProfile(text string) (p Profile, rate unit.Rate, err error) {
	wrong := func(want string, args ...any) (Profile, unit.Rate, error) {
		return Profile{}, unit.Rate{}, unit.Wrong("profile", clip(text), words.Errorf(want, args...))
	}
	var list []string
	for _, w := range strings.Split(strings.ToLower(text), ",") {
		list = append(list, strings.TrimSpace(w))
	}
	key, value, _ := strings.Cut(list[0], "=")
	if key != "on" && len(list) > 1 {
		return wrong(profileWant)
	}
	switch {
	case list[0] == Poisson:
		p.Kind = Poisson
	case key == Burst && value != "":
		p.Kind = Burst
		sizes, err := unit.ParseSizes(value)
		if err != nil || len(sizes) != 1 || sizes[0] < 1 || sizes[0] > MaxBurst {
			return wrong("a burst is 1 to %d packets, as burst=64", MaxBurst)
		}
		p.BurstPackets = sizes[0]
	case key == Ramp && value != "":
		p.Kind = Ramp
		from, to, ok := strings.Cut(value, "..")
		first, err := unit.ParseRate(from)
		last, other := unit.ParseRate(to)
		if !ok || err != nil || other != nil || first.IsMax() || last.IsMax() {
			return wrong("a ramp goes from rate to rate, as ramp=10kpps..100kpps")
		}
		p.From, rate = first, last
	case key == "on":
		p.Kind = OnOff
		times := map[string]*float64{"on": &p.OnSeconds, "off": &p.OffSeconds}
		for _, w := range list {
			key, value, _ := strings.Cut(w, "=")
			if w == "random" && !p.Random {
				p.Random = true
				continue
			}
			d, err := unit.ParseDuration(value)
			if times[key] == nil || err != nil || d < MinOnTime || d > MaxOnTime {
				return wrong("want a time on and a time off, as on=10ms,off=90ms, of %v to %v, and random for "+
					"exponential ones", MinOnTime, MaxOnTime)
			}
			*times[key] = d.Seconds()
			delete(times, key)
		}
		if len(times) > 0 {
			return wrong("want a time on and a time off, as on=10ms,off=90ms")
		}
	default:
		return wrong(profileWant)
	}
	return p, rate, nil
}

// Words is the profile as --profile takes it. A ramp ends at the flow's rate.
func (p Profile) Words(rate unit.Rate) string {
	duration := func(s float64) string { return seconds(s).String() }
	switch p.Kind {
	case Burst:
		return fmt.Sprintf("burst=%d", p.BurstPackets)
	case OnOff:
		text := "on=" + duration(p.OnSeconds) + ",off=" + duration(p.OffSeconds)
		if p.Random {
			text += ",random"
		}
		return text
	case Ramp:
		return fmt.Sprintf("ramp=%v..%v", p.From, rate)
	case TraceProfile:
		if p.Gaps {
			return "gaps=" + p.File
		}
		return "trace=" + p.File
	}
	return p.Kind
}

// Other is the profile for another flow beside this one: of what is random, another draw. nil stays nil.
func (p *Profile) Other(number int) *Profile {
	if p == nil || number == 0 || !p.random() {
		return p
	}
	other := *p
	other.Seed = max(pace.Seed(p.Seed, uint64(number)), 1)
	return &other
}

func wordSeed(word string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(word)) // never fails
	return h.Sum64()
}

func (p Profile) random() bool { return p.Kind == Poisson || p.Kind == OnOff && p.Random }

func (f Flow) checkProfile() error {
	const at = "profile"
	p := f.Profile
	switch {
	case p == nil:
		return nil
	case f.Protocol != UDP:
		return wrong(at, "only a UDP flow has one: TCP decides itself when its segments leave")
	case f.Rate.IsMax():
		return wrong(at, "needs a rate to spread; %s is of a flow at full rate", clip(p.Kind))
	case f.Segments > 1:
		return wrong(at, "packets of one buffer leave at once; want no --gso with a profile")
	}
	asked := Profile{Kind: TraceProfile, File: p.File, Gaps: p.Gaps, Trace: p.Trace}
	if p.Kind != TraceProfile {
		var err error
		if asked, _, err = ParseProfile(p.Words(f.Rate)); err != nil {
			return wrong(at, "%v", err)
		}
	} else if _, err := ReadTraceText(p.Trace); err != nil || !printable(p.File) {
		return wrong(at, "of file %q: %v", clip(p.File), err)
	}
	if asked.Seed = p.Seed; !reflect.DeepEqual(asked, *p) {
		return wrong(at, "has settings of another kind than %q", clip(p.Kind))
	}
	if pps, _ := p.From.PPS(f.PayloadBytes); pps > unit.MaxPacketsPerSecond {
		return wrong(at, "begins with more than %s", unit.PPS.Exact(unit.MaxPacketsPerSecond))
	}
	return nil
}

// maxTraces bounds the traces of one order to an agent, in characters: a message of
// the control plane is at most 1 MiB long.
const maxTraces = 800_000

// checkTraces checks that an order can hold what a plan does: each receiver's flow has the trace.
func (p Plan) checkTraces() error {
	size, flows := 0, max(p.Receivers, 1)
	if p.Target == "lab:star" && p.Receivers == 0 {
		flows = 10
	}
	for _, f := range p.Flows {
		if f.Profile == nil {
			continue
		}
		for _, part := range f.Profile.Trace {
			size += len(part)
		}
	}
	if flows*size > maxTraces {
		return wrong("profile.trace", "is too long for a test of %d receivers: want a shorter one, or fewer receivers",
			flows)
	}
	return nil
}

// checkLength checks what a profile costs over a trial's time.
func (f Flow) checkLength(t Timing) error {
	p := f.Profile
	if p == nil || !p.random() {
		return nil
	}
	longest := max(t.MeasureSeconds, t.WarmupSeconds)
	if f.Packets > maxDrawn {
		return wrong("packets", "a random profile is of at most %d packets; want fewer, or a time", maxDrawn)
	}
	if p.Kind == OnOff && longest/(p.OnSeconds+p.OffSeconds) > maxPeriods {
		return wrong("profile", "more than %d random times on and off in %v", maxPeriods, seconds(longest))
	}
	return nil
}

// PeakPPS is the highest rate of a flow in packets per second of any of its seconds, as it is planned: of OnOff the
// one while on, of Poisson the mean. ok is false for a flow as fast as it can.
func (f Flow) PeakPPS() (pps float64, ok bool) {
	pps, ok = f.Rate.PPS(f.PayloadBytes)
	if f.Profile == nil || !ok {
		return pps, ok
	}
	switch f.Profile.Kind {
	case Burst:
		pps = max(pps, float64(f.Profile.BurstPackets)) // which may be that of many seconds
	case Ramp:
		from, _ := f.Profile.From.PPS(f.PayloadBytes)
		pps = max(pps, from)
	case TraceProfile:
		if gaps, err := ReadTraceText(f.Profile.Trace); err == nil {
			pps = tracePeak(gaps, pps)
		}
	}
	return pps, ok
}

// MeanPPS is the mean rate of a flow in packets per second; ok is false for a flow as fast as it can.
func (f Flow) MeanPPS() (pps float64, ok bool) {
	pps, ok = f.Rate.PPS(f.PayloadBytes)
	if f.Profile == nil || !ok {
		return pps, ok
	}
	switch p := f.Profile; p.Kind {
	case Ramp:
		from, _ := p.From.PPS(f.PayloadBytes)
		pps = (pps + from) / 2
	case OnOff:
		pps *= p.OnSeconds / (p.OnSeconds + p.OffSeconds)
	}
	return pps, ok
}

// Schedules returns those of a flow's warm-up and of its measured part, nil for a flow as fast as it can.
func (f Flow) Schedules(t Timing) (warmup, measured pace.Schedule) {
	mean, paced := f.Rate.Schedule(f.PayloadBytes)
	if !paced {
		return nil, nil
	}
	same := func(s pace.Schedule) (warmup, measured pace.Schedule) { return s, s }
	p := f.Profile
	if p == nil {
		return same(pace.Even(mean))
	}
	other := pace.Seed(p.Seed, 1) // the warm-up is not to rehearse what is measured
	switch p.Kind {
	case Poisson:
		return pace.Poisson(mean, other), pace.Poisson(mean, p.Seed)
	case Burst:
		return same(pace.Burst(mean, uint64(p.BurstPackets)))
	case OnOff:
		on, off := seconds(p.OnSeconds).Nanoseconds(), seconds(p.OffSeconds).Nanoseconds()
		if p.Random {
			return pace.RandomOnOff(mean, on, off, other), pace.RandomOnOff(mean, on, off, p.Seed)
		}
		return same(pace.OnOff(mean, on, off))
	case Ramp:
		from, _ := p.From.Schedule(f.PayloadBytes)
		return pace.Even(from), pace.Ramp(from, mean, f.rampTime(t).Nanoseconds())
	case TraceProfile:
		if gaps, err := ReadTraceText(p.Trace); err == nil {
			return same(pace.Trace(mean, gaps))
		}
	}
	return nil, nil
}

// Length is how long the first packets of a flow's schedule take, in ns.
func (f Flow) Length(s pace.Schedule, packets uint64) int64 {
	if mean, _ := f.Rate.Schedule(f.PayloadBytes); f.Profile != nil && f.Profile.Kind == Burst {
		return mean.Due(packets)
	}
	return pace.End(s, packets)
}

// rampTime is how long a ramp takes: the measured part, or as long as the packets
// of a flow that has a number of them.
func (f Flow) rampTime(t Timing) time.Duration {
	if pps, _ := f.MeanPPS(); f.Packets > 0 && pps > 0 {
		return seconds(min(float64(f.Packets)/pps, MaxMeasure.Seconds()))
	}
	return t.Measure()
}

// counted is how long the packets of a flow take, in seconds, 0 if their number is not said.
func (f Flow) counted(t Timing) (float64, error) {
	mean, paced := f.Rate.Schedule(f.PayloadBytes)
	if f.Packets == 0 || !paced {
		return 0, nil
	}
	if f.Profile == nil {
		return float64(mean.Due(f.Packets)) / 1e9, nil
	}
	pps, _ := f.MeanPPS()
	about := Timing{MeasureSeconds: float64(f.Packets) / pps}
	if about.MeasureSeconds > MaxMeasure.Seconds() { // refused, without looking for its end
		return about.MeasureSeconds, nil
	}
	if err := f.checkLength(about); err != nil {
		return 0, err
	}
	_, s := f.Schedules(t)
	return float64(f.Length(s, f.Packets)) / 1e9, nil
}
