//go:build amd64 || arm64

package xdp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"pelt/engine"
	"pelt/internal/netns"
	"pelt/internal/testenv"
	"pelt/model"
)

// ip runs the program inside a namespace.
func (b *bed) ip(h *netns.Handle, line string) {
	b.t.Helper()
	testenv.Tool(b.t, "ip")
	b.do(h, func() error {
		out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s", line, err, out)
		}
		return nil
	})
}

// bridged puts a switch between the two hosts, and a third host behind it:
//
//	near va ---- m0 switch m1 ---- vb far
//	                       m2 ---- vb bystander, down and without an address
func (b *bed) bridged() (bystander *netns.Handle) {
	b.t.Helper()
	hosts := []*netns.Handle{b.near, b.far}
	for range 2 {
		h, err := netns.New()
		if err != nil {
			b.t.Fatal(err)
		}
		b.t.Cleanup(func() { h.Close() })
		hosts = append(hosts, h)
	}
	bystander, middle := hosts[2], hosts[3]
	b.ip(b.near, "link del va")
	b.ip(middle, "link add switch type bridge forward_delay 0")
	b.ip(middle, "link set switch up")
	for i, name := range []string{"va", "vb", "vb"} {
		b.ip(middle, fmt.Sprintf("link add m%d type veth peer name %s netns /proc/%d/fd/%d",
			i, name, os.Getpid(), hosts[i].File().Fd()))
		b.ip(middle, fmt.Sprintf("link set m%d master switch up", i))
		if i < 2 {
			b.ip(hosts[i], "link set "+name+" up")
			b.address(hosts[i], name, netip.MustParseAddr(fmt.Sprintf("10.78.0.%d", i+1)))
		}
	}
	b.engines[middle] = newEngines(b.t)
	if err := b.engines[middle].xdp.Ready(middle, "m0"); err != nil {
		b.t.Fatal(err)
	}
	return bystander
}

// move gives the far host's addresses to the bystander.
func (b *bed) move(bystander *netns.Handle) {
	b.t.Helper()
	var mac net.HardwareAddr
	b.do(b.far, func() error {
		link, err := netlink.LinkByName("vb")
		if err == nil {
			mac = link.Attrs().HardwareAddr
		}
		return err
	})
	b.ip(b.far, "link set vb down")
	b.ip(bystander, "link set vb address "+mac.String()+" up")
	b.address(bystander, "vb", farFour)
}

// unkept is a sender of frames that hears of the consent of the first moment only.
type unkept struct {
	frameEnd
	told bool
}

func (s *unkept) extend(until int64) {
	if !s.told {
		s.told = true
		s.frameEnd.extend(until - int64(engine.ConsentLasts) + int64(time.Second))
	}
}

// A sender ends by itself when the consent runs out: its keeper may get no core to stop it.
func TestSenderKeepsTime(t *testing.T) {
	for _, rate := range []string{"20kpps", "max"} {
		c := trial{measure: time.Minute, flow: model.Flow{Rate: mustRate(t, rate)}}
		c.carried = func(x *transport) { x.frames = &unkept{frameEnd: x.frames} }
		var began time.Time
		c.during = func() { began = time.Now() }
		out, err := newBed(t).run(c)
		if took := out.ended.Sub(began); !errors.Is(err, engine.ErrLapsed) || took < 500*time.Millisecond || took > 5*time.Second {
			t.Errorf("%s: ended with %v after %v", rate, err, took)
		}
		if out.send.Send == nil || out.send.Send.Attempted == 0 {
			t.Errorf("%s: %+v", rate, out.send)
		}
	}
}

// A bystander that gets the receiver's addresses in mid-flood is rid of it after 5 s, and the
// sender says why. Nobody else is there to stop it.
func TestBystanderIsLeftAlone(t *testing.T) {
	for _, name := range []string{"udp", "xdp"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
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
				b.do(bystander, func() (err error) {
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
			if err == nil || !strings.Contains(err.Error(), "did not answer for 5s") {
				t.Errorf("the sender ended with %v", err)
			}
			const slack = 300 * time.Millisecond // a busy host wakes threads late
			flooded := last.Sub(moved)
			if packets < 1000 || flooded > engine.ConsentLasts+slack || flooded < 3*time.Second {
				t.Errorf("the bystander got %d packets until %v after the move", packets, flooded)
			}
			if out.send.Why != "" != (name == "xdp") {
				t.Errorf("the engine was %q %s", out.send.Engine, out.send.Why)
			}
			t.Logf("the bystander got %d packets in %v", packets, flooded)
		})
	}
}
