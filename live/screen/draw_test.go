package screen

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pelt/live"
	"pelt/model"
	"pelt/test/golden"
)

var begin = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// run folds events, one a second.
func run(events ...live.Event) (*live.Now, time.Time) {
	n := &live.Now{}
	at := begin
	for i, e := range events {
		if e.Sample != nil {
			e.Sample.AtS = float64(i)
		}
		e.ID, e.Time = uint64(i+1), begin.Add(time.Duration(i)*time.Second)
		n.Take(e)
		at = e.Time
	}
	return n, at
}

func rate(metric, flow string, pps float64) live.Event {
	return live.Event{Sample: &live.Sample{Metric: metric, Flow: flow, Value: pps}}
}

func busy(node string, core int, ratio float64) live.Event {
	return live.Event{Sample: &live.Sample{Metric: coreMetric, At: node, Core: &core, Value: ratio}}
}

func started(nodes ...string) live.Event {
	return live.Event{Started: &live.Started{Command: "sweep", Target: "lab:router", Nodes: nodes}}
}

// lossy is a sweep in its third trial, which loses packets at two places.
func lossy(flow string, nodes ...string) []live.Event {
	first, last := nodes[0], nodes[len(nodes)-1]
	next := func(number int) live.Event {
		return live.Event{Next: &live.Next{Number: number, Trials: 12, Setting: "64 B, 100 kpps", MeasuredSeconds: 60,
			LeftSeconds: 700}}
	}
	trial := func(number int, state model.State, text string) live.Event {
		return live.Event{Trial: &live.Trial{Number: number, Trials: 12, State: state, Text: text}}
	}
	events := []live.Event{started(nodes...), next(1),
		trial(1, model.Valid, "512 B, 30 kpps: sent 30.0 kpps, received 30.0 kpps, goodput 123 Mbit/s, lost 0 %"),
		{Findings: &[]model.Finding{{Level: "answer", Code: "latency.flat"},
			{Level: "doubt", Text: "It is early."}, {Level: "answer", Code: "latency.none"}}},
		{Note: "the link at sender was measured first"}, next(2),
		trial(2, model.Invalid,
			"64 B, 30 kpps: sent 29.0 kpps (invalid: the sender was starved of CPU: its thread ran 30 % of the time)"),
		next(3)}
	for i := range 40 {
		events = append(events, rate("send_pps", flow, 100e3), rate("receive_pps", flow, 90e3-float64(i%7)*5e3))
	}
	return append(events, live.Event{Account: &live.Account{ElapsedS: 40,
		Flows: []model.FlowSoFar{{Name: flow, Protocol: model.UDP,
			From: first, To: last, PayloadBytes: 64, FrameBytes: 110, Streams: 1, Attempted: 4_000_000, Received: 3_400_000,
			Lines: []model.Line{{Layer: model.LayerReceiverBuffer, Host: last, Cause: "SOCKET_RCVBUFF", Packets: 500_000},
				{Layer: model.LayerNetwork, Host: "link " + first + "-" + nodes[1], Cause: model.CauseLinkQueue,
					Packets: 90_000}}}}}})
}

func manyCores(hosts, cores int) (events []live.Event) {
	for h := range hosts {
		for c := range cores {
			events = append(events, busy([]string{"sender", "router", "receiver"}[h], c, float64(c*(h+1)%10)/9))
		}
	}
	return events
}

var screens = map[string][]live.Event{
	"nothing": nil,
	"started": {started("sender", "receiver")},
	"lossy":   append(lossy("up", "sender", "router", "receiver"), manyCores(1, 4)...),
	"cores":   append(lossy("up", "sender", "router", "receiver"), manyCores(3, 16)...),
	"between": append(lossy("up", "sender", "receiver"),
		live.Event{Trial: &live.Trial{Number: 3, State: model.Valid, Text: "done"}}),
	"over": {started("sender", "receiver"), {Done: &live.Done{}}},
	"flows": append(append(lossy("up", "a", "b"), rate("send_pps", "down", 1), rate("receive_pps", "down", 0)),
		rate("send_pps", "a third flow of a long name", 5)),
	"names": append(lossy(strings.Repeat("日本", 60), strings.Repeat("é", 90), "b\x1b[2J", "c\nd",
		strings.Repeat("long ", 40)),
		live.Event{Note: strings.Repeat("x", 500)}, live.Event{Started: &live.Started{Command: strings.Repeat("c",
			90), Target: "\x1b[31m"}}),
	"unknown": {started("sender", "receiver"), {Next: &live.Next{Number: 3, LeftSeconds: 100}},
		rate("receive_pps", "up", 0)},
}

func TestEveryLineFits(t *testing.T) {
	for name, events := range screens {
		n, at := run(events...)
		for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 60}, {60, 15}, {20, 5}, {1, 1}, {2, 200}, {300, 3}} {
			for _, page := range []Page{{size[0], size[1], false, false}, {size[0], size[1], true, false},
				{size[0], size[1], true, true}} {
				lines := Draw(n, at, page)
				if len(lines) != size[1] {
					t.Errorf("%s %+v: %d lines", name, page, len(lines))
				}
				for _, l := range lines {
					if columnsOf(l) > size[0] || strings.ContainsAny(l, "\n\r\t") {
						t.Errorf("%s %+v: %d columns: %q", name, page, columnsOf(l), l)
					}
					if !page.Color && strings.Contains(l, "\x1b") {
						t.Errorf("%s %+v: a colour, or what came from outside: %q", name, page, l)
					}
				}
			}
		}
	}
}

func TestScreens(t *testing.T) {
	for _, c := range []struct {
		name string
		page Page
	}{{"nothing", Page{Width: 80, Height: 24}}, {"lossy", Page{Width: 80, Height: 24}}, {"lossy",
		Page{Width: 60, Height: 15}},
		{"lossy", Page{Width: 120, Height: 40, Color: true}}, {"cores", Page{Width: 120, Height: 40}},
		{"cores", Page{Width: 200, Height: 60}}, {"flows", Page{Width: 80, Height: 24}}, {"lossy",
			Page{Width: 80, Height: 24, Keys: true}}} {
		n, at := run(screens[c.name]...)
		name := fmt.Sprintf("%s-%dx%d", c.name, c.page.Width, c.page.Height)
		if c.page.Keys {
			name += "-keys"
		}
		var b strings.Builder
		for _, l := range Draw(n, at, c.page) {
			b.WriteString(strings.TrimRight(strings.ReplaceAll(l, "\x1b", "^"), " ") + "\n")
		}
		golden.File(t, filepath.Join("testdata", name+".txt"), b.String())
	}
}
