package model

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"pelt/unit"
	"pelt/words"
)

// Bounds of what a plan may ask.
const (
	MinUDPPayload  = 16
	MaxUDPPayload  = 65507
	MaxTCPWrite    = 1 << 20
	MaxStreams     = 128
	MaxRepeats     = 1000
	MaxRedo        = 10
	MaxTrials      = 100_000
	MaxMeasure     = 7 * 24 * time.Hour
	MaxWarmup      = 10 * time.Minute
	MaxDrain       = time.Minute
	MaxLead        = 10 * time.Second
	MinMeasure     = 10 * time.Millisecond
	MaxPatience    = time.Minute
	maxTextLength  = 255
	maxFlows       = 16
	maxFactors     = 8
	MaxSourcePort  = 65535
	MaxPackets     = 1 << 40
	MaxReceivers   = 256 // of one test; a lab may have more
	MaxBurst       = 65536
	MaxSegments    = 64 // UDP_MAX_SEGMENTS was 64 up to Linux 6.8, include/linux/udp.h
	maxKnobPackets = unit.MaxPacketsPerSecond
	// Socket buffers as the kernel accounts them; it makes very small ones larger.
	MinSocketBuffer = 2048
	MaxSocketBuffer = 1 << 30
)

// FieldError names the field of a plan that is wrong and what would be right.
type FieldError struct {
	Field string // name of a knob, or path in the plan as "links[1].rate_bps"
	Want  string

	want error // Want, to be said in another language
}

// NewFieldError makes one of a format of fmt.
func NewFieldError(field, format string, args ...any) *FieldError {
	want := words.Errorf(format, args...)
	return &FieldError{field, want.Error(), want}
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Want }

// Unwrap is what is wanted.
func (e *FieldError) Unwrap() error {
	if e.want == nil {
		return errors.New(e.Want)
	}
	return e.want
}

// At is the same error of another field.
func (e *FieldError) At(field string) *FieldError { return &FieldError{field, e.Want, e.want} }

func wrong(field, format string, args ...any) error { return NewFieldError(field, format, args...) }

// Check returns the first thing in the plan that cannot be run, as a *FieldError.
func (p Plan) Check() error {
	if p.Format != PlanFormat {
		return wrong("format", "is %q; this pelt reads %s", p.Format, PlanFormat)
	}
	if err := checkTarget(p.Target); err != nil {
		return err
	}
	if !printable(p.Command) {
		return wrong("command", "want a short word, not %q", clip(p.Command))
	}
	if len(p.Links) > 0 && !strings.HasPrefix(p.Target, "lab:") {
		return wrong("links", "only a lab has links to shape; target %s is not lab:NAME", p.Target)
	}
	for i, l := range p.Links {
		if err := l.check(fmt.Sprintf("links[%d]", i)); err != nil {
			return err
		}
	}
	if p.Receivers != 0 && !strings.HasPrefix(p.Target, "lab:") && !strings.HasPrefix(p.Target, FleetTarget) {
		return wrong("receivers", "only a lab:star or fleet: has many; want HOST alone")
	}
	if err := p.checkKnobs(); err != nil {
		return err
	}
	if len(p.Flows) == 0 || len(p.Flows) > maxFlows {
		return wrong("flows", "want 1 to %d flows, not %d", maxFlows, len(p.Flows))
	}
	for i, f := range p.Flows {
		if err := cmp.Or(f.check(), f.checkTime(p.Timing)); err != nil {
			return err
		}
		if strings.Contains(f.Name, "/") {
			return wrong("flows", "the name %q has a /, which stands before the number of a receiver", f.Name)
		}
		if slices.ContainsFunc(p.Flows[:i], func(o Flow) bool { return o.Name == f.Name }) {
			return wrong("flows", "%q stands twice", f.Name)
		}
	}
	return cmp.Or(p.checkIperf(), p.checkDevice(), p.checkTraces(), p.checkTimed(), p.checkRouter(), p.checkDesign(),
		p.checkSearch())
}

// Check returns the first time that is out of its range, as a *FieldError.
func (t Timing) Check() error {
	return Plan{Timing: t}.checkKnobs("lead_s", "warmup_s", "measure_s", "drain_s", "quiet_s", "patience_s")
}

