package finding

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"pelt/model"
	"pelt/words"
)

// Clause says one reason in English.
func Clause(r model.Reason) string { return ClauseIn(words.English, r) }

// ClauseIn says one reason, without its flow where all reasons of a trial may be of that flow.
func ClauseIn(l words.Language, r model.Reason) string {
	f := say("why."+r.Code, Fact, "flow", l.Say(r.Flow), "node", l.Say(r.Node), "link", wayIn(l, r.Link),
		"name", l.Say(CounterName(r.Name)), "text", l.Say(r.Text), "code", r.Code).In(l)
	for name, word := range r.Names {
		f = f.with(name, word)
	}
	for name, number := range r.Numbers {
		if strings.HasSuffix(name, "_frames") {
			number = some(number) // one reason of several
		}
		f = f.with(name, number)
	}
	if len(r.Of) > 0 {
		f = f.with("of", WhyIn(l, r.Of))
	}
	if r.Code == model.CallDropped {
		f = f.with("why", DropWhy(l, model.LiveDrop{Layer: r.Names["layer"], Reason: r.Names["reason"],
			Function: r.Names["function"]}))
	}
	return f.Text()
}

// mostOfACode is how many reasons of one code are printed.
const mostOfACode = 3

// wayIn is a way between two nodes in a language: files have "sender to receiver".
func wayIn(l words.Language, way string) string {
	if from, to, ok := strings.Cut(way, " to "); ok {
		return l.Sayf("%s to %s", l.Say(from), l.Say(to))
	}
	return way
}

// Why says in English why a trial is not valid.
func Why(reasons model.Reasons) string { return WhyIn(words.English, reasons) }

// WhyIn says why a trial is not valid. The flow of a reason is named only if the reasons are about several flows. Of
// many with one code the first are printed, and the rest are counted.
func WhyIn(l words.Language, reasons model.Reasons) string {
	flows, count, printed := map[string]bool{}, map[string]int{}, map[string]int{}
	for _, r := range reasons {
		if r.Flow != "" {
			flows[r.Flow] = true
		}
		count[r.Code]++
	}
	var clauses []string
	for _, r := range reasons {
		text := ClauseIn(l, r)
		if r.Flow != "" && len(flows) > 1 {
			text = say("why.flow", Fact, "flow", l.Say(r.Flow), "why", text).In(l).Text()
		}
		if printed[r.Code]++; printed[r.Code] <= mostOfACode {
			clauses = append(clauses, text)
		}
		if more := count[r.Code] - mostOfACode; more > 0 && printed[r.Code] == count[r.Code] {
			clauses = append(clauses, say("why.more", Fact, "reasons_count", float64(more)).In(l).Text())
		}
	}
	return strings.Join(clauses, l.Say("; "))
}

// Warnings are the doubts of a run: its own, and those of its trials, each once with the number of its trials. Doubts
// that differ only in figures are one, with the figures of the first.
func Warnings(d *model.Document) (list []string) {
	for _, r := range d.Warnings {
		list = append(list, ClauseIn(d.Language, r))
	}
	type note struct {
		text         string // of the first trial that has it
		trials, last int
		differ       bool
	}
	var notes []*note
	known := map[string]*note{}
	for i, trial := range d.Results {
		for _, r := range trial.Warnings {
			text, kind := ClauseIn(d.Language, r), ClauseIn(d.Language, withoutFigures(r))
			n := known[kind]
			if n == nil {
				n = &note{text: text, last: -1}
				known[kind], notes = n, append(notes, n)
			}
			if n.last != i {
				n.trials, n.last = n.trials+1, i
			}
			n.differ = n.differ || text != n.text
		}
	}
	for _, n := range notes {
		list = append(list, say("why.trials", Doubt, "why", n.text, "trials_count:with", n.trials,
			"trials_count", len(d.Results), "differ", when(n.differ, "yes")).In(d.Language).Text())
	}
	return list
}

// withoutFigures is a reason with one number for all: reasons that differ only in figures then read alike.
func withoutFigures(r model.Reason) model.Reason {
	r.Numbers, r.Of = maps.Clone(r.Numbers), slices.Clone(r.Of)
	for name := range r.Numbers {
		r.Numbers[name] = 2
	}
	for i := range r.Of {
		r.Of[i] = withoutFigures(r.Of[i])
	}
	return r
}

// Fault is an error that is a reason, in the words of its reader.
type Fault struct {
	model.Reason
	cause error
}

// NewFault makes an error of a reason: see model.NewReason.
func NewFault(code string, named ...any) *Fault {
	return &Fault{Reason: model.NewReason(code, named...)}
}

// From is the fault with the error that it comes from; only errors.Is and errors.As see that one.
func (f *Fault) From(err error) error { return &Fault{f.Reason, err} }

func (f *Fault) Error() string { return Clause(f.Reason) }

func (f *Fault) SaidIn(l words.Language) string { return ClauseIn(l, f.Reason) }

func (f *Fault) Unwrap() error { return f.cause }

func (f *Fault) Because() model.Reason { return f.Reason }

// reasoned is an error that has a reason: of this package, of an engine, or of a host.
type reasoned interface{ Because() model.Reason }

// ReasonOf is the reason of an error: the outermost that has one decides. An error without a code is told in its own
// words.
func ReasonOf(err error) model.Reason {
	for at := err; at != nil; {
		if x, ok := at.(reasoned); ok {
			return x.Because()
		}
		all, several := at.(interface{ Unwrap() []error })
		if !several {
			at = errors.Unwrap(at)
			continue
		}
		switch list := all.Unwrap(); len(list) {
		case 0:
			at = nil
		case 1:
			at = list[0]
		default:
			why := model.Reason{Code: model.Several}
			for _, one := range list {
				why.Of = append(why.Of, ReasonOf(one))
			}
			return why
		}
	}
	return model.Reason{Code: model.HostFault, Text: err.Error()}
}

// Because is an error with the code why, which follows from another error. errors.Is and errors.As find that one.
func Because(err error, why string, named ...any) error {
	f := NewFault(why, named...)
	f.Of = model.Reasons{ReasonOf(err)}
	return f.From(err)
}
