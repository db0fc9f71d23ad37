package plan

import (
	"reflect"
	"strings"
	"testing"

	"pelt/model"
)

func TestControlPlans(t *testing.T) {
	for name, c := range map[string]struct {
		target, flags string
		trials        int
		factors       string
		check         func(model.Plan) bool
	}{
		"defaults": {"lab:direct", "", 2 * 10, "control", func(p model.Plan) bool {
			return p.Timing.MeasureSeconds == 10 && p.Flows[0].Streams == 1 && p.Timing.WarmupSeconds == 0
		}},
		"three": {"lab:direct", "control=cubic,bbr,reno loss=0,1%,10% bytes=640MB link=delay=0,20ms", 18 * 10,
			"link.loss_ratio link.delay_s control",
			func(p model.Plan) bool { return p.Timing.MeasureSeconds == 120 && p.Flows[0].Bytes == 640e6 }},
		"a mix": {"lab:direct", "control=cubic,cubic+bbr+reno stagger=1s", 2 * 10, "control",
			func(p model.Plan) bool { return p.Flows[0].Streams == 3 && p.Flows[0].StaggerSeconds == 1 }},
		"real hosts": {"192.168.1.5", "repeats=3 bytes=1000000 http=true", 2 * 3, "control",
			func(p model.Plan) bool { return !p.Design.Paired && p.Flows[0].HTTP }},
		"commands": {"lab:direct", "exec-server=a exec-client={server}", 2 * 10, "control", func(p model.Plan) bool {
			return p.Timing.MeasureSeconds == 120 && *p.Flows[0].Commands == model.Commands{Server: "a", Client: "{server}"}
		}},
		"until separable": {"lab:direct", "until-separable=true", 2 * 30, "control",
			func(p model.Plan) bool { return p.Design.Repeats == 10 && len(p.Design.Looks()) == 5 }},
		"buffers": {"lab:direct", "per-skb=true", 2 * 10, "control",
			func(p model.Plan) bool { return p.Links[0].Buffers == model.BuffersWhole }},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Control.Of(c.target, strings.Fields(c.flags)...)
			if err != nil {
				t.Fatal(err)
			}
			trials, knobs := max(p.Design.Repeats, p.Design.MostRepeats), []string{}
			for _, f := range p.Factors {
				trials *= len(f.Levels)
				knobs = append(knobs, f.Knob)
			}
			f := p.Flows[0]
			if trials != c.trials || p.Command != "cc" || !c.check(p) || !f.Bulk || f.InfoSeconds != 0.05 || p.Design.Redo == 0 ||
				f.PayloadBytes != 128<<10 || f.Protocol != model.TCP || strings.Join(knobs, " ") != c.factors {
				t.Errorf("%d trials, want %d: %+v", trials, c.trials, p)
			}
			if back := reread(t, p); !reflect.DeepEqual(back, p) {
				t.Errorf("printed and read again: %+v\nwas %+v", back, p)
			}
		})
	}
}

// Trials of one repeat draw alike, and those of two repeats do not.
func TestControlTrialsArePaired(t *testing.T) {
	p, err := Control.Of("lab:direct")
	if err != nil {
		t.Fatal(err)
	}
	seeds := map[uint64]int{}
	for repeat := range 10 {
		for _, control := range []string{"cubic", "bbr"} {
			trial, err := p.Trial(model.Cell{"control": model.Word(control)}, repeat)
			if err != nil {
				t.Fatal(err)
			}
			seeds[trial.LinkSeed]++
		}
	}
	if len(seeds) != 10 || seeds[0] > 0 {
		t.Errorf("seeds %v: want ten, each of two trials", seeds)
	}
}

func TestControlRefuses(t *testing.T) {
	for flags, want := range map[string]string{
		"control=bbr,bbr":                       "--control: bbr stands twice",
		"control=bbr,":                          "--control: want names",
		"control=a_name_of_sixteen":             "--control: ",
		"control=cubic+bbr streams=1":           "--streams: 2 controls compete on as many streams at least, not on 1",
		"stagger=1s":                            "--stagger: is between streams, and there is one",
		"stagger=5s streams=3 time=10s":         "--stagger: the last of 3 streams would begin after 10s, and a trial is over after 10s",
		"loss=0 link=loss=0,1%":                 "--loss: stands beside --link loss",
		"http=true":                             "--http: an answer has a length; want --bytes",
		"direction=both":                        "--direction: want up or down",
		"direction=up,down":                     "--direction: want up or down",
		"bytes=1000 warmup=1s":                  "--warmup: a transfer counts from its first byte",
		"link=seed=3":                           "--link: seed: trials of one repeat draw alike",
		"exec-server=a":                         "--exec-server, --exec-client: belong together",
		"exec-server=a exec-client=b streams=2": "--exec-server, --exec-client: transfer in their own way",
		"max-repeats=20":                        "--max-repeats: is for --until-separable",
		"max-repeats=5 until-separable=true":    "--max-repeats: want 10 to 1000, not 5",
		"bytes=0":                               "--bytes: want 1B to",
		"host: loss=0":                          "--loss: only a lab has links",
		"host: exec-server=a exec-client=b":     "--exec-server, --exec-client: run in the nodes of a lab",
	} {
		target, rest := "lab:direct", flags
		if of, ok := strings.CutPrefix(flags, "host: "); ok {
			target, rest = "192.168.1.5", of
		}
		_, err := Control.Of(target, strings.Fields(rest)...)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want %s", flags, err, want)
		}
	}
}
