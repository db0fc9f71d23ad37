package drops

import (
	"encoding/binary"
	"maps"
	"slices"

	"pelt/model"
)

// verdictStore holds the verdicts about one stream that were taken out of the
// kernel's array: sequence -> site. A page of 1024 sequences is an array of
// sites while it is written to, and runs of equal ones (uvarints: length, site)
// when it has become old.
type verdictStore struct {
	open    map[uint64]*verdictPage // by sequence / 1024
	packed  map[uint64][]byte       // see packPage
	bytes   int                     // taken by both
	refused uint64                  // verdicts that found no room
}

type verdictPage [pageCells]uint16

const (
	pageCells        = 1024
	verdictPageBytes = 2 * pageCells
	openPages        = 256      // of one stream, before the oldest are packed
	verdictBytes     = 64 << 20 // of one stream
	pagePlace        = 96       // bytes that each page takes beside its own: in a map, and where it is allocated
)

// put notes a verdict. A later one about the same sequence takes its place if
// replace says so.
func (s *verdictStore) put(sequence uint64, site uint16, replace func(old, new uint16) bool) {
	number, at := sequence/pageCells, sequence%pageCells
	p := s.open[number]
	if p == nil {
		if p = s.openPage(number); p == nil {
			s.refused++
			return
		}
	}
	if old := p[at]; old == 0 || old == site || replace(old, site) {
		p[at] = site
	}
}

func (s *verdictStore) openPage(number uint64) *verdictPage {
	if s.open == nil {
		s.open, s.packed = map[uint64]*verdictPage{}, map[uint64][]byte{}
	}
	if len(s.open) >= openPages {
		s.pack()
	}
	if s.bytes+verdictPageBytes+pagePlace > verdictBytes {
		return nil
	}
	p := &verdictPage{}
	if b, ok := s.packed[number]; ok {
		unpack(b, p)
		s.bytes -= len(b) + pagePlace
		delete(s.packed, number)
	}
	s.open[number] = p
	s.bytes += verdictPageBytes + pagePlace
	return p
}

// pack packs the older half of the open pages: sequences come roughly in order.
func (s *verdictStore) pack() {
	numbers := slices.Sorted(maps.Keys(s.open))
	for _, n := range numbers[:len(numbers)/2] {
		b := packPage(s.open[n])
		s.packed[n] = b
		s.bytes += len(b) - verdictPageBytes
		delete(s.open, n)
	}
}

// packPage returns verdictPageBytes of plain sites if that is shorter.
func packPage(p *verdictPage) []byte {
	var b []byte
	for i := 0; i < len(p) && len(b) < verdictPageBytes; {
		n := alike(p, i)
		b = binary.AppendUvarint(b, uint64(n))
		b = binary.AppendUvarint(b, uint64(p[i]))
		i += n
	}
	if len(b) < verdictPageBytes {
		return slices.Clone(b)
	}
	b = b[:0]
	for _, site := range p {
		b = binary.NativeEndian.AppendUint16(b, site)
	}
	return slices.Clone(b)
}

// alike is how many sites from i on are the same.
func alike(p *verdictPage, i int) int {
	n := 1
	for i+n < len(p) && p[i+n] == p[i] {
		n++
	}
	return n
}

func unpack(b []byte, p *verdictPage) {
	if len(b) == verdictPageBytes {
		for i := range p {
			p[i] = binary.NativeEndian.Uint16(b[2*i:])
		}
		return
	}
	for i := 0; len(b) > 0; {
		n, used := binary.Uvarint(b)
		site, more := binary.Uvarint(b[used:])
		b = b[used+more:]
		for range n {
			p[i] = uint16(site)
			i++
		}
	}
}

// marks lists the verdicts; index turns a site into the mark, and false leaves
// it out.
func (s *verdictStore) marks(index func(site uint16) (uint16, bool)) model.Marks {
	var w model.MarksWriter
	numbers := slices.AppendSeq(slices.Collect(maps.Keys(s.open)), maps.Keys(s.packed))
	slices.Sort(numbers)
	for _, n := range numbers {
		p := s.open[n]
		if p == nil {
			p = &verdictPage{}
			unpack(s.packed[n], p)
		}
		for i := 0; i < len(p); {
			count := alike(p, i)
			if p[i] != 0 {
				if mark, ok := index(p[i]); ok {
					w.Add(n*pageCells+uint64(i), uint64(count), mark)
				}
			}
			i += count
		}
	}
	return w.Marks()
}
