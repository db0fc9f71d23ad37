package model

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"pelt/unit"
	"pelt/words"
)

// Knob is one thing that a user can set or that trials can vary. Flags, help, cells, their columns
// and the ranges of plans come from the table of knobs; --link has a table of its own, of this type.
type Knob struct {
	Name string // in files and cells
	Flag string // of test commands without --, or the key of --link; "" is in files alone
	Help string
	Kind Kind
	Unit unit.Unit // of its numbers
	// Low and High bound the numbers. 0 leaves it to pelt, unless Must is set.
	Low, High float64
	Must      bool
	Words     []string // that it may be; of numbers, in place of one
	Only      Protocol // of flows that have it; "" is all
	Varies    bool     // trials can vary it
	Opens     bool     // where no packet comes through, another value may let some through
	Excludes  string   // Name of the knob that sets the same thing
	Role      Role
	Group     Group
	Label     string // in tables, in place of one of the name
	Phrase    string // a value in a sentence, % stands for the value: "every %"; "" is the value alone
	Zero      string // what 0 is called; "" is no special value
	Fixed     bool   // of links: cannot change while the link is there

	in    func(*Plan) any           // pointer to the field of a plan
	of    func(*Flow) any           // ... of each flow
	on    func(*Link) any           // ... of a link
	apply func(*Trial, Value) error // in place of writing by the pointer
}

// Kind is how a knob is written.
type Kind int

const (
	Numbers Kind = iota // 64, or a list with ranges: 64,256..1472/256
	Names               // a word, or a list of words
	OneText             // one text with whatever is in it
	Texts               // a text for each time that the flag is given
	Switch              // on or off
)

// Role is what a knob is to who compares trials.
type Role int

const (
	Choice  Role = iota // a user chooses among its levels, which are compared
	Traffic             // likewise, of what is sent: two runs are compared at the same level only
	Way                 // nobody chooses among its levels: where packets go
	OfLink              // likewise: what an emulated path is like
)

// IsCondition reports whether nobody chooses among the levels: figures are compared under each of them.
func (r Role) IsCondition() bool { return r >= Way }

// RoleOf is the role of the knob of a name; what is no knob is a choice.
func RoleOf(name string) Role {
	if _, _, link := SplitLinkKnob(name); link {
		return OfLink
	}
	k, _ := FindKnob(name)
	return k.Role
}

// Group is the heading of a knob in --help; the others stand in --help-all.
type Group string

const (
	ToSend  Group = "What to send"
	ThePath Group = "The path"
)

// Knobs is the table of what flags and cells set, in the order of application.
func Knobs() []Knob { return knobs }

// FindKnob finds a knob by its name in files, those of links included.
func FindKnob(name string) (Knob, bool) {
	if node, setting, ok := SplitLinkKnob(name); ok {
		return linkKnob(node, setting)
	}
	if i := slices.IndexFunc(knobs, func(k Knob) bool { return k.Name == name }); i >= 0 {
		return knobs[i], true
	}
	return Knob{}, false
}

// KnobNames lists what trials can vary; settings of links stand last, for the links at any node.
func KnobNames() (names []string) {
	for _, k := range knobs {
		if k.Varies {
			names = append(names, k.Name)
		}
	}
	slices.Sort(names)
	for _, k := range linkKnobs {
		if k.Varies {
			names = append(names, linkPrefix("")+k.Name)
		}
	}
	return names
}

// Title is what tables call the knob: "Send buffer".
func (k Knob) Title() string {
	words := k.Name
	for _, suffix := range []string{"_bps", "_pps", "_ns", "_s", "_ratio", "_packets", "_bytes"} {
		words = strings.TrimSuffix(words, suffix)
	}
	words = strings.ReplaceAll(words, "_", " ")
	return cmp.Or(k.Label, strings.ToUpper(words[:1])+words[1:])
}

// ValueName is what help calls the value of the flag; "bool" is none.
func (k Knob) ValueName() string {
	switch {
	case k.Kind == Switch:
		return "bool"
	case k.Kind == Names && len(k.Words) == 0:
		return "NAME"
	case k.Kind == Names:
		return "WORD"
	}
	names := map[unit.Unit]string{unit.Bytes: "BYTES", unit.PPS: "RATE", unit.Seconds: "TIME", unit.Nanos: "TIME",
		unit.Count: "N", unit.Ratio: "SHARE"}
	return cmp.Or(names[k.Unit], "TEXT")
}

// isWord reports whether a text stands for itself where numbers are wanted.
func (k Knob) isWord(text string) bool {
	return slices.Contains(k.Words, text) || k.Flag == "loss" && strings.Contains(text, ":")
}

