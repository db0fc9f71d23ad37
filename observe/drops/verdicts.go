package drops

import (
	"maps"
	"slices"
	"unsafe"

	"pelt/model"
)

// verdictStore holds the verdicts about one stream that were taken out of the kernel's array.
type verdictStore struct {
	pages   map[uint64][]verdictRun // by sequence / pageCells, in order
	bytes   int                     // that they take
	refused uint64                  // verdicts that found no room
}

// verdictRun is a number of sequences in a row, within a page, with the same site.
type verdictRun struct{ from, to, site uint16 } // to is not in it

const (
	pageCells    = 1024
	verdictBytes = 64 << 20 // of one stream
	pagePlace    = 96       // bytes that each page takes beside its runs: in the map, and where it is allocated
)

// put notes a verdict. A later one about the same sequence takes its place if
// replace says so.
func (s *verdictStore) put(sequence uint64, site uint16, replace func(old, new uint16) bool) {
	number, at := sequence/pageCells, uint16(sequence%pageCells)
	page, known := s.pages[number]
	i := len(page) // sequences come roughly in order
	for i > 0 && page[i-1].to > at {
		i--
	}
	var next []verdictRun
	switch {
	case i < len(page) && page[i].from <= at: // there is a verdict
		old := page[i]
		if old.site == site || !replace(old.site, site) {
			return
		}
		parts := []verdictRun{{old.from, at, old.site}, {at, at + 1, site}, {at + 1, old.to, old.site}}
		parts = slices.DeleteFunc(parts, func(r verdictRun) bool { return r.from == r.to })
		next = slices.Replace(page, i, i+1, parts...)
	case i > 0 && page[i-1].to == at && page[i-1].site == site:
		page[i-1].to++
		return
	default:
		next = slices.Insert(page, i, verdictRun{at, at + 1, site})
	}
	grown := (cap(next) - cap(page)) * int(unsafe.Sizeof(verdictRun{}))
	if !known {
		grown += pagePlace
	}
	if grown > 0 && s.bytes+grown > verdictBytes {
		s.refused++
		return
	}
	if s.pages == nil {
		s.pages = map[uint64][]verdictRun{}
	}
	s.pages[number] = next
	s.bytes += grown
}

// marks lists the verdicts; index turns a site into the mark, and false leaves
// it out.
func (s *verdictStore) marks(index func(site uint16) (uint16, bool)) model.Marks {
	var w model.MarksWriter
	for _, number := range slices.Sorted(maps.Keys(s.pages)) {
		for _, r := range s.pages[number] {
			if mark, ok := index(r.site); ok {
				w.Add(number*pageCells+uint64(r.from), uint64(r.to-r.from), mark)
			}
		}
	}
	return w.Marks()
}
