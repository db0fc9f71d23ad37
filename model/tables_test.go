package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/internal/testenv"
	"pelt/test/golden"
	"pelt/unit"
)

// merged changes a JSON value as RFC 7396 says.
func merged(into any, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out, _ := into.(map[string]any)
	if out == nil {
		out = map[string]any{}
	}
	for k, v := range changes {
		if v == nil {
			delete(out, k)
		} else {
			out[k] = merged(out[k], v)
		}
	}
	return out
}

// plans are what the lines of testdata/plans.txt change.
var plans = map[string]func() Plan{
	"curve": func() Plan { return samplePlan(nil) },
	"transfer": func() Plan {
		return samplePlan(func(p *Plan) {
			p.Flows[0] = Flow{Name: "up", Protocol: TCP, From: Sender, To: Receiver, PayloadBytes: 1000, Streams: 3,
				Bulk: true, Bytes: 8, Control: "cubic+bbr", StaggerSeconds: 2}
			p.Factors, p.Timing.WarmupSeconds, p.Timing.MeasureSeconds = nil, 0, 10
		})
	},
	"paced": func() Plan {
		return samplePlan(func(p *Plan) {
			p.Flows[0].Rate, p.Factors, p.Flows[0].Profile = unit.PacketRate(40e3), nil, &Profile{Kind: Poisson}
		})
	},
	"star": func() Plan {
		return samplePlan(func(p *Plan) {
			p.Command, p.Target, p.Receivers = "sweep", "lab:star", 5
			p.Factors = []Factor{{"link-receiver-3.delay_s", []Value{Number(0), Number(0.0125)}},
				{"link.loss_ratio", []Value{Number(0), Number(0.05), Word("ge:1%/10%/70%/0.1%")}},
				{"link.rate_bps", []Value{Number(1e6)}}, {"receivers", []Value{Number(1), Number(5)}}}
		})
	},
}

// wrongField is the form of an error about a plan: the field, and one line that says what would be right.
var wrongField = regexp.MustCompile(`^[a-z][a-z0-9_.\[\]-]*: [^\n]{5,900}[^.\n]$`)

// TestPlans: each line of the file changes a plan, as a JSON merge patch. Below stands what is wrong with it, or its
// last trial.
func TestPlans(t *testing.T) {
	golden.Table(t, "testdata/plans.txt", func(question string) string {
		name, patch, _ := strings.Cut(question, " ")
		var base, change any
		b, err := json.Marshal(plans[name]())
		testenv.Must(t, err)
		testenv.Must(t, json.Unmarshal(b, &base))
		patch = regexp.MustCompile(`MANY\((\d+)\)`).ReplaceAllStringFunc(patch, func(s string) string {
			n, _ := strconv.Atoi(s[5 : len(s)-1])
			return strings.Repeat("x", n)
		})
		if err := json.Unmarshal([]byte(patch), &change); err != nil {
			t.Fatalf("%s: %v", question, err)
		}
		b, _ = json.Marshal(merged(base, change))
		var p Plan
		if err = json.Unmarshal(b, &p); err == nil {
			err = p.Check()
		}
		var trial Trial
		if cells := p.Cells(); err == nil {
			trial, err = p.Trial(cells[len(cells)-1], 0)
		}
		if err != nil {
			if field := (*FieldError)(nil); !errors.As(err, &field) || !wrongField.MatchString(err.Error()) {
				t.Errorf("%s: an error of another form: %v", question, err)
			}
			return err.Error()
		}
		out := fmt.Sprintf("%.4g s", trial.Timing.MeasureSeconds)
		for _, f := range trial.Flows {
			out += fmt.Sprintf("; %s %s %d B, %d streams, %s", f.Name, f.Protocol, f.PayloadBytes, f.Streams, f.Rate)
			if f.Profile != nil {
				out += ", " + f.Profile.Words(f.Rate)
			}
		}
		for _, l := range trial.Links {
			out += "; link " + l.Node + " " + l.Words()
		}
		return out
	})
}

// What is no number is refused wherever a plan has one.
func TestNoNumbers(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for name, change := range map[string]func(*Plan){
			"links[0].delay_s: want 0 s to 1 min": func(p *Plan) { p.Links = []Link{{DelaySeconds: v}} },
			"measure_s: want 10 ms to 7 d":        func(p *Plan) { p.Timing.MeasureSeconds = v },
			"max_loss_ratio: want 0 % to 100 %":   func(p *Plan) { p.MaxLossRatio = &v },
			"factors[0].levels[0]: want a whole number": func(p *Plan) {
				p.Factors = []Factor{{"streams", []Value{Number(v)}}}
			},
			"factors[0].levels[0]: want a whole number, ": func(p *Plan) {
				p.Factors = []Factor{{"payload_bytes", []Value{Number(v)}}}
			},
		} {
			if err := samplePlan(change).Check(); err == nil || !strings.HasPrefix(err.Error(), name) {
				t.Errorf("%v: %v, want %s", v, err, name)
			}
		}
	}
	port := samplePlan(func(p *Plan) { p.Flows[0].SourcePort, p.Flows[0].Streams = math.MaxInt, 2 })
	if port.Check() == nil {
		t.Error("a port beyond all numbers is taken")
	}
}

