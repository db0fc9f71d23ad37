package run

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pelt/fleet"
	"pelt/lab"
	"pelt/model"
	"pelt/store"
	"pelt/test/golden"
)

// TestWords: each line of the file begins with the name of a function, and is what it is given. Below stands what it
// makes of that.
func TestWords(t *testing.T) {
	at := time.Date(2026, 11, 21, 7, 41, 0, 0, time.UTC)
	stored := store.Summary{ID: "20261121-0741-k3f", Started: at, Command: "curve", Target: "192.168.1.5:7359",
		State: store.Complete, Headline: &model.Finding{Code: "packets limit"},
		Label: store.Label{Name: "the Old switch", Tags: []string{"lan"}}}
	golden.Table(t, "testdata/words.txt", func(question string) string {
		what, text, _ := strings.Cut(question, " ")
		words := strings.Fields(text)
		said := func(got any, err error) string {
			if err != nil {
				return "error: " + err.Error()
			}
			return fmt.Sprintf("%+v", got)
		}
		switch what {
		case "codesOf": // near host, router, codes
			return said(codesOf(strings.Trim(strings.Join(words[2:], " "), "-"),
				model.Plan{Near: strings.Trim(words[0], "-"), DUT: strings.Trim(words[1], "-")}))
		case "checkRouter":
			return said("fine", checkRouter(model.Plan{Target: "192.168.2.10", DUT: text}))
		case "checkFarAddress":
			return said("fine", checkFarAddress(netip.MustParseAddr(words[0]), netip.MustParseAddr(words[1])))
		case "matches":
			return said(Filter{Words: words}.Matches(stored), nil)
		case "since":
			since, err := time.Parse(time.RFC3339Nano, text)
			return said(Filter{Since: since}.Matches(stored), err)
		case "learn":
			return said(learned(t, words[0], words[1]), nil)
		case "linksToOpen":
			return said(toOpen(t, text))
		}
		t.Fatalf("unknown: %s", question)
		return ""
	})
}

// learned is between which ports of a router flows go, up or down, by what its counters did; ! is behind one that went
// back. What was learned stays.
func learned(t *testing.T, ways, counters string) ports {
	var counts map[string]uint64
	if err := json.Unmarshal([]byte(counters), &counts); err != nil {
		t.Fatalf("%s: %v", counters, err)
	}
	seen := &model.Observation{}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		own, reset := strings.CutSuffix(name, "!")
		seen.Counters = append(seen.Counters, model.Counter{Name: "dev." + own, Whole: counts[name], Reset: reset})
	}
	up, down := model.Flow{From: model.Sender, To: model.Receiver}, model.Flow{From: model.Receiver, To: model.Sender}
	flows := map[string][]fleet.PlacedFlow{"up": {{Flow: up}}, "down": {{Flow: down}},
		"both": {{Flow: up}, {Flow: down}}}
	var p ports
	p.learn(flows[ways], seen)
	first := p
	for _, later := range flows {
		if p.learn(later, seen); first != (ports{}) && p != first {
			t.Errorf("%s %s: %+v, and later %+v", ways, counters, first, p)
		}
	}
	return first
}

// toOpen tells with which links a lab is opened for a plan over its router, and which of these can lose packets: only
// what is emulated can.
func toOpen(t *testing.T, change string) (string, error) {
	p := model.Plan{Format: model.PlanFormat, Command: "soak", Target: "lab:router", Engine: "auto",
		Flows: []model.Flow{{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver,
			PayloadBytes: 64, Streams: 1}}, Design: model.Design{Repeats: 1}, Timing: model.Timing{MeasureSeconds: 1}}
	var x struct {
		Links   []model.Link
		Factors map[string][]float64
		At      []string
	}
	if err := json.Unmarshal([]byte(change), &x); err != nil {
		t.Fatalf("%s: %v", change, err)
	}
	p.Links = x.Links
	for _, knob := range slices.Sorted(maps.Keys(x.Factors)) {
		f := model.Factor{Knob: knob}
		for _, v := range x.Factors[knob] {
			f.Levels = append(f.Levels, model.Number(v))
		}
		p.Command, p.Factors = "sweep", append(p.Factors, f)
	}
	for _, text := range x.At {
		one, err := model.ParseTimedChange(text)
		if err != nil {
			t.Fatal(err)
		}
		p.Timed = append(p.Timed, one)
	}
	if err := p.Check(); err != nil {
		t.Fatalf("%s: %v", change, err)
	}
	links, groups, names, err := linksToOpen(p)
	if err != nil {
		return "", err
	}
	if err := lab.CheckChanges("router", links, linkChanges(p.Timed)); err != nil {
		t.Errorf("%s: %v", change, err)
	}
	list, err := json.Marshal(links)
	text := fmt.Sprintf("%d combinations of %v\n%s\n", len(groups), names, list)
	for _, link := range []string{"sender-router", "router-receiver"} {
		if lab.CheckChanges("router", links, [][]model.Link{{{Node: link, LossRatio: 0.01}}}) == nil {
			text += link + " can lose\n"
		}
	}
	return text, err
}
