package finding

import (
	"strings"

	"pelt/model"
	"pelt/table"
	"pelt/unit"
	"pelt/words"
)

// figures says the numbers of the facts that decided a line: "tbf on eth0, 8192 B"; "" without.
func figures(in words.Language, l *model.Line) string {
	var first, second *model.Evidence
	for i := range l.Evidence {
		switch e := &l.Evidence[i]; {
		case e.Role != model.RoleFact:
		case first == nil:
			first = e
		case second == nil:
			second = e
		}
	}
	if first == nil {
		return ""
	}
	switch {
	case second != nil && first.Unit == "bit/s":
		return on(in, l) + in.Sayf("%s, burst %s", unit.BPS.Exact(float64(first.After)), amount(in, *second))
	case first.Unit == "connection" || first.Unit == "neighbour":
		if second != nil {
			return in.Sayf("%s of %s", unit.FormatCount(first.After), unit.FormatCount(second.After))
		}
	case first.Of == "" && first.Unit == "B":
		return amount(in, *first)
	case first.Of == "":
	case first.Interface == "" && first.Unit == "B":
		return in.Join([]string{first.Of, amount(in, *first)})
	case first.Interface == "":
		return in.Sayf("queue %s", first.Of)
	case second != nil:
		return in.Sayf("%s, packets of %s, bucket of %s", queueOf(in, *first), amount(in, *second), amount(in, *first))
	case strings.HasSuffix(first.Counter, ".limit"):
		return in.Join([]string{queueOf(in, *first), amount(in, *first)})
	default:
		return queueOf(in, *first)
	}
	return ""
}

// queueOf names the queue that a fact is about.
func queueOf(in words.Language, e model.Evidence) string {
	return in.Sayf("%s on %s", e.Of, e.Interface)
}

// on begins the figures of what stands at a line's interface.
func on(in words.Language, l *model.Line) string {
	if l.Interface == "" {
		return ""
	}
	return in.Sayf("on %s, ", l.Interface)
}

// amount is a fact's number in its unit.
func amount(in words.Language, e model.Evidence) string {
	if e.Unit != "B" {
		return in.Sayf("%s packets", unit.FormatCount(e.After))
	}
	return unit.Bytes.Format(float64(e.After))
}

// figuresOf is what stands behind the place of lines, in brackets: the figures that all of them have.
func figuresOf(lines []table.Row) string {
	all := ""
	for i, r := range lines {
		switch f := figures(r.Language(), r.Line); {
		case i == 0:
			all = f
		case f != all:
			return ""
		}
	}
	if all == "" {
		return ""
	}
	return table.Language(lines).Sayf(" (%s)", all)
}

// CounterName is what readers call a counter: to files, a drop event of the kernel is a verdict.
func CounterName(counter string) string {
	for file, reader := range map[string]string{"verdict ": "drop event ", "no verdict ": "no drop event "} {
		if of, ok := strings.CutPrefix(counter, file); ok {
			return reader + of
		}
	}
	return counter
}
