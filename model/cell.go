package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"pelt/pace"
	"pelt/unit"
)

// Value is one setting of a knob: a number in the knob's unit, or a word.
type Value struct {
	Number float64
	Text   string // if not empty, the value is this word
}

// Number and Word make values.
func Number(n float64) Value { return Value{Number: n} }
func Word(s string) Value    { return Value{Text: s} }

func (v Value) String() string {
	if v.Text != "" {
		return v.Text
	}
	return strconv.FormatFloat(v.Number, 'f', -1, 64)
}

// MarshalJSON writes a number or a string.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.Text != "" {
		return json.Marshal(v.Text)
	}
	return json.Marshal(v.Number)
}

// UnmarshalJSON reads a number or a string.
func (v *Value) UnmarshalJSON(b []byte) error {
	*v = Value{}
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &v.Text); err != nil {
			return err
		}
		if v.Text == "" {
			return fmt.Errorf("a level must not be empty")
		}
		return nil
	}
	if err := json.Unmarshal(b, &v.Number); err != nil {
		return fmt.Errorf("want a number or a word, not %s", clip(string(b)))
	}
	return nil
}

// Cell is one combination of knob settings.
type Cell map[string]Value

// Key is the cell as text, the same for equal cells.
func (c Cell) Key() string {
	var words []string
	for _, k := range slices.Sorted(maps.Keys(c)) {
		words = append(words, k+"="+c[k].String())
	}
	return strings.Join(words, " ")
}

// Equal reports whether both cells set the same knobs to the same values.
func (c Cell) Equal(d Cell) bool { return maps.Equal(c, d) }

// Trial is one complete instruction: nothing is left to a default.
type Trial struct {
	Cell   Cell
	Repeat int // 0-based
	Flows  []Flow
	Timing Timing
	// Links are changes of a lab's links before the trial: those of every node first.
	Links     []LinkChange
	Receivers int // of a star, the first ones; 0 means all that it has
	// Variant is how the router is set up, "" as it is.
	Variant string
	// Tuning is whether a setting that is tried is made, TuningWith or TuningWithout; ""
	// where none is.
	Tuning string
	// LinkSeed is what a lab's emulated links draw by from the trial's beginning on; 0:
	// they go on with what they drew by before.
	LinkSeed uint64
}

type knob func(*Trial, Value) error

const payloadKnob = "payload_bytes"

// bulkWrite is the length of the writes of a transfer in bulk, in bytes.
const bulkWrite = 128 << 10

// knobs is the one table of what a factor may vary.
func knobs() map[string]knob {
	return map[string]knob{
		payloadKnob: eachFlow(func(f *Flow, v Value) error {
			if v.Text == PathMTULevel && f.Protocol == UDP {
				f.PayloadBytes = WholePayload(f.Family, usualMTU)
				return nil
			}
			return setInt(&f.PayloadBytes, v)
		}),
		"frame_bytes": eachFlow(func(f *Flow, v Value) error {
			var frame int
			if err := setInt(&frame, v); err != nil {
				return err
			}
			if f.Protocol != UDP || frame < minFrame {
				return fmt.Errorf("a frame size is for UDP and at least %d B", minFrame)
			}
			f.PayloadBytes = PayloadOf(f.Family, frame)
			return nil
		}),
		"rate_pps": eachFlow(func(f *Flow, v Value) error {
			text := v.Text
			if text == "" {
				text = strconv.FormatFloat(v.Number, 'f', -1, 64) + "pps"
			}
			r, err := unit.ParseRate(text)
			f.Rate = r
			return err
		}),
		"interval_ns": eachFlow(func(f *Flow, v Value) error {
			if v.Text != "" || !(v.Number >= 0 && v.Number <= 86400e9) {
				return fmt.Errorf("an interval is 0 ns (unpaced) to a day, not %v", v)
			}
			f.Rate = unit.IntervalRate(time.Duration(v.Number))
			return nil
		}),
		"profile": eachFlow(func(f *Flow, v Value) error {
			if f.Profile = nil; v.Text == ConstantGap {
				return nil
			}
			p, last, err := ParseProfile(v.String())
			if err != nil {
				return err
			}
			if f.Profile = &p; !last.IsMax() {
				f.Rate = last
			}
			return nil
		}),
		"streams":              eachFlow(func(f *Flow, v Value) error { return setInt(&f.Streams, v) }),
		"send_buffer_bytes":    eachFlow(func(f *Flow, v Value) error { return setInt(&f.SendBuffer, v) }),
		"receive_buffer_bytes": eachFlow(func(f *Flow, v Value) error { return setInt(&f.ReceiveBuffer, v) }),
		"receivers": func(t *Trial, v Value) error {
			if err := setInt(&t.Receivers, v); err != nil {
				return err
			}
			if t.Receivers < 1 || t.Receivers > MaxReceivers {
				return fmt.Errorf("want 1 to %d receivers, not %v", MaxReceivers, v)
			}
			return nil
		},
		"control": eachFlow(func(f *Flow, v Value) error {
			if v.Text == "" || f.Protocol != TCP {
				return fmt.Errorf("a congestion control is a word, for TCP, not %v", v)
			}
			f.Control = v.Text
			return nil
		}),
		"protocol": eachFlow(func(f *Flow, v Value) error {
			switch Protocol(v.Text) {
			case f.Protocol:
			case TCP:
				*f = Flow{Name: f.Name, Protocol: TCP, From: f.From, To: f.To, PayloadBytes: bulkWrite, Streams: f.Streams,
					Family: f.Family, DSCP: f.DSCP, SourceAddresses: f.SourceAddresses, Connections: f.Connections, Bulk: f.Connections == ""}
				if f.Connections != "" {
					f.PayloadBytes = ConnectionMessageBytes
				}
			default:
				return fmt.Errorf("a protocol is %s, or tcp, not %v", f.Protocol, v)
			}
			return nil
		}),
		// Whether the flow is of TCP is judged once all knobs are set.
		"connections": eachFlow(func(f *Flow, v Value) error {
			f.Connections = v.Text
			if v.Text != ConnectionRate && v.Text != ConnectionKeep {
				return fmt.Errorf("connections are rate or keep, not %v", v)
			}
			return nil
		}),
		"variant": func(t *Trial, v Value) error {
			if v.Text == "" {
				return fmt.Errorf("a variant is a word, not %v", v)
			}
			t.Variant = v.Text
			return nil
		},
		TuningKnob: func(t *Trial, v Value) error {
			if v.Text != TuningWith && v.Text != TuningWithout {
				return fmt.Errorf("want %s or %s, not %v", TuningWithout, TuningWith, v)
			}
			t.Tuning = v.Text
			return nil
		},
		"direction": func(t *Trial, v Value) error {
			keep := map[string][]string{"up": {"up"}, "down": {"down"}, "both": {"up", "down"}}[v.Text]
			if keep == nil {
				return fmt.Errorf("a direction is up, down or both, not %v", v)
			}
			t.Flows = slices.DeleteFunc(t.Flows, func(f Flow) bool { return !slices.Contains(keep, f.Name) })
			if len(t.Flows) != len(keep) {
				return fmt.Errorf("the plan has no flow for direction %v", v)
			}
			return nil
		},
	}
}

