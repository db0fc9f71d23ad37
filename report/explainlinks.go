package report

import (
	"fmt"
	"math"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/unit"
)

// linkLosses says what emulated links did to the frames of trials whose packets nobody
// watched: for TCP theirs are the only names that losses have.
func linkLosses(doc model.Document) (lines []string) {
	type way struct{ from, to string }
	type sums struct{ frames, lost, full uint64 }
	total := map[way]*sums{}
	var order []way
	for _, r := range doc.Results {
		if r.State != model.Valid {
			continue
		}
		for _, l := range r.Links {
			at := way{l.From, l.To}
			if total[at] == nil {
				total[at] = &sums{}
				order = append(order, at)
			}
			s := total[at]
			s.frames = add(s.frames, l.Frames)
			if l.Lost != nil {
				s.lost = add(s.lost, *l.Lost)
			}
			if l.QueueFull != nil {
				s.full = add(s.full, *l.QueueFull)
			}
		}
	}
	for _, at := range order {
		s := total[at]
		lines = append(lines, fmt.Sprintf("emulated link %s to %s: of %s frames %s lost as asked, %s found its queue full", words.Name(at.from), words.Name(at.to),
			unit.FormatCount(s.frames), unit.FormatCount(s.lost), unit.FormatCount(s.full)))
	}
	return lines
}

// add stays at the most that there is: a document may hold anything.
func add(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}
