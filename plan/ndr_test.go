package plan

import (
	"strings"
	"testing"

	"pelt/model"
)

func TestNdr(t *testing.T) {
	for name, c := range map[string]struct {
		settings []string
		goal     string
		losses   []float64
		final    float64
		levels   map[string]int // of factors
		wrong    string
	}{
		"usual":          {nil, "quick", []float64{0}, 1, map[string]int{"frame_bytes": 3, "direction": 2}, ""},
		"two goals":      {[]string{"payload=18,1472", "max-loss=0.5%,0"}, "quick", []float64{0, 0.005}, 1, map[string]int{"payload_bytes": 2}, ""},
		"csit":           {[]string{"goal=csit"}, "csit", []float64{0}, 1, nil, ""},
		"strict":         {[]string{"strict=true"}, "rfc2544", []float64{0}, 60, nil, ""},
		"shorter strict": {[]string{"strict=true", "time=5s"}, "rfc2544", []float64{0}, 5, nil, ""},
		"short trials":   {[]string{"time=100ms"}, "quick", []float64{0}, 0.1, nil, ""},
		"an odd time":    {[]string{"strict=true", "time=123s"}, "rfc2544", []float64{0}, 123, nil, ""},
		"both goals":     {[]string{"strict=true", "goal=csit"}, "", nil, 0, nil, "--strict: is a goal by itself; give it or --goal"},
		"strict frames": {[]string{"strict=true", "engine=xdp"}, "", nil, 0, nil, "--engine: --strict sends bursts of a number of " +
			"packets, and frames (xdp) are sent for a time; want auto or udp"},
		"unknown goal": {[]string{"goal=fast"}, "", nil, 0, nil, `--goal: want quick or csit, not "fast"`},
		"loss of all":  {[]string{"max-loss=100%"}, "", nil, 0, nil, "--max-loss: want 0 to less than 100 %"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Ndr.Of("lab:router", c.settings...)
			if c.wrong != "" {
				if err == nil || err.Error() != c.wrong {
					t.Fatalf("got %v, want %s", err, c.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var losses []float64
			for _, g := range p.Design.Search.Goals {
				losses = append(losses, g.LossRatio)
				if g.Name != c.goal || g.FinalSeconds != c.final || g.InitialSeconds > g.FinalSeconds || g.SumSeconds < g.FinalSeconds ||
					c.goal == "rfc2544" && g.SumSeconds != g.FinalSeconds {
					t.Errorf("goal %+v", g)
				}
			}
			if len(losses) != len(c.losses) || losses[0] != c.losses[0] {
				t.Errorf("losses %v, want %v", losses, c.losses)
			}
			for _, f := range p.Factors {
				if n, told := c.levels[f.Knob]; told && len(f.Levels) != n {
					t.Errorf("%s has %d levels, want %d", f.Knob, len(f.Levels), n)
				}
			}
			if again := reread(t, p); again.Design.Search == nil || again.Design.Search.Goals[0] != p.Design.Search.Goals[0] {
				t.Errorf("printed and read again: %+v", again.Design.Search)
			}
		})
	}
}

// A strict search has the frames of RFC 2544, of IPv6 the least that holds a packet of pelt in place of the smallest, and
// fewer bursts where its trials are shorter.
func TestStrict(t *testing.T) {
	for _, c := range []struct {
		settings []string
		sizes    int
		least    float64
		seconds  float64 // of the flood
		bursts   int
	}{
		{[]string{"strict=true"}, 7, 64, 60, 50},
		{[]string{"strict=true", "time=6s", "family=6"}, 7, 82, 6, 5},
		{[]string{"strict=true", "time=100ms", "frame=512"}, 1, 512, 0.1, 1},
		{[]string{"strict=true", "time=600s", "payload=18,100"}, 2, 18, 600, 50},
		{[]string{"time=6s"}, 3, 64, 1, 0},
	} {
		p, err := Ndr.Of("lab:router", c.settings...)
		if err != nil {
			t.Fatal(err)
		}
		p = reread(t, p)
		sizes := p.Factors[1].Levels
		if len(sizes) != c.sizes || sizes[0].Number != c.least || p.Timing.MeasureSeconds != c.seconds || p.Design.Search.Bursts != c.bursts {
			t.Errorf("%v: sizes %v, floods of %v s, %d bursts; want %+v", c.settings, sizes, p.Timing.MeasureSeconds, p.Design.Search.Bursts, c)
		}
		if payload := model.PayloadOf(6, 82); payload != model.MinUDPPayload {
			t.Errorf("82 B frames of IPv6 hold %d B", payload)
		}
	}
}

// A size that the path decides is searched below a low --rate, as one in bytes is.
func TestNdrBelowARate(t *testing.T) {
	for _, size := range []string{"payload=mtu", "payload=1472"} {
		p, err := Ndr.Of("lab:router", size, "rate=5mbit")
		if err != nil {
			t.Fatal(err)
		}
		if got, want := p.Design.Search.MinPPS, 5e6/8/1472/10; got > want*1.01 || got < want*0.99 {
			t.Errorf("%s: searched from %v pps on, want %.1f", size, got, want)
		}
	}
}

func TestLossFreeFlag(t *testing.T) {
	for _, preset := range []Preset{Curve, Router} {
		p, err := preset.Of("lab:router", "loss-free=true")
		if err != nil || p.Design.Search == nil {
			t.Errorf("%s: %v, %+v", preset.Command, err, p.Design.Search)
		}
		if p, _ := preset.Of("lab:router"); p.Design.Search != nil {
			t.Errorf("%s searches though nobody asked", preset.Command)
		}
		if _, err := preset.Of("lab:router", "loss-free=true", "interval=1ms"); err == nil || !strings.Contains(err.Error(), "--loss-free") {
			t.Errorf("%s with an interval: %v", preset.Command, err)
		}
	}
	for _, preset := range []Preset{Curve, Ndr, Latency} { // the highest rate that is tried; a search ends below it
		p, err := preset.Of("nas", "loss-free=true", "payload=1250", "rate=1mbit")
		if pps, _ := p.Flows[0].Rate.PPS(1250); err != nil || p.Design.Search == nil || pps != 100 || p.Design.Search.MinPPS != 10 {
			t.Errorf("%s at 100 packets a second: %v, %v, %+v", preset.Command, pps, err, p.Design.Search)
		}
	}
	if _, err := Curve.Of("lab:router", "loss-free=true", "proto=tcp"); err == nil || !strings.Contains(err.Error(), "--proto udp") {
		t.Errorf("TCP: %v", err)
	}
}

func TestSearchCheck(t *testing.T) {
	for want, change := range map[string]func(*model.Search){
		"search.goals: want 1 to 8":          func(s *model.Search) { s.Goals = nil },
		"search.goals[0].width_ratio: want":  func(s *model.Search) { s.Goals[0].WidthRatio = 0 },
		"search.goals[0].exceed_ratio: want": func(s *model.Search) { s.Goals[0].ExceedRatio = 1 },
		"search.goals[0].initial_s: want":    func(s *model.Search) { s.Goals[0].InitialSeconds = 2 },
		"search.goals[0].sum_s: want":        func(s *model.Search) { s.Goals[0].SumSeconds = 0.5 },
		"search.min_pps: want":               func(s *model.Search) { s.MinPPS = 0 },
		"search.loads: want shares":          func(s *model.Search) { s.Loads = []float64{-1} },
		"search.bursts: want 0 to":           func(s *model.Search) { s.Bursts = -1 },
		"search.searches: want 1 to":         func(s *model.Search) { s.Searches = 1000 },
	} {
		p, err := Ndr.Of("lab:router")
		if err != nil {
			t.Fatal(err)
		}
		change(p.Design.Search)
		if err := p.Check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	p, err := Ndr.Of("lab:router")
	if err != nil {
		t.Fatal(err)
	}
	p.Flows[0].Packets = 5
	if err := p.Check(); err == nil || !strings.HasPrefix(err.Error(), "search: wants flows of UDP") {
		t.Errorf("a flow with a number of packets: %v", err)
	}
}