// checkKnobs checks those settings of the plan that have these names, without names all.
func (p Plan) checkKnobs(names ...string) error {
	for _, k := range knobs {
		if k.in == nil || len(names) > 0 && !slices.Contains(names, k.Name) {
			continue
		}
		if err := k.checkField("", k.in(&p)); err != nil {
			return err
		}
	}
	return nil
}

func (p Plan) checkDesign() error {
	if len(p.Factors) > maxFactors {
		return wrong("factors", "want at most %d", maxFactors)
	}
	if len(p.Design.Cells) > 0 {
		return p.checkCells()
	}
	trials := p.Design.Repeats
	seen := map[string]bool{}
	for i, f := range p.Factors {
		at := fmt.Sprintf("factors[%d]", i)
		if seen[f.Knob] {
			return wrong(at+".knob", "%q stands twice", f.Knob)
		}
		for _, other := range p.Factors[:i] {
			if excludes(other.Knob, f.Knob) || excludes(f.Knob, other.Knob) {
				return wrong(at+".knob", "%s and %s set the same thing; want one of them", other.Knob, f.Knob)
			}
		}
		seen[f.Knob] = true
		if len(f.Levels) > MaxTrials/trials {
			return wrong("factors", "make more than %d trials", MaxTrials)
		}
		trials *= len(f.Levels)
		if err := p.checkFactor(at, f); err != nil {
			return err
		}
	}
	return nil
}

func excludes(knob, other string) bool {
	k, _ := FindKnob(knob)
	return k.Excludes == other
}

func (p Plan) checkCells() error {
	if len(p.Factors) > 0 {
		return wrong("factors", "a plan has factors or cells, not both")
	}
	if n := len(p.Design.Cells); n > MaxTrials/p.Design.Repeats {
		return wrong("cells", "want 1 to %d trials in all, not %d combinations", MaxTrials, n)
	}
	seen := map[string]bool{}
	for i, c := range p.Design.Cells {
		at := fmt.Sprintf("cells[%d]", i)
		if seen[c.Key()] {
			return wrong(at, "%s stands twice", clip(c.Key()))
		}
		seen[c.Key()] = true
		for knob := range c {
			if _, _, link := SplitLinkKnob(knob); link {
				return wrong(at, "%s: settings of links are factors", clip(knob))
			}
			if knob == payloadKnob && c[knob].Text == PathMTULevel {
				return wrong(at, "%s: %s is a level of a factor; want a number of bytes", knob, PathMTULevel)
			}
		}
		if _, err := p.Trial(c, 0); err != nil {
			return wrong(at, "%v", err)
		}
	}
	return nil
}

func (p Plan) checkFactor(at string, f Factor) error {
	if k, ok := FindKnob(f.Knob); !ok || !k.Varies {
		return wrong(at+".knob", "unknown knob %q; want one of %s", f.Knob, strings.Join(KnobNames(), ", "))
	}
	if len(f.Levels) == 0 {
		return wrong(at+".levels", "want at least one level")
	}
	_, _, link := SplitLinkKnob(f.Knob)
	if link && !strings.HasPrefix(p.Target, "lab:") {
		return wrong(at+".knob", "only a lab has links to change; target %s is not lab:NAME", p.Target)
	}
	seen := map[Value]bool{}
	for j, v := range f.Levels {
		if seen[v] {
			return wrong(fmt.Sprintf("%s.levels[%d]", at, j), "%v stands twice", v)
		}
		seen[v] = true
		// A level is possible if a trial made with it passes all checks.
		t, err := p.Trial(Cell{f.Knob: v}, 0)
		if err == nil && t.Receivers > p.Receivers {
			err = words.Errorf("a star of %d receivers cannot have %d", p.Receivers, t.Receivers)
		}
		if err != nil {
			return wrong(fmt.Sprintf("%s.levels[%d]", at, j), "%v", err)
		}
	}
	return nil
}

