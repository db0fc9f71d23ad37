package counters

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pelt/model"
	"pelt/test/golden"
)

// moment makes a snapshot taken at a second of the trial.
func moment(second int, readings ...reading) Snapshot {
	return Snapshot{Taken: time.Unix(int64(second), 0), readings: readings,
		links: map[int]link{7: {index: 7, name: "eth0", up: true}}}
}

func at(s *series, part, value uint64) reading { return reading{*s, part, value} }

// series of the lines of testdata/diff.txt.
var known = map[string]*series{
	"wide":  {name: "Udp.InErrors", scope: namespaceScope, unit: skbUnit, bits: 64, role: primary | loss},
	"quiet": {name: "IpExt.InTruncatedPkts", scope: namespaceScope, unit: skbUnit, bits: 64, role: loss},
	"narrow": {name: "qdisc.eth0.tbf.1:.drops", scope: deviceScope, unit: skbUnit, bits: 32, role: primary | loss,
		link: 7},
	"softnet": {name: "softnet.dropped", scope: hostScope, unit: skbUnit, bits: 32, role: primary | loss},
	"filter": {name: "nfqueue.9.queue_dropped", scope: namespaceScope, unit: skbUnit, bits: 32, fresh: true,
		role: loss},
	"device": {name: "dev.eth0.rx_packets", scope: deviceScope, unit: skbUnit, bits: 64, role: primary | packets,
		link: 7},
	"anew": {name: "dev.eth0.rx_packets", scope: deviceScope, unit: skbUnit, bits: 64, role: primary | packets,
		link: 8},
	"damaged":  {name: "dev.eth0.rx_frame_errors", scope: deviceScope, unit: frameUnit, bits: 64, role: loss, link: 7},
	"over":     {name: "dev.eth0.rx_over_errors", scope: deviceScope, unit: frameUnit, bits: 64, role: loss, link: 7},
	"length":   {name: "dev.eth0.rx_length_errors", scope: deviceScope, unit: frameUnit, bits: 64, role: loss, link: 7},
	"sum":      {name: "dev.eth0.rx_frame_sum", scope: deviceScope, unit: frameUnit, bits: 64, role: loss, link: 7},
	"level":    {name: "qdisc.eth0.tbf.1:.qlen", bits: 32, role: gauge},
	"segments": {name: "Tcp.InSegs", bits: 64, role: hidden},
	"drops":    {name: "dev.eth0.rx_dropped", bits: 64, role: loss},
	"port":     {name: "dev.eth0.rx_dropped", scope: deviceScope, unit: skbUnit, bits: 64, role: loss, link: 7},
	"bond":     {name: "dev.bond0.rx_dropped", scope: deviceScope, unit: skbUnit, bits: 64, role: loss, link: 8},
	"received": {name: "Ip.InReceives", bits: 64, role: packets},
	"datagram": {name: "Udp.InDatagrams", bits: 64, role: datagrams},
	"squeeze":  {name: "softnet.time_squeeze", bits: 32},
}

// TestDiff: each line of the file is what was read at the moments of a trial, of each series and its parts. A moment that
// is not there was not read. Below stands what is told of it, or whether something moves between two readings.
func TestDiff(t *testing.T) {
	golden.Table(t, "testdata/diff.txt", func(line string) string {
		what, text, _ := strings.Cut(line, " ")
		shots := map[string]Snapshot{}
		for _, taken := range strings.Split(text, "; ") {
			words := strings.Fields(taken)
			second, is := map[string]int{"idle": 0, "start": 2, "measure": 3, "end": 9}[words[0]]
			if !is {
				t.Fatalf("%s: no such moment: %s", line, taken)
			}
			var readings []reading
			for _, word := range words[1:] {
				name, value, _ := strings.Cut(word, "=")
				name, part, _ := strings.Cut(name, ".")
				p, _ := strconv.ParseUint(part, 10, 64)
				v, err := strconv.ParseUint(value, 0, 64)
				if known[name] == nil || err != nil {
					t.Fatalf("%s: %v", word, err)
				}
				readings = append(readings, at(known[name], p, v))
			}
			shots[words[0]] = moment(second, readings...)
		}
		end := shots["end"]
		switch what {
		case "moving":
			return fmt.Sprint(Moving(shots["start"], end))
		case "down": // its interface
			end.links = map[int]link{7: {}}
		case "bonded": // a port of a bond
			end.links = map[int]link{7: {index: 7, name: "eth0", master: 8}, 8: {index: 8, name: "bond0", kind: bond}}
		case "crowd": // one of many interfaces
			end.links = map[int]link{}
			for i := range manyLinks {
				end.links[i] = link{index: i, up: true}
			}
		}
		var out strings.Builder
		for _, c := range Diff(shots["idle"], shots["start"], shots["measure"], end, 2) {
			fmt.Fprintf(&out, "%+v\n", c)
		}
		return cmp.Or(out.String(), "nothing")
	})
}

