package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"pelt/model"
	"pelt/unit"
)

// Ndr searches the highest rate without loss (RFC 9971). A flood of 1 s comes first, which shows what the sender
// offers. Its frames are the smallest, one in the middle and the largest of RFC 2544 section 9.1.
var Ndr = Preset{
	Command: ndrCommand,
	Knobs: "payload frame rate direction streams time warmup max-loss goal strict searches repeats family dev dscp " +
		"df drops burst source-port source-address send-buffer receive-buffer gro gso engine seed",
	Defaults: map[string]string{"frame": smallToLarge, "direction": "up,down", "warmup": "100ms",
		"repeats": "1", "goal": "quick", "max-loss": "0", "searches": "3"},
	Factors: "direction payload! frame!",
	build:   (*draft).buildNdr,
}

const (
	ndrCommand   = "ndr"
	smallToLarge = "64,512,1518"
	// floodSeconds is how long the flood before a search lasts at most.
	floodSeconds = 1
	// leastPPS is where a search for a rate without loss ends: below it a path that loses is broken.
	leastPPS = 1000
)

func (d *draft) buildNdr() error {
	if d.given("payload") {
		delete(d.values, "frame")
	} else if six := int(d.number("family")); six == 6 { // the smallest frame holds no packet of pelt
		least := fmt.Sprint(model.FrameBytes(model.UDP, six, model.MinUDPPayload))
		d.setDefault("frame", strings.Replace(smallToLarge, "64", least, 1))
	}
	if err := d.start(); err != nil {
		return err
	}
	s, err := d.search()
	if err != nil {
		return err
	}
	d.plan.Design.Search, d.plan.Design.Redo = s, 2
	flood := float64(floodSeconds)
	if d.given("time") {
		flood = min(d.number("time"), flood)
	}
	d.values["time"] = []model.Value{model.Number(flood)}
	return d.fill("max-loss")
}

// search makes the search that the flags ask for.
func (d *draft) search() (*model.Search, error) {
	name := cmp.Or(d.word("goal"), "quick")
	if d.on("strict") {
		if d.given("goal") {
			return nil, flagError("strict", "is a goal by itself; give it or --goal")
		}
		name = "rfc2544"
	}
	goal, known := model.NamedGoal(name)
	if !known {
		return nil, flagError("goal", "want quick or csit, not %q", name)
	}
	if d.Command == ndrCommand && d.given("time") { // as many trials, of another length
		trials := math.Round(goal.SumSeconds / goal.FinalSeconds)
		goal.FinalSeconds = d.number("time")
		goal.SumSeconds = trials * goal.FinalSeconds
		goal.InitialSeconds = min(goal.InitialSeconds, goal.FinalSeconds)
	}
	s := &model.Search{MinPPS: d.leastPPS(leastPPS), Searches: int(d.number("searches"))}
	if name != "quick" && !d.given("searches") {
		s.Searches = min(s.Searches, 1) // it is long already
	}
	losses := d.values["max-loss"]
	if d.Command != ndrCommand || len(losses) == 0 {
		losses = []model.Value{{}}
	}
	for _, loss := range losses {
		if loss.Number >= 1 {
			return nil, flagError("max-loss", "want 0 to less than 100 %%")
		}
		goal.LossRatio = loss.Number
		s.Goals = append(s.Goals, goal)
	}
	slices.SortFunc(s.Goals, func(a, b model.Goal) int { return cmp.Compare(a.LossRatio, b.LossRatio) })
	return s, nil
}

// leastPPS returns the least rate that a search tries: the given one, or a tenth of a rate that the user gives if
// that is less.
func (d *draft) leastPPS(least float64) float64 {
	for _, size := range append(slices.Clone(d.values["payload"]), d.values["frame"]...) {
		for _, v := range d.values["rate"] {
			rate, _ := unit.ParseRate(v.String())
			bytes := size.Number
			if size.Text != "" { // mtu
				bytes = float64(model.WholePayload(4, 1500))
			}
			if pps, paced := rate.PPS(int(max(bytes, 1))); paced {
				least = min(least, max(1, pps/10))
			}
		}
	}
	return least
}

// addLossFree adds a search for the loss-free rate to a plan that floods, if the user asks for one.
func (d *draft) addLossFree() error {
	switch {
	case !d.on("loss-free") && d.given("goal"):
		return flagError("goal", "is for --loss-free")
	case !d.on("loss-free"):
		return nil
	case d.given("interval", "profile"):
		return flagError("loss-free", "finds the rate by itself; leave out --interval and --profile")
	case !slices.Contains(d.words("proto"), string(model.UDP)):
		return flagError("loss-free", "is for --proto udp: TCP sends again what is lost")
	}
	s, err := d.search()
	d.plan.Design.Search = s
	if d.plan.Design.Redo == 0 {
		d.plan.Design.Redo = 1
	}
	d.setDefault("warmup", "200ms")
	return err
}
