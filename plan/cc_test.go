package plan

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"pelt/model"
)

func TestControlPlans(t *testing.T) {
	losses, err := model.LossLevels("0,1%,10%")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o      Options
		trials int
		check  func(model.Plan) bool
	}{
		"defaults":   {Options{}, 2 * 10, func(p model.Plan) bool { return p.Timing.MeasureSeconds == 10 && p.Flows[0].Streams == 1 }},
		"report E":   {Options{Controls: []string{"cubic", "bbr", "reno"}, Losses: &losses, Bytes: 640e6}, 9 * 10, func(p model.Plan) bool { return p.Timing.MeasureSeconds == 120 && p.Flows[0].Bytes == 640e6 }},
		"a mix":      {Options{Controls: []string{"cubic", "cubic+bbr+reno"}, Stagger: time.Second}, 2 * 10, func(p model.Plan) bool { return p.Flows[0].Streams == 3 && p.Flows[0].StaggerSeconds == 1 }},
		"real hosts": {Options{Target: "192.168.1.5", Repeats: 3, Bytes: 1e6, HTTP: true}, 2 * 3, func(p model.Plan) bool { return !p.Design.Paired && p.Flows[0].HTTP }},
		"commands": {Options{Commands: &model.Commands{Server: "a 'b c'", Client: `d "{server}"`}}, 2 * 10, func(p model.Plan) bool {
			return p.Timing.MeasureSeconds == 120 && p.Flows[0].Commands.Server == "a 'b c'"
		}},
		"until separable": {Options{MostRepeats: DefaultMostRepeats(0)}, 2 * 30, func(p model.Plan) bool { return p.Design.Repeats == 10 && len(p.Design.Looks()) == 5 }},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Seed = 7
			if c.o.Target == "" {
				c.o.Target = "lab:direct"
			}
			p, err := Control(c.o)
			if err != nil {
				t.Fatal(err)
			}
			trials := max(p.Design.Repeats, p.Design.MostRepeats)
			for _, f := range p.Factors {
				trials *= len(f.Levels)
			}
			if trials != c.trials || p.Command != "cc" || !c.check(p) || !p.Flows[0].Bulk || p.Flows[0].InfoSeconds != 0.05 || p.Design.Redo == 0 {
				t.Errorf("%d trials, want %d: %+v", trials, c.trials, p)
			}
			text, err := Print(p)
			if err != nil {
				t.Fatal(err)
			}
			back, err := Parse(text, "plan.yaml")
			if err != nil {
				t.Fatalf("%v in:\n%s", err, text)
			}
			if !reflect.DeepEqual(back.Flows, p.Flows) || !reflect.DeepEqual(back.Design, p.Design) {
				t.Errorf("printed and read again: %+v\nwas %+v", back, p)
			}
		})
	}
}

// Trials of one repeat draw alike, and those of two repeats do not.
func TestControlTrialsArePaired(t *testing.T) {
	p, err := Control(Options{Target: "lab:direct"})
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
	with := func(change func(*Options)) Options {
		o := Options{Target: "lab:direct"}
		change(&o)
		return o
	}
	second := time.Second
	for _, c := range []struct {
		o    Options
		want string
	}{
		{with(func(o *Options) { o.Controls = []string{"bbr", "bbr"} }), "--control: want different names"},
		{with(func(o *Options) { o.Controls = []string{"bbr", ""} }), "--control: want different names"},
		{with(func(o *Options) { o.Controls = []string{"a_name_of_sixteen"} }), "--control: "},
		{with(func(o *Options) { o.Controls, o.Streams = []string{"cubic+bbr"}, 1 }), "--streams: 2 controls compete on as many streams at least, not on 1"},
		{with(func(o *Options) { o.Stagger = second }), "--stagger: is between streams, and there is one"},
		{with(func(o *Options) { o.Stagger, o.Streams, o.Time = 5*second, 3, 10*second }), "--stagger: the last of 3 streams would begin after 10s, and a trial is over after 10s"},
		{with(func(o *Options) {
			o.Target, o.Losses = "192.168.1.5", &model.Factor{Knob: "link.loss_ratio", Levels: []model.Value{model.Number(0)}}
		}), "--loss: only a lab has links"},
		{with(func(o *Options) {
			o.Losses = &model.Factor{Knob: "link.loss_ratio", Levels: []model.Value{model.Number(0)}}
			o.Factors = []model.Factor{*o.Losses}
		}), "--loss: stands beside --link loss"},
		{with(func(o *Options) { o.HTTP = true }), "--http: an answer has a length; want --bytes"},
		{with(func(o *Options) { o.Direction = "both" }), "--direction: want up or down"},
		{with(func(o *Options) { o.Bytes, o.Warmup = 1000, &second }), "--warmup: a transfer counts from its first byte"},
		{with(func(o *Options) { o.Links = []model.Link{{Seed: 3}} }), "--link: seed: trials of one repeat draw alike"},
		{with(func(o *Options) {
			o.Target, o.Commands = "192.168.1.5", &model.Commands{Server: "a", Client: "b"}
		}), "--exec-server, --exec-client: run in the nodes of a lab"},
		{with(func(o *Options) { o.Commands, o.Streams = &model.Commands{Server: "a", Client: "b"}, 2 }), "--exec-server, --exec-client: transfer in their own way"},
		{with(func(o *Options) { o.Repeats, o.MostRepeats = 10, 5 }), "--max-repeats: want 10 to 1000, not 5"},
	} {
		if _, err := Control(c.o); err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v; want %s", c.o, err, c.want)
		}
	}
}
