//go:build amd64 || arm64

package xdp

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"pelt/engine"
	"pelt/engine/udp"
	"pelt/internal/netbed"
	"pelt/internal/testenv"
	"pelt/model"
)

// bridged puts a switch between the two hosts, and a third host behind it:
//
//	near va ---- m0 switch m1 ---- vb far
//	                       m2 ---- vb bystander, down and without an address
func (b *bed) bridged() (bystander *netbed.Node) {
	b.t.Helper()
	bystander, middle := netbed.Namespace(b.t), netbed.Namespace(b.t)
	b.near.Link("va", netlink.LinkDel)
	middle.Bridge("switch")
	for i, n := range []*netbed.Node{b.near, b.far, bystander} {
		name := []string{"va", "vb", "vb"}[i]
		middle.Plug("switch", fmt.Sprint("m", i), n, name)
		if i < 2 {
			n.Give(name, netip.PrefixFrom(netbed.Address(false, byte(i+1)), 24))
		}
	}
	b.engines[middle] = newEngines(b.t)
	if err := b.engines[middle].xdp.Ready(middle, "m0"); err != nil {
		b.t.Fatal(err)
	}
	return bystander
}

// move gives the far host's addresses to the bystander.
func (b *bed) move(bystander *netbed.Node) {
	b.t.Helper()
	mac := b.far.Hardware("vb")
	b.far.Down("vb")
	bystander.Link("vb", func(l netlink.Link) error { return netlink.LinkSetHardwareAddr(l, mac) })
	bystander.Give("vb", netip.PrefixFrom(farFour, 24))
}

// A stream whose receiver no longer consents ends, and the others go on.
func TestStreamWithoutConsent(t *testing.T) {
	for _, c := range []struct {
		rate           string
		streams, ended int
	}{{"20kpps", 4, 1}, {"max", 4, 1}, {"max", 16, 1}, {"20kpps", 2, 2}, {"max", 2, 2}} {
		b := newBed(t)
		var sending *transport
		all := c.ended == c.streams
		x := trial{measure: 2 * time.Second, flow: model.Flow{Rate: mustRate(t, c.rate), Streams: c.streams}}
		if all {
			x.measure = time.Minute
		}
		x.carried = func(t *transport) { sending = t }
		x.during = func() {
			testenv.Await(t, "packets", func() bool { return sending.Count().Packets >= 1000 })
			for i := range c.ended {
				sending.frames.silence(i)
			}
		}
		out, err := b.run(x)
		if err != nil {
			t.Fatal(err)
		}
		s := out.send.Send
		if s.Silent != c.ended || s.Attempted < 1000 {
			t.Errorf("%+v: silent %d, attempted %d", c, s.Silent, s.Attempted)
		}
		if last := s.Streams[c.streams-1]; !all && s.Streams[0] >= last {
			t.Errorf("%+v: sent by stream: %v", c, s.Streams)
		}
		if paced := c.rate != "max"; paced && !all && (s.Planned != 40000 || s.SlotsSilent < 1000 || s.Attempted+s.Late+s.SlotsSilent != s.Planned) {
			t.Errorf("%+v: planned %d, attempted %d, late %d, left %d", c, s.Planned, s.Attempted, s.Late, s.SlotsSilent)
		}
		if steps := s.PerStep; !all && len(steps) < 2 {
			t.Errorf("%+v: series %v", c, steps)
		}
		if lasted := time.Duration(s.DurationNanos); all && lasted > testenv.Patience || !all && lasted < 1900*time.Millisecond {
			t.Errorf("%+v: lasted %v", c, lasted)
		}
	}
}

// fastClock is a clock that goes ten times as fast as time does.
func fastClock() func() int64 {
	began := time.Now()
	return func() int64 { return 10 * int64(time.Since(began)) }
}

// A bystander that gets the receiver's addresses in mid-flood is rid of it once the consent is over: after 30 s, which
// are 3 here. Nobody else is there to stop the sender.
func TestClockBystanderIsLeftAlone(t *testing.T) {
	testenv.Clock(t)
	for _, name := range []string{"udp", "xdp"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.engines[b.near] = newEnginesOf(t, udp.Config{ConsentClock: fastClock()})
			bystander := b.bridged()
			var last, moved time.Time
			packets, heard := 0, make(chan struct{})
			c := trial{engines: [2]string{name, name}, measure: time.Minute, free: true,
				flow: model.Flow{Rate: mustRate(t, "20kpps")}}
			var port uint16
			var conn *net.UDPConn
			c.connected = func(_ *engine.End, streams []engine.Stream) { port = streams[0].Remote.Port() }
			c.during = func() {
				time.Sleep(1500 * time.Millisecond) // until a check was answered
				b.move(bystander)
				moved = time.Now()
				bystander.Must(func() (err error) {
					conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(farFour, port)))
					return err
				})
				go func() {
					defer close(heard)
					for b := make([]byte, 2000); ; {
						n, err := conn.Read(b)
						if err != nil {
							return
						}
						if _, ok := engine.ParseHeader(b[:n]); ok {
							last = time.Now()
							packets++
						}
					}
				}()
			}
			out, err := b.run(c)
			conn.Close()
			<-heard
			if err != nil || out.send.Send.Silent != 1 {
				t.Errorf("the sender ended with %v and %+v", err, out.send.Send)
			}
			const lasts, slack = engine.ConsentLasts / 10, 300 * time.Millisecond
			flooded := last.Sub(moved)
			if packets < 1000 || flooded > lasts+slack || flooded < lasts/2 {
				t.Errorf("the bystander got %d packets until %v after the move", packets, flooded)
			}
			if out.send.Why != "" != (name == "xdp") {
				t.Errorf("the engine was %q %s", out.send.Engine, out.send.Why)
			}
			t.Logf("the bystander got %d packets in %v", packets, flooded)
		})
	}
}
