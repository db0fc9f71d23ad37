// Package finding says what a run shows.
//
// Rows of a table come in, findings go out: data with a code, typed numbers and
// the groups they are of. Small pure rules make them; see Kind for those of a kind of
// test. Sentences are rows of tables, from code to template: those of a kind stand
// beside its rules, the others in words.go. A second language is a second table.
//
// It measures nothing that a table does not have, draws nothing, and reads no
// sentence. No rule looks at the wording of anything.
package finding

import (
	"cmp"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"pelt/model"
	"pelt/table"
	"pelt/unit"
	"pelt/words"
)

type Level int

// The levels, in the order in which readers see them.
const (
	Answer Level = iota // the verdict
	Fact                // what the answer rests on
	Doubt               // what makes the answer less sure
	Next                // what to do now
	SetUp               // how it was measured
)

// Number is a figure of a finding in base units.
type Number struct {
	Metric string  // name of a metric or of a key, or a name that ends with its unit
	Role   string  // which one it is: best, low, knee; "" where there is one only
	Value  float64 // as tables have it
}

type Finding struct {
	Code    string // of its words
	Level   Level
	Numbers []Number                // that no place has
	Words   map[string]string       // names and settings, no sentences
	Why     model.Reasons           // which the words have as "why"
	Places  map[string]*table.Group // by role: the figures and names in the words are read from them
	// Language is what its sentences are in. Words and places that rules name are in that of the rows already.
	Language words.Language
}

// say begins a finding; see with.
func say(code string, level Level, named ...any) Finding {
	return Finding{Code: code, Level: level}.with(named...)
}

// with adds numbers, words and places, each behind the name that the text of the finding has for it:
// "loss_ratio:worst", 0.2, "who", "the sender", "best", group. The place that a finding is about has no name.
func (f Finding) with(named ...any) Finding {
	texts, places := map[string]string{}, map[string]*table.Group{}
	maps.Copy(texts, f.Words)
	maps.Copy(places, f.Places)
	f.Words, f.Places, f.Numbers = texts, places, slices.Clip(f.Numbers)
	for i := 0; i < len(named); i += 2 {
		name, number := named[i].(string), math.NaN()
		switch v := named[i+1].(type) {
		case string:
			f.Words[name] = v
		case table.Group:
			f.Places[name] = &v
		case model.Reasons:
			f.Why = v
		case int:
			number = float64(v)
		case uint64:
			number = float64(v)
		default:
			number = v.(float64)
		}
		if metric, role, _ := strings.Cut(name, ":"); !math.IsNaN(number) {
			f.Numbers = append(f.Numbers, Number{metric, role, number})
		}
	}
	return f
}

// when is a word that a text leaves out unless something holds.
func when(holds bool, word string) string {
	if holds {
		return word
	}
	return ""
}

// some is a number that a text leaves out where it is not above 0.
func some[T int | uint64 | float64](v T) float64 {
	if v > 0 {
		return float64(v)
	}
	return math.NaN()
}

// In is the finding in a language.
func (f Finding) In(l words.Language) Finding {
	f.Language = l
	return f
}

// nextOf is a next step whose command names the run.
func nextOf(code string, d *model.Document) Finding { return say(code, Next, "run", d.ID) }

// Rule finds something in a run, or nothing. Rows are of all trials, valid or not.
type Rule func(rows []table.Row) []Finding

// applied is what rules find in turn, the answers first, and more repeats behind what tells more. What two rules find
// alike stands once, and of two numbers of repeats the greater.
func applied(rows []table.Row, rules ...Rule) []Finding {
	var out []Finding
	for _, rule := range rules {
		for _, f := range rule(rows) {
			f = f.In(table.Language(rows))
			switch i := slices.IndexFunc(out, f.alike); {
			case i < 0:
				out = append(out, f)
			case repeatsOf(f) > repeatsOf(out[i]):
				out[i] = f
			}
		}
	}
	last := func(f Finding) int { return strings.Count(f.Code, moreRepeats) }
	slices.SortStableFunc(out, func(a, b Finding) int { return cmp.Or(int(a.Level-b.Level), last(a)-last(b)) })
	return out
}

func (f Finding) alike(g Finding) bool {
	return f.Code == g.Code && (f.Code == moreRepeats || f.Text() == g.Text() && f.Command() == g.Command())
}