func (k Knob) Parse(text string) (values []Value, err error) {
	switch {
	case k.Kind == OneText || k.Kind == Texts:
		return []Value{Word(text)}, nil
	case k.Kind == Switch:
		on, err := strconv.ParseBool(text)
		if err != nil {
			return nil, words.Errorf("want true or false, not %s", clip(text))
		}
		return []Value{onOff(on)}, nil
	case k.Unit == unit.PPS:
		return rateLevels(text)
	}
	var numbers []string
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); k.Kind == Names || k.isWord(word) {
			values = append(values, Word(word))
		} else {
			numbers = append(numbers, word)
		}
	}
	for i, v := range values {
		if slices.Contains(values[:i], v) {
			return nil, words.Errorf("%s stands twice", clip(v.Text))
		}
	}
	if len(numbers) == 0 {
		return values, nil
	}
	list, err := unit.ParseList(k.Unit, strings.Join(numbers, ","))
	for i, n := range list { // numbers stand first
		values = slices.Insert(values, i, Number(n))
	}
	return values, err
}

// rateLevels reads rates. One may be of bits, which a payload makes packets; several are
// levels, and those count packets.
func rateLevels(text string) (levels []Value, err error) {
	rates, err := unit.ParseRates(text)
	for _, r := range rates {
		if levels = append(levels, rateValue(r)); len(rates) > 1 && !r.IsMax() && levels[len(levels)-1].Text != "" {
			return nil, words.Errorf("a list holds whole packets per second and max, not %v", r)
		}
	}
	return levels, err
}

// rateValue is the number of packets per second where that is whole, else the rate's text.
func rateValue(r unit.Rate) Value {
	if pps, paced := r.PPS(1); paced && r == unit.PacketRate(uint64(math.Round(pps))) {
		return Number(math.Round(pps))
	}
	return Word(r.String())
}

func onOff(on bool) Value {
	if on {
		return Number(1)
	}
	return Number(0)
}

// Print is a value as Parse reads it.
func (k Knob) Print(v Value) string {
	switch {
	case v.Text != "":
		return v.Text
	case k.Unit == unit.BPS && v.Number != 0:
		return unit.BitRate(v.Number).String()
	case k.Unit == unit.PPS && v.Number != 0:
		return unit.PacketRate(uint64(v.Number)).String()
	case k.Unit == unit.Ratio:
		percent := Number(v.Number*100).String() + "%"
		if f, err := unit.ParseRatio(percent); err == nil && f == v.Number && f > 0 {
			return percent
		}
	case k.Unit == unit.Bytes && v.Number != 0:
		return v.String() + "B"
	case k.Unit == unit.Seconds && v.Number != 0:
		return durationWord(v.Number)
	case k.Unit == unit.Nanos && v.Number != 0:
		return v.String() + "ns"
	}
	return v.String()
}

// durationWord is text that unit.ParseDuration reads back: "3s", "500ms".
func durationWord(s float64) string {
	if s >= 1 && s == math.Trunc(s) {
		return Number(s).String() + "s"
	}
	return Number(math.Round(s*1e9)/1e6).String() + "ms" // a float64 times 1000 would print digits that nobody typed
}

func (k Knob) check(v Value) error {
	n := v.Number
	switch {
	case k.Kind == Switch && v != onOff(n == 1):
		return words.Errorf("want true or false, not %s", clip(v.String()))
	case (k.Kind == OneText || k.Kind == Texts) && k.Unit == unit.Word && v.Text == "":
		return words.Errorf("want text, not %v", v)
	case k.Kind == OneText || k.Kind == Texts || k.Kind == Switch || k.Unit == unit.PPS: // judged where it is set
		return nil
	case v.Text != "" && k.Kind == Names && k.Words == nil, v.Text != "" && k.isWord(v.Text):
		return nil
	case k.Kind == Names:
		return words.Errorf("want %s, not %s", k.wordsText(), clip(strconv.Quote(v.String())))
	case v.Text != "":
		return words.Errorf("want a number, not %s", clip(strconv.Quote(v.Text)))
	case (k.Unit == unit.Bytes || k.Unit == unit.Count) && (n != math.Trunc(n) || math.IsInf(n, 0)):
		return words.Errorf("want a whole number, not %v", v)
	case !(n >= k.Low && n <= k.High): // NaN too
		return words.Errorf("want %s to %s, not %s", k.boundText(k.Low), k.boundText(k.High), k.boundText(n))
	}
	return nil
}

