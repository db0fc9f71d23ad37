package finding

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"unicode"
	"unicode/utf8"

	"pelt/model"
	"pelt/table"
	"pelt/unit"
	"pelt/words"
)

func only[T any](all []T, has func(T) bool) (out []T) {
	for _, x := range all {
		if has(x) {
			out = append(out, x)
		}
	}
	return out
}

// Capital is a name as the beginning of a sentence.
func Capital(name string) string {
	first, size := utf8.DecodeRuneInString(name)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + name[size:]
}

// PlaceName names the levels of a place, its size first: "64 B frames, up". UDP is usual and goes without saying.
func PlaceName(g table.Group) string {
	var sizes, names []string
	l := g.Language()
	_, mesh := g.Rows[0].Trial.Cell["pair"]
	for i, k := range g.Keys {
		text := k.FormatIn(l, g.Levels[i])
		switch {
		case mesh && k.Name == "pair":
			from, to := table.KeyOf("from").Of(g.Rows[0]), table.KeyOf("to").Of(g.Rows[0])
			names = append(names, l.Sayf("%s to %s", from.Text, to.Text))
		case mesh && k.Name == "flow":
		case text == "" || slices.Contains(names, text) || k.Name == "protocol" && text == string(model.UDP):
		case k.Unit == unit.Bytes:
			sizes = append(sizes, text)
		default:
			names = append(names, text)
		}
	}
	return l.Join(append(sizes, names...))
}

// largest is the group with the greatest middle value of a metric; there is one group at least.
func largest(groups []table.Group, metric string) table.Group {
	return slices.MaxFunc(groups, func(a, b table.Group) int {
		return cmp.Compare(a.Middle(metric), b.Middle(metric))
	})
}

func smallest(groups []table.Group, metric string) table.Group {
	return slices.MinFunc(groups, func(a, b table.Group) int {
		return cmp.Compare(a.Middle(metric), b.Middle(metric))
	})
}

// at says where something was: ", at 64 B", ", with 64 B frames"; "" where there is one place only.
func at(g table.Group) string {
	if place := within(g); place != "" {
		return g.Sayf(", %s", place)
	}
	return ""
}

// within is at without the comma: "at 64 B".
func within(g table.Group) string {
	name := PlaceName(g)
	switch {
	case name == "":
		return ""
	case slices.ContainsFunc(g.Keys, func(k table.Key) bool { return k.Name == "frame_bytes" }):
		return g.Sayf("with %s", name)
	}
	return g.Sayf("at %s", name)
}

const mostNames = 4

// fewNames is "a, b and c", or the first few names and how many more there are.
func fewNames(l words.Language, names []string) string {
	if len(names) == 0 {
		return ""
	}
	head, format, last := names[0], "%s and %s", any(names[len(names)-1])
	between := names[1:max(len(names)-1, 1)]
	if n := len(names); n > mostNames {
		between, format, last = names[1:mostNames-1], "%s and %d more", n-mostNames+1
	}
	for _, name := range between {
		head = l.Sayf("%s, %s", head, name)
	}
	if len(names) == 1 {
		return head
	}
	return l.Sayf(format, head, last)
}

// span is "64 B, 128 B and 256 B", or the first and the last of many in order.
func span(l words.Language, names []string) string {
	if n := len(names); n > 3 {
		return l.Sayf("%s to %s", names[0], names[n-1])
	}
	return fewNames(l, names)
}

// length is a time as people plan with it: "45 s", "12 min", "3 h", "4 days".
func length(l words.Language, seconds float64) string {
	for _, u := range []struct {
		seconds float64
		name    string
	}{{86400, "days"}, {3600, "h"}, {60, "min"}} {
		if seconds >= 2*u.seconds {
			return fmt.Sprintf("%v %s", twoDigits(seconds/u.seconds, math.Ceil), l.Say(u.name))
		}
	}
	return fmt.Sprintf("%v s", twoDigits(seconds, math.Ceil))
}

// twoDigits rounds a number that is known no better.
func twoDigits(v float64, round func(float64) float64) float64 {
	step := math.Pow(10, max(math.Floor(math.Log10(max(v, 1)))-1, 0))
	return round(v/step) * step
}
