package plan

import (
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pelt/design"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/test/golden"
)

// traces are the files that a profile can name.
var traces = map[string]string{"t.csv": "0\n0.001\n0.004\n", "words.csv": "soon\n"}

// planOf makes the plan of a command, as "curve lab:router payload=64,1460". The sender's host stands before
// the target as NEAR..TARGET. hosts=N says how large the fleet is, held=true that the lab is held, again=true that the plan runs
// again and again. An underscore
// stands for a space.
func planOf(command string) (model.Plan, error) {
	words := strings.Fields(command)
	near, target := "", words[1]
	if words[0] == "router" {
		near, target = RouterPath(target)
	}
	presets := map[string]Preset{"curve": Curve, "ndr": Ndr, "router": Router, "latency": Latency, "sweep": Sweep,
		"soak": Soak,
		"mesh": Mesh, "cc": Control}
	s := Settings{Target: strings.ReplaceAll(target, "_", " "), Near: near, Flags: map[string][]string{},
		Open: func(path string) (io.ReadCloser, error) {
			if text, ok := traces[path]; ok {
				return io.NopCloser(strings.NewReader(text)), nil
			}
			return nil, fs.ErrNotExist
		}}
	for _, word := range words[2:] {
		switch flag, value, _ := strings.Cut(word, "="); flag {
		case "held":
			s.Held = true
		case "again":
			s.Again = true
		case "hosts":
			n := 0
			fmt.Sscan(value, &n)
			s.Hosts = hostNames(n)
		default:
			s.Flags[flag] = append(s.Flags[flag], strings.ReplaceAll(value, "_", " "))
		}
	}
	return presets[words[0]].Plan(s)
}

var (
	comments  = regexp.MustCompile(`(?m)^#.*\n`)
	plainList = regexp.MustCompile(`:\n((?: *- [^:\n]*\n)+)`) // of words and numbers
	cells     = regexp.MustCompile(`(?m)^cells:\n(?:[ -] .*\n)+`)
)

// printed is a plan as it is printed, with its cells as trials.
func printed(t testing.TB, p model.Plan) string {
	t.Helper()
	text, err := Print(p)
	testenv.Must(t, err)
	d, err := design.New(p)
	testenv.Must(t, err)
	short := cells.ReplaceAllString(comments.ReplaceAllString(string(text), ""), "")
	var out strings.Builder
	out.WriteString(plainList.ReplaceAllStringFunc(short, func(list string) string {
		return ": " + strings.Join(strings.FieldsFunc(list,
			func(r rune) bool { return strings.ContainsRune(":- \n", r) }), " ") + "\n"
	}))
	fmt.Fprintf(&out, "%d trials\n", d.Total())
	for n := 0; n < 15; n++ {
		cell, repeat, more := d.Next()
		if !more || repeat > 0 {
			break
		}
		trial, err := p.Trial(cell, repeat)
		testenv.Must(t, err)
		fmt.Fprintf(&out, "%s: %.4g s", cell.Key(), trial.Timing.MeasureSeconds+trial.Timing.LeadSeconds)
		for _, f := range trial.Flows {
			fmt.Fprint(&out, "; ", strings.TrimSpace(fmt.Sprintf("%s %s %d B %s %s", f.Name, f.Protocol,
				f.PayloadBytes, f.Rate, f.Connections)))
		}
		out.WriteString("\n")
		if p.Design.Search != nil {
			break // what comes next depends on the result
		}
		d.Add(&model.Result{Cell: cell, Repeat: repeat, State: model.Valid})
	}
	return out.String()
}

