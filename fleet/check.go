package fleet

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"pelt/engine"
	"pelt/model"
	"pelt/unit"
)

// Bounds that hold whatever the limits say; they bound memory and sockets.
const (
	maxSessions    = 256
	maxEnds        = 300     // of a session at one agent: flows to 256 receivers, and their order fits a message
	maxAllStreams  = 1024    // of all sessions of an agent
	maxAllSeconds  = 1 << 24 // measured by all ends of all sessions; each takes some 16 B for the series
	maxAllReaders  = 16      // senders of all sessions that keep TCP_INFO over time; each takes some 20 MB with its report
	maxRecordings  = 8       // sessions with a record; each may keep some 30 MB that is not fetched yet
	maxProbePPS    = 1000
	maxProbeBytes  = 1472 // fills a 1500 B packet
	maxTextBytes   = 255
	keyBytes       = 32
	maxGateWait    = 10 * time.Second
	maxEndNumber   = 1 << 16
	maxAgentIDText = 64
)

var (
	agentName   = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	sessionName = regexp.MustCompile(`^[0-9a-f]{32}\.[0-9a-f]{32}$`)
)

func refuse(format string, args ...any) error {
	return &engine.Refusal{Why: fmt.Sprintf(format, args...)}
}

// checkPrepare finds the first thing that is wrong with the order itself.
// Errors of form are plain; what the host will not do is an *engine.Refusal.
func (a *Agent) checkPrepare(p prepareOrder) error {
	if !sessionName.MatchString(p.Session) {
		return fmt.Errorf("session: want two names of 32 hex digits")
	}
	if len(p.Ends) == 0 || len(p.Ends) > maxEnds {
		return fmt.Errorf("ends: want 1 to %d, not %d", maxEnds, len(p.Ends))
	}
	switch p.Drops {
	case "", model.DropsOff, model.DropsCount, model.DropsSeq:
	default:
		return fmt.Errorf("drops: want seq, count or off")
	}
	seen := map[int]bool{}
	for i, e := range p.Ends {
		if e.End < 0 || e.End > maxEndNumber || seen[e.End] {
			return fmt.Errorf("ends[%d].end: %d is out of range or stands twice", i, e.End)
		}
		seen[e.End] = true
		if !agentName.MatchString(e.Peer) || e.Peer == a.cfg.ID || e.Peer == controllerName {
			return fmt.Errorf("ends[%d].peer: want the name of another agent", i)
		}
		if _, ok := a.cfg.Engines[e.Engine]; !ok {
			return refuse("engine %q: this host has %s", e.Engine, strings.Join(a.engineNames(), ", "))
		}
		if a.cfg.clientOf != nil && !e.Order.Listen {
			if err := a.mayCall(e.Order.Peer); err != nil {
				return err
			}
		}
		if err := checkOrder(e.Order); err != nil {
			return fmt.Errorf("ends[%d].%w", i, err)
		}
		if e.Order.Record != nil && a.cfg.Recording == nil {
			return refuse("this host records nothing")
		}
		if e.Order.Timing != p.Ends[0].Order.Timing || e.Order.Trial != p.Ends[0].Order.Trial {
			return fmt.Errorf("ends[%d]: all ends of a trial have one number and one timing", i)
		}
	}
	return nil
}

func checkOrder(o engine.Order) error {
	// The plan's own checks of a flow, with their field names.
	if _, err := (model.Plan{Flows: []model.Flow{o.Flow}, Timing: o.Timing}).Trial(nil, 0); err != nil {
		return fmt.Errorf("order.%w", err)
	}
	if o.Flow.Commands != nil {
		return refuse("order.flow.commands: this host runs no programs for others")
	}
	for _, text := range []string{o.Flow.Name, o.Flow.From, o.Flow.To, o.Flow.Control} {
		if len(text) > maxTextBytes || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return fmt.Errorf("order.flow: names are short and printable")
		}
	}
	if err := checkTiming(o.Timing); err != nil {
		return err
	}
	if err := checkTrial(o.Trial); err != nil {
		return fmt.Errorf("order.%w", err)
	}
	if len(o.Key) != keyBytes {
		return fmt.Errorf("order.key: want %d bytes, not %d", keyBytes, len(o.Key))
	}
	if o.CPU < -1 || o.CPU > 4095 {
		return fmt.Errorf("order.cpu: want -1 to 4095, not %d", o.CPU)
	}
	if o.Record != nil && (o.Role != engine.Receive || o.Flow.Protocol != model.UDP) {
		return fmt.Errorf("order.record: is for a receiver of UDP")
	}
	switch o.Role {
	case engine.Send, engine.Receive:
		if o.Survey {
			return fmt.Errorf("order.survey: is for a prober and its echo")
		}
	case engine.Probe, engine.Echo:
		pps, paced := o.Flow.Rate.PPS(o.Flow.PayloadBytes)
		if o.Listen != (o.Role == engine.Echo) || o.Flow.Streams != 1 || o.Flow.Protocol != model.UDP ||
			!paced || o.Flow.Profile != nil || pps > maxProbePPS || o.Flow.PayloadBytes > maxProbeBytes {
			return fmt.Errorf("order.role: a probe is one dialed UDP stream of at most %d pps and %d B", maxProbePPS, maxProbeBytes)
		}
	default:
		return fmt.Errorf("order.role: unknown role %q", o.Role)
	}
	return checkAddress(o)
}

