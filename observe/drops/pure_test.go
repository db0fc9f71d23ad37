package drops

import (
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/model"
)

// pages is how many the stream has.
func (s *stream) pages() int { return 1 << s.bits / pageCells }

func TestSubsystemReason(t *testing.T) {
	r := reasons{names: map[uint32]string{2: "NOT_SPECIFIED", 3<<16 | 2: "QDISC_DROP_OVERLIMIT"},
		subsystems: map[uint32]string{0: "CORE", 3: "QDISC"}}
	for v, want := range map[uint32]string{2: "NOT_SPECIFIED", 3<<16 | 2: "QDISC_DROP_OVERLIMIT",
		3<<16 | 9: "QDISC:9", 9: "9", 7<<16 | 1: "458753"} {
		if got := r.name(v); got != want {
			t.Errorf("name(%#x) = %q; want %q", v, got, want)
		}
	}
	if v, none := r.value("NOT_SPECIFIED"), r.value("NO_SUCH"); v != 2 || none != 0 {
		t.Errorf("values %d and %d; want 2 and 0", v, none)
	}
}

const symbols = `ffffffff81000000 T _stext
ffffffff81000010 t do_one
ffffffff81000040 T do_two.isra.0
ffffffff81000040 T alias
ffffffff81000080 d no_code
ffffffff90000000 t far_one.cold
ffffffffc0201000 t module_one	[some_module]
ffffffffc0202000 t bpf_prog_6deef7357e7b4530_dropped	[bpf]
`

func TestResolve(t *testing.T) {
	at := []uint64{0xffffffffc0201234, 0xffffffff81000010, 0xffffffff8100003f, 0xffffffff81000090, 0xffffffff80000000,
		0xffffffff88000000, 0, math.MaxUint64}
	got, hidden, err := findFunctions(strings.NewReader(symbols), at)
	want := map[uint64]symbol{
		at[0]: {"module_one", 0x234}, at[1]: {"do_one", 0}, at[2]: {"do_one", 0x2f}, at[3]: {"do_two", 0x50},
	}
	if !maps.Equal(got, want) || hidden || err != nil {
		t.Errorf("got %v, hidden %v, %v\nwant %v", got, hidden, err, want)
	}
	got, hidden, err = findFunctions(strings.NewReader("0000000000000000 T _stext\n0000000000000000 t do_one\n"), at)
	if len(got) > 0 || !hidden || err != nil {
		t.Errorf("addresses that are all 0 are not taken for hidden ones: %v, %v", got, err)
	}
	taps := findTaps(strings.NewReader(symbols), []string{"do_one", "alias", "module_one"})
	if want := []tap{{0xffffffff81000010, 0xffffffff81000040}, {0xffffffff81000040, 0xffffffff90000000},
		{0xffffffffc0201000, 0xffffffffc0202000}}; !slices.Equal(taps, want) {
		t.Errorf("functions lie at %x, want %x", taps, want)
	}
}

// What is no function of the kernel, or cut off, is looked for in its list.
func TestParseSymbol(t *testing.T) {
	for text, want := range map[string]symbol{
		"nft_do_chain+0x3e8/0x5a0 [nf_tables]": {"nft_do_chain", 0x3e8},
		"udp_rcv.part.0+0x12/0x40":             {"udp_rcv", 0x12},
		"0xffffffffc0000001":                   {},
		"a_name_of_many_letters+0x1":           {},
		"+0x1/0x2":                             {},
		"":                                     {},
	} {
		if got, ok := parseSymbol(text); ok != (want != symbol{}) || ok && got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, ok, want)
		}
	}
}

// Symbols of the kernel: whatever the text, an address is told in a function
// that begins at or before it.
func FuzzResolve(f *testing.F) {
	f.Add(symbols, uint64(0xffffffff81000020))
	f.Add("1 t a\n3 t b\n2 t c\n", uint64(2))
	f.Add("\n t\nx", uint64(0))
	f.Fuzz(func(t *testing.T, text string, at uint64) {
		found, _, err := findFunctions(strings.NewReader(text), []uint64{at, at / 2, at})
		if err != nil {
			return
		}
		starts := map[string][]uint64{}
		_ = functions(strings.NewReader(text),
			func(a uint64, name []byte) { starts[string(name)] = append(starts[string(name)], a) })
		for a, s := range found {
			if !slices.Contains(starts[s.Function], a-s.Offset) || s.Offset > a {
				t.Errorf("%x in %+v, which begins at %x", a, s, starts[s.Function])
			}
			for _, all := range starts {
				for _, b := range all {
					if b <= a && b > a-s.Offset {
						t.Errorf("%x is in what begins at %x, not in %+v", a, b, s)
					}
				}
			}
		}
	})
}