// changes are the lines of a plan that another has not, and the names of the other's settings that it has not.
func changes(before, after string) string {
	var out strings.Builder
	for line := range strings.Lines(golden.Difference(before, after)) {
		name, _, _ := strings.Cut(line[2:], ":")
		if line[0] == '+' || strings.HasPrefix(name, " ") && !strings.Contains(after, name+":") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// wrongFlag is the form of an error about what was typed: the flag, then one line that says what would be right.
var wrongFlag = regexp.MustCompile(`^(TARGET|--[a-z-]+(, --[a-z-]+)*): [^\n]{5,400}[^.\n]$`)

// TestPresets: each line of the file is a command. Below stand the lines of its plan that the preset's first command
// does not have, or what is wrong with it. Each plan is the same after it was printed and read.
func TestPresets(t *testing.T) {
	first := map[string]string{}
	golden.Table(t, "testdata/presets.txt", func(command string) string {
		p, err := planOf(command)
		if err != nil {
			if !wrongFlag.MatchString(err.Error()) {
				t.Errorf("%s: an error of another form: %v", command, err)
			}
			return err.Error()
		}
		if back := reread(t, p); !reflect.DeepEqual(back, p) {
			t.Errorf("%s: %+v\nprinted and read is\n%+v", command, p, back)
		}
		preset, _, _ := strings.Cut(command, " ")
		text := printed(t, p)
		if before, ok := first[preset]; ok {
			return changes(before, text)
		}
		first[preset] = text
		return text
	})
}

func hostNames(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("h%d", i+1))
	}
	return names
}

// TestPairs: each round has half of the hosts' number of pairs, none of which share a host, and all rounds
// together have each pair once.
func TestPairs(t *testing.T) {
	for n := 2; n <= 40; n++ {
		pairs, seen := Pairs(hostNames(n)), map[model.Value]bool{}
		if len(pairs) != n*(n-1)/2 {
			t.Fatalf("%d hosts have %d pairs", n, len(pairs))
		}
		for round := range slices.Chunk(pairs, n/2) {
			busy := map[string]bool{}
			for _, p := range round {
				a, b, _ := strings.Cut(p.Text, model.PairSeparator)
				if busy[a] || busy[b] || a == b || seen[p] || len(round) != n/2 {
					t.Fatalf("%d hosts: round %v, pair %v", n, round, p)
				}
				busy[a], busy[b], seen[p] = true, true, true
			}
		}
	}
}

// Trials of one repeat draw alike, and those of two repeats do not.
func TestControlTrialsArePaired(t *testing.T) {
	p, err := Control.Of("lab:direct")
	testenv.Must(t, err)
	seeds := map[uint64]int{}
	for repeat := range 10 {
		for _, control := range []string{"cubic", "bbr"} {
			trial, err := p.Trial(model.Cell{"control": model.Word(control)}, repeat)
			testenv.Must(t, err)
			seeds[trial.LinkSeed]++
		}
	}
	if len(seeds) != 10 || seeds[0] > 0 {
		t.Errorf("seeds %v: want ten, each of two trials", seeds)
	}
}

// A load runs before what it loads is measured; a flood needs no lead.
func TestLatencyLead(t *testing.T) {
	p, err := Latency.Of("nas")
	testenv.Must(t, err)
	cell := model.Cell{"direction": model.Word("both"), "payload_bytes": model.Number(1472)}
	if trial, err := p.Trial(cell, 0); err != nil || trial.Timing.LeadSeconds != 0 {
		t.Errorf("a flood: %+v, %v: want no lead", trial.Timing, err)
	}
	cell["load_ratio"], cell["rate_pps"] = model.Number(0.5), model.Number(1000)
	if trial, err := p.Trial(cell, 0); err != nil || !(trial.Timing.LeadSeconds > 0) || len(trial.Flows) != 2 {
		t.Errorf("a load: %+v, %v: want a lead", trial.Timing, err)
	}
}

// TestPresetWithoutMore: a preset that says only its flags and defaults makes a plan of them.
func TestPresetWithoutMore(t *testing.T) {
	thin := Preset{Command: "thin", Knobs: "payload rate direction time",
		Defaults: map[string]string{"payload": "172", "rate": "50pps", "direction": "both", "repeats": "1"}}
	p, err := thin.Of("nas", "time=5s", "payload=60")
	testenv.Must(t, err)
	if len(p.Flows) != 2 || p.Flows[0].PayloadBytes != 60 || p.Timing.MeasureSeconds != 5 || p.Design.Repeats != 1 {
		t.Errorf("a plan of %+v, %+v", p.Flows, p.Timing)
	}
	if pps, _ := p.Flows[1].Rate.PPS(60); pps != 50 {
		t.Errorf("%v packets a second down, want 50", pps)
	}
	if _, err := thin.Of("nas", "direction=sideways"); err == nil {
		t.Error("a plan of a direction that is none")
	}
}
