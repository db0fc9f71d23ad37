package plan

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"pelt/model"
)

// Preset is the way of one command to make a plan of a few flags.
type Preset struct {
	Command string
	Knobs   string // by flag
	// Defaults are values of knobs that the user did not give, also of knobs without a flag here, where they differ
	// from those of all tests; "" is none.
	Defaults map[string]string
	InLab    map[string]string // defaults that differ in a lab, which no other traffic shares
	// Factors are flags whose several values make a factor, in their order; one with ! makes a factor
	// of one value, too. link stands for settings of links.
	Factors string
	Between bool // TARGET may be NEAR..FAR
	Pairs   bool // every pair of a fleet's hosts is measured
	// build makes what is more than the flows and the values of the flags; nil: nothing is.
	build func(*draft) error
}

// usualDefaults are those of all tests.
var usualDefaults = map[string]string{"proto": "udp", "direction": "up", "rate": "max", "streams": "1",
	"engine": "auto", "seed": "1", "repeats": "3"}

// defaultOf is the default value of a flag outside of labs, "" for none.
func (p Preset) defaultOf(flag string) string {
	if text, own := p.Defaults[flag]; own {
		return text
	}
	return usualDefaults[flag]
}

// OnlyTCP reports whether the test sends no UDP, whatever its flags say.
func (p Preset) OnlyTCP() bool {
	return !p.HasFlag("proto") && p.defaultOf("proto") == string(model.TCP)
}

// Settings are what a user says of one test.
type Settings struct {
	Target string
	Near   string              // HOST[:PORT] of the sender's agent; "" is this host
	Flags  map[string][]string // texts by flag, each time that it was given; link, and node-link with NODE:
	Hosts  []string            // of a fleet, that take part: the sender first, where one sends
	Again  bool                // the plan runs again and again
	Held   bool                // the lab runs already, so the plan does not say its links' delays
	// Open opens a file that a profile names.
	Open func(path string) (io.ReadCloser, error)
}

// LinkHelp is the help of the flag for links, which no knob is.
const LinkHelp = "lab: each link: rate=1gbit,queue=100,delay=20ms,loss=1%; --link-NODE: one node's; " +
	"lists in sweep and cc: loss=0,1%"

// HasFlag reports whether a knob is a flag of the command.
func (p Preset) HasFlag(flag string) bool { return slices.Contains(strings.Fields(p.Knobs), flag) }

// Of makes a plan of settings as "payload=64,1460".
func (p Preset) Of(target string, settings ...string) (model.Plan, error) {
	s := Settings{Target: target, Flags: map[string][]string{}}
	for _, text := range settings {
		flag, value, _ := strings.Cut(text, "=")
		s.Flags[flag] = append(s.Flags[flag], value)
	}
	return p.Plan(s)
}

// Plan makes the plan. An error names the flag that is wrong.
func (p Preset) Plan(s Settings) (model.Plan, error) {
	d := &draft{Preset: p, Settings: s, values: map[string][]model.Value{}}
	if err := d.read(); err != nil {
		return model.Plan{}, err
	}
	build := p.build
	if build == nil {
		build = func(d *draft) error { return cmp.Or(d.start(), d.fill()) }
	}
	if err := build(d); err != nil {
		return d.plan, d.withFlag(err)
	}
	return d.plan, d.withFlag(d.plan.Check())
}

// draft is a plan while it is made.
type draft struct {
	Preset
	Settings
	values  map[string][]model.Value // by flag
	links   []model.Factor           // that vary links
	profile *profile                 // of one that was read
	plan    model.Plan
}

// flagError returns an error about a flag: what is wanted instead.
func flagError(flag, format string, args ...any) error {
	return model.NewFieldError("--"+flag, format, args...)
}

// given reports whether one of the flags was given.
func (d *draft) given(flags ...string) bool {
	return slices.ContainsFunc(flags, func(f string) bool { return len(d.Flags[f]) > 0 })
}

// word, number and on return the first value of a flag, as a text, a number or a switch.
func (d *draft) word(flag string) string {
	if len(d.values[flag]) == 0 {
		return ""
	}
	return d.values[flag][0].Text
}

func (d *draft) number(flag string) float64 {
	if len(d.values[flag]) == 0 {
		return 0
	}
	return d.values[flag][0].Number
}

