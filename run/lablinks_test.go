package run

import (
	"strings"
	"testing"

	"pelt/lab"
	"pelt/model"
)

func sweepOver(factors ...model.Factor) model.Plan {
	return model.Plan{
		Format: model.PlanFormat, Command: "sweep", Target: "lab:router", Engine: "auto",
		Flows: []model.Flow{{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver,
			PayloadBytes: 64, Streams: 1}},
		Design:  model.Design{Repeats: 1},
		Timing:  model.Timing{MeasureSeconds: 1},
		Factors: factors,
	}
}

func levels(knob string, values ...float64) model.Factor {
	f := model.Factor{Knob: knob}
	for _, v := range values {
		f.Levels = append(f.Levels, model.Number(v))
	}
	return f
}

// A lab is opened so that its links can become all that factors ask of them.
func TestLinksForFactors(t *testing.T) {
	slow := []model.Link{{Node: "receiver", DelaySeconds: 0.01}}
	for name, c := range map[string]struct {
		links    []model.Link
		factors  []model.Factor
		groups   int
		emulated string // links, comma separated, that must be in user space
	}{
		"no link factors": {nil, []model.Factor{levels("payload_bytes", 64, 128)}, 0, ""},
		"loss from nothing": {[]model.Link{{Rate: 1e7}},
			[]model.Factor{levels("link-receiver.loss_ratio", 0, 0.01), levels("payload_bytes", 64, 128)}, 2,
			"router-receiver"},
		"rates only":     {nil, []model.Factor{levels("link.rate_bps", 1e6, 1e7)}, 2, ""},
		"a rate or none": {nil, []model.Factor{levels("link-sender.rate_bps", 0, 1e7)}, 2, "sender-router"},
		"a queue for rates": {[]model.Link{{QueuePackets: 20}},
			[]model.Factor{levels("link.rate_bps", 1e6, 1e7), levels("link.queue_packets", 5, 10)}, 4, ""},
		"two of one": {nil, []model.Factor{levels("link.delay_s", 0.01, 0.02),
			levels("link-receiver.delay_s", 0, 0.03)}, 4, "sender-router,router-receiver"},
		"delay of the user": {slow, []model.Factor{levels("link-receiver.loss_ratio", 0, 0.01)}, 2, "router-receiver"},
	} {
		p := sweepOver(c.factors...)
		p.Links = c.links
		if err := p.Check(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		links, groups, _, err := linksToOpen(p)
		if err != nil || len(groups) != c.groups {
			t.Errorf("%s: %d groups, %v; want %d", name, len(groups), err, c.groups)
			continue
		}
		for _, link := range []string{"sender-router", "router-receiver"} {
			// Only what is emulated can lose.
			loss := [][]model.Link{{{Node: link, LossRatio: 0.01}}}
			can := lab.CheckChanges("router", links, loss) == nil
			if want := c.emulated != "" && strings.Contains(","+c.emulated+",", ","+link+","); can != want {
				t.Errorf("%s: link %s emulated is %t, want %t", name, link, can, want)
			}
		}
		if name == "delay of the user" && links[len(links)-2].DelaySeconds != 0.01 {
			t.Errorf("%s: %+v", name, links)
		}
	}
}

func TestImpossibleFactors(t *testing.T) {
	for want, f := range map[string][]model.Factor{
		"is more than the delay of": {levels("link.delay_s", 0.01, 0.002), levels("link.jitter_s", 0.001, 0.005)},
		`no node "nobody"`:          {levels("link-nobody.loss_ratio", 0, 0.01)},
		"needs a rate":              {levels("link.queue_packets", 5, 10)},
		"lets no packet through":    {levels("link.loss_ratio", 0, 0.5, 1)},
	} {
		if err := CheckLinks(sweepOver(f...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", f, err, want)
		}
	}
}

// Timed changes find a lab whose links can become what they ask, or are refused before
// anything is sent.
func TestLinksForTimedChanges(t *testing.T) {
	for _, c := range []struct {
		name     string
		links    []model.Link
		at       []string
		emulated int    // links that are made so
		want     string // in the error; "" for none
	}{
		{"the router only", nil, []string{"10ms:router=rules=10"}, 0, ""},
		{"a plain cable shall lose", nil, []string{"10ms:link-receiver=loss=1%"}, 1, ""},
		{"twice", nil, []string{"10ms:link-receiver=loss=1%", "20ms:link-receiver=loss=0"}, 1, ""},
		{"emulated already", []model.Link{{LossRatio: 0.01}}, []string{"10ms:link=loss=2%"}, 0, ""},
		{"a rate for another", []model.Link{{Rate: 1e7}}, []string{"10ms:link=rate=5mbit"}, 0, ""},
		{"a rate for none", nil, []string{"10ms:link-sender=rate=5mbit"}, 1, ""},
		{"what needs the one before", nil, []string{"10ms:link=delay=20ms", "20ms:link=jitter=5ms"}, 1, ""},
		{"without the one before", nil, []string{"20ms:link=jitter=5ms"}, 0, "--at: "},
		{"nobody", nil, []string{"10ms:link-nobody=loss=1%"}, 0, `no node "nobody"`},
	} {
		p := sweepOver()
		p.Command, p.Links = "soak", c.links
		for _, text := range c.at {
			one, err := model.ParseTimedChange(text)
			if err != nil {
				t.Fatal(err)
			}
			p.Timed = append(p.Timed, one)
		}
		if err := p.Check(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		links, _, _, err := linksToOpen(p)
		if c.want != "" || err != nil {
			if err == nil || c.want == "" || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", c.name, err, c.want)
			}
			continue
		}
		if len(links) != len(c.links)+c.emulated {
			t.Errorf("%s: %+v", c.name, links)
		}
		if err := lab.CheckChanges("router", links, linkChanges(p.Timed)); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A trial of some receivers is of the first ones.
func TestSomeReceivers(t *testing.T) {
	p := site{nodes: []node{{name: "sender", end: true}, {name: "switch"}}}
	for _, name := range []string{"receiver-1", "receiver-2", "receiver-3"} {
		p.nodes = append(p.nodes, node{name: name, branch: name, end: true})
	}
	for n, want := range map[int]int{0: 3, 1: 1, 2: 2, 3: 3, 9: 3} {
		if got := p.perReceiver(model.Flow{Name: "up", From: "sender", To: "receiver"}, n); len(got) != want ||
			got[0].To != "receiver-1" {
			t.Errorf("of %d: %v, want %d", n, got, want)
		}
	}
}