// repeatsOf is how many repeats a next step asks for.
func repeatsOf(f Finding) float64 {
	n, _ := f.Number("repeats_count", "")
	return n
}

func Of(all []Finding, level Level) []Finding {
	return only(all, func(f Finding) bool { return f.Level == level })
}

// Number returns a number of the finding, or the figure of its place in a role; ok is false if it has none such. Roles
// that end with -low and -high are the interval.
func (f Finding) Number(metric, role string) (v float64, ok bool) {
	for _, n := range f.Numbers {
		if n.Metric == metric && n.Role == role {
			return n.Value, true
		}
	}
	role, low := strings.CutSuffix(role, "-low")
	role, high := strings.CutSuffix(role, "-high")
	g := f.Places[role]
	if g == nil {
		return 0, false
	}
	m, measured := table.FindMetric(metric)
	if !measured {
		l := g.Level(metric)
		return l.Number, l.Known && l.Text == ""
	}
	switch s := g.Stat(m); {
	case low:
		return s.Low, s.N > 0
	case high:
		return s.High, s.N > 0
	default:
		return s.Median, s.N > 0
	}
}

func (f Finding) Has(metric, role string) bool { _, ok := f.Number(metric, role); return ok }

// N prints a number in its unit: what was set exactly. A number that is missing is a bug, and shows.
func (f Finding) N(metric, role string) string {
	v, ok := f.Number(metric, role)
	if !ok {
		return "<no " + metric + ":" + role + ">"
	}
	if what, _, _ := strings.Cut(metric, "_"); what == "asked" || what == "allowed" || metric == "link_bps" {
		return unitOf(metric).Exact(v)
	}
	return unitOf(metric).Format(v)
}

// interval prints the interval of a number, from its roles low and high, in the unit that stands before it:
// " (287–389)". It is empty where the interval says no more than the number.
func (f Finding) interval(metric, role string) string {
	low, okLow := f.Number(metric, role+"-low")
	high, okHigh := f.Number(metric, role+"-high")
	u := unitOf(metric)
	from, to := u.Format(low), u.Format(high)
	if !okLow || !okHigh || from == to {
		return ""
	}
	between := unit.Bare(from, to) + "–" + unit.Bare(to, f.N(metric, role))
	return f.Language.Sayf(" (%s)", between)
}

// W prints a word, or the name of the place in that role. Words come from outside: they have no control characters,
// escape sequences or reversals of direction when they are printed.
func (f Finding) W(name string) string {
	word, ok := f.lookUp(name)
	if !ok {
		return "<no " + name + ">"
	}
	return model.PrintableText(word)
}

func (f Finding) lookUp(name string) (word string, ok bool) {
	word, ok = f.Words[name]
	if name == "why" && len(f.Why) > 0 {
		return WhyIn(f.Language, f.Why), true
	}
	if target := f.Words[pathTarget]; name == "path" && target != "" {
		return pathTo(f.Language, target), true
	}
	if g := f.Places[name]; !ok && g != nil && name != "" {
		return cmp.Or(g.Name(), f.Language.Say("The only setting")), true
	}
	return word, ok
}

// pathTarget is the word for the target whose path a text names as {path}.
const pathTarget = "target"

// pathTo names the path to a target.
func pathTo(l words.Language, target string) string {
	if strings.HasPrefix(target, "lab:") {
		return target
	}
	return l.Sayf("The path to %s", target)
}