func (d *draft) on(flag string) bool { return d.number(flag) != 0 }

func (d *draft) words(flag string) (list []string) {
	for _, v := range d.values[flag] {
		list = append(list, v.Text)
	}
	return list
}

// checkWords refuses a word that the knob of a flag cannot be, and says what is wanted.
func (d *draft) checkWords(flag, want string) error {
	for _, w := range d.words(flag) {
		if !slices.Contains(knobOf(flag).Words, w) {
			return flagError(flag, "want %s, not %q", want, w)
		}
	}
	return nil
}

// Default is what a flag is without its value, in words for help.
func (p Preset) Default(flag string) string {
	if lab := p.InLab[flag]; lab != "" {
		return p.defaultOf(flag) + " (lab: " + lab + ")"
	}
	return p.defaultOf(flag)
}

// setDefault gives a knob its values, as text, if its flag was not given.
func (d *draft) setDefault(flag, text string) {
	if !d.given(flag) {
		k := knobOf(flag)
		d.values[flag], _ = k.Parse(text) // a default is right
	}
}

func knobOf(flag string) model.Knob {
	list := model.Knobs()
	return list[slices.IndexFunc(list, func(k model.Knob) bool { return k.Flag == flag })]
}

// read turns texts into values.
func (d *draft) read() error {
	for _, k := range model.Knobs() {
		if text := d.defaultOf(k.Flag); text != "" {
			d.setDefault(k.Flag, text)
		}
	}
	if strings.HasPrefix(d.Target, "lab:") {
		for flag, text := range d.InLab {
			d.setDefault(flag, text)
		}
	}
	if _, iperf := model.IperfServer(d.Target); iperf { // which counts all packets, and takes what is sent
		d.setDefault("warmup", "0")
		d.setDefault("direction", "up")
	}
	for _, k := range model.Knobs() {
		for _, text := range d.Flags[k.Flag] {
			values, err := k.Parse(text)
			if err != nil {
				return flagError(k.Flag, "%v", err)
			}
			d.values[k.Flag] = append(d.values[k.Flag], values...)
		}
		if !d.given(k.Flag) || k.Excludes == "" {
			continue
		}
		other, _ := model.FindKnob(k.Excludes)
		if d.given(other.Flag) {
			return flagError(k.Flag, "give --%s or --%s, not both", other.Flag, k.Flag)
		}
		delete(d.values, other.Flag)
	}
	if d.given("rate") {
		delete(d.values, "interval")
	}
	if err := d.readProfile(); err != nil {
		return err
	}
	var err error
	if d.plan.Links, d.links, err = Links(d.Settings.Flags); err == nil && !strings.Contains(d.Factors, "link") {
		err = OneValue(d.links)
	}
	return err
}

// Links reads --link and --link-NODE, the texts of link and of node-link. What is said of one node
// overrides what is said of all. Settings with several levels are factors.
func Links(flags map[string][]string) (links []model.Link, factors []model.Factor, err error) {
	add := func(flag, node, text string) error {
		l, more, err := model.ParseLink(node, text)
		if err != nil {
			return flagError(flag, "%v", err) // whether there is such a node is the lab's to know
		}
		if l != (model.Link{Node: node}) {
			links = append(links, l)
		}
		factors = append(factors, more...)
		return nil
	}
	for _, text := range flags["link"] {
		if err := add("link", "", text); err != nil {
			return nil, nil, err
		}
	}
	for _, text := range flags["node-link"] {
		node, value, _ := strings.Cut(text, ":")
		if err := add("link-"+node, node, value); err != nil {
			return nil, nil, err
		}
	}
	return links, factors, nil
}

// OneValue refuses settings of links that have several values.
func OneValue(factors []model.Factor) error {
	if len(factors) == 0 {
		return nil
	}
	k, _ := model.FindKnob(factors[0].Knob)
	return flagError("link", "%s has several values; want one: pelt sweep and pelt cc compare several",
		strings.ToLower(k.Title()))
}

