package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pelt/model"
)

// Default sizes of a UDP curve, in payload bytes. 18 B makes the smallest
// Ethernet frame of 64 B, 1472 B fills the usual MTU of 1500 B. Between them the
// sizes about double, as rates do where frames are the limit; 100 and 400 B are
// where the field report that led to this preset saw its router give way. 6400 B
// of that report needs fragments, so it is measured only on request.
func udpPayloads() []int { return []int{18, 64, 100, 200, 400, 800, 1472} }

// Default sizes of a TCP curve: writes that are far below a segment, and one
// that about fills it.
func tcpPayloads() []int { return []int{64, 1460} }

// The defaults of one trial: 2 s is long against scheduling noise and bursts of
// interrupts, and 14 trials of it end within a minute.
const (
	defaultTime    = 2 * time.Second
	defaultWarmup  = 500 * time.Millisecond
	defaultDrain   = 3 * time.Second // longer than the queue of any sensible path
	defaultRepeats = 3
)

// Curve makes the plan of a packet-size curve. An error names the option that
// is wrong, as the command line spells it.
func Curve(o Options) (model.Plan, error) {
	flow, err := o.flow()
	if err != nil {
		return model.Plan{}, err
	}
	directions, flows, err := o.directions(flow)
	if err != nil {
		return model.Plan{}, err
	}
	size, err := o.sizes()
	if err != nil {
		return model.Plan{}, err
	}
	p := model.Plan{
		Format: model.PlanFormat, Command: "curve", Target: o.Target, Links: o.Links, Flows: flows,
		Design: model.Design{Kind: "grid", Repeats: orDefault(o.Repeats, defaultRepeats), Seed: o.Seed},
		Timing: model.Timing{
			WarmupSeconds: defaultWarmup.Seconds(), MeasureSeconds: orDefault(o.Time, defaultTime).Seconds(), DrainSeconds: defaultDrain.Seconds(),
		},
		Engine: orDefault(o.Engine, "auto"),
		Limits: model.Limits{MaxLossRatio: o.MaxLoss}, Receivers: o.Receivers,
		Drops: o.Drops,
	}
	if o.Warmup != nil {
		p.Timing.WarmupSeconds = o.Warmup.Seconds()
	}
	if len(directions) > 1 {
		p.Factors = append(p.Factors, model.Factor{Knob: "direction", Levels: directions})
	}
	p.Factors = append(p.Factors, size)
	for i := range p.Flows { // what the flows say beside the factor must be possible too
		p.Flows[i].PayloadBytes = int(size.Levels[0].Number)
		if size.Levels[0].Text != "" {
			p.Flows[i].PayloadBytes = model.MinUDPPayload
		}
		if size.Knob == "frame_bytes" {
			p.Flows[i].PayloadBytes = model.PayloadOf(p.Flows[i].Family, int(size.Levels[0].Number))
		}
	}
	return p, translate(p, p.Check())
}

// Demo is the plan of pelt demo: a home router in the lab, on links of 1 Gbit/s.
// Its sizes show both sides of the knee and its 10 trials of 3 s end within 45 s.
func Demo() (model.Plan, error) {
	p, err := Curve(Options{
		Target: "lab:router", Links: []model.Link{{Node: model.Receiver, Rate: 1e9}}, // the far side of the router: one shaped link is what two cores keep up with
		Payloads: []int{18, 100, 400, 800, 1472}, Seed: 1, Time: time.Second, // 15 trials in 45 s
	})
	p.Command = "demo"
	p.Timing.DrainSeconds = 1 // the lab's queue holds 50 ms
	return p, err
}

