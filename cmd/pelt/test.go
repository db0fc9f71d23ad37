package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pelt/finding"
	"pelt/lab"
	"pelt/model"
	"pelt/plan"
	"pelt/run"
)

// test is a command that tests something: its kind, and the flags of every test.
type test struct {
	commonFlags
	finding.Kind
	flags *pflag.FlagSet
	from  string // the sender of a fleet
}

// newTest makes a command that runs the plan of a kind of test.
func newTest(kind finding.Kind) *cobra.Command {
	t := test{Kind: kind}
	c := &cobra.Command{Use: t.Use, Short: t.Short, Long: t.Long, Example: t.Example, Args: cobra.ExactArgs(1)}
	c.RunE = func(c *cobra.Command, args []string) error {
		made, err := t.planFor(c.Context(), args[0])
		if err != nil {
			return err
		}
		return t.execute(c, made)
	}
	t.register(c.Flags())
	return c
}

func (t *test) register(s *pflag.FlagSet) {
	t.flags = s
	if !t.Pairs {
		s.StringVar(&t.from, "from", "", "fleet: `HOST` that sends to all others")
	}
	for _, k := range model.Knobs() {
		if !t.HasFlag(k.Flag) {
			continue
		}
		help := k.Help
		if k.Only != "" {
			help = strings.ToUpper(string(k.Only)) + ": " + help
		}
		f := s.VarPF(&typed{name: k.ValueName(), several: k.Kind == model.Texts}, k.Flag, "", help)
		f.DefValue = t.Default(k.Flag)
		if k.Kind == model.Switch {
			f.NoOptDefVal = "true"
		}
	}
	if !t.Pairs { // which no lab has
		linkFlags(s, plan.LinkHelp)
	}
	t.commonFlags.register(s)
	iperfFlags(s, t.OnlyTCP())
	if t.OnlyTCP() || t.Pairs { // no UDP, or many paths
		_ = s.MarkHidden("record")
	}
}

// linkFlags registers --link, and the flag that nodeLinkArgs makes of --link-NODE.
func linkFlags(s *pflag.FlagSet, help string) {
	s.Var(&typed{name: "KEY=VALUE,...", several: true}, "link", help)
	s.Var(&typed{several: true}, "node-link", "")
	_ = s.MarkHidden("node-link")
}

// typed is the text of a flag as it was typed, each time that it was given.
type typed struct {
	name    string // of the value in --help; "bool" shows none
	several bool   // keeps all texts, not the last one
	texts   []string
}

func (v *typed) String() string { return strings.Join(v.texts, " ") }

func (v *typed) Type() string { return v.name }

func (v *typed) Set(text string) error {
	if !v.several {
		v.texts = nil
	}
	v.texts = append(v.texts, text)
	return nil
}

func given(flags *pflag.FlagSet) map[string][]string {
	all := map[string][]string{}
	flags.Visit(func(f *pflag.Flag) {
		if v, ours := f.Value.(*typed); ours {
			all[f.Name] = v.texts
		}
	})
	return all
}

func (t *test) planFor(ctx context.Context, target string) (model.Plan, error) {
	flags := given(t.flags)
	s := plan.Settings{Target: target, Flags: flags, Again: t.again.every != ""}
	isFleet := strings.HasPrefix(target, model.FleetTarget)
	if _, _, path := model.PairHosts(target); t.from != "" && (path || !isFleet) {
		return model.Plan{}, usagef("--from: is for fleet:A,B,C or fleet: (all hosts), not for %s", target)
	}
	if isFleet {
		var err error
		if s.Hosts, err = t.fleet(ctx, target, flags); err != nil {
			return model.Plan{}, err
		}
	}
	return planOf(t.Preset, s)
}

// fleet lists the hosts that take part, of one sender and many receivers the sender first. --receivers with names or
// all is no flag of the plan then; numbers are: the first so many receivers.
func (t *test) fleet(ctx context.Context, target string, flags map[string][]string) ([]string, error) {
	hosts, path, err := model.FleetHosts(target)
	if err != nil || path {
		return hosts, err
	}
	if len(hosts) == 0 {
		if hosts, err = t.joined(ctx); err != nil {
			return nil, err
		}
	}
	if t.Pairs {
		return hosts, nil
	}
	return fromOne(t.from, hosts, flags)
}

