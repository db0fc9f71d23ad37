package words

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pelt/model"
	"pelt/report/rows"
)

// Command is the line that runs the plan again; note says what the line leaves
// open, "" if nothing. A plan that no flags can say is run from its file.
func Command(p model.Plan) (line, note string) {
	var args []string
	switch {
	case isCurve(p):
		args = []string{"pelt", "curve", quote(p.Target)}
	case isSweep(p):
		args = []string{"pelt", "sweep", quote(p.Target)}
	case isRouter(p):
		args = []string{"pelt", "router", routerTarget(p)}
	case isControl(p):
		args = []string{"pelt", "cc", quote(p.Target)}
	default:
		return "pelt run plan.yaml", "plan.yaml stands for this run's plan, as --print-plan writes it"
	}
	var notes []string
	if !strings.HasPrefix(p.Target, "lab:") {
		args = append(args, "--code", "CODE")
		notes = append(notes, codeNote(p))
	}
	f := p.Flows[0]
	router, control := isRouter(p), isControl(p)
	if f.Protocol == model.TCP && !router && !control {
		args = append(args, "--proto", "tcp")
	}
	if p.Receivers > 0 {
		args = append(args, "--receivers", strconv.Itoa(p.Receivers))
	}
	switch {
	case router:
		args = append(args, routerFlags(p)...)
	case control:
		args = append(args, controlFlags(p)...)
	default:
		args = append(append(args, factorFlags(p)...), flowFlags(f, p.Factors)...)
	}
	if f.Profile != nil && f.Profile.Kind == model.TraceProfile {
		notes = append(notes, Plain(f.Profile.File)+" is read again; pelt run with this run's plan, as its JSON document holds it, needs no file")
	}
	args = append(args, timeFlags(p)...)
	for _, l := range p.Links {
		args = append(args, linkFlag(l)...)
		if file := l.DistributionFile(); file != "" {
			notes = append(notes, Plain(file)+" is read again")
		}
	}
	if p.Drops != "" {
		args = append(args, "--drops", quote(string(p.Drops)))
	}
	if p.Engine != "" && p.Engine != "auto" {
		args = append(args, "--engine", quote(p.Engine))
	}
	if r := p.Limits.MaxLossRatio; r != nil {
		args = append(args, "--max-loss", strconv.FormatFloat(*r, 'f', -1, 64))
	}
	return strings.Join(append(args, "--seed", strconv.FormatUint(p.Design.Seed, 10)), " "), strings.Join(slices.Compact(notes), "; ")
}

func codeNote(p model.Plan) string {
	if p.Near != "" {
		return "CODE is what pelt serve prints on the far host, or NEAR,FAR of both"
	}
	return "CODE is what pelt serve prints on the far host"
}

// isCurve reports whether the flags of pelt curve can say the plan; pelt demo is a curve too.
func isCurve(p model.Plan) bool {
	return len(p.Flows) > 0 && (p.Command == "curve" || p.Command == "demo") && only(p, "payload_bytes", "frame_bytes", "direction")
}

// sweepLongest is what pelt sweep gives a trial of a number of packets.
const sweepLongest = 60

// isSweep reports whether the flags of pelt sweep can say the plan.
func isSweep(p model.Plan) bool {
	if len(p.Flows) == 0 || p.Command != rows.SweepCommand ||
		!only(p, "payload_bytes", "frame_bytes", "direction", "interval_ns", "rate_pps", "streams", "send_buffer_bytes", "receive_buffer_bytes", "profile") {
		return false
	}
	f := p.Flows[0]
	if f.Burst != 0 || f.SourcePort != 0 || len(f.SourceAddresses) > 0 || f.Segments > 1 || f.Joined {
		return false
	}
	return f.Packets == 0 || p.Timing.MeasureSeconds == sweepLongest
}

func only(p model.Plan, knobs ...string) bool {
	return !slices.ContainsFunc(p.Factors, func(f model.Factor) bool { return !slices.Contains(knobs, f.Knob) })
}

// timeFlags say how long trials are, and how many.
func timeFlags(p model.Plan) (args []string) {
	t := p.Timing
	if n := p.Flows[0].Packets; n > 0 && p.Command == rows.SweepCommand {
		args = append(args, "--count", strconv.FormatUint(n, 10))
	} else {
		args = append(args, "--time", duration(t.MeasureSeconds))
	}
	if p.Command != rows.SweepCommand && p.Command != controlCommand || t.WarmupSeconds > 0 {
		args = append(args, "--warmup", duration(t.WarmupSeconds))
	}
	args = append(args, "--repeats", strconv.Itoa(p.Design.Repeats))
	if n := p.Design.SideBySide; n > 1 {
		args = append(args, "--side-by-side", strconv.Itoa(n))
	}
	return args
}