func orDefault[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

func bad(option, format string, args ...any) error {
	return &model.FieldError{Field: option, Want: fmt.Sprintf(format, args...)}
}

func (o Options) flow() (model.Flow, error) {
	f := model.Flow{
		Protocol: orDefault(o.Protocol, model.UDP), Rate: o.Rate, Burst: o.Burst, Streams: orDefault(o.Streams, 1), Family: o.Family,
		DSCP: o.DSCP, DontFragment: o.DontFragment, SourcePort: o.SourcePort, SourceAddresses: o.Sources, Bulk: o.Bulk, Control: o.Control,
		Profile: o.Profile, Segments: o.Segments, SendBuffer: o.SendBuffer, ReceiveBuffer: o.ReceiveBuffer, Joined: o.Joined,
	}
	if o.Rate.IsMax() {
		f.Rate = o.ProfileRate
	}
	if len(o.Sources) > 0 && f.Family == 0 {
		f.Family = 4
		if o.Sources[0].Is6() {
			f.Family = 6
		}
	}
	switch {
	case f.Protocol != model.UDP && f.Protocol != model.TCP:
		return f, bad("--proto", "want udp or tcp, not %q", string(f.Protocol))
	case f.Protocol == model.UDP && (o.Bulk || o.Control != ""):
		return f, bad("--bulk, --control", "are for --proto tcp")
	case f.Protocol == model.TCP && o.DontFragment:
		return f, bad("--df", "is for --proto udp")
	case f.Protocol == model.TCP && (o.Segments != 0 || o.SendBuffer != 0 || o.ReceiveBuffer != 0 || o.Joined):
		return f, bad("--gso, --gro, --send-buffer, --receive-buffer", "are for --proto udp")
	case f.Protocol == model.TCP && o.Profile != nil:
		return f, bad("--profile", "is for --proto udp: TCP decides itself when its segments leave")
	case o.Profile != nil && o.Segments > 1:
		return f, bad("--profile", "packets of one buffer leave at once; want no --gso")
	case o.Profile != nil && o.Profile.Kind == model.Ramp && !o.Rate.IsMax():
		return f, bad("--profile", "a ramp says its rates itself; want no --rate and no --interval")
	case o.Profile != nil && f.Rate.IsMax():
		return f, bad("--profile", "needs --rate or --interval: how many packets are spread over time")
	case f.Rate.IsMax() && o.Burst != 0:
		return f, bad("--burst", "needs --rate or --interval: unpaced packets leave as they can")
	}
	return f, nil
}

func (o Options) directions(f model.Flow) ([]model.Value, []model.Flow, error) {
	up, down := f, f
	up.Name, up.From, up.To = "up", model.Sender, model.Receiver
	down.Name, down.From, down.To = "down", model.Receiver, model.Sender
	var levels []model.Value
	flows := map[string]bool{}
	for _, word := range strings.Split(orDefault(o.Direction, "up"), ",") {
		word = strings.TrimSpace(word)
		if !slices.Contains([]string{"up", "down", "both"}, word) {
			return nil, nil, bad("--direction", "want up, down or both, or a list of them, not %q", word)
		}
		if slices.Contains(levels, model.Word(word)) {
			return nil, nil, bad("--direction", "%s stands twice", word)
		}
		levels = append(levels, model.Word(word))
		flows["up"] = flows["up"] || word != "down"
		flows["down"] = flows["down"] || word != "up"
	}
	var used []model.Flow
	if flows["up"] {
		used = append(used, up)
	}
	if flows["down"] {
		used = append(used, down)
	}
	return levels, used, nil
}

// sizes makes the factor that the curve is drawn over.
func (o Options) sizes() (model.Factor, error) {
	if len(o.Frames) > 0 && (len(o.Payloads) > 0 || o.Whole) {
		return model.Factor{}, bad("--frame", "stands beside --payload; give one of them")
	}
	f := model.Factor{Knob: "payload_bytes"}
	list := o.Payloads
	switch {
	case len(o.Frames) > 0:
		f.Knob, list = "frame_bytes", o.Frames
		if o.Protocol == model.TCP {
			return f, bad("--frame", "is for --proto udp: TCP makes its own segments")
		}
	case o.Whole && o.Protocol == model.TCP:
		return f, bad("--payload", "mtu is for --proto udp: TCP makes its own segments")
	case o.Whole:
	case len(list) == 0 && o.Protocol == model.TCP:
		list = tcpPayloads()
	case len(list) == 0:
		list = udpPayloads()
	}
	for _, n := range list {
		f.Levels = append(f.Levels, model.Number(float64(n)))
	}
	if o.Whole {
		f.Levels = append(f.Levels, model.Word(model.PathMTULevel))
	}
	return f, nil
}