// joined names all hosts of the fleet.
func (t *test) joined(ctx context.Context) (names []string, err error) {
	code, err := t.hub.settled(ctx)
	if err != nil {
		return nil, err
	}
	found, unfit, err := run.Hosts(ctx, version(), t.hub.Hub, code)
	for _, why := range unfit {
		t.notes = append(t.notes, spoken().Sayf("left out: %s", spoken().Error(why)))
	}
	for _, h := range found {
		names = append(names, h.ID)
	}
	return names, err
}

// fromOne puts the sender first, and its receivers behind it.
func fromOne(from string, hosts []string, flags map[string][]string) ([]string, error) {
	if from == "" {
		return nil, usagef("--from: say which host sends to the others; a path of two is fleet:FROM..TO")
	}
	receivers := slices.DeleteFunc(slices.Clone(hosts), func(h string) bool { return h == from })
	if texts := flags["receivers"]; len(texts) > 0 {
		names := strings.Split(texts[len(texts)-1], ",")
		if _, err := strconv.Atoi(names[0]); err != nil {
			delete(flags, "receivers")
			if len(names) > 1 || names[0] != "all" {
				receivers = names
			}
		}
	}
	return append([]string{from}, receivers...), nil
}

// planOf makes the plan of a command's preset, and checks what belongs to labs.
func planOf(preset plan.Preset, s plan.Settings) (model.Plan, error) {
	s.Open = open
	if preset.Between && len(s.Hosts) == 0 {
		s.Near, s.Target = plan.RouterPath(s.Target)
	}
	name, isLab := strings.CutPrefix(s.Target, "lab:")
	s.Held = isLab && !lab.IsTopology(name) && name != run.Loopback
	asked := s.Flags["receivers"]
	one := len(s.Hosts) == 2 && !slices.Equal(asked, []string{"1"}) ||
		len(s.Hosts) == 0 && (!isLab || lab.IsTopology(name) && name != lab.Star)
	if asked != nil && one {
		return model.Plan{}, usagef("--receivers: %s has one receiver; lab:star has many", s.Target)
	}
	p, err := preset.Plan(s)
	if err != nil {
		return p, err
	}
	if isLab {
		err = checkVariants(p, name)
	}
	return p, err
}

func open(path string) (io.ReadCloser, error) { return os.Open(path) }

// checkVariants checks what only a lab can judge: how its router is set up.
func checkVariants(p model.Plan, name string) error {
	for _, v := range p.Variants {
		if v.Command != "" {
			continue
		}
		if err := lab.CheckRouter(name, v.Name); err != nil {
			return usageError{fmt.Errorf("--variant: %w", err)}
		}
	}
	return nil
}

// emptyFlag names a flag that was given without a value, or with blanks.
func emptyFlag(flags *pflag.FlagSet) (name string) {
	blank := func(text string) bool { return strings.TrimSpace(text) == "" }
	flags.Visit(func(f *pflag.Flag) {
		v, ours := f.Value.(*typed)
		text, kind := f.Value.String(), f.Value.Type()
		if ours && slices.ContainsFunc(v.texts, blank) || kind == "string" && blank(text) ||
			kind == "stringSlice" && text == "[]" {
			name = f.Name
		}
	})
	return name
}

// nodeLinkArgs turns --link-NODE k=v into --node-link NODE:k=v: the names of
// the nodes belong to the lab, so they cannot be flags known beforehand.
func nodeLinkArgs(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(out, args[i:]...)
		}
		name, ok := strings.CutPrefix(args[i], "--link-")
		if !ok || name == "" {
			out = append(out, args[i])
			continue
		}
		node, value, joined := strings.Cut(name, "=")
		if !joined && i+1 < len(args) {
			i++
			value = args[i]
		}
		out = append(out, "--node-link", node+":"+value)
	}
	return out
}

// parseLinks reads --link and --link-NODE of a lab that is to be held.
func parseLinks(flags *pflag.FlagSet) ([]model.Link, error) {
	links, factors, err := plan.Links(given(flags))
	if err == nil {
		err = plan.OneValue(factors)
	}
	return links, err
}
