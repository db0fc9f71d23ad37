package observe

import (
	"math"
	"strings"
	"testing"
)

const statTwoCores = `cpu  3776 13565 4581 232218 324 0 65 32 0 0
cpu0 1583 6812 1921 116944 29 0 13 13 0 0
cpu1 2193 6753 2660 115273 295 0 51 19 0 0
intr 531103 0 0
ctxt 829566
softirq 192414 0 23576 5 17193 71142 0 294 39289 1 40914
`

func TestParseLoad(t *testing.T) {
	for _, c := range []struct {
		name, text string
		all        ticks
		cores      int
		wrong      string // part of the error
	}{
		{"two cores", statTwoCores, ticks{total: 254561, idle: 232542, softirq: 65}, 2, ""},
		{"old kernel, four columns", "cpu 1 2 3 4\n", ticks{total: 10, idle: 4}, 0, ""},
		{"columns to come", "cpu 1 1 1 1 1 1 1 1 9 9 9 9\n", ticks{total: 8, idle: 2, softirq: 1}, 0, ""},
		{"a core went away", "cpu 1 2 3 4\ncpu7 1 2 3 4\n", ticks{total: 10, idle: 4}, 1, ""},
		{"empty", "", ticks{}, 0, "no line for all cores"},
		{"only cores", "cpu0 1 2 3 4\n", ticks{}, 0, "no line for all cores"},
		{"short", "cpu 1 2 3\n", ticks{}, 0, "4 columns"},
		{"nothing after cpu", "cpu\n", ticks{}, 0, "4 columns"},
		{"no number", "cpu 1 2 x 4\n", ticks{}, 0, `"x" is not a time`},
		{"negative", "cpu 1 2 -3 4\n", ticks{}, 0, `"-3" is not a time`},
		{"odd core", "cpu 1 2 3 4\ncpuX 1 2 3 4\n", ticks{}, 0, "not a core"},
		{"huge core", "cpu 1 2 3 4\ncpu99999999 1 2 3 4\n", ticks{}, 0, "not a core"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseLoad(strings.NewReader(c.text))
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Fatalf("%q: error %v, want one with %q", c.text, err, c.wrong)
				}
				return
			}
			if err != nil || got.all != c.all || len(got.cores) != c.cores {
				t.Errorf("%q: got %+v, %d cores, %v; want %+v, %d cores", c.text, got.all, len(got.cores), err, c.all, c.cores)
			}
		})
	}
}

func TestTicksSince(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after ticks
		want          share
		ok            bool
	}{
		{"half busy", ticks{100, 50, 5}, ticks{200, 100, 25}, share{busy: .5, softirq: .2, idle: .5}, true},
		{"no time passed", ticks{100, 50, 5}, ticks{100, 50, 5}, share{}, false},
		{"idle ran backwards", ticks{100, 50, 5}, ticks{200, 40, 5}, share{busy: 1}, true},
		{"all ran backwards", ticks{100, 50, 5}, ticks{90, 40, 0}, share{}, false},
	} {
		got, ok := c.after.since(c.before)
		if got != c.want || ok != c.ok {
			t.Errorf("%s: got %+v %v, want %+v %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

func FuzzParseLoad(f *testing.F) {
	f.Add(statTwoCores, statTwoCores)
	f.Add("cpu", "cpu ")
	f.Add("cpu 1 2 3 4\ncpu0", "cpu\t18446744073709551615 0 0 0")
	f.Fuzz(func(t *testing.T, a, b string) {
		before, err := parseLoad(strings.NewReader(a))
		if err != nil {
			return
		}
		after, err := parseLoad(strings.NewReader(b))
		if err != nil {
			return
		}
		s, _ := after.all.since(before.all)
		for _, r := range []float64{s.busy, s.idle, s.softirq} {
			if !(r >= 0 && r <= 1) || math.IsNaN(r) {
				t.Errorf("%q then %q: %+v is not within 0..1", a, b, s)
			}
		}
	})
}
