package plan

import (
	"math"
	"strings"
	"testing"

	"pelt/design"
	"pelt/model"
	"pelt/unit"
)

func TestRouterCells(t *testing.T) {
	idle := unit.Rate{}
	for name, c := range map[string]struct {
		o    Options
		want int // cells
	}{
		"everything":   {Options{}, 3*(3+1) + 2},
		"one way":      {Options{Direction: "up"}, 3 + 1 + 1},
		"without tcp":  {Options{Protocols: []model.Protocol{model.UDP}}, 3*3 + 2},
		"without idle": {Options{IdleRate: &idle}, 3 * (3 + 1)},
		"variants":     {Options{Variants: []model.Variant{{Name: "plain"}, {Name: "log"}}}, 2 * (3*(3+1) + 2)},
		"connections":  {Options{Connections: []string{"rate", "keep"}, Protocols: []model.Protocol{model.TCP}}, 3 + 2},
		"only tcp":     {Options{Protocols: []model.Protocol{model.TCP}}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Target = "lab:nat"
			p, err := Router(c.o)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(p.Design.Cells); got != c.want {
				t.Errorf("got %d cells, want %d: %v", got, c.want, p.Design.Cells)
			}
			d, err := design.New(p, nil)
			if err != nil {
				t.Fatal(err)
			}
			if d.Total() != c.want*routerRepeats {
				t.Errorf("got %d trials, want %d", d.Total(), c.want*routerRepeats)
			}
			text, err := Print(p)
			if err != nil {
				t.Fatal(err)
			}
			back, err := Parse(text, "plan.yaml")
			if err != nil {
				t.Fatalf("%v in:\n%s", err, text)
			}
			if len(back.Design.Cells) != c.want || back.Design.Cells[0].Key() != p.Design.Cells[0].Key() {
				t.Errorf("printed and read again: %v", back.Design.Cells)
			}
		})
	}
}

// Bits a second are of the payload of the frames that are sent.
func TestIdleBits(t *testing.T) {
	rate, err := unit.ParseRate("1mbit")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		frames []int
		family int
		want   float64
	}{{nil, 4, 1e6 / 8 / 18}, {[]int{512, 1518}, 0, 1e6 / 8 / 466}, {[]int{512}, 6, 1e6 / 8 / 446}} {
		p, err := Router(Options{IdleRate: &rate, Target: "lab:nat", Frames: c.frames, Family: c.family})
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, cell := range p.Design.Cells {
			if v, is := cell["rate_pps"]; is {
				found++
				if math.Abs(v.Number-c.want) > c.want/1000 {
					t.Errorf("%v, IPv%d: %v packets a second, want %v", c.frames, c.family, v.Number, c.want)
				}
			}
		}
		if found == 0 {
			t.Errorf("%v: no trial of the idle path", c.frames)
		}
	}
}

// A trial of TCP has nothing of the UDP flow that the plan says.
func TestRouterTrials(t *testing.T) {
	p, err := Router(Options{Target: "lab:router", Streams: 2, Connections: []string{"keep"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Design.Cells {
		trial, err := p.Trial(c, 0)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]int{"up": 1, "down": 1, "both": 2}[c["direction"].Text]; len(trial.Flows) != want {
			t.Errorf("%s: %d flows, want %d", c.Key(), len(trial.Flows), want)
		}
		for _, f := range trial.Flows {
			switch {
			case string(f.Protocol) != c["protocol"].Text || f.Streams != 2:
				t.Errorf("%s: flow %+v", c.Key(), f)
			case c["connections"].Text != f.Connections:
				t.Errorf("%s: connections %q", c.Key(), f.Connections)
			case f.Protocol == model.TCP && f.Connections == "" && (!f.Bulk || f.PayloadBytes != 128<<10):
				t.Errorf("%s: TCP is not in bulk: %+v", c.Key(), f)
			case f.Protocol == model.UDP && f.PayloadBytes != int(c["frame_bytes"].Number)-46:
				t.Errorf("%s: payload of %d B", c.Key(), f.PayloadBytes)
			}
		}
	}
}

func TestRouterRefuses(t *testing.T) {
	rate := unit.PacketRate(5)
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"proto":          {Options{Target: "lab:nat", Protocols: []model.Protocol{"icmp"}}, "--proto: want udp, tcp or udp,tcp"},
		"tcp frame":      {Options{Target: "lab:nat", Frames: []int{64}, Protocols: []model.Protocol{model.TCP}}, "--frame, --rate: are for"},
		"tcp rate":       {Options{Target: "lab:nat", Rate: rate, Protocols: []model.Protocol{model.TCP}}, "--frame, --rate: are for"},
		"small":          {Options{Target: "lab:nat", Frames: []int{60}}, "at least 64 B"},
		"connections":    {Options{Target: "lab:nat", Connections: []string{"many"}}, "--connections: want rate, keep"},
		"connections up": {Options{Target: "lab:nat", Direction: "down", Connections: []string{"rate"}}, "--connections: are opened from LAN"},
		"ssh":            {Options{Target: "lab:nat", DUT: "ssh://root@192.168.1.1"}, "--dut: want ssh://[USER@]HOST[:PORT] or pelt://HOST[:PORT] beside hosts, and lab in a lab"},
		"near":           {Options{Target: "lab:nat", Near: "10.0.0.1"}, "a lab has its own sender"},
		"twice":          {Options{Target: "lab:nat", Variants: []model.Variant{{Name: "a"}, {Name: "a"}}}, `"a" stands twice`},
		"command":        {Options{Target: "lab:nat", Variants: []model.Variant{{Name: "a", Command: "reboot"}}}, "want no command"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Router(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
