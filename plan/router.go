package plan

import (
	"slices"
	"strings"
	"time"

	"pelt/model"
)

const (
	routerTime    = 3 * time.Second // the router's ticks are of 10 ms at worst: 300 of them for each core
	routerWarmup  = time.Second     // caches, neighbours, connection tracking and clocks that step up
	routerRepeats = 3               // the least that tells two of them apart
	idlePPS       = 1000
)

// routerFrames are the frames in bytes of RFC 2544 section 9.1 that tell most: the
// smallest, one in the middle and the largest.
func routerFrames() []int { return []int{64, 512, 1518} }

// Router makes the plan of a router bench. An error names the option that is
// wrong, as the command line spells it.
func Router(o Options) (model.Plan, error) {
	o.Protocol, o.Payloads, o.Whole = model.UDP, nil, false
	o.Direction = orDefault(o.Direction, "up,down,both")
	if len(o.Protocols) == 0 {
		o.Protocols = []model.Protocol{model.UDP, model.TCP}
	}
	for i, p := range o.Protocols {
		if p != model.UDP && p != model.TCP || slices.Contains(o.Protocols[:i], p) {
			return model.Plan{}, bad("--proto", "want udp, tcp or udp,tcp, not %q", string(p))
		}
	}
	for i, c := range o.Connections {
		if c != model.ConnectionRate && c != model.ConnectionKeep || slices.Contains(o.Connections[:i], c) {
			return model.Plan{}, bad("--connections", "want rate, keep or rate,keep, not %q", c)
		}
	}
	udp := slices.Contains(o.Protocols, model.UDP)
	if !udp && (len(o.Frames) > 0 || !o.Rate.IsMax()) {
		return model.Plan{}, bad("--frame, --rate", "are for --proto udp: TCP makes its own segments")
	}
	o.Frames = orFrames(o.Frames)
	flow, err := o.flow()
	if err != nil {
		return model.Plan{}, err
	}
	directions, flows, err := o.directions(flow)
	if err != nil {
		return model.Plan{}, err
	}
	if len(o.Connections) > 0 && !slices.Contains(directions, model.Word("up")) {
		return model.Plan{}, bad("--connections", "are opened from LAN to WAN; want --direction with up")
	}
	for i := range flows { // the cells say the size
		flows[i].PayloadBytes = model.PayloadOf(flows[i].Family, routerFrames()[2])
	}
	p := model.Plan{
		Format: model.PlanFormat, Command: "router", Target: o.Target, Near: o.Near, DUT: o.DUT, Variants: o.Variants, Links: o.Links, Flows: flows,
		Design: model.Design{Kind: "list", Repeats: orDefault(o.Repeats, routerRepeats), Seed: o.Seed, Cells: o.cells(directions, udp)},
		Timing: model.Timing{
			WarmupSeconds: routerWarmup.Seconds(), MeasureSeconds: orDefault(o.Time, routerTime).Seconds(), DrainSeconds: defaultDrain.Seconds(),
		},
		Engine: orDefault(o.Engine, "auto"),
		Limits: model.Limits{MaxLossRatio: o.MaxLoss},
		Drops:  o.Drops,
	}
	if strings.HasPrefix(p.Target, "lab:") && p.DUT == "" {
		p.DUT = model.LabDUT
	}
	if o.Warmup != nil {
		p.Timing.WarmupSeconds = o.Warmup.Seconds()
	}
	return p, translate(p, p.Check())
}

func orFrames(list []int) []int {
	if len(list) == 0 {
		return routerFrames()
	}
	return list
}

// cells are the trials of one repeat: what the user reads first stands first.
func (o Options) cells(directions []model.Value, udp bool) []model.Cell {
	variants := []model.Value{{}}
	if len(o.Variants) > 0 {
		variants = nil
		for _, v := range o.Variants {
			variants = append(variants, model.Word(v.Name))
		}
	}
	var cells []model.Cell
	for _, variant := range variants {
		add := func(protocol model.Protocol, direction model.Value, more model.Cell) {
			c := model.Cell{"protocol": model.Word(string(protocol)), "direction": direction}
			for k, v := range more {
				c[k] = v
			}
			if variant.Text != "" {
				c["variant"] = variant
			}
			cells = append(cells, c)
		}
		for _, d := range directions {
			if udp {
				for _, n := range o.Frames {
					add(model.UDP, d, model.Cell{"frame_bytes": model.Number(float64(n))})
				}
			}
			if slices.Contains(o.Protocols, model.TCP) {
				add(model.TCP, d, nil)
			}
			for _, kind := range o.Connections {
				if d.Text == "up" { // from behind NAT only
					add(model.TCP, d, model.Cell{"connections": model.Word(kind)})
				}
			}
			if pps := o.idlePPS(); udp && pps > 0 && d.Text != "both" {
				add(model.UDP, d, model.Cell{"frame_bytes": model.Number(float64(slices.Min(o.Frames))), "rate_pps": model.Number(pps)})
			}
		}
	}
	return cells
}

func (o Options) idlePPS() float64 {
	if o.IdleRate == nil {
		return idlePPS
	}
	pps, paced := o.IdleRate.PPS(max(model.PayloadOf(o.Family, slices.Min(o.Frames)), 1))
	if !paced {
		return 0
	}
	return pps
}

// RouterPath splits NEAR..FAR, where NEAR may be "here" or empty for this host, or
// what is one host or a lab.
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
