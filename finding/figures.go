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
	parts := strings.Split(first.Counter, ".")
	switch last := parts[len(parts)-1]; {
	case parts[0] == "nfqueue" && len(parts) > 1:
		return in.Sayf("queue %s", parts[1])
	case parts[0] == "police" && second != nil:
		return on(in, l) + in.Sayf("%s, burst %s", unit.BPS.Exact(float64(first.After)), amount(in, *second))
	case last == "mtu":
		return amount(in, *first)
	case parts[0] == "qdisc" && len(parts) > 4: // an interface's name may have dots
		at := len(parts) - 3
		queue := in.Sayf("%s on %s", parts[at], strings.Join(parts[1:at], "."))
		switch {
		case last == "limit":
			return in.Join([]string{queue, amount(in, *first)})
		case last == "burst" && second != nil:
			return in.Sayf("%s, packets of %s, bucket of %s", queue, amount(in, *second), amount(in, *first))
		}
		return queue
	case second != nil:
		return in.Sayf("%s of %s", unit.FormatCount(first.After), unit.FormatCount(second.After))
	}
	return ""
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