// boundText returns a bound of the knob, or a number beyond it, as an error shows it.
func (k Knob) boundText(n float64) string {
	switch {
	case math.IsNaN(n) || math.IsInf(n, 0) || n < 0:
		return Number(n).String()
	case k.Unit == unit.Seconds && n*1e9 < math.MaxInt64:
		return unit.FormatDuration(seconds(n))
	case k.Unit == unit.Seconds: // more than a time.Duration holds
		return Number(n).String() + " s"
	case k.Unit == unit.Nanos && n < math.MaxInt64:
		return unit.FormatDuration(time.Duration(n))
	case k.Unit == unit.Nanos:
		return Number(n).String() + " ns"
	case k.Unit == unit.Ratio:
		return unit.FormatRatio(n)
	}
	return k.Print(Number(n))
}

// wordsText lists the words that a value may be, for an error: "a, b or c".
func (k Knob) wordsText() string {
	if len(k.Words) == 0 {
		return "a word"
	}
	last := len(k.Words) - 1
	return strings.TrimPrefix(strings.Join(k.Words[:last], ", ")+" or "+k.Words[last], " or ")
}

// setField writes a value to the field that a pointer leads to. The value is one that the knob can have.
func setField(field any, v Value) (err error) {
	switch field.(type) {
	case *int, *float64, **float64, *unit.BitRate, *bool:
		if v.Text != "" {
			return words.Errorf("want a number, not %s", clip(strconv.Quote(v.Text)))
		}
	}
	switch to := field.(type) {
	case *int:
		*to = int(v.Number)
	case *uint64:
		if *to = uint64(v.Number); v.Text != "" { // has more digits than a float64
			*to, err = strconv.ParseUint(v.Text, 10, 64)
		}
		if err != nil {
			err = words.Errorf("want a whole number, not %s", clip(strconv.Quote(v.Text)))
		}
	case *float64:
		*to = v.Number
	case **float64:
		*to = &v.Number
	case *unit.BitRate:
		*to = unit.BitRate(v.Number)
	case *unit.Rate:
		*to, err = unit.ParseRate(cmp.Or(v.Text, strconv.FormatFloat(v.Number, 'f', -1, 64)+"pps"))
	case *[]netip.Addr:
		*to, err = unit.ParseAddresses(v.Text)
	case *bool:
		*to = v.Number != 0
	case *string:
		*to = v.Text
	case linkLoss:
		err = to.set(v)
	}
	return err
}

// getField returns the value of the field that a pointer leads to; set is false if the field has its zero value.
func getField(field any) (v Value, set bool) {
	switch from := field.(type) {
	case *int:
		v = Number(float64(*from))
	case *uint64:
		if v = Number(float64(*from)); *from > 1<<53 {
			v = Word(strconv.FormatUint(*from, 10))
		}
	case *float64:
		v = Number(*from)
	case **float64:
		if *from == nil {
			return Value{}, false
		}
		return Number(**from), true
	case *unit.BitRate:
		v = Number(float64(*from))
	case *unit.Rate:
		v = rateValue(*from)
	case *[]netip.Addr:
		var words []string
		for _, a := range *from {
			words = append(words, a.String())
		}
		v = Word(strings.Join(words, ","))
	case *bool:
		v = onOff(*from)
	case *string:
		v = Word(*from)
	case linkLoss:
		v = from.value()
	}
	return v, v != Value{}
}

// checkField checks the field that a pointer leads to.
func (k Knob) checkField(at string, field any) error {
	v, set := getField(field)
	if !set && !k.Must || k.Kind == Switch {
		return nil
	}
	if err := k.check(v); err != nil {
		return wrong(at+k.Name, "%v", err)
	}
	return nil
}

// set gives a knob a value in a trial: in every flow, if it is a knob of flows.
func (k Knob) set(t *Trial, v Value) error {
	if err := k.check(v); err != nil {
		return err
	}
	if k.apply != nil {
		return k.apply(t, v)
	}
	for i := range t.Flows {
		if err := setField(k.of(&t.Flows[i]), v); err != nil {
			return err
		}
	}
	return nil
}

// Set gives a knob one value in all trials.
func (p *Plan) Set(name string, v Value) error {
	k, known := FindKnob(name)
	t := Trial{Flows: p.Flows}
	switch {
	case !known || k.in == nil && k.of == nil && k.apply == nil:
		return wrong(name, "is no knob")
	case k.in != nil:
		if err := cmp.Or(k.check(v), setField(k.in(p), v)); err != nil {
			return wrong(name, "%v", err)
		}
		return nil
	}
	if err := k.set(&t, v); err != nil {
		return wrong(name, "%v", err)
	}
	p.Flows = t.Flows
	return nil
}