// A counter of 32 bits may wrap any number of times in a trial that is read often enough.
func TestLongTrialsWrapOften(t *testing.T) {
	drops := &series{name: "softnet.dropped", bits: 32, role: primary | loss}
	level := &series{name: "qdisc.eth0.tbf.1:.qlen", bits: 32, role: gauge}
	const step, steps = 1_400_000_000, 20
	var all Snapshots
	for n := range uint64(steps + 1) {
		m := map[uint64]model.Moment{0: model.MomentStart, 5: model.MomentMeasure, steps: model.MomentEnd}[n]
		all.Take(m, moment(int(n)+1, at(drops, 0, uint64(uint32(7+n*step))), at(drops, 1, 3), at(level, 0, 5)))
	}
	var o model.Observation
	if !all.Describe(&o) || len(o.Counters) != 1 || o.Counters[0].Whole != steps*step ||
		o.Counters[0].Measure != (steps-5)*step ||
		o.Counters[0].Reset {
		t.Errorf("got %+v, want %d, of them %d in the measured part", o.Counters, uint64(steps*step),
			uint64((steps-5)*step))
	}
	all.Take(model.MomentEnd, moment(99, at(drops, 0, (7+steps*step)%(1<<32)-9), at(drops, 1, 3)))
	if o = (model.Observation{}); !all.Describe(&o) || !o.Counters[0].Reset {
		t.Errorf("a counter that was made anew: %+v", o.Counters)
	}
}

// The begin is read before the ends meet, and again before the traffic: the later reading counts, if there is one.
func TestBeginReadTwice(t *testing.T) {
	drops := &series{name: "softnet.dropped", bits: 32, role: primary | loss}
	for twice, want := range map[bool]uint64{false: 40, true: 30} {
		var all Snapshots
		all.Take(model.MomentStart, moment(1, at(drops, 0, 10)))
		if twice {
			all.Take(model.MomentIdle, moment(2, at(drops, 0, 18)))
			all.Take(model.MomentStart, moment(4, at(drops, 0, 20)))
		}
		all.Take(model.MomentEnd, moment(9, at(drops, 0, 50)))
		var o model.Observation
		if !all.Describe(&o) || len(o.Counters) != 1 || o.Counters[0].Whole != want ||
			twice != (o.IdleS == 2 && o.Counters[0].IdleHz == 1) {
			t.Errorf("read twice %v: %+v, idle for %v s", twice, o.Counters, o.IdleS)
		}
	}
}

