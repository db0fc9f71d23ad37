package model

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/unit"
)

func TestTitles(t *testing.T) {
	for knob, want := range map[string]string{
		"link.delay_s": "Link delay", "link-receiver-3.loss_ratio": "Link-receiver-3 loss", "link.rate_bps": "Link rate",
		"link.correlation_ratio": "Link correlation", "send_buffer_bytes": "Send buffer", "rate_pps": "Asked rate",
	} {
		if k, ok := FindKnob(knob); !ok || k.Title() != want {
			t.Errorf("%s: %s, want %s", knob, k.Title(), want)
		}
	}
}

// drawLink is what --link-n says, or as a change what pelt lab link set does.
func drawLink(t *rapid.T, label string, change bool) Link {
	words := []string{"delay=" + rapid.SampledFrom([]string{"0", "20ms"}).Draw(t, label+" delay")} // toward is not alone
	way := rapid.SampledFrom([]string{"", "toward"}).Draw(t, "one direction, or a backend for both")
	for i, k := range linkKnobs {
		v := Number(math.Round(rapid.Float64Range(k.Low, k.High).Draw(t, label+" "+k.Name)*1e6) / 1e6)
		switch {
		case k.Flag == "delay" || i > 0 && linkKnobs[i-1].Flag == k.Flag || change && k.Fixed && k.Name != way ||
			!rapid.Bool().Draw(t, "said") || k.Name == "toward" && way == "" || k.Name == "backend" && way != "":
			continue
		case change && !k.Fixed && rapid.IntRange(0, 2).Draw(t, "back") == 0:
			v = Word(Nothing)
		case k.Flag == "queue" && rapid.Bool().Draw(t, "of bytes"):
			v = Word(rapid.SampledFrom([]string{"1B", "64KiB"}).Draw(t, k.Flag))
		case k.Flag == "loss" && rapid.Bool().Draw(t, "states"):
			v = Word(rapid.SampledFrom([]string{"ge:1%/10%/70%/0.1%", "ge:0/0/0/0", "ge:1/1/1/1"}).Draw(t, k.Flag))
		case k.Name == "distribution":
			v = Word(rapid.SampledFrom(distributions[1:]).Draw(t, k.Name))
		case k.Name == "seed":
			v = Word(rapid.SampledFrom([]string{"1", "18446744073709551615", "9007199254740993"}).Draw(t, k.Name))
		case k.Name == "toward" || k.Name == "backend":
			v = Word(rapid.SampledFrom([]string{BackendAuto, BackendUser}).Draw(t, k.Name)) // or a node of that name
		case k.Unit != unit.Ratio && k.Unit != unit.Seconds:
			v.Number = math.Trunc(v.Number)
		}
		words = append(words, k.Flag+"="+k.Print(v))
	}
	l, _, err := parseLink("n", strings.Join(words, ","), change)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A link reads back from its words and from JSON as it was. What a link or a change says takes the place of what was
// there, and a setting takes away the one that excludes it; all else stays.
func TestLinkLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		change := rapid.Bool().Draw(t, "change")
		l, before := drawLink(t, "link", change), drawLink(t, "before", false)
		if again, _, err := parseLink("n", l.Words(), change); err != nil || again != l {
			t.Fatalf("%+v says itself %s, which is %+v, %v", l, l.Words(), again, err)
		}
		var stored Link
		if text, err := json.Marshal(l); err != nil || json.Unmarshal(text, &stored) != nil || stored != l {
			t.Fatalf("%+v is stored as %s, %v, which is %+v", l, text, err, stored)
		}
		said := strings.Split(l.Zero, ",")
		for _, k := range linkKnobs {
			if l.has(k) {
				said = append(said, k.Flag)
			}
		}
		now := l.Over(before)
		for _, k := range linkKnobs {
			want, _ := getField(k.on(&before))
			if !k.Fixed && slices.Contains(said, k.Flag) {
				want, _ = getField(k.on(&l))
			}
			if got, _ := getField(k.on(&now)); got != want {
				t.Fatalf("%s over %s: %s is %v, want %v", l.Words(), before.Words(), k.Name, got, want)
			}
		}
	})
}