// A verdictStore gives back what was put there, whatever the order, and says what it refused.
func TestVerdicts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s verdictStore
		weak := uint16(7)
		replace := func(_, later uint16) bool { return later != weak }
		want := map[uint64]uint16{}
		for range rapid.IntRange(0, 60).Draw(t, "runs") {
			from := rapid.Uint64Range(0, 600*pageCells).Draw(t, "from")
			if rapid.Bool().Draw(t, "high") {
				from += 1<<48 - 700*pageCells
			}
			site := rapid.Uint16Range(1, 9).Draw(t, "site")
			step := rapid.Uint64Range(1, 3*pageCells).Draw(t, "step")
			for i := range rapid.Uint64Range(1, 30).Draw(t, "count") {
				q := from + i*step
				if q >= 1<<48 {
					break
				}
				s.put(q, site, replace)
				if want[q] == 0 || site != weak {
					want[q] = site
				}
			}
		}
		got := map[uint64]uint16{}
		m := s.marks(func(site uint16) (uint16, bool) { return site + 100, site != 9 })
		for r, err := range m.Stretches() {
			if err != nil {
				t.Fatal(err)
			}
			for i := range r.Count {
				got[r.From+i] = r.Mark - 100
			}
		}
		maps.DeleteFunc(want, func(_ uint64, site uint16) bool { return site == 9 })
		if !maps.Equal(got, want) {
			t.Fatalf("got %v\nwant %v", got, want)
		}
		if s.refused != 0 {
			t.Fatalf("%d refused", s.refused)
		}
	})
}

// Memory is bounded, and what finds no room is counted.
func TestVerdictsFull(t *testing.T) {
	const pages = 500
	s := verdictStore{bytes: verdictBytes - 1<<20} // as if the rest were taken
	for i := range uint64(pages) {
		for j := range uint64(pageCells) { // no two alike
			s.put(i*pageCells+j, uint16(i+j)%1000+1, func(_, _ uint16) bool { return true })
		}
	}
	m := s.marks(func(site uint16) (uint16, bool) { return site, true })
	for r, err := range m.Stretches() {
		if q := r.From; err != nil || r.Count != 1 || r.Mark != uint16(q/pageCells+q%pageCells)%1000+1 {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if kept := m.Packets + m.Unlisted; kept+s.refused != pages*pageCells || s.refused == 0 || s.bytes > verdictBytes {
		t.Errorf("%d kept, %d refused of %d in %d B", kept, s.refused, pages*pageCells, s.bytes)
	}
}

// A verdictStore counts what it takes, also where the pages hold next to nothing: a rare loss over
// a long run, or short bursts of it.
func TestVerdictsCountTheirMemory(t *testing.T) {
	for _, c := range []struct{ pages, verdicts uint64 }{{60_000, 1}, {60_000, 4}, {1000, pageCells}} {
		var s verdictStore
		before := heap()
		for i := range c.pages {
			for j := range c.verdicts {
				s.put(i*pageCells+j*(pageCells/c.verdicts), uint16(i+j)%1000+1, func(_, _ uint16) bool { return true })
			}
		}
		took := heap() - before
		if s.refused > 0 || took > int64(s.bytes)*5/4 {
			t.Errorf("%d pages of %d verdicts take %d B, and %d B are counted; %d refused", c.pages, c.verdicts, took,
				s.bytes, s.refused)
		}
	}
}

// heap is how much memory is in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Streams get windows of their own, all of the space or none is given back, and a
// cell means the sequence that it was written for.
func TestSpace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := pagePool{owner: make([]*stream, 1<<rapid.IntRange(0, 8).Draw(t, "pages"))}
		var held []*stream
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(held) > 0 && rapid.Bool().Draw(t, "give") {
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				a.give(held[i])
				held = slices.Delete(held, i, i+1)
				continue
			}
			sequences := rapid.Uint64Range(0, 1<<24).Draw(t, "sequences")
			pages := a.share(rapid.IntRange(1, 9).Draw(t, "streams"), sequences)
			if pages == 0 {
				continue
			}
			s := &stream{}
			if !a.take(s, pages) {
				continue
			}
			if s.pages() != pages || pages&(pages-1) != 0 {
				t.Fatalf("%d pages, bits %d", pages, s.bits)
			}
			held = append(held, s)
		}
		used := 0
		for _, s := range held {
			used += s.pages()
			for i, o := range a.owner {
				if mine := i >= int(s.base)/pageCells && i < int(s.base)/pageCells+s.pages(); mine != (o == s) {
					t.Fatalf("page %d of a stream with %d from %d", i, s.pages(), s.base)
				}
			}
		}
		if used+a.free() != len(a.owner) {
			t.Fatalf("%d used and %d free of %d", used, a.free(), len(a.owner))
		}
		if len(held) == 0 {
			return
		}
		s := held[0]
		q := rapid.Uint64Range(0, 1<<48-1).Draw(t, "sequence")
		near := q + rapid.Uint64Range(0, 32_767<<s.bits).Draw(t, "after")
		cell := s.base + uint32(q&(1<<s.bits-1))
		got, ok := s.sequence(cell, uint32(q>>s.bits&0xffff)<<16|5, near)
		if !ok || got != q {
			t.Fatalf("sequence %d near %d: %d, %v", q, near, got, ok)
		}
	})
}

func TestError(t *testing.T) {
	e := refuse(watching, model.Reason{Code: model.KernelOld, Name: "Linux 5.4"}, fmt.Errorf("a\nb"))
	if brief, all := fmt.Sprintf("%v|%s", e, e.Error()), fmt.Sprintf("%+v", e); brief != "watch drops: kernel-old: Linux 5.4|watch drops: kernel-old: Linux 5.4" ||
		all != "watch drops: kernel-old: Linux 5.4\na\nb" {
		t.Errorf("%q, %q", brief, all)
	}
}
