package finding

import (
	"strings"

	"pelt/model"
	"pelt/table"
	"pelt/unit"
)

// figures says the numbers of the facts that decided a line: "tbf on eth0, 8192 B"; "" without.
func figures(l *model.Line) string {
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
		return "queue " + parts[1]
	case parts[0] == "police" && second != nil:
		return on(l) + unit.BPS.Exact(float64(first.After)) + ", burst " + amount(*second)
	case last == "mtu":
		return amount(*first)
	case parts[0] == "qdisc" && len(parts) > 4: // an interface's name may have dots
		at := len(parts) - 3
		queue := parts[at] + " on " + strings.Join(parts[1:at], ".")
		switch {
		case last == "limit":
			return queue + ", " + amount(*first)
		case last == "burst" && second != nil:
			return queue + ", packets of " + amount(*second) + ", bucket of " + amount(*first)
		}
		return queue
	case second != nil:
		return unit.FormatCount(first.After) + " of " + unit.FormatCount(second.After)
	}
	return ""
}

// on begins the figures of what stands at a line's interface.
func on(l *model.Line) string {
	if l.Interface == "" {
		return ""
	}
	return "on " + l.Interface + ", "
}

// amount is a fact's number in its unit.
func amount(e model.Evidence) string {
	if e.Unit != "B" {
		return unit.FormatCount(e.After) + " packets"
	}
	return unit.Bytes.Format(float64(e.After))
}

// figuresOf is what stands behind the place of lines, in brackets: the figures that all of them have.
func figuresOf(lines []table.Row) string {
	all := ""
	for i, r := range lines {
		switch f := figures(r.Line); {
		case i == 0:
			all = f
		case f != all:
			return ""
		}
	}
	if all == "" {
		return ""
	}
	return " (" + all + ")"
}