// TestLinks: each line of the file is a link as --link has it, or after "change" a change of the first one. Below
// stands how it says itself, with its factors, or what is wrong with it. What a link says is read as the same link.
func TestLinks(t *testing.T) {
	var first Link
	golden.Table(t, "testdata/links.txt", func(question string) string {
		text, isChange := strings.CutPrefix(question, "change ")
		text = strings.Trim(text, `"`)
		var factors []Factor
		l, err := ParseLinkChange("", text)
		if !isChange {
			l, factors, err = ParseLink("a", text)
		}
		if err != nil {
			if wrong := (*unit.SyntaxError)(nil); !errors.As(err, &wrong) || strings.Contains(err.Error(), "\n") ||
				len(err.Error()) > 500 {
				t.Errorf("%s: an error of another form: %v", question, err)
			}
			return err.Error()
		}
		if isChange {
			now, err := l.Apply(first)
			if err != nil {
				return err.Error()
			}
			return now.Words()
		}
		if again, _, err := ParseLink("a", l.Words()); len(factors) == 0 && (err != nil || again != l) {
			t.Errorf("%s says itself %s, which is %+v, %v; want %+v", question, l.Words(), again, err, l)
		}
		if first == (Link{}) {
			first = l
		}
		out := fmt.Sprintf("%s; impaired %v", l.Words(), l.Impaired())
		if l.LossModel != "" {
			out += fmt.Sprintf("; %s %v", l.LossModel, l.LossStates)
		}
		for _, f := range factors {
			out += fmt.Sprintf("; %s %v", f.Knob, f.Levels)
		}
		return out
	})
}

// TestProfiles: each line of the file is a profile as --profile has it. Below stands how it says itself, and its peak
// and mean where the rate is 40 kpps if it says none itself, or what is wrong with it.
func TestProfiles(t *testing.T) {
	golden.Table(t, "testdata/profiles.txt", func(question string) string {
		p, rate, err := ParseProfile(strings.Trim(question, `"`))
		if err != nil {
			if wrong := (*unit.SyntaxError)(nil); !errors.As(err, &wrong) || strings.Contains(err.Error(), "\n") ||
				len(err.Error()) > 700 {
				t.Errorf("%s: an error of another form: %v", question, err)
			}
			return err.Error()
		}
		if again, other, err := ParseProfile(p.Words(rate)); err != nil || !reflect.DeepEqual(again, p) ||
			other != rate {
			t.Errorf("%q says itself %q, which is %+v, %v", question, p.Words(rate), again, err)
		}
		words := p.Words(rate)
		if rate.IsMax() {
			rate = unit.PacketRate(40e3)
		}
		f := Flow{Name: "up", Protocol: UDP, From: Sender, To: Receiver, PayloadBytes: 64, Rate: rate, Streams: 1,
			Profile: &p}
		peak, _ := f.PeakPPS()
		mean, _ := f.MeanPPS()
		f.Packets = 10_000 // a trial of a number of packets is as long as they take
		trial, err := Plan{Flows: []Flow{f}, Timing: Timing{MeasureSeconds: 60}}.Trial(nil, 0)
		if err != nil {
			return words + ": " + err.Error()
		}
		return fmt.Sprintf("%s: peak %.6g pps, mean %.6g pps, %.4g s for 10 000 packets", words, peak, mean,
			trial.Timing.MeasureSeconds)
	})
}

// Whatever a knob that a user can type can have, it prints as a text that it reads as the same value.
func TestKnobsReadWhatTheyPrint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typed := slices.DeleteFunc(slices.Concat(knobs, linkKnobs), func(k Knob) bool { return k.Flag == "" })
		k := rapid.SampledFrom(typed).Draw(t, "knob")
		v := Number(rapid.Float64Range(k.Low, max(k.High, k.Low)).Draw(t, "number"))
		v.Number = math.Round(v.Number*1e6) / 1e6
		switch {
		case k.Kind == Switch:
			v = onOff(v.Number > 0)
		case k.Kind > Names || k.Kind == Names && len(k.Words) == 0:
			v = Word(rapid.StringMatching("[a-z+=%.0-9]{1,9}").Draw(t, "text"))
		case k.Kind == Names || len(k.Words) > 0 && rapid.Bool().Draw(t, "a word"):
			v = Word(rapid.SampledFrom(k.Words).Draw(t, "word"))
		case k.Unit != unit.Ratio && k.Unit != unit.Seconds:
			v.Number = math.Round(v.Number)
		}
		if k.Unit == unit.PPS && v.Number == 0 { // which stands for max
			return
		}
		if err := k.check(v); err != nil {
			t.Fatalf("%s refuses %v: %v", k.Name, v, err)
		}
		back, err := k.Parse(k.Print(v))
		if err != nil || len(back) != 1 || back[0].Text != v.Text ||
			math.Abs(back[0].Number-v.Number) > 1e-9*v.Number+0.51e-9 {
			t.Fatalf("%s: %v is printed %q, which is read as %v, %v", k.Name, v, k.Print(v), back, err)
		}
	})
}