// factorFlags says sizes and directions.
func factorFlags(p model.Plan) []string {
	var args []string
	sized, directed := false, false
	for _, f := range p.Factors {
		if f.Knob == "profile" { // their own words have commas
			for _, v := range f.Levels {
				args = append(args, "--profile", quote(v.String()))
			}
			continue
		}
		var levels []string
		for _, v := range f.Levels {
			switch {
			case f.Knob == "interval_ns":
				levels = append(levels, duration(v.Number/1e9))
			case f.Knob == "rate_pps" && v.Text == "":
				levels = append(levels, v.String()+"pps")
			default:
				levels = append(levels, v.String())
			}
		}
		args = append(args, flagOf(f.Knob), quote(strings.Join(levels, ",")))
		sized = sized || f.Knob == "payload_bytes" || f.Knob == "frame_bytes"
		directed = directed || f.Knob == "direction"
	}
	if !sized {
		args = append(args, "--payload", strconv.Itoa(p.Flows[0].PayloadBytes))
	}
	if !directed && len(p.Flows) > 1 {
		args = append(args, "--direction", "both")
	} else if !directed && p.Flows[0].Name == "down" {
		args = append(args, "--direction", "down")
	}
	return args
}

// flagOf is the flag that gives a knob its levels.
func flagOf(knob string) string {
	for _, unit := range []string{"_bytes", "_ns", "_pps"} {
		knob = strings.TrimSuffix(knob, unit)
	}
	return "--" + strings.ReplaceAll(knob, "_", "-")
}

// flowFlags says what differs from the defaults of the command, and is no factor.
func flowFlags(f model.Flow, factors []model.Factor) []string {
	var args []string
	varies := func(flag string) bool {
		return slices.ContainsFunc(factors, func(x model.Factor) bool { return flagOf(x.Knob) == flag })
	}
	number := func(flag string, n, usual int) {
		if n != usual && !varies(flag) {
			args = append(args, flag, strconv.Itoa(n))
		}
	}
	rate, spaced := strings.CutPrefix(f.Rate.String(), "every ")
	switch {
	case varies("--rate"), varies("--interval"), f.Rate.IsMax(), f.Profile != nil && f.Profile.Kind == model.Ramp:
	case spaced:
		args = append(args, "--interval", rate)
	default:
		args = append(args, "--rate", rate)
	}
	if f.Profile != nil && !varies("--profile") {
		args = append(args, "--profile", quote(f.Profile.Words(f.Rate)))
	}
	number("--streams", f.Streams, 1)
	number("--burst", f.Burst, 0)
	number("--family", f.Family, 0)
	number("--dscp", f.DSCP, 0)
	number("--source-port", f.SourcePort, 0)
	if len(f.SourceAddresses) > 0 {
		var list []string
		for _, a := range f.SourceAddresses {
			list = append(list, a.String())
		}
		args = append(args, "--source-address", quote(strings.Join(list, ",")))
	}
	number("--gso", max(f.Segments, 1), 1)
	if f.Joined {
		args = append(args, "--gro")
	}
	number("--send-buffer", f.SendBuffer, 0)
	number("--receive-buffer", f.ReceiveBuffer, 0)
	if f.DontFragment {
		args = append(args, "--df")
	}
	if f.Bulk {
		args = append(args, "--bulk")
	}
	if f.Control != "" {
		args = append(args, "--control", quote(f.Control))
	}
	return args
}

// linkFlag says one link of a lab in the words of model.ParseLink.
func linkFlag(l model.Link) []string {
	flag := "--link"
	if l.Node != "" {
		flag += "-" + l.Node
	}
	text := l.Words()
	if text == "" {
		return nil
	}
	return []string{quote(flag), quote(text)}
}

// duration is text that unit.ParseDuration reads back: "3s", "500ms".
func duration(s float64) string {
	if s >= 1 && s == float64(int64(s)) {
		return fmt.Sprintf("%ds", int64(s))
	}
	return strconv.FormatFloat(s*1000, 'f', -1, 64) + "ms"
}

// RunRef names a run in a command that is to be copied: its id, RUN where it has none.
func RunRef(id string) string {
	if id = Name(id); id == "" {
		return "RUN"
	}
	return quote(id)
}

// quote makes one word of a POSIX shell.
func quote(s string) string {
	s = Plain(s)
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,./:@%[]"
	if s != "" && strings.Trim(s, safe) == "" && !strings.ContainsAny(s, "[]") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
