package lab

import (
	"slices"
	"testing"
	"time"

	"pelt/internal/testenv"
	"pelt/unit"
)

// expectRate wants a flood to come out at the link's rate. Over the time of a flood the bucket's burst and the last
// frames are up to 1 % of all.
func expectRate(t *testing.T, want unit.BitRate, frameBytes int, f flooded) {
	t.Helper()
	ratio := f.pps * float64(frameBytes) * 8 / float64(want)
	t.Logf("sent %d, received %d: %.4f of %v", f.sent, f.received, ratio, want)
	if ratio < 0.99 || ratio > 1.01 {
		t.Errorf("the link gave %.4f of %v, want 0.99 to 1.01", ratio, want)
	}
}

const frameOver = 42 // Ethernet, IPv4 and UDP headers; the kernel counts no FCS

func TestClockRate(t *testing.T) {
	testenv.Clock(t)
	for _, c := range []struct {
		topology, link string
		rate           unit.BitRate
		payload, frame int
		time           time.Duration
	}{
		{"direct", "rate=1mbit", 1e6, 1472, 1472 + frameOver, time.Second},
		{"router", "rate=1mbit", 1e6, 64, 64 + frameOver, 500 * time.Millisecond},
		{"direct", "rate=1mbit,overhead=24", 1e6, 100, 100 + frameOver + 24, 500 * time.Millisecond},
		{"direct", "rate=1mbit,overhead=24", 1e6, 16, 60 + 24, 500 * time.Millisecond}, // padded to the least frame
		{"nat", "rate=100mbit,toward=receiver", 1e8, 1472, 1472 + frameOver, 500 * time.Millisecond},
	} {
		t.Run(c.topology+"/"+c.link, func(t *testing.T) {
			l := openLab(t, c.topology, c.link)
			expectRate(t, c.rate, c.frame, floodFor(t, node(t, l, "sender"), node(t, l, "receiver"), 4, c.payload,
				c.time))
		})
	}
}

// What does not fit the queue is lost at the link, packet for packet; the
// sender is neither told nor slowed down, on whichever kind of hop the queue is.
//
//	sender ==25 Mbit/s, 1000 packets==> [middle] ----- receiver
func TestQueueOverflows(t *testing.T) {
	for _, c := range []struct{ topology, link string }{
		{"direct", "sender:rate=25mbit,queue=1000,toward=receiver"},
		{"switch", "receiver:rate=25mbit,queue=1000,toward=receiver"},
		{"router", "sender:rate=25mbit,queue=1MB,toward=receiver"},
		{"router", "receiver:rate=25mbit,queue=1000,toward=receiver"},
	} {
		t.Run(c.topology+"/"+c.link, func(t *testing.T) {
			l := openLab(t, c.topology, c.link)
			before := backlogDrops(t)
			f := floodFor(t, node(t, l, "sender"), node(t, l, "receiver"), 4, 1000-frameOver, 50*time.Millisecond)
			missed := int(backlogDrops(t) - before) // by this machine, on the way to the shaper
			ways, err := l.Links()
			i := slices.IndexFunc(ways, func(w LinkWay) bool { return w.Backend == ByTBF })
			if err != nil || i < 0 {
				t.Fatalf("%+v, %v; want one that is shaped", ways, err)
			}
			did := ways[i].Done
			lost := f.sent - f.received
			// A node's own IPv6 multicast report may be among the shaper's packets.
			const own = 8
			if more := int(did.Frames) - f.sent; more < -missed || more > own || int(*did.QueueFull)-lost > own ||
				*did.Passed+*did.QueueFull != did.Frames {
				t.Errorf("sent %d, received %d; shaper %+v", f.sent, f.received, *did)
			}
			// The queue held its 1000 packets, and what came later met a full one.
			most := 1000 + f.took.Seconds()*25e6/8000 + 100
			if f.received < 1000 || float64(f.received) > most || *did.QueueFull == 0 {
				t.Errorf("sent %d in %v, received %d: want 1000 to %.0f received and the rest lost", f.sent, f.took,
					f.received, most)
			}
		})
	}
}