// ShellWord quotes a word of a command, so that it may be pasted into a shell.
func ShellWord(word string) string {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,./:@%"
	if word != "" && strings.Trim(word, safe) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func unitOf(name string) unit.Unit {
	if m, ok := table.FindMetric(name); ok {
		return m.Unit
	}
	return unit.UnitOf(name)
}

// Text is the finding in a sentence or two.
func (f Finding) Text() string { return f.Language.Sentences(f.Parts()) }

// Parts are the sentences of the finding: a headline, and what follows it.
func (f Finding) Parts() []string {
	code, sentence := f.Code, f.sentence()
	for stem := code; sentence == "" && stem != ""; sentence = sentences[code] { // it is of another version of pelt
		stem = stem[:max(0, strings.LastIndex(stem, "."))]
		code = stem + ".other"
	}
	if text := f.fill(strings.ReplaceAll(f.Language.Of(code, sentence), "¶", "\n")); text != "" {
		return strings.Split(text, "\n")
	}
	return []string{"<no words for " + f.Code + ">"}
}

// sentence is what the table of sentences has for the finding, but for a command.
func (f Finding) sentence() string {
	sentence, _, _ := strings.Cut(sentences[f.Code], prompt)
	return sentence
}

// prompt stands before the command of a sentence.
const prompt = "¶$ "

// Command is what to run now. It is the same in all languages.
func (f Finding) Command() string { return f.In(words.English).fill(f.command()) }

// command is where a next step leads: of a kind's own page to that page.
func (f Finding) command() string {
	if kind, isPage := strings.CutSuffix(f.Code, ".page"); isPage {
		return `pelt report {run argument} --html ` + kind + `.html`
	}
	_, command, _ := strings.Cut(sentences[f.Code], prompt)
	return command
}

// Say fills a text with what the finding knows; "" if anything outside of brackets is missing.
func (f Finding) Say(text string) string {
	if out, _, whole := f.option(f.Language.Say(text)); whole {
		return out
	}
	return ""
}

// fill puts a finding's numbers and words into a text:
//
//	{loss_ratio}, {loss_ratio:worst}   a number, or a figure of the place in that role, in its unit
//	{*metric:worst}                    a number of the metric that the word "metric" names
//	{worst}                            a word, or the name of the place in that role
//	{receive_pps:best range}           a number with its interval: "340 kpps (287–389)"
//	{holds_pps:next to fails_pps:next} from one number to another: "166–393 kpps"
//	{loss_ratio:made fine}             a share with three digits: "4.98 %"
//	{loss_ratio beyond most}           a share with enough digits to tell it from another one: "1.04 %", not "1 %"
//	{at_s moment}                      a moment of a trial to the second: "14 h 24 min 5 s"
//	{run argument}                     a word of a command
//	{left_count # trial is/# trials are}   one or many; # is the number
//	{phases_count ?}                   nothing, if it is there
//	[a|b|c]                            the first of these of which nothing is missing, if any
//	¶                                  the end of a headline, or of a sentence that follows one
//	¶$                                 the end of the sentences: a command follows
//
// What is missing outside of brackets is a bug, and shows.
func (f Finding) fill(text string) string {
	out, rest, _ := f.option(text)
	if rest != "" {
		return "<" + text + ">"
	}
	return out
}

// option fills a text in up to the | or ] that ends it. whole is false if anything is missing.
func (f Finding) option(text string) (out, rest string, whole bool) {
	for whole = true; ; {
		i := strings.IndexAny(text, "{[|]")
		if i < 0 {
			return f.behind(out, text), "", whole
		}
		out, rest = f.behind(out, text[:i]), text[i+1:]
		switch text[i] {
		case '{':
			name, after, _ := strings.Cut(rest, "}")
			value, known := f.value(name)
			out, text, whole = f.Language.Append(out, value), after, whole && known
		case '[':
			first, found := "", false
			for more := true; more; {
				var one string
				var fits bool
				one, text, fits = f.option(rest)
				if fits && !found {
					first, found = one, true
				}
				rest, more = strings.CutPrefix(text, "|")
			}
			out, text = f.Language.Append(out, first), strings.TrimPrefix(rest, "]")
		default:
			return out, text[i:], whole
		}
	}
}

// behind appends the words of a sentence to what stands before them. A reason that ends as a sentence, whatever its
// language, ends the whole one.
func (f Finding) behind(out, words string) string {
	if strings.TrimRight(out, "?？.。") != out {
		words = strings.TrimPrefix(strings.TrimPrefix(words, "."), "。")
	}
	return f.Language.Append(out, words)
}

// value prints what a text refers to between braces; known is false if the finding lacks it.
func (f Finding) value(reference string) (text string, known bool) {
	name, form, _ := strings.Cut(reference, " ")
	metric, role, _ := strings.Cut(name, ":")
	if word, named := strings.CutPrefix(metric, "*"); named {
		metric = f.Words[word]
	}
	v, isNumber := f.Number(metric, role)
	one, many, plural := strings.Cut(form, "/")
	word, _ := f.lookUp(name)
	switch {
	case form == "?":
		return "", isNumber || word != ""
	case !isNumber && form == "argument":
		return ShellWord(f.W(name)), word != ""
	case !isNumber:
		return f.W(name), word != ""
	case strings.HasPrefix(form, "to "):
		other, known := f.value(strings.TrimPrefix(form, "to "))
		return unit.Bare(f.N(metric, role), other) + "–" + other, known
	case form == "range":
		return f.N(metric, role) + f.interval(metric, role), true
	case form == "fine":
		return strconv.FormatFloat(100*v, 'g', 3, 64) + " %", true
	case strings.HasPrefix(form, "beyond "):
		most, _ := f.Number(metric, strings.TrimPrefix(form, "beyond "))
		text = f.N(metric, role)
		for digits := 3; text == unit.Ratio.Format(most) && digits < 16; digits++ {
			text = strconv.FormatFloat(100*v, 'g', digits, 64) + " %"
		}
		return text, true
	case form == "moment":
		return unit.FormatMoment(v), true
	case plural && v == 1:
		return strings.ReplaceAll(one, "#", f.N(metric, role)), true
	case plural:
		return strings.ReplaceAll(many, "#", f.N(metric, role)), true
	}
	return f.N(metric, role), true
}

var levelNames = []string{"answer", "fact", "doubt", "next", "setup"}

func (f Finding) Stored(words bool) model.Finding {
	f = f.whole()
	out := model.Finding{Code: f.Code, Level: levelNames[f.Level], Numbers: []model.FindingNumber{}, Words: f.Words}
	for _, n := range f.Numbers {
		if !math.IsNaN(n.Value) && !math.IsInf(n.Value, 0) { // JSON has no such number
			out.Numbers = append(out.Numbers, model.FindingNumber(n))
		}
	}
	if out.Why = f.Why; words {
		out.Text, out.Command = f.Text(), f.Command()
		if len(f.Why) > 0 {
			out.Words = maps.Clone(f.Words)
			out.Words["why"] = f.W("why")
		}
	}
	return out
}

var references = regexp.MustCompile(`\{([^ }]+)`)

// whole adds to the numbers and words of a finding those that its text reads from places.
func (f Finding) whole() Finding {
	out := f
	for _, m := range references.FindAllStringSubmatch(sentences[f.Code]+f.command(), -1) {
		metric, role, _ := strings.Cut(m[1], ":")
		if word, named := strings.CutPrefix(metric, "*"); named {
			metric = f.Words[word]
		}
		for _, end := range []string{"", "-low", "-high"} {
			if v, ok := f.Number(metric, role+end); ok && !slices.ContainsFunc(out.Numbers, func(n Number) bool {
				return n.Metric == metric && n.Role == role+end
			}) {
				out = out.with(metric+":"+role+end, v)
			}
		}
		if word, ok := f.lookUp(m[1]); ok && m[1] != "path" && (m[1] != "why" || len(f.Why) == 0) {
			out = out.with(m[1], word)
		}
	}
	return out
}

func Stored(found []Finding, words bool) []model.Finding {
	out := []model.Finding{}
	for _, f := range found {
		out = append(out, f.Stored(words))
	}
	return out
}

// Kept are the findings of a run as files keep them: codes, figures and words. Lists show the first one, which has
// Chinese words, too.
func Kept(d model.Document) []model.Finding {
	d.Language = words.English
	kept := Stored(OfRun(&d), false)
	d.Language = words.Chinese
	if chinese := OfRun(&d); len(kept) > 0 && len(chinese) > 0 && chinese[0].Code == kept[0].Code {
		kept[0].WordsZH = chinese[0].whole().Words
	}
	return kept
}

// FromStored is a finding that a file kept, in a language, without its groups. English words without Chinese ones are
// said in Chinese as far as there are texts for them.
func FromStored(m model.Finding, l words.Language) Finding {
	f := Finding{Code: m.Code, Level: Level(max(0, slices.Index(levelNames, m.Level))), Why: m.Why, Language: l}
	if f.Words = maps.Clone(m.Words); l == words.Chinese && m.WordsZH != nil {
		f.Words = m.WordsZH
	} else {
		for name, word := range f.Words {
			f.Words[name] = wayIn(l, l.Say(word))
		}
	}
	for _, n := range m.Numbers {
		f.Numbers = append(f.Numbers, Number(n))
	}
	return f
}
