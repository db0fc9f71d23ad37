package plan

import (
	"math"
	"strings"
	"testing"

	"pelt/design"
	"pelt/model"
)

func TestRouterCells(t *testing.T) {
	for flags, want := range map[string]int{ // cells
		"":                                3*(3+1) + 2,
		"direction=up":                    3 + 1 + 1,
		"proto=udp":                       3*3 + 2,
		"idle-rate=0":                     3 * (3 + 1),
		"variant=plain variant=log":       2 * (3*(3+1) + 2),
		"connections=rate,keep proto=tcp": 3 + 2,
		"proto=tcp":                       3,
	} {
		t.Run(flags, func(t *testing.T) {
			p, err := Router.Of("lab:nat", strings.Fields(flags)...)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(p.Design.Cells); got != want || p.DUT != model.LabDUT {
				t.Errorf("got %d cells of %s, want %d: %v", got, p.DUT, want, p.Design.Cells)
			}
			d, err := design.New(p, nil)
			if err != nil {
				t.Fatal(err)
			}
			if d.Total() != want*3 {
				t.Errorf("got %d trials, want %d", d.Total(), want*3)
			}
			back := reread(t, p)
			if len(back.Design.Cells) != want || back.Design.Cells[0].Key() != p.Design.Cells[0].Key() {
				t.Errorf("printed and read again: %v", back.Design.Cells)
			}
		})
	}
}

// Bits a second are of the payload of the frames that are sent.
func TestIdleBits(t *testing.T) {
	for flags, want := range map[string]float64{"family=4": 1e6 / 8 / 18, "frame=512,1518": 1e6 / 8 / 466, "frame=512 family=6": 1e6 / 8 / 446} {
		p, err := Router.Of("lab:nat", append(strings.Fields(flags), "idle-rate=1mbit")...)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, cell := range p.Design.Cells {
			if v, is := cell["rate_pps"]; is {
				found++
				if math.Abs(v.Number-want) > want/1000 {
					t.Errorf("%s: %v packets a second, want %v", flags, v.Number, want)
				}
			}
		}
		if found == 0 {
			t.Errorf("%s: no trial of the idle path", flags)
		}
	}
}

// A trial of TCP has nothing of the UDP flow that the plan says.
func TestRouterTrials(t *testing.T) {
	p, err := Router.Of("lab:router", "streams=2", "connections=keep")
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

// Of real hosts a variant is a command.
func TestRouterBetweenHosts(t *testing.T) {
	near, target := RouterPath("here..10.0.0.2")
	p, err := Router.Plan(Settings{Near: near, Target: target, Flags: map[string][]string{
		"variant": {"quiet=ssh root@192.168.1.1 dmesg -n 1", "loud=true"}, "dut": {"ssh://root@192.168.1.1"}}})
	want := model.Variant{Name: "quiet", Command: "ssh root@192.168.1.1 dmesg -n 1"}
	if err != nil || p.Variants[0] != want || p.Near != "" || p.Target != "10.0.0.2" || p.DUT != "ssh://root@192.168.1.1" {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestRouterRefuses(t *testing.T) {
	for flags, want := range map[string]string{
		"proto=icmp":                      "--proto: want udp, tcp or udp,tcp",
		"frame=64 proto=tcp":              "--frame, --rate: are for",
		"rate=5pps proto=tcp":             "--frame, --rate: are for",
		"frame=60":                        "want 64B to",
		"connections=many":                "--connections: want rate, keep",
		"connections=rate direction=down": "--connections: are opened from LAN",
		"dut=ssh://root@192.168.1.1":      "--dut: want ssh://[USER@]HOST[:PORT] or pelt://HOST[:PORT] beside hosts, and lab in a lab",
		"variant=a variant=a":             `"a" stands twice`,
		"idle-rate=max":                   "--idle-rate: want packets per second",
		"idle-rate=soon":                  "--idle-rate: want packets per second",
	} {
		if _, err := Router.Of("lab:nat", strings.Fields(flags)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", flags, err, want)
		}
	}
	if _, err := Router.Plan(Settings{Target: "lab:nat", Near: "10.0.0.1"}); err == nil || !strings.Contains(err.Error(), "a lab has its own sender") {
		t.Errorf("a lab with a near host: %v", err)
	}
	if _, err := Router.Of("nas", "variant==reboot"); err == nil || !strings.Contains(err.Error(), "want NAME=COMMAND") {
		t.Errorf("a variant without a name: %v", err)
	}
}
