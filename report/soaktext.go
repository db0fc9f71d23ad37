package report

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/report/seconds"
	"pelt/unit"
)

const (
	mostParts  = 12 // lines that tell a soak's time on a terminal
	leastPlace = 24 // characters that name a place
)

// soak writes what happened when, in equal parts of a soak's time.
func (s *screen) soak(doc model.Document) {
	r, ok := seconds.Chosen(doc)
	if !seconds.Is(doc) || !ok {
		return
	}
	t := seconds.Of(r)
	for i, f := range t.Flows {
		parts := t.Parts(f, mostParts)
		if len(parts) == 0 {
			continue
		}
		s.line("", "")
		title := "over time, in parts of " + words.Seconds(parts[0].ToS-parts[0].FromS)
		if len(t.Flows) > 1 {
			title = words.Name(f.Name) + " " + title
		}
		s.wrap(styleBold, "", title)
		s.parts(t, f, parts, i == 0)
	}
}

func (s *screen) parts(t seconds.Trial, of seconds.Flow, parts []seconds.Part, marked bool) {
	each := func(head string, drop int, cell func(seconds.Part) string) field {
		f := field{head: head, drop: drop}
		for _, p := range parts {
			f.cells = append(f.cells, cell(p))
		}
		return f
	}
	fields := fit([]field{
		each("from", 0, func(p seconds.Part) string { return moment(p.FromS, t.EndS) }),
		each("sent", 0, func(p seconds.Part) string { return known(p.SentPPS, unit.FormatPPS) }),
		each("received", 0, func(p seconds.Part) string { return known(p.GotPPS, unit.FormatPPS) }),
		each("lost", 0, func(p seconds.Part) string {
			switch {
			case len(of.Lost.Values) == 0:
				return ""
			case p.AtLeast && p.Lost > 0:
				return "≥ " + wholePackets(p.Lost)
			}
			return known(p.Lost, wholePackets)
		}),
		each("worst second", 2, func(p seconds.Part) string {
			if !(p.Lost > 0) {
				return ""
			}
			return wholePackets(p.WorstPPS)
		}),
	}, s.width)
	used := 0
	for _, f := range fields {
		used += f.width() + 2
	}
	place := each("mostly", 1, func(p seconds.Part) string { return mostly(p, s.width-used) })
	place.left = true
	if s.width-used >= leastPlace && !place.empty() {
		fields = append(fields, place)
	}
	s.line(styleDim, lay(fields, func(f field) string { return f.head }, "  "))
	for i, p := range parts {
		s.line("", lay(fields, func(f field) string { return f.cells[i] }, "  "))
		if marked {
			s.within(t, p, i == len(parts)-1, fields[0].width())
		}
	}
}

// within writes what marks a part, below its line.
func (s *screen) within(t seconds.Trial, p seconds.Part, last bool, indent int) {
	head := fmt.Sprintf("%*s  ", indent, "")
	shown := 0
	for _, m := range t.Marks {
		if m.AtS < p.FromS || !(m.AtS < p.ToS || last) {
			continue
		}
		if shown++; shown > mostMarks {
			s.wrap(styleDim, head, "… more")
			break
		}
		what := "changed: "
		if m.Made {
			what = "made: "
		}
		s.wrap(styleDim, head, moment(m.AtS, t.EndS)+" "+what+words.Shorten(m.Words, 60))
	}
	shown = 0
	for _, g := range t.Gaps {
		if g.FromS < p.FromS || g.FromS >= p.ToS {
			continue
		}
		if shown++; shown > mostMarks {
			s.wrap(styleDim, head, "… more times without a word")
			break
		}
		s.wrap(styleDim, head, fmt.Sprintf("%s to %s %s", moment(g.FromS, t.EndS), moment(g.ToS, t.EndS), g.Words))
	}
}

// mostMarks and, likewise, gaps are told of one part.
const mostMarks = 3

// mostly names the place where a part lost most, in a width; what it shares is said.
func mostly(p seconds.Part, width int) string {
	if len(p.Causes) == 0 {
		return ""
	}
	share := ""
	if len(p.Causes) > 1 && p.Lost > 0 {
		share = unit.FormatRatio(min(p.Causes[0].Packets/p.Lost, 1)) + " "
	}
	return share + words.Shorten(p.Causes[0].Words, max(width, leastPlace)-utf8.RuneCountInString(share))
}

func known(v float64, format func(float64) string) string {
	if math.IsNaN(v) {
		return "–"
	}
	return format(v)
}

func wholePackets(v float64) string {
	return unit.FormatCount(uint64(math.Round(min(max(v, 0), 1e15))))
}

// moment prints a time within a trial that ends then: "6 s", "3:20", "1:03:20".
func moment(s, end float64) string {
	whole := int64(math.Round(min(max(s, 0), 1e9)))
	switch {
	case end <= 120:
		return strconv.FormatInt(whole, 10) + " s"
	case end < 3600:
		return fmt.Sprintf("%d:%02d", whole/60, whole%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", whole/3600, whole/60%60, whole%60)
}