// A kernel counts without end in parts of 32 or 64 bits; what Diff gives back is
// what was counted, as long as no part takes half its range between two moments.
func TestWrapsAreUndone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.SampledFrom([]int{32, 64}).Draw(t, "bits")
		s := &series{name: "x.y", bits: bits, role: primary | loss}
		most := uint64(1)<<31 - 1
		parts := rapid.IntRange(1, 5).Draw(t, "parts")
		measured := rapid.Bool().Draw(t, "measured")
		var shots [moments]Snapshot
		var truth [moments]uint64 // moved since the moment before
		for m := range shots {
			shots[m] = moment(m + 1)
		}
		for p := range parts {
			value := rapid.Uint64Max(1<<40).Draw(t, "from")
			for m := range shots {
				if m > 0 {
					by := rapid.Uint64Max(most).Draw(t, "by")
					if !measured && m >= atMeasure {
						by /= 2 // one step only will be seen
					}
					value += by
					truth[m] += by
				}
				shown := value
				if bits == 32 {
					shown &= 1<<32 - 1
				}
				shots[m].readings = append(shots[m].readings, at(s, uint64(p), shown))
			}
		}
		want := [2]uint64{truth[atMeasure] + truth[atEnd], truth[atEnd]}
		if !measured {
			shots[atMeasure] = Snapshot{}
			want[1] = want[0]
		}
		got := Diff(shots[atIdle], shots[atStart], shots[atMeasure], shots[atEnd], 4)
		if len(got) != 1 {
			t.Fatalf("%d counters", len(got))
		}
		c := got[0]
		if c.Reset || c.Whole != want[0] || c.Measure != want[1] || c.IdleHz != float64(truth[atStart])/4 ||
			c.After-c.Before != c.Whole {
			t.Fatalf("got %+v, want whole %d, measure %d, idle %d/4", c, want[0], want[1], truth[atStart])
		}
	})
}

// Whatever the snapshots hold, Diff says no more than it knows.
func TestDiffOfAnything(t *testing.T) {
	names := []string{"a.b", "c.d", "dev.eth0.rx_packets"}
	rapid.Check(t, func(t *rapid.T) {
		all := make([]*series, 6)
		for i := range all {
			all[i] = &series{
				name: rapid.SampledFrom(names).Draw(t, "name"), bits: rapid.SampledFrom([]int{32, 64}).Draw(t, "bits"),
				fresh: rapid.Bool().Draw(t, "fresh"),
				role:  role(rapid.IntRange(0, 63).Draw(t, "role")), link: rapid.IntRange(0, 8).Draw(t, "link"),
			}
		}
		var shots [moments]Snapshot
		for m := range shots {
			if rapid.Bool().Draw(t, "taken") {
				shots[m] = moment(m + 1)
				for range rapid.IntRange(0, 8).Draw(t, "readings") {
					shots[m].readings = append(shots[m].readings,
						at(rapid.SampledFrom(all).Draw(t, "series"), rapid.Uint64Max(2).Draw(t, "part"),
							rapid.Uint64().Draw(t, "value")))
				}
			}
		}
		got := Diff(shots[0], shots[1], shots[2], shots[3], rapid.Float64Range(0, 10).Draw(t, "seconds"))
		Moving(shots[1], shots[3])
		for _, c := range got {
			if c.Reset && c.Whole|c.Measure != 0 || c.IdleHz < 0 {
				t.Errorf("%+v", c)
			}
		}
		if !slices.IsSortedFunc(got, func(a, b model.Counter) int { return cmp.Compare(a.Name, b.Name) }) {
			t.Errorf("not in order: %+v", got)
		}
	})
}

func TestSettling(t *testing.T) {
	s := Snapshot{links: map[int]link{}}
	for i, l := range []link{
		{name: "lo", loopback: true, up: true}, {name: "v0", kind: "veth", up: true}, {name: "eth0",
			driver: "virtio_net", up: true},
		{name: "tun0", kind: "tun", up: true}, {name: "br0", kind: "bridge", up: true},
	} {
		s.links[i] = l
	}
	if d := s.Settling(); d != 0 {
		t.Errorf("virtual devices settle in %v", d)
	}
	s.links[9] = link{name: "eth9", driver: "ixgbe"}
	if d := s.Settling(); d != 0 {
		t.Errorf("with a card that is down: %v", d)
	}
	s.links[10] = link{name: "lan1", kind: "dsa", up: true}
	for _, c := range []struct {
		names []string
		want  time.Duration
	}{{nil, hardwareRefresh}, {[]string{"v0"}, 0}, {[]string{"v0", "eth9"}, hardwareRefresh}, {[]string{"gone"}, 0}} {
		if d := s.Settling(c.names...); d != c.want {
			t.Errorf("%v settle in %v, want %v", c.names, d, c.want)
		}
	}
}
