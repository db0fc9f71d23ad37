package counters

import (
	"cmp"
	"fmt"
	"slices"
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

// TestDiff: what is told of each pair of readings stands in the golden file.
func TestDiff(t *testing.T) {
	wide := &series{name: "Udp.InErrors", scope: namespaceScope, unit: skbUnit, bits: 64, role: primary | loss}
	quiet := &series{name: "IpExt.InTruncatedPkts", scope: namespaceScope, unit: skbUnit, bits: 64, role: loss}
	narrow := &series{name: "qdisc.eth0.tbf.1:.drops", scope: deviceScope, unit: skbUnit, bits: 32,
		role: primary | loss, link: 7}
	softnet := &series{name: "softnet.dropped", scope: hostScope, unit: skbUnit, bits: 32, role: primary | loss}
	filter := &series{name: "nfqueue.9.queue_dropped", scope: namespaceScope, unit: skbUnit, bits: 32, fresh: true,
		role: loss}
	device := &series{name: "dev.eth0.rx_packets", scope: deviceScope, unit: skbUnit, bits: 64,
		role: primary | packets, link: 7}
	anew := &series{name: "dev.eth0.rx_packets", scope: deviceScope, unit: skbUnit, bits: 64, role: primary | packets,
		link: 8}
	level := &series{name: "qdisc.eth0.tbf.1:.qlen", bits: 32, role: gauge}
	segments := &series{name: "Tcp.InSegs", bits: 64, role: hidden}
	none := Snapshot{}
	var out strings.Builder
	for _, c := range []struct {
		name                      string
		idle, start, measure, end Snapshot
	}{
		{"four moments", moment(0, at(wide, 0, 10)), moment(2, at(wide, 0, 14)), moment(3, at(wide, 0, 20)),
			moment(9, at(wide, 0, 120))},
		{"two moments", none, moment(2, at(wide, 0, 14)), none, moment(9, at(wide, 0, 120))},
		{"not read when the warm-up was over", none, moment(2, at(wide, 0, 14)), moment(3),
			moment(9, at(wide, 0, 120))},
		{"stood still, needed", none, moment(2, at(wide, 0, 14)), none, moment(9, at(wide, 0, 14))},
		{"stood still", none, moment(2, at(quiet, 0, 14)), none, moment(9, at(quiet, 0, 14))},
		{"no start", none, none, none, moment(9, at(wide, 0, 14))},
		{"no end", none, moment(9, at(wide, 0, 14)), none, none},
		{"went back", none, moment(2, at(wide, 0, 14)), none, moment(9, at(wide, 0, 3))},
		{"went back and on again", none, moment(2, at(wide, 0, 14)), moment(3, at(wide, 0, 1)),
			moment(9, at(wide, 0, 20))},
		{"wraps at 32 bits", none, moment(2, at(narrow, 0, 0xfffffff0)), moment(3, at(narrow, 0, 0xfffffff8)),
			moment(9, at(narrow, 0, 8))},
		{"made anew, not wrapped", none, moment(2, at(narrow, 0, 500)), none, moment(9, at(narrow, 0, 3))},
		{"each processor wraps alone", none, moment(2, at(softnet, 0, 0xffffffff), at(softnet, 1, 5)), none,
			moment(9, at(softnet, 0, 1), at(softnet, 1, 6))},
		{"a processor went away", none, moment(2, at(softnet, 0, 3), at(softnet, 1, 5)), none,
			moment(9, at(softnet, 0, 4))},
		{"a filter's queue came", moment(0), moment(2), moment(3), moment(9, at(filter, 77, 12))},
		{"a filter's queue came in the warm-up", moment(0), moment(2), moment(3, at(filter, 77, 2)),
			moment(9, at(filter, 77, 12))},
		{"a filter's queue went", none, moment(2, at(filter, 77, 2)), none, moment(9)},
		{"an interface came", none, moment(2), none, moment(9, at(device, 0, 12))},
		{"an interface came and counted nothing", none, moment(2), none, moment(9, at(device, 0, 0))},
		{"an interface of the same name", none, moment(2, at(device, 0, 12)), none, moment(9, at(anew, 0, 90))},
		{"only while idle", moment(0, at(device, 0, 12)), moment(2), none, moment(9)},
		{"new after the idle window", moment(0), moment(2, at(device, 0, 3)), none, moment(9, at(device, 0, 5))},
		{"levels and what only Moving needs", none, moment(2, at(level, 0, 1), at(segments, 0, 1)), none,
			moment(9, at(level, 0, 9), at(segments, 0, 9))},
	} {
		fmt.Fprintf(&out, "%s: %+v\n", c.name, Diff(c.idle, c.start, c.measure, c.end, 2))
	}
	golden.File(t, "testdata/diff.txt", out.String())
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

func TestDiffLeavesOutIdleInterfaces(t *testing.T) {
	device := &series{name: "dev.eth0.rx_packets", bits: 64, role: primary | packets, link: 7}
	still := moment(1, at(device, 0, 5))
	for _, c := range []struct {
		name  string
		links map[int]link
		want  int
	}{
		{"up", map[int]link{7: {up: true}}, 1},
		{"down", map[int]link{7: {}}, 0},
		{"one of many", func() map[int]link {
			many := map[int]link{}
			for i := range manyLinks {
				many[i] = link{index: i, up: true}
			}
			return many
		}(), 0},
	} {
		end := still
		end.links = c.links
		if got := Diff(Snapshot{}, still, Snapshot{}, end, 0); len(got) != c.want {
			t.Errorf("%s: %d counters, want %d", c.name, len(got), c.want)
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

func TestMoving(t *testing.T) {
	drops := &series{name: "dev.eth0.rx_dropped", bits: 64, role: loss}
	received := &series{name: "Ip.InReceives", bits: 64, role: packets}
	datagram := &series{name: "Udp.InDatagrams", bits: 64, role: datagrams}
	squeeze := &series{name: "softnet.time_squeeze", bits: 32}
	segments := &series{name: "Tcp.InSegs", bits: 64, role: hidden}
	queue := &series{name: "qdisc.eth0.tbf.1:.qlen", bits: 32, role: gauge}
	filter := &series{name: "nfqueue.9.queue_dropped", bits: 32, role: loss, fresh: true}
	for _, c := range []struct {
		name string
		a, b []reading
		want bool
	}{
		{"nothing", []reading{at(drops, 0, 3)}, []reading{at(drops, 0, 3)}, false},
		{"a loss", []reading{at(drops, 0, 3)}, []reading{at(drops, 0, 4)}, true},
		{"a datagram", []reading{at(datagram, 0, 3)}, []reading{at(datagram, 0, 4)}, true},
		{"a packet", []reading{at(received, 0, 3)}, []reading{at(received, 0, 4)}, true},
		{"TCP's packets", []reading{at(received, 0, 3), at(segments, 0, 5)},
			[]reading{at(received, 0, 13), at(segments, 0, 15)}, false},
		{"more than TCP's", []reading{at(received, 0, 3), at(segments, 0, 5)},
			[]reading{at(received, 0, 103), at(segments, 0, 15)}, true},
		{"what always moves", []reading{at(squeeze, 0, 3)}, []reading{at(squeeze, 0, 9)}, false},
		{"a queue fills", []reading{at(queue, 0, 3)}, []reading{at(queue, 0, 9)}, true},
		{"a queue empties", []reading{at(queue, 0, 9)}, []reading{at(queue, 0, 3)}, true},
		{"a queue stands", []reading{at(queue, 0, 9)}, []reading{at(queue, 0, 9)}, false},
		{"an interface came", nil, []reading{at(drops, 0, 9)}, false},
		{"an interface went", []reading{at(drops, 0, 9)}, nil, false},
		{"a counter went back", []reading{at(drops, 0, 9)}, []reading{at(drops, 0, 3)}, false},
		{"a filter's queue came and lost", nil, []reading{at(filter, 5, 1)}, true},
	} {
		if got := Moving(moment(1, c.a...), moment(2, c.b...)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
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