// Set gives a knob one value in all trials.
func (p *Plan) Set(name string, v Value) error {
	set, known := findKnob(knobs(), name)
	t := Trial{Flows: p.Flows}
	if !known {
		return wrong(name, "is no knob")
	}
	if err := set(&t, v); err != nil {
		return wrong(name, "%v", err)
	}
	p.Flows = t.Flows
	return nil
}

// KnobNames lists what a factor may vary, sorted; link settings stand last, for
// the links at any node.
func KnobNames() []string {
	names := slices.Sorted(maps.Keys(knobs()))
	for _, s := range linkSettings {
		if !s.single {
			names = append(names, linkPrefix("")+s.name)
		}
	}
	return names
}

// findKnob finds what a factor of that name does to a trial.
func findKnob(table map[string]knob, name string) (knob, bool) {
	if set, ok := table[name]; ok {
		return set, true
	}
	return linkKnob(name)
}

func eachFlow(set func(*Flow, Value) error) knob {
	return func(t *Trial, v Value) error {
		for i := range t.Flows {
			if err := set(&t.Flows[i], v); err != nil {
				return err
			}
		}
		return nil
	}
}

func setInt(to *int, v Value) error {
	if v.Text == PathMTULevel {
		return fmt.Errorf("mtu stands for a UDP payload; want a whole number here")
	}
	if v.Text != "" || v.Number != float64(int(v.Number)) {
		return fmt.Errorf("want a whole number, not %v", v)
	}
	*to = int(v.Number)
	return nil
}

// Trial makes the complete instruction for one cell of the plan.
func (p Plan) Trial(cell Cell, repeat int) (Trial, error) {
	t := Trial{Cell: cell, Repeat: repeat, Flows: slices.Clone(p.Flows), Timing: p.Timing}
	if p.Design.Paired {
		t.LinkSeed = max(1, p.Design.Seed*(MaxRepeats+1)+uint64(repeat)+1)
	}
	table := knobs()
	for _, name := range slices.Sorted(maps.Keys(cell)) {
		set, ok := findKnob(table, name)
		if !ok {
			return Trial{}, fmt.Errorf("unknown knob %q", name)
		}
		if err := set(&t, cell[name]); err != nil {
			return Trial{}, err
		}
	}
	if t.Variant != "" && !slices.ContainsFunc(p.Variants, func(v Variant) bool { return v.Name == t.Variant }) {
		return Trial{}, fmt.Errorf("the plan has no variant %q", clip(t.Variant))
	}
	slices.SortStableFunc(t.Links, func(a, b LinkChange) int { return cmp.Compare(min(len(a.Node), 1), min(len(b.Node), 1)) })
	counted := 0.0 // time that flows of a number of packets take
	for i, f := range t.Flows {
		at := fmt.Sprintf("flows[%d]", i)
		if err := cmp.Or(f.check(at), f.checkTime(at, t.Timing)); err != nil {
			return Trial{}, err
		}
		if f.Profile != nil && f.Profile.random() && f.Profile.Seed == 0 {
			drawn := *f.Profile // the same for all cells of a repeat, so that they are compared under one draw
			drawn.Seed = max(pace.Seed(p.Design.Seed, uint64(repeat), wordSeed(f.Name)), 1)
			t.Flows[i].Profile, f.Profile = &drawn, &drawn
		}
		seconds, err := f.counted(at, t.Timing)
		if err != nil {
			return Trial{}, err
		}
		counted = max(counted, seconds)
	}
	if counted > 0 {
		t.Timing.MeasureSeconds = max(counted, MinMeasure.Seconds())
		if err := t.Timing.Check(); err != nil {
			return Trial{}, err
		}
	}
	return t, nil
}