// readers are the ends that keep their TCP_INFO over time.
func readers(ends []endOrder) (n int) {
	for _, e := range ends {
		if e.Order.Role == engine.Send && e.Order.Flow.InfoSeconds > 0 {
			n++
		}
	}
	return n
}

func checkTrial(number uint16) error {
	if number == 0 || number >= engine.WarmupBit {
		return fmt.Errorf("trial: want 1 to %d, not %d", engine.WarmupBit-1, number)
	}
	return nil
}

func checkTiming(t model.Timing) error {
	for _, c := range []struct {
		field    string
		value    float64
		min, max time.Duration
	}{
		{"measure_s", t.MeasureSeconds, model.MinMeasure, model.MaxMeasure},
		{"warmup_s", t.WarmupSeconds, 0, model.MaxWarmup},
		{"drain_s", t.DrainSeconds, 0, model.MaxDrain},
		{"quiet_s", t.QuietSeconds, 0, model.MaxDrain},
		{"patience_s", t.PatienceSeconds, 0, model.MaxPatience},
	} {
		if !(c.value >= c.min.Seconds() && c.value <= c.max.Seconds()) {
			return fmt.Errorf("order.timing.%s: want %v to %v, not %vs", c.field, c.min, c.max, c.value)
		}
	}
	return nil
}

func checkAddress(o engine.Order) error {
	if o.Listen {
		if len(o.Ports) != 0 || o.Peer.IsValid() {
			return fmt.Errorf("order.peer: a listening end has no peer address or ports yet")
		}
		return nil
	}
	p := o.Peer.Unmap()
	if !p.IsValid() || p.IsUnspecified() || p.IsMulticast() || p == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return fmt.Errorf("order.peer: want the address of one host, not %v", o.Peer)
	}
	if f := o.Flow.Family; f == 4 && !p.Is4() || f == 6 && !p.Is6() {
		return fmt.Errorf("order.peer: %v is not of family %d", o.Peer, f)
	}
	for _, a := range o.Flow.SourceAddresses {
		if a.Is4() != p.Is4() {
			return fmt.Errorf("order.flow.source_addresses: %v and the peer %v are of two IP versions", a, p)
		}
	}
	if len(o.Ports) != o.Flow.Streams || slices.Contains(o.Ports, 0) {
		return fmt.Errorf("order.ports: want %d ports, one a stream, none 0", o.Flow.Streams)
	}
	return nil
}

// check compares all ends of a session with what this host grants.
func (l Limits) check(ends []endOrder) error {
	var flows []model.Flow
	for _, e := range ends {
		if e.Order.Role == engine.Send || e.Order.Role == engine.Receive { // a probe is thin already, see checkOrder
			flows = append(flows, e.Order.Flow)
		}
	}
	if len(ends) == 0 {
		return nil
	}
	return l.Admit(flows, ends[0].Order.Timing)
}

// Admit says whether a host with these limits takes a trial. The error is an
// *engine.Refusal that names the limit and what was asked.
func (l Limits) Admit(flows []model.Flow, t model.Timing) error {
	if s := t.WarmupSeconds + t.MeasureSeconds; l.MaxTimeSeconds > 0 && s > l.MaxTimeSeconds {
		return refuse("the trial takes %gs with its warm-up; this host allows %gs (--max-time there)", s, l.MaxTimeSeconds)
	}
	var pps, bps float64
	for _, f := range flows {
		p, paced := f.PeakPPS()
		if !paced && (l.MaxRatePPS > 0 || l.MaxRateBPS > 0) {
			return refuse("flow %s asks for rate max; this host allows %s (--max-rate there), so give a --rate", f.Name, l.rateText())
		}
		pps += p
		bps += p * float64(f.PayloadBytes) * 8
	}
	// A rate that equals the limit may differ from it in the last bits.
	const rounding = 1 + 1e-9
	if l.MaxRatePPS > 0 && pps > l.MaxRatePPS*rounding {
		return refuse("the flows ask for %s together; this host allows %s (--max-rate there)", unit.FormatPPS(pps), l.rateText())
	}
	if l.MaxRateBPS > 0 && bps > l.MaxRateBPS*rounding {
		return refuse("the flows ask for %s together; this host allows %s (--max-rate there)", unit.FormatBits(bps), l.rateText())
	}
	return nil
}

func (l Limits) rateText() string {
	var parts []string
	if l.MaxRatePPS > 0 {
		parts = append(parts, unit.FormatPPS(l.MaxRatePPS))
	}
	if l.MaxRateBPS > 0 {
		parts = append(parts, unit.FormatBits(l.MaxRateBPS))
	}
	return strings.Join(parts, " and ")
}
