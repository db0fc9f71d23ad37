package model

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
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

func TestMarksKeepWhatWasAdded(t *testing.T) {
	for name, c := range map[string]struct {
		add, want []Stretch
		unlisted  uint64
	}{
		"nothing":           {},
		"one":               {add: []Stretch{{5, 1, 0}}, want: []Stretch{{5, 1, 0}}},
		"none of it":        {add: []Stretch{{5, 0, 0}}},
		"neighbours join":   {add: []Stretch{{0, 3, 1}, {3, 2, 1}}, want: []Stretch{{0, 5, 1}}},
		"another mark":      {add: []Stretch{{0, 3, 1}, {3, 2, 2}}, want: []Stretch{{0, 3, 1}, {3, 2, 2}}},
		"the last sequence": {add: []Stretch{{1<<48 - 2, 1, 65535}}, want: []Stretch{{1<<48 - 2, 1, 65535}}},
		"twice":             {add: []Stretch{{7, 2, 0}, {7, 2, 0}}, want: []Stretch{{7, 2, 0}}, unlisted: 2},
		"backwards": {add: []Stretch{{9, 2, 0}, {3, 2, 0}, {20, 1, 0}},
			want: []Stretch{{9, 2, 0}, {20, 1, 0}}, unlisted: 2},
		"overlaps": {add: []Stretch{{9, 5, 0}, {11, 9, 1}}, want: []Stretch{{9, 5, 0}}, unlisted: 9},
		"overlaps backwards": {add: []Stretch{{9, 5, 0}, {8, 1, 1}, {14, 1, 0}},
			want: []Stretch{{9, 5, 0}, {14, 1, 0}}, unlisted: 1},
		"a gap of everything": {add: []Stretch{{0, 1, 0}, {1 << 47, 1 << 46, 3}},
			want: []Stretch{{0, 1, 0}, {1 << 47, 1 << 46, 3}}},
	} {
		t.Run(name, func(t *testing.T) {
			var w MarksWriter
			for _, s := range c.add {
				w.Add(s.From, s.Count, s.Mark)
			}
			m := w.Marks()
			got, err := read(m)
			if err != nil || !slices.Equal(got, c.want) || m.Unlisted != c.unlisted {
				t.Errorf("added %v: got %v, %v, %d unlisted; want %v, %d", c.add, got, err, m.Unlisted, c.want,
					c.unlisted)
			}
		})
	}
}

// Any ascending marks come back as they were, through JSON too.
func TestMarksRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.MapOf(rapid.OneOf(rapid.Uint64Range(0, 300), rapid.Uint64Range(0, 1<<48-2)),
			rapid.Uint16()).Draw(t, "marks")
		keys := make([]uint64, 0, len(want))
		for k := range want {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		var w MarksWriter
		for _, k := range keys {
			w.Add(k, 1, want[k])
		}
		b, err := json.Marshal(w.Marks())
		if err != nil {
			t.Fatal(err)
		}
		var m Marks
		if err := json.Unmarshal(b, &m); err != nil {
			t.Fatal(err)
		}
		got := map[uint64]uint16{}
		list, err := read(m)
		for i, s := range list {
			if i > 0 && list[i-1].Mark == s.Mark && list[i-1].From+list[i-1].Count == s.From {
				t.Fatalf("%v and %v are one", list[i-1], s)
			}
			for q := s.From; q < s.From+s.Count; q++ {
				got[q] = s.Mark
			}
		}
		if err != nil || m.Packets != uint64(len(want)) || m.Unlisted != 0 || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v, %v, want %v", got, err, want)
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
