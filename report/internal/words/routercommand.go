package words

import (
	"slices"
	"strconv"
	"strings"

	"pelt/model"
)

// routerLevels are what the cells of a router's bench were made of, each in order.
type routerLevels struct {
	protocols, frames, directions, connections []string
	idle                                       string // packets per second of the trials of the idle path; "" for none
}

func levelsOf(p model.Plan) (l routerLevels) {
	add := func(list *[]string, v model.Value, said bool) {
		if said && !slices.Contains(*list, v.String()) {
			*list = append(*list, v.String())
		}
	}
	for _, c := range p.Design.Cells {
		_, sized := c["frame_bytes"]
		rate, idle := c["rate_pps"]
		kind, opened := c["connections"]
		if idle {
			l.idle = rate.String()
			continue
		}
		add(&l.connections, kind, opened)
		add(&l.protocols, c["protocol"], !opened)
		add(&l.frames, c["frame_bytes"], sized)
		add(&l.directions, c["direction"], true)
	}
	return l
}

// isRouter reports whether the flags of pelt router can say the plan: whether its
// cells are all that those levels make, and no more.
func isRouter(p model.Plan) bool {
	if p.Command != "router" || p.Design.Kind != "list" || len(p.Flows) == 0 {
		return false
	}
	l := levelsOf(p)
	loads := 0
	for _, name := range l.protocols {
		if name == string(model.UDP) {
			loads += len(l.frames)
		} else {
			loads++
		}
	}
	cells := len(l.directions) * loads
	if slices.Contains(l.directions, "up") {
		cells += len(l.connections)
	}
	if l.idle != "" {
		cells += len(l.directions)
		if slices.Contains(l.directions, "both") {
			cells--
		}
	}
	return cells*max(len(p.Variants), 1) == len(p.Design.Cells)
}

// routerTarget is the path as pelt router takes it.
func routerTarget(p model.Plan) string {
	if p.Near != "" {
		return quote(p.Near + ".." + p.Target)
	}
	return quote(p.Target)
}

// routerFlags say what the cells, and the router, are.
func routerFlags(p model.Plan) (args []string) {
	l := levelsOf(p)
	if p.DUT != "" && p.DUT != model.LabDUT {
		args = append(args, "--dut", quote(p.DUT))
	}
	for _, v := range p.Variants {
		text := v.Name
		if !strings.HasPrefix(p.Target, "lab:") {
			text += "=" + v.Command
		}
		args = append(args, "--variant", quote(text))
	}
	list := func(flag string, levels []string) { args = append(args, flag, quote(strings.Join(levels, ","))) }
	list("--proto", l.protocols)
	list("--direction", l.directions)
	if len(l.frames) > 0 {
		list("--frame", l.frames)
	}
	if len(l.connections) > 0 {
		list("--connections", l.connections)
	}
	if slices.Contains(l.protocols, string(model.UDP)) {
		idle := "0"
		if l.idle != "" {
			idle = l.idle + "pps"
		}
		args = append(args, "--idle-rate", quote(idle))
	}
	f := p.Flows[0]
	if !f.Rate.IsMax() {
		args = append(args, "--rate", f.Rate.String())
	}
	for _, n := range []struct {
		flag         string
		value, usual int
	}{{"--streams", f.Streams, 1}, {"--family", f.Family, 0}, {"--dscp", f.DSCP, 0}} {
		if n.value != n.usual {
			args = append(args, n.flag, strconv.Itoa(n.value))
		}
	}
	return args
}
