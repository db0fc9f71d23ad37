package model

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/internal/testenv"
)

// read collects a list of marks.
func read(m Marks) (list []Stretch, err error) {
	for s, err := range m.Stretches() {
		if err != nil {
			return list, err
		}
		list = append(list, s)
	}
	return list, nil
}

// Marks that are added in ascending order come back as they were, neighbours of one mark as one stretch, through JSON
// too. Of others none is made up, and each is listed or counted.
func TestMarksKeepWhatIsAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ascend := rapid.Bool().Draw(t, "ascending")
		var w MarksWriter
		total, next := uint64(0), rapid.SampledFrom([]uint64{0, maxSequence - 100}).Draw(t, "begin")
		added := map[uint64][]uint16{}
		for range rapid.IntRange(0, 40).Draw(t, "stretches") {
			gap := rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64Range(0, 300), rapid.Uint64Range(0, 1<<47))
			if next += gap.Draw(t, "gap"); next > maxSequence-5 {
				break
			}
			from := next
			if !ascend {
				from -= min(from, rapid.Uint64Range(0, 9).Draw(t, "back"))
			}
			count, mark := rapid.Uint64Range(0, 6).Draw(t, "count"), rapid.SampledFrom([]uint16{0, 1, 65535}).Draw(t, "mark")
			w.Add(from, count, mark)
			for q := from; q < from+count; q++ {
				added[q] = append(added[q], mark)
			}
			total, next = total+count, from+count
		}
		b, err := json.Marshal(w.Marks())
		testenv.Must(t, err)
		var m Marks
		testenv.Must(t, json.Unmarshal(b, &m))
		list, err := read(m)
		var listed uint64
		for i, s := range list {
			if ascend && i > 0 && list[i-1].Mark == s.Mark && list[i-1].From+list[i-1].Count == s.From {
				t.Fatalf("%v and %v are one", list[i-1], s)
			}
			for q := s.From; q < s.From+s.Count; q++ {
				if !slices.Contains(added[q], s.Mark) {
					t.Fatalf("%d has the mark %d, of %v", q, s.Mark, added[q])
				}
			}
			listed += s.Count
		}
		if err != nil || m.Packets != listed || m.Packets+m.Unlisted != total || ascend && m.Unlisted > 0 {
			t.Fatalf("%d added, %d read, %d said and %d unlisted, %v", total, listed, m.Packets, m.Unlisted, err)
		}
	})
}

// A list that is full says how much it left out, and stays readable.
func TestMarksFull(t *testing.T) {
	var w MarksWriter
	const runs = 5_000_000
	for i := range uint64(runs) {
		w.Add(2*i, 1, uint16(i%3))
	}
	m := w.Marks()
	if m.Unlisted == 0 || m.Packets+m.Unlisted != runs {
		t.Fatalf("%d listed + %d not, want %d and some left out", m.Packets, m.Unlisted, runs)
	}
	n, last := uint64(0), uint64(0)
	for s, err := range m.Stretches() {
		if err != nil || s.Mark != uint16(n%3) || s.From != 2*n {
			t.Fatalf("stretch %d is %v, %v", n, s, err)
		}
		n, last = n+s.Count, s.From
	}
	if n != m.Packets || last != 2*(n-1) {
		t.Errorf("%d stretches up to %d read, %d said", n, last, m.Packets)
	}
	t.Logf("%d runs listed in %d B", m.Packets, len(m.Data))
}

// compressed makes a list's data of raw numbers.
func compressed(numbers ...uint64) []byte {
	var raw []byte
	for _, n := range numbers {
		raw = binary.AppendUvarint(raw, n)
	}
	return deflated(raw)
}

func deflated(raw []byte) []byte {
	var b bytes.Buffer
	z, _ := flate.NewWriter(&b, flate.BestSpeed)
	_, _ = z.Write(raw)
	_ = z.Close()
	return b.Bytes()
}

func TestMarksThatLie(t *testing.T) {
	for name, c := range map[string]struct {
		m    Marks
		want string
	}{
		"not compressed":  {Marks{Data: []byte("hello"), Packets: 1}, "marks: flate"},
		"cut short":       {Marks{Data: compressed(1, 0, 0, 5)[:4], Packets: 1}, "marks: "},
		"half a stretch":  {Marks{Data: compressed(1, 0), Packets: 1}, "marks: cut short"},
		"number too long": {Marks{Data: deflated(bytes.Repeat([]byte{0xff}, 11)), Packets: 1}, "marks: cut short"},
		"beyond the last": {Marks{Data: compressed(1<<48, 0, 0), Packets: 1},
			"marks: 281474976710656, 0, 0 after sequence 0"},
		"together beyond":   {Marks{Data: compressed(1<<47, 1<<47, 0), Packets: 1 << 47}, "after sequence 0"},
		"wraps around":      {Marks{Data: compressed(1<<64-1, 1<<64-1, 0), Packets: 1}, "marks: "},
		"mark too large":    {Marks{Data: compressed(0, 0, 65536), Packets: 1}, "marks: 0, 0, 65536"},
		"more than said":    {Marks{Data: compressed(0, 9, 0), Packets: 9}, "marks: 10 sequences listed, 9 said"},
		"less than said":    {Marks{Data: compressed(0, 9, 0), Packets: 11}, "marks: 10 sequences listed, 11 said"},
		"nothing but words": {Marks{Packets: 1 << 60}, "marks: 0 sequences listed"},
		"a bomb":            {Marks{Data: deflated(make([]byte, MaxMarksBytes+1)), Packets: 1}, "marks: longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := read(c.m)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v; want an error with %q", list, err, c.want)
			}
		})
	}
}

// Reading may be left at any stretch.
func TestMarksLeftEarly(t *testing.T) {
	m := Marks{Data: compressed(0, 0, 0, 1, 0, 0, 1, 0, 0), Packets: 3}
	n := 0
	for range m.Stretches() {
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d stretches before the break, want 2", n)
	}
}

// Whatever a peer sends, what comes out ascends, fits 48 bits, and is no more
// than the list says; else it ends with an error.
func FuzzMarks(f *testing.F) {
	f.Add([]byte{1, 0, 0, 5, 2, 1}, uint64(4), false)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0}, uint64(1), false)
	f.Add(compressed(3, 4, 5), uint64(5), true)
	f.Fuzz(func(t *testing.T, raw []byte, packets uint64, whole bool) {
		data := raw
		if !whole {
			data = deflated(raw)
		}
		next, n := uint64(0), uint64(0)
		for s, err := range (Marks{Data: data, Packets: packets}).Stretches() {
			if err != nil {
				return
			}
			if s.Count == 0 || s.From < next || s.From+s.Count-1 > maxSequence {
				t.Fatalf("stretch %v after sequence %d", s, next)
			}
			next = s.From + s.Count
			if n += s.Count; n > packets {
				t.Fatalf("%d sequences, %d said", n, packets)
			}
		}
		if n != packets {
			t.Fatalf("%d sequences without an error, %d said", n, packets)
		}
	})
}
