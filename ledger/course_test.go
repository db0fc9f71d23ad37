package ledger

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pelt/model"
)

func TestOffset(t *testing.T) {
	for name, c := range map[string]struct {
		perStep, streams []uint64
		stream           int
		from, n          uint64
		want             []uint64
	}{
		"within a step":            {[]uint64{10, 10, 10}, []uint64{30}, 0, 12, 3, []uint64{0, 3, 0}},
		"across steps":             {[]uint64{10, 10, 10}, []uint64{30}, 0, 8, 14, []uint64{2, 10, 2}},
		"a step without packets":   {[]uint64{10, 0, 10}, []uint64{20}, 0, 9, 2, []uint64{1, 0, 1}},
		"of two streams":           {[]uint64{10, 30}, []uint64{20, 20}, 1, 4, 2, []uint64{1, 1}},
		"the last one":             {[]uint64{10, 10}, []uint64{20}, 0, 19, 1, []uint64{0, 1}},
		"more than was attempted":  {[]uint64{10, 10}, []uint64{20}, 0, 19, 5, []uint64{0, 5}},
		"a stream that is not":     {[]uint64{10}, []uint64{10}, 1, 0, 5, nil},
		"a stream without packets": {[]uint64{10}, []uint64{10, 0}, 1, 0, 5, nil},
		"no steps":                 {nil, []uint64{10}, 0, 0, 5, nil},
	} {
		if got := newClock(Input{PerStep: c.perStep, Streams: c.streams}).count(nil, c.stream, c.from,
			c.n); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Every lost packet is in one step, and those of a line in no others.
func TestCourses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := rapid.SliceOfN(rapid.Uint64Range(0, 50), 1, 8).Draw(t, "steps")
		attempted := uint64(0)
		for _, n := range steps {
			attempted += n
		}
		var missing, refused model.MarksWriter
		lost, errno := uint64(0), uint64(0)
		want := make([]uint64, len(steps))
		step, left := 0, uint64(0)
		for s := range attempted {
			for ; left == 0 && step < len(steps); step++ {
				left = steps[step]
			}
			left--
			if rapid.Bool().Draw(t, "lost") {
				missing.Add(s, 1, 0)
				lost++
				want[step-1]++
				if rapid.Bool().Draw(t, "refused") {
					refused.Add(s, 1, 0)
					errno++
				}
			}
		}
		account, courses := BalanceOverTime(Input{Sender: "a", Receiver: "b", Flow: "up", Planned: attempted,
			Attempted: attempted, Accepted: attempted - errno,
			SendErrors: map[string]uint64{"EPERM": errno}, Errnos: []string{"EPERM"}, Refused: []model.Marks{refused.Marks()}, Streams: []uint64{attempted},
			Received: attempted - lost, Missing: []model.Marks{missing.Marks()}, MissingKnown: true, PerStep: steps, Nodes: []Node{{Name: "a"}, {Name: "b"}}})
		if lost == 0 {
			if courses != nil {
				t.Fatalf("nothing was lost, yet %v", courses)
			}
			return
		}
		if len(courses) == 0 || courses[0].Layer != "" || !slices.Equal(courses[0].Lost, want) {
			t.Fatalf("%v, want %v first", courses, want)
		}
		of := map[string]uint64{}
		for _, c := range courses[1:] {
			for i, n := range c.Lost {
				if of[c.Layer+c.Host+c.Cause] += n; n > want[i] {
					t.Fatalf("%+v: more than the %d of step %d", c, want[i], i)
				}
			}
		}
		for _, l := range account.Lines {
			if l.Confidence == ExactSeq && of[l.Layer+l.Host+l.Cause] != l.Packets {
				t.Fatalf("line %s %s has %d packets, %d in its steps", l.Layer, l.Cause, l.Packets,
					of[l.Layer+l.Host+l.Cause])
			}
		}
	})
}
