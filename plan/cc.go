package plan

import (
	"slices"
	"strings"
	"time"

	"pelt/model"
)

const (
	controlTime      = 10 * time.Second
	transferLongest  = 2 * time.Minute
	controlRepeats   = 10 // losses come by chance: fewer tell little
	controlMost      = 30
	controlRedo      = 2
	controlReadEvery = 50 * time.Millisecond
	controlDrain     = time.Second
)

// DefaultMostRepeats is how often a run repeats its trials at most that goes on until
// they are told apart.
func DefaultMostRepeats(repeats int) int {
	return max(controlMost, 3*orDefault(repeats, controlRepeats))
}

// Control makes the plan of a comparison of congestion controls. An error names the
// option that is wrong, as the command line spells it.
func Control(o Options) (model.Plan, error) {
	if len(o.Controls) == 0 {
		o.Controls = []string{"cubic", "bbr"}
	}
	most := 1
	for i, name := range o.Controls {
		if name == "" || slices.Contains(o.Controls[:i], name) {
			return model.Plan{}, bad("--control", "want different names, as cubic,bbr,reno, or cubic+bbr for two that compete, not %q", name)
		}
		most = max(most, strings.Count(name, model.MixSeparator)+1)
	}
	if o.Streams == 0 {
		o.Streams = most
	}
	if o.Streams < most {
		return model.Plan{}, bad("--streams", "%d controls compete on as many streams at least, not on %d", most, o.Streams)
	}
	if o.Stagger > 0 && o.Streams < 2 {
		return model.Plan{}, bad("--stagger", "is between streams, and there is one; want --streams or a mix as cubic+bbr")
	}
	if o.Commands != nil && !strings.HasPrefix(o.Target, "lab:") {
		return model.Plan{}, bad("--exec-server, --exec-client", "run in the nodes of a lab; want lab:NAME")
	}
	if o.Losses != nil && !strings.HasPrefix(o.Target, "lab:") {
		return model.Plan{}, bad("--loss", "only a lab has links that lose on purpose; want lab:NAME")
	}
	if o.Losses != nil && slices.ContainsFunc(o.Factors, func(f model.Factor) bool { return f.Knob == o.Losses.Knob }) {
		return model.Plan{}, bad("--loss", "stands beside --link loss; want one of them")
	}
	if o.HTTP && o.Bytes == 0 {
		return model.Plan{}, bad("--http", "an answer has a length; want --bytes")
	}
	if slices.Contains([]string{"both", "up,down", "down,up"}, o.Direction) || strings.Contains(o.Direction, ",") {
		return model.Plan{}, bad("--direction", "want up or down: one transfer at a time")
	}
	ends := o.Bytes > 0 || o.Commands != nil
	if o.Time == 0 && ends {
		o.Time = transferLongest
	}
	o.Time = orDefault(o.Time, controlTime)
	if o.Warmup == nil {
		none := time.Duration(0)
		o.Warmup = &none
	} else if ends && *o.Warmup > 0 {
		return model.Plan{}, bad("--warmup", "a transfer counts from its first byte; leave it out")
	}
	for _, l := range o.Links {
		if l.Seed != 0 {
			return model.Plan{}, bad("--link", "seed: trials of one repeat draw alike, and by --seed")
		}
	}
	o.Protocol, o.Bulk, o.Control, o.Payloads, o.Frames = model.TCP, true, "", []int{bulkWrite}, nil
	o.Repeats = orDefault(o.Repeats, controlRepeats)
	p, err := Curve(o)
	if err != nil {
		return p, err
	}
	p.Command = "cc"
	p.Timing.DrainSeconds = controlDrain.Seconds()
	p.Factors = o.controlFactors()
	p.Design.Paired, p.Design.Redo = strings.HasPrefix(o.Target, "lab:"), controlRedo
	if o.MostRepeats > 0 {
		p.Design.MostRepeats = o.MostRepeats
	}
	for i := range p.Flows {
		f := &p.Flows[i]
		f.Bytes, f.HTTP, f.Commands, f.StaggerSeconds = o.Bytes, o.HTTP, o.Commands, o.Stagger.Seconds()
		f.InfoSeconds, f.Control = controlReadEvery.Seconds(), o.Controls[0]
	}
	return p, translate(p, p.Check())
}

// bulkWrite is the length of the writes of a transfer, in bytes.
const bulkWrite = 128 << 10

func (o Options) controlFactors() (list []model.Factor) {
	if o.Losses != nil {
		list = append(list, *o.Losses)
	}
	list = append(list, o.Factors...)
	controls := model.Factor{Knob: "control"}
	for _, name := range o.Controls {
		controls.Levels = append(controls.Levels, model.Word(name))
	}
	return append(list, controls)
}
