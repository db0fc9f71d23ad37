package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pelt/model"
)

// gun sends one frame again and again through a lab, as fast as a core can, and
// counts those that arrive. It goes past the sockets of both ends, which would
// cost more than any router between.
type gun struct {
	from, to Interface
	fromNode *Node
	toNode   *Node
	program  *ebpf.Program
	frame    []byte
}

// aim makes a gun for a lab whose router takes XDP frames.
func aim(b *testing.B, l *Lab) *gun {
	b.Helper()
	g := &gun{fromNode: benchNode(b, l, model.Sender), toNode: benchNode(b, l, model.Receiver)}
	g.from, g.to = g.fromNode.Interface(), g.toNode.Interface()
	hang(b, g.toNode, g.to.Name, xdpDrop)
	router, _ := l.Router()
	if !router.TakesFrames() {
		for _, i := range router.Interfaces() {
			hang(b, router, i.Name, xdpPass)
		}
	}
	if runtime.NumCPU() > 1 {
		if err := router.OwnThread("to-sender", runtime.NumCPU()-1); err != nil {
			b.Fatal(err)
		}
	}
	var target, source []byte
	var index int
	err := g.fromNode.Do(func() error {
		eth0, err := netlink.LinkByName(g.from.Name)
		if err != nil {
			return err
		}
		index, source = eth0.Attrs().Index, eth0.Attrs().HardwareAddr
		neighbours, err := netlink.NeighList(index, netlink.FAMILY_V4)
		for _, n := range neighbours { // the router is the only one, or the receiver behind a switch
			target = n.HardwareAddr
		}
		return err
	})
	if err != nil || target == nil {
		b.Fatal("nobody is there to send to", err)
	}
	g.frame = frame64(target, source, g.from.Addr4.Addr(), g.to.Addr4.Addr())
	g.program = loadProgram(b, redirect(index, g.frame))
	return g
}

const (
	xdpDrop = 1
	xdpPass = 2

	liveFrames = 1 << 1 // BPF_F_TEST_XDP_LIVE_FRAMES
)

// frame64 is a UDP datagram of 18 B without a checksum.
func frame64(target, source []byte, from, to netip.Addr) []byte {
	f := append(append(append([]byte{}, target...), source...), 8, 0, 0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0)
	f = append(append(f, from.AsSlice()...), to.AsSlice()...)
	sum := uint32(0)
	for i := 14; i < 34; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(f[i:]))
	}
	binary.BigEndian.PutUint16(f[24:], ^uint16(sum+sum>>16))
	f = append(f, 0x13, 0x88, 0, 9, 0, 26, 0, 0)
	return append(f, make([]byte, 18)...)
}

// redirect writes the frame anew each time, for its memory comes back as whoever
// had it last left it, and sends it out of an interface.
func redirect(index int, frame []byte) asm.Instructions {
	list := asm.Instructions{
		asm.LoadMem(asm.R6, asm.R1, 0, asm.Word),
		asm.LoadMem(asm.R7, asm.R1, 4, asm.Word),
		asm.Mov.Reg(asm.R2, asm.R6),
		asm.Add.Imm(asm.R2, int32(len(frame))),
		asm.JGT.Reg(asm.R2, asm.R7, "out"),
	}
	for at := 0; at < len(frame); at += 4 {
		list = append(list, asm.StoreImm(asm.R6, int16(at), int64(int32(binary.NativeEndian.Uint32(frame[at:]))), asm.Word))
	}
	return append(list,
		asm.Mov.Imm(asm.R1, int32(index)),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRedirect.Call(),
		asm.Return(),
		asm.Mov.Imm(asm.R0, xdpDrop).WithSymbol("out"),
		asm.Return(),
	)
}

func loadProgram(b *testing.B, list asm.Instructions) *ebpf.Program {
	b.Helper()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "GPL", Instructions: list})
	if err != nil {
		b.Skip(err) // the same that keeps BPF from a lab
	}
	b.Cleanup(func() { _ = p.Close() })
	return p
}