func (f Flow) check() error {
	if err := f.checkKnobs(); err != nil {
		return err
	}
	switch {
	case f.Name == "" || !printable(f.Name):
		return wrong("flows", "want a short name, not %q", clip(f.Name))
	case f.From == "" || f.To == "" || f.From == f.To || !printable(f.From) || !printable(f.To):
		return wrong("flows", "want two different ends, not %q to %q", clip(f.From), clip(f.To))
	case f.Protocol == UDP && (f.PayloadBytes < MinUDPPayload || f.PayloadBytes > MaxUDPPayload):
		return wrong("payload_bytes", "a UDP payload is %d to %d B, not %d", MinUDPPayload, MaxUDPPayload,
			f.PayloadBytes)
	case f.Protocol == TCP && (f.PayloadBytes < 1 || f.PayloadBytes > MaxTCPWrite):
		return wrong("payload_bytes", "a TCP write is 1 to %d B, not %d", MaxTCPWrite, f.PayloadBytes)
	case f.Packets > 0 && f.Packets < uint64(f.Streams):
		return wrong("packets", "%d streams want a packet each, not %d in all", f.Streams, f.Packets)
	case f.Family == 5:
		return wrong("family", "want 4 or 6, not 5")
	case f.SourcePort > MaxSourcePort-f.Streams+1:
		return wrong("source_port", "%d streams from port %d go beyond port 65535", f.Streams, f.SourcePort)
	case !printable(f.Control):
		return wrong("control", "%q is not the name of a congestion control", clip(f.Control))
	}
	err := cmp.Or(f.checkAddresses(), f.checkSegments(), f.checkConnections(), f.checkTransfer(), f.checkProfile())
	if pps, ok := f.Rate.PPS(f.PayloadBytes); err == nil && ok && pps > unit.MaxPacketsPerSecond {
		return wrong("rate_pps", "%v is %s at %d B; at most %s", f.Rate, unit.PPS.Exact(pps), f.PayloadBytes,
			unit.PPS.Exact(unit.MaxPacketsPerSecond))
	}
	return err
}

func (f Flow) checkAddresses() error {
	const at = "source_addresses"
	if len(f.SourceAddresses) > f.Streams {
		return wrong(at, "%d streams cannot have %d addresses: want at most one a stream", f.Streams,
			len(f.SourceAddresses))
	}
	for i, a := range f.SourceAddresses {
		switch {
		case !a.IsValid() || a.IsUnspecified() || a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
			return wrong(at, "%v is no address of a host", a)
		case a.Is4In6():
			return wrong(at, "want %v for %v", a.Unmap(), a)
		case a.Is4() != f.SourceAddresses[0].Is4():
			return wrong(at, "%v and %v are of two IP versions", f.SourceAddresses[0], a)
		case f.Family != 0 && a.Is4() != (f.Family == 4):
			return wrong(at, "%v is no address of IPv%d", a, f.Family)
		case a.Is6() && a.IsLinkLocalUnicast() && a.Zone() == "":
			return wrong(at, "%v is link-local, so say on which interface: %v%%eth0", a, a)
		case slices.Contains(f.SourceAddresses[:i], a):
			return wrong(at, "%v stands twice", a)
		}
	}
	return nil
}

// checkKnobs checks each setting by itself.
func (f Flow) checkKnobs() error {
	for _, k := range knobs {
		if k.of == nil {
			continue
		}
		field := k.of(&f)
		if _, set := getField(field); set && k.Only != "" && f.Protocol != k.Only {
			return wrong(k.Name, "is for %s", strings.ToUpper(string(k.Only)))
		}
		if err := k.checkField("", field); err != nil {
			return err
		}
	}
	return nil
}

func (f Flow) checkSegments() error {
	switch n := f.Segments; {
	case n > MaxUDPPayload/f.PayloadBytes:
		return wrong("segments", "a buffer holds %d B: %d packets of %d B at most, not %d",
			MaxUDPPayload, MaxUDPPayload/f.PayloadBytes, f.PayloadBytes, n)
	case f.Burst != 0 && f.Burst < n:
		return wrong("burst", "a buffer of %d packets leaves at once; want a burst of at least as many, not %d",
			n, f.Burst)
	}
	return nil
}