// start begins the plan: its flows, and what the plans of all presets have.
func (d *draft) start() error {
	p := &d.plan
	p.Format, p.Command, p.Target, p.Near, p.Hosts = model.PlanFormat, d.Command, d.Target, d.Near, d.Hosts
	if len(d.Hosts) > 2 && !d.Pairs {
		p.Receivers = len(d.Hosts) - 1
	}
	p.Timing.DrainSeconds = 3 // longer than the queue of any sensible path
	ways := d.words("direction")
	if err := d.checkWords("direction", "up, down or both, or a list of them"); err != nil {
		return err
	}
	protocol := model.Protocol(d.word("proto"))
	if protocol == "" {
		protocol = model.UDP
	}
	up := model.Flow{Name: "up", From: model.Sender, To: model.Receiver, Protocol: protocol}
	down := model.Flow{Name: "down", From: model.Receiver, To: model.Sender, Protocol: protocol}
	if slices.ContainsFunc(ways, func(w string) bool { return w != "down" }) {
		p.Flows = append(p.Flows, up)
	}
	if slices.ContainsFunc(ways, func(w string) bool { return w != "up" }) {
		p.Flows = append(p.Flows, down)
	}
	return nil
}

// fill puts the values of all flags into the plan, and its factors. It leaves out flags in done: the preset has dealt
// with those.
func (d *draft) fill(done ...string) error {
	factors := map[string]bool{} // true: of one value, too
	for flag := range strings.FieldsSeq(d.Factors) {
		name, always := strings.CutSuffix(flag, "!")
		factors[name] = always
	}
	for _, k := range model.Knobs() {
		values := d.values[k.Flag]
		always, varies := factors[k.Flag]
		switch {
		case len(values) == 0 || slices.Contains(done, k.Flag):
			continue
		case len(values) > 1 && !varies:
			if slices.Contains(strings.Fields(strings.ReplaceAll(sweepFactors, "!", "")), k.Flag) {
				return flagError(k.Flag, "want one value, not %d; pelt sweep compares several", len(values))
			}
			return flagError(k.Flag, "want one value, not %d", len(values))
		case len(values) > 1 || always:
			d.plan.Factors = append(d.plan.Factors, model.Factor{Knob: k.Name, Levels: values})
		}
		if k.Name == "" || slices.Contains([]string{"direction", "proto", "loss"}, k.Flag) ||
			k.Flag == "profile" && d.profile != nil {
			continue // a switch of the preset, or what flows and links have already
		}
		if k.Only != "" && len(d.plan.Flows) > 0 && d.plan.Flows[0].Protocol != k.Only && d.given(k.Flag) {
			return flagError(k.Flag, "is for --proto %s", k.Only)
		}
		// What the flows say beside a factor must be possible, too.
		if err := d.plan.Set(k.Name, values[0]); err != nil {
			return err
		}
	}
	d.plan.Factors = append(d.plan.Factors, d.links...)
	d.sortFactors()
	return d.setProfile()
}

// sortFactors brings factors into the order of the preset, in which link stands for those of links.
func (d *draft) sortFactors() {
	place := map[string]int{}
	for i, flag := range strings.Fields(strings.ReplaceAll(d.Factors, "!", "")) {
		if place[flag] = i; flag != "link" {
			place[knobOf(flag).Name] = i
		}
	}
	at := func(f model.Factor) int {
		if i, named := place[f.Knob]; named {
			return i
		}
		return place["link"]
	}
	slices.SortStableFunc(d.plan.Factors, func(a, b model.Factor) int { return at(a) - at(b) })
}

// withFlag returns an error with the flag in place of the plan's field.
func (d *draft) withFlag(err error) error {
	var f *model.FieldError
	if !errors.As(err, &f) || strings.HasPrefix(f.Field, "--") {
		return err
	}
	field, want := f.Field, f.Want
	for i, factor := range d.plan.Factors {
		if strings.HasPrefix(field, fmt.Sprintf("factors[%d]", i)) {
			field = factor.Knob
			if _, setting, link := model.SplitLinkKnob(field); link {
				return &model.FieldError{Field: "--" + strings.TrimSuffix(field, "."+setting),
					Want: setting + ": " + want}
			}
		}
	}
	if k, text, inner := strings.Cut(want, ": "); inner && model.FlagOf(k) != "" { // of a trial that a level makes
		want = text
	}
	if flag := model.FlagOf(field); flag != "" {
		if want == f.Want {
			return f.At(flag)
		}
		return &model.FieldError{Field: flag, Want: want}
	}
	return err
}
