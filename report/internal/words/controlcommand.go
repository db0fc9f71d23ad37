package words

import (
	"slices"
	"strconv"
	"strings"

	"pelt/model"
)

const controlCommand = "cc"

// isControl reports whether the flags of pelt cc can say the plan.
func isControl(p model.Plan) bool {
	if len(p.Flows) != 1 || p.Command != controlCommand || p.Flows[0].Protocol != model.TCP || p.Design.Kind != "grid" {
		return false
	}
	return !slices.ContainsFunc(p.Factors, func(f model.Factor) bool {
		_, link := model.LinkFactorWords(f)
		return !link && f.Knob != "control"
	})
}

// controlFlags say what a comparison of congestion controls transfers.
func controlFlags(p model.Plan) (args []string) {
	f := p.Flows[0]
	for _, x := range p.Factors {
		text, link := model.LinkFactorWords(x)
		levels, isLoss := strings.CutPrefix(text, "link.loss=")
		switch {
		case isLoss:
			args = append(args, "--loss", quote(levels))
		case link:
			args = append(args, "--factor", quote(text))
		default:
			var names []string
			for _, v := range x.Levels {
				names = append(names, v.String())
			}
			args = append(args, "--control", quote(strings.Join(names, ",")))
		}
	}
	if f.Bytes > 0 {
		args = append(args, "--bytes", strconv.FormatUint(f.Bytes, 10))
	}
	if f.HTTP {
		args = append(args, "--http")
	}
	if c := f.Commands; c != nil {
		args = append(args, "--exec-server", quote(c.Server), "--exec-client", quote(c.Client))
	}
	if f.Streams > 1 {
		args = append(args, "--streams", strconv.Itoa(f.Streams))
	}
	if f.StaggerSeconds > 0 {
		args = append(args, "--stagger", duration(f.StaggerSeconds))
	}
	if f.Name == "down" {
		args = append(args, "--direction", "down")
	}
	for _, n := range []struct {
		flag  string
		value int
	}{{"--family", f.Family}, {"--dscp", f.DSCP}} {
		if n.value != 0 {
			args = append(args, n.flag, strconv.Itoa(n.value))
		}
	}
	if n := p.Design.MostRepeats; n > p.Design.Repeats {
		args = append(args, "--until-separable", "--max-repeats", strconv.Itoa(n))
	}
	return args
}
