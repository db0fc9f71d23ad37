package unit

import "testing"

func TestWiden(t *testing.T) {
	for _, c := range []struct {
		before uint64
		now    uint32
		want   uint64
		ok     bool
	}{
		{0, 0, 0, true},
		{7, 9, 9, true},
		{1<<32 - 2, 1, 1<<32 + 1, true},
		{5<<32 - 1, 0, 5 << 32, true},
		{3<<32 + 7, 7, 3<<32 + 7, true},
		{0, 1<<31 - 1, 1<<31 - 1, true},
		{1<<40 + 9, 8, 8, false},
		{9, 8, 8, false},
	} {
		if wide, ok := Widen(c.before, c.now); wide != c.want || ok != c.ok {
			t.Errorf("%d, then %d: %d, %v; want %d, %v", c.before, c.now, wide, ok, c.want, c.ok)
		}
	}
}
