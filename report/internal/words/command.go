package words

import (
	"fmt"
	"strconv"
	"strings"

	"pelt/model"
)

// Command is the line that runs the plan again; note says what the line leaves
// open, "" if nothing. A plan that no flags can say is run from its file.
func Command(p model.Plan) (line, note string) {
	if !isCurve(p) {
		return "pelt run plan.yaml", "plan.yaml stands for this run's plan, as --print-plan writes it"
	}
	args := []string{"pelt", "curve", quote(p.Target)}
	if !strings.HasPrefix(p.Target, "lab:") {
		args = append(args, "--code", "CODE")
		note = "CODE is what pelt serve prints on the far host"
	}
	f := p.Flows[0]
	if f.Protocol == model.TCP {
		args = append(args, "--proto", "tcp")
	}
	args = append(args, factorFlags(p)...)
	args = append(args, flowFlags(f)...)
	t := p.Timing
	args = append(args, "--time", duration(t.MeasureSeconds), "--warmup", duration(t.WarmupSeconds), "--repeats", strconv.Itoa(p.Design.Repeats))
	for _, l := range p.Links {
		args = append(args, linkFlag(l)...)
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
	return strings.Join(append(args, "--seed", strconv.FormatUint(p.Design.Seed, 10)), " "), note
}

// isCurve reports whether the flags of pelt curve can say the plan; pelt demo is a curve too.
func isCurve(p model.Plan) bool {
	for _, f := range p.Factors {
		if f.Knob != "payload_bytes" && f.Knob != "frame_bytes" && f.Knob != "direction" {
			return false
		}
	}
	return len(p.Flows) > 0 && (p.Command == "curve" || p.Command == "demo")
}

// factorFlags says sizes and directions.
func factorFlags(p model.Plan) []string {
	var args []string
	sized, directed := false, false
	for _, f := range p.Factors {
		var levels []string
		for _, v := range f.Levels {
			levels = append(levels, v.String())
		}
		args = append(args, "--"+strings.TrimSuffix(f.Knob, "_bytes"), quote(strings.Join(levels, ",")))
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

// flowFlags says what differs from the defaults of the command.
func flowFlags(f model.Flow) []string {
	var args []string
	number := func(flag string, n, usual int) {
		if n != usual {
			args = append(args, flag, strconv.Itoa(n))
		}
	}
	if rate, ok := strings.CutPrefix(f.Rate.String(), "every "); ok {
		args = append(args, "--interval", rate)
	} else if !f.Rate.IsMax() {
		args = append(args, "--rate", rate)
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
	var words []string
	say := func(key, value string, set bool) {
		if set {
			words = append(words, key+"="+value)
		}
	}
	plain := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	say("rate", l.Rate.String(), l.Rate > 0)
	say("queue", strconv.Itoa(l.QueuePackets), l.QueuePackets > 0)
	say("queue", strconv.Itoa(l.QueueBytes)+"B", l.QueueBytes > 0)
	say("mtu", strconv.Itoa(l.MTU), l.MTU > 0)
	say("overhead", strconv.Itoa(l.OverheadBytes), l.OverheadBytes > 0)
	say("toward", l.Toward, l.Toward != "")
	say("delay", duration(l.DelaySeconds), l.DelaySeconds > 0)
	say("jitter", duration(l.JitterSeconds), l.JitterSeconds > 0)
	say("correlation", plain(l.Correlation), l.Correlation > 0)
	say("distribution", l.Distribution, l.Distribution != "")
	say("loss", l.LossText(), l.LossRatio > 0 || l.LossModel != "")
	say("loss-correlation", plain(l.LossCorrelation), l.LossCorrelation > 0)
	say("duplicate", plain(l.DuplicateRatio), l.DuplicateRatio > 0)
	say("duplicate-correlation", plain(l.DuplicateCorrelation), l.DuplicateCorrelation > 0)
	say("reorder", plain(l.ReorderRatio), l.ReorderRatio > 0)
	say("reorder-correlation", plain(l.ReorderCorrelation), l.ReorderCorrelation > 0)
	say("gap", strconv.Itoa(l.Gap), l.Gap > 0)
	say("corrupt", plain(l.CorruptRatio), l.CorruptRatio > 0)
	say("corrupt-correlation", plain(l.CorruptCorrelation), l.CorruptCorrelation > 0)
	say("mode", l.Mode, l.Mode != "")
	say("seed", fmt.Sprint(l.Seed), l.Seed > 0)
	if len(words) == 0 {
		return nil
	}
	return []string{quote(flag), quote(strings.Join(words, ","))}
}

// duration is text that unit.ParseDuration reads back: "3s", "500ms".
func duration(s float64) string {
	if s >= 1 && s == float64(int64(s)) {
		return fmt.Sprintf("%ds", int64(s))
	}
	return strconv.FormatFloat(s*1000, 'f', -1, 64) + "ms"
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
