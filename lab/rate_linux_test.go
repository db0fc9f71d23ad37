package lab

import (
	"testing"
	"time"

	"pelt/unit"
)

// expectRate floods until one of a few tries comes out within 1 %, or at most
// short of it by slack: a busy machine makes the emulator late.
func expectRate(t *testing.T, want unit.BitRate, frameBytes int, slack float64, try func() flooded) {
	t.Helper()
	const tries = 6
	var ratio float64
	for range tries {
		f := try()
		ratio = f.pps * float64(frameBytes) * 8 / float64(want)
		t.Logf("sent %d, received %d: %.4f of %v", f.sent, f.received, ratio, want)
		if ratio >= 0.99-slack && ratio <= 1.01 {
			return
		}
	}
	t.Errorf("the link gave %.4f of %v, want %.2f to 1.01", ratio, want, 0.99-slack)
}

const frameOver = 42 // Ethernet, IPv4 and UDP headers; the kernel counts no FCS

func TestRate(t *testing.T) {
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
			expectRate(t, c.rate, c.frame, 0, func() flooded {
				return floodFor(t, node(t, l, "sender"), node(t, l, "receiver"), 4, c.payload, c.time)
			})
		})
	}
}

// Gigabits need segmentation offload on two busy cores. Ten segments are less
// than the burst of a gigabit, so tbf passes them as they are.
func TestFastRate(t *testing.T) {
	const payload = 1472
	for _, c := range []struct {
		topology, link string
		rate           unit.BitRate
		segments       int
		slack          float64
	}{
		{"switch", "receiver:rate=1gbit,toward=receiver", 1e9, 10, 0},
		{"router", "receiver:rate=1gbit,toward=receiver", 1e9, 10, 0},
		{"direct", "rate=10gbit,toward=receiver", 10e9, 44, 0.19}, // measured 0.997 to 1.003 where the cores are free
	} {
		t.Run(c.topology+"/"+c.link, func(t *testing.T) {
			l := openLab(t, c.topology, c.link)
			receiver := node(t, l, "receiver")
			expectRate(t, c.rate, c.segments*(payload+frameOver), c.slack, func() flooded {
				in := listen(t, receiver, receiver.Addr(4))
				out := dial(t, node(t, l, "sender"), local(in))
				segmentTogether(t, in, out, payload)
				return floodBetween(t, in, out, payload*c.segments, 300*time.Millisecond)
			})
		})
	}
}

// What does not fit the queue is lost at the link, packet for packet; the
// sender is neither told nor slowed down, on whichever kind of hop the queue is.
//
//	sender ==50 Mbit/s, 1000 packets==> [middle] ----- receiver
func TestQueueOverflows(t *testing.T) {
	for _, topology := range []string{"direct", "switch", "router"} {
		for _, link := range []string{"sender:rate=50mbit,queue=1000,toward=receiver", "receiver:rate=50mbit,queue=1000,toward=receiver", "sender:rate=50mbit,queue=1MB,toward=receiver"} {
			t.Run(topology+"/"+link, func(t *testing.T) {
				l := openLab(t, topology, link)
				f := floodFor(t, node(t, l, "sender"), node(t, l, "receiver"), 4, 1000-frameOver, 50*time.Millisecond)
				shapers, err := l.Shapers()
				if err != nil || len(shapers) != 1 {
					t.Fatalf("Shapers: %+v, %v; want one", shapers, err)
				}
				s := shapers[0]
				lost := f.sent - f.received
				// A node's own IPv6 multicast report may be among the shaper's packets.
				const own = 8
				if more := int(s.Packets+s.Dropped) - f.sent; more < 0 || more > own || int(s.Dropped)-lost > own || s.QueuePackets != 0 {
					t.Errorf("sent %d, received %d; shaper %+v", f.sent, f.received, s)
				}
				// The queue held its 1000 packets, and the rest of the flood met a full one.
				if most := 1000 + f.took.Seconds()*50e6/8000 + 100; f.received < 1000 || float64(f.received) > most || lost < 1000 {
					t.Errorf("sent %d in %v, received %d: want 1000 to %.0f received and the rest lost", f.sent, f.took, f.received, most)
				}
			})
		}
	}
}