func hang(b *testing.B, n *Node, iface string, verdict int32) {
	b.Helper()
	p := loadProgram(b, asm.Instructions{asm.Mov.Imm(asm.R0, verdict), asm.Return()})
	err := n.Do(func() error {
		l, err := netlink.LinkByName(iface)
		if err != nil {
			return err
		}
		hook, err := link.AttachXDP(link.XDPOptions{Program: p, Interface: l.Attrs().Index, Flags: link.XDPDriverMode})
		if err == nil {
			b.Cleanup(func() { _ = hook.Close() })
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}

// received is how many frames came to the far end.
func (g *gun) received(b *testing.B) (frames uint64) {
	b.Helper()
	err := g.toNode.Do(func() error {
		l, err := netlink.LinkByName(g.to.Name)
		if err == nil {
			frames = l.Attrs().Statistics.RxPackets
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return frames
}

// fire sends so many frames. The call begins and ends with waits of the kernel's
// own, of some 10 ms, so they should be many.
func (g *gun) fire(b *testing.B, frames uint32) (seconds float64) {
	b.Helper()
	began := time.Now()
	err := g.fromNode.Do(func() (err error) {
		var before, first unix.CPUSet
		first.Set(0) // the router's thread is on the last one
		if err := errors.Join(unix.SchedGetaffinity(0, &before), unix.SchedSetaffinity(0, &first)); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, unix.SchedSetaffinity(0, &before)) }()
		_, err = g.program.Run(&ebpf.RunOptions{Data: g.frame, Repeat: frames, Flags: liveFrames})
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return time.Since(began).Seconds()
}

// BenchmarkRouter prints what routers of each kind forward of small frames, in
// turn, and what each frame costs their thread: the router's work and a program
// that drops what arrives. Where the thread ran but a part of the time, the sender
// was the limit.
func BenchmarkRouter(b *testing.B) {
	frames, rounds := uint32(1<<22), 5
	if testing.Short() {
		frames, rounds = 1<<14, 1
	}
	type contestant struct {
		topology, words string
		pps             []float64
		cost            time.Duration
		seconds         float64
		frames          uint64
	}
	list := []*contestant{
		{topology: "switch", words: Plain}, {topology: "switch", words: "rules=100"}, {topology: "router", words: Plain},
		{topology: "nat", words: Plain}, {topology: "nat", words: "rules=100"}, {topology: "nat", words: "log"},
		{topology: "fast", words: Plain}, {topology: "fast", words: "fast"},
	}
	labs, guns := map[string]*Lab{}, map[string]*gun{}
	for _, c := range list {
		if labs[c.topology] == nil {
			labs[c.topology] = benchLab(b, c.topology)
			guns[c.topology] = aim(b, labs[c.topology])
		}
	}
	for b.Loop() {
		for range rounds {
			for _, c := range list {
				l, g := labs[c.topology], guns[c.topology]
				if err := l.SetRouter(c.words); err != nil {
					b.Fatal(err)
				}
				router, _ := l.Router()
				g.fire(b, 1<<10) // so that the flow is known
				time, _ := router.ThreadTime("to-sender")
				came := g.received(b)
				seconds := g.fire(b, frames)
				came = g.received(b) - came
				after, err := router.ThreadTime("to-sender")
				if err == nil {
					c.cost += after - time
				}
				c.frames, c.seconds = c.frames+came, c.seconds+seconds
				c.pps = append(c.pps, float64(came)/seconds)
			}
		}
	}
	for _, c := range list {
		least, most, sum := math.Inf(1), 0.0, 0.0
		for _, pps := range c.pps {
			least, most, sum = min(least, pps), max(most, pps), sum+pps
		}
		mean := sum / float64(len(c.pps)) / 1e3
		fmt.Printf("64 B frames through %s, %s: %.0f kpps (%.0f to %.0f), %d ns of its thread for each, which ran %.0f %% of the time\n",
			c.topology, c.words, mean, least/1e3, most/1e3, c.cost.Nanoseconds()/int64(max(c.frames, 1)), 100*c.cost.Seconds()/c.seconds)
		b.ReportMetric(mean, c.topology+"-"+c.words+"-kpps")
	}
}
