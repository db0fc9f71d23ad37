package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pelt/engine/xdp"
	"pelt/fleet"
	"pelt/lab"
	"pelt/model"
	"pelt/store"
	"pelt/test/golden"
	english "pelt/words"
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
		case "heardFor":
			return said(heardFor(decoded[model.Result](t, text)), nil)
		case "linkDoubts":
			return said(linkDoubts(decoded[[]model.LinkResult](t, text)), nil)
		case "blocked": // results, and the knobs that vary
			r := &runner{doc: &model.Document{}}
			for _, name := range strings.Split(words[0], ",") {
				r.doc.Results = append(r.doc.Results, map[string]model.Result{"fine": {State: model.Valid},
					"nothing": {Why: model.Reasons{{Code: model.NothingThrough}}}}[name])
			}
			for _, knob := range words[1:] {
				r.doc.Plan.Factors = append(r.doc.Plan.Factors, model.Factor{Knob: knob})
			}
			return said(r.blocked(), nil)
		case "interfaceChecks":
			list, failure := decoded[[]xdp.Interface](t, text), error(nil)
			if list == nil {
				failure = errors.New("list the interfaces: no netlink")
			}
			checks := ""
			for _, c := range interfaceChecks(english.English, func() ([]xdp.Interface, error) { return list, failure }) {
				checks += fmt.Sprintf("%s, fine %v: %s%s (%s)\n", c.Name, c.OK, c.Detail, c.Reason, c.Remedy)
			}
			return checks
		case "join":
			hub := decoded[Hub](t, words[0])
			var address netip.Addr
			if len(words) > 1 {
				address = netip.MustParseAddr(words[1])
			}
			err := Join(t.Context(), JoinOptions{Hub: hub, Port: -1, Name: "a", Address: address}) // no such port
			return said("fine", err)
		case "dataPort":
			return said("free", dataPortFree(netip.MustParseAddr(text), 0))
		}
		t.Fatalf("unknown: %s", question)
		return ""
	})
}

// decoded reads a value with known fields only.
func decoded[T any](t *testing.T, text string) (value T) {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

// learned is between which ports of a router flows go, up or down, by what its counters did; ! is behind one that went
// back. What was learned stays.
func learned(t *testing.T, ways, counters string) ports {
	counts := decoded[map[string]uint64](t, counters)
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
	x := decoded[struct {
		Links   []model.Link
		Factors map[string][]float64
		At      []string
	}](t, change)
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
