package plan

import (
	"cmp"
	"slices"
	"strings"

	"pelt/model"
	"pelt/unit"
)

// Router is a router bench. Its frames are those of RFC 2544 section 9.1 that tell most: the smallest,
// one in the middle and the largest. 3 s a trial are 300 ticks of 10 ms for each core of the router,
// the worst; caches, neighbours, connection tracking and clocks settle in the second before.
var Router = Preset{
	Command: "router",
	Knobs: "dut variant proto frame direction rate idle-rate connections time warmup repeats streams family dev dscp " +
		"drops max-loss loss-free goal engine seed",
	Defaults: map[string]string{"proto": "udp,tcp", "frame": "64,512,1518", "direction": "up,down,both",
		"idle-rate": "1kpps", "time": "3s", "warmup": "1s"},
	Between: true,
	build:   (*draft).buildRouter,
}

func (d *draft) buildRouter() error {
	err := cmp.Or(d.checkWords("proto", "udp, tcp or udp,tcp"), d.checkWords("connections", "rate, keep or rate,keep"))
	if err != nil {
		return err
	}
	protocols, directions := d.words("proto"), d.words("direction")
	if !slices.Contains(protocols, string(model.UDP)) && d.given("frame", "rate") {
		return flagError("frame, --rate", "are for --proto udp: TCP makes its own segments")
	}
	if d.given("connections") && !slices.Contains(directions, "up") {
		return flagError("connections", "are opened from LAN to WAN; want --direction with up")
	}
	idle, err := d.idlePPS()
	if err != nil {
		return err
	}
	d.values["proto"] = []model.Value{model.Word(string(model.UDP))} // the cells say which
	if err := cmp.Or(d.start(), d.addLossFree()); err != nil {
		return err
	}
	p := &d.plan
	inLab := strings.HasPrefix(p.Target, "lab:")
	if inLab && !d.given("dut") {
		p.DUT = model.LabDUT
	}
	for _, text := range d.words("variant") {
		v := model.ParseVariant(text, inLab)
		if v.Name == "" {
			return flagError("variant", "want NAME=COMMAND, not %q", text)
		}
		p.Variants = append(p.Variants, v)
	}
	if err := d.fill("direction", "frame", "variant", "connections", "idle-rate"); err != nil {
		return err
	}
	for _, size := range d.values["frame"] { // the cells say which; each must be possible
		if err := p.Set("frame_bytes", size); err != nil {
			return err
		}
	}
	p.Design.Cells = d.routerCells(protocols, directions, idle)
	return nil
}

// idlePPS is the rate of the flow that measures the delay of the idle path, 0 for none.
func (d *draft) idlePPS() (float64, error) {
	text := d.word("idle-rate")
	if text == "0" {
		return 0, nil
	}
	rate, err := unit.ParseRate(text)
	if err != nil || rate.IsMax() {
		return 0, flagError("idle-rate", "want packets per second, or 0 for no such trials, not %q", text)
	}
	pps, _ := rate.PPS(max(model.PayloadOf(int(d.number("family")), int(d.smallest())), 1))
	return pps, nil
}

// smallest returns the smallest frame of the plan, in bytes.
func (d *draft) smallest() float64 {
	bySize := func(a, b model.Value) int { return cmp.Compare(a.Number, b.Number) }
	return slices.MinFunc(d.values["frame"], bySize).Number
}

// routerCells are the trials of one repeat: what the user reads first stands first.
func (d *draft) routerCells(protocols, directions []string, idle float64) (cells []model.Cell) {
	variants := d.plan.Variants
	if len(variants) == 0 {
		variants = []model.Variant{{}}
	}
	udp, tcp := slices.Contains(protocols, string(model.UDP)), slices.Contains(protocols, string(model.TCP))
	for _, variant := range variants {
		for _, direction := range directions {
			add := func(protocol model.Protocol, knob string, v model.Value) model.Cell {
				c := model.Cell{"protocol": model.Word(string(protocol)), "direction": model.Word(direction)}
				if knob != "" {
					c[knob] = v
				}
				if variant.Name != "" {
					c["variant"] = model.Word(variant.Name)
				}
				cells = append(cells, c)
				return c
			}
			if udp {
				for _, frame := range d.values["frame"] {
					add(model.UDP, "frame_bytes", frame)
				}
			}
			if tcp {
				add(model.TCP, "", model.Value{})
			}
			for _, kind := range d.values["connections"] {
				if direction == "up" { // from behind NAT only
					add(model.TCP, "connections", kind)
				}
			}
			if udp && idle > 0 && direction != "both" {
				add(model.UDP, "frame_bytes", model.Number(d.smallest()))["rate_pps"] = model.Number(idle)
			}
		}
	}
	return cells
}

// RouterPath splits NEAR..FAR, where NEAR may be "here" or empty for this host, or what is one host or a lab.
func RouterPath(text string) (near, target string) {
	near, target, two := strings.Cut(text, "..")
	if !two {
		return "", text
	}
	if near == "here" {
		near = ""
	}
	return near, target
}
