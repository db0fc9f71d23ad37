//go:build amd64 || arm64

package xdp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pelt/engine"
	"pelt/engine/udp"
	"pelt/internal/netbed"
	"pelt/internal/testenv"
	"pelt/model"
)

// bed is two nodes with engines:
//
//	near 10.77.0.1, fd77::1 ---- veth va, vb ---- 10.77.0.2, fd77::2 far
type bed struct {
	t         testing.TB
	near, far *netbed.Node
	engines   map[*netbed.Node]engines
}

var farFour = netbed.Address(false, 2)

func newBed(t testing.TB) *bed {
	t.Helper()
	pair := netbed.New(t, 1, true)
	b := &bed{t: t, near: pair.Sender, far: pair.Receiver, engines: map[*netbed.Node]engines{}}
	b.engines[b.near], b.engines[b.far] = newEngines(t), newEngines(t)
	return b
}

// threaded gives the far interface's NAPI a thread of its own, pinned to the second core.
func (b *bed) threaded() {
	b.t.Helper()
	b.far.Threaded("vb")
	var set unix.CPUSet
	set.Set(1)
	found := false
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries { // all beds' alike
		comm, _ := os.ReadFile("/proc/" + e.Name() + "/comm")
		if pid, err := strconv.Atoi(e.Name()); err == nil && strings.HasPrefix(string(comm), "napi/vb") {
			found = true
			if err := unix.SchedSetaffinity(pid, &set); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	if !found {
		b.t.Fatal("vb has no NAPI thread")
	}
}

// trial is what one test sends.
type trial struct {
	flow      model.Flow
	warmup    time.Duration
	measure   time.Duration
	drain     time.Duration
	six       bool
	peer      netip.Addr // of far; none: its usual one
	fallback  bool
	engines   [2]string // of sender and receiver; "" is xdp
	free      bool      // threads of sockets may run on any core
	during    func()    // once both run
	stop      func(sender *engine.End)
	connected func(from *engine.End, streams []engine.Stream)
	carried   func(*transport) // of a sender of frames, before it starts
}

// outcome is both ends' account.
type outcome struct {
	send, receive engine.Report
	addresses     []engine.Stream // of the receiver
	ended         time.Time       // of the sender
	warmupUnsent  uint64          // that the device did not take
}

// engines are those of one host.
type engines struct {
	udp *udp.Engine
	xdp *Engine
}

func newEngines(t testing.TB) engines { return newEnginesOf(t, udp.Config{}) }

func newEnginesOf(t testing.TB, c udp.Config) engines {
	u := udp.New(c)
	x := New(u)
	t.Cleanup(func() {
		if err := errors.Join(x.Close(), u.Close()); err != nil {
			t.Errorf("close the engines: %v", err)
		}
	})
	return engines{u, x}
}

func (e engines) named(name string) engine.Engine {
	if name == "udp" {
		return e.udp
	}
	return e.xdp
}

// run runs one trial from near to far.
func (b *bed) run(c trial) (out outcome, err error) {
	b.t.Helper()
	c.flow.Name, c.flow.Protocol = "up", model.UDP
	c.flow.Streams, c.flow.PayloadBytes = max(c.flow.Streams, 1), max(c.flow.PayloadBytes, 18)
	key := make([]byte, 32)
	rand.Read(key)
	order := engine.Order{
		Flow: c.flow, Trial: 77, Tag: 5, Key: key, OneClock: true, CPU: 0, Fallback: c.fallback,
		Timing: model.Timing{WarmupSeconds: c.warmup.Seconds(), MeasureSeconds: c.measure.Seconds(), DrainSeconds: max(c.drain, 20*time.Second).Seconds()},
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.warmup+c.measure+testenv.Patience)
	defer cancel()
	listen := order
	listen.Role, listen.Listen, listen.CPU = engine.Receive, true, 1
	if c.free {
		order.CPU, listen.CPU = -1, -1
	}
	to, err := engine.Prepare(ctx, b.engines[b.far].named(c.engines[1]), b.far, listen)
	if err != nil {
		return out, fmt.Errorf("receiver: %w", err)
	}
	defer to.Close()
	order.Role, order.Peer, order.Ports = engine.Send, farFour, to.Ports()
	if c.peer.IsValid() {
		order.Peer = c.peer
	}
	if c.six {
		order.Peer = netbed.Address(true, 2)
	}
	carrier, err := b.engines[b.near].named(c.engines[0]).Open(ctx, b.near, order)
	if err != nil {
		return out, fmt.Errorf("sender: %w", err)
	}
	from := engine.NewEnd(order, carrier)
	defer from.Close()
	connected := make(chan error, 1)
	go func() {
		var err error
		out.addresses, err = to.Connect(ctx)
		connected <- err
	}()
	streams, err := from.Connect(ctx)
	if err := errors.Join(err, <-connected); err != nil {
		return out, err
	}
	if c.connected != nil {
		c.connected(from, streams)
	}
	if c.carried != nil {
		c.carried(carrier.(*transport))
	}
	if err := errors.Join(to.Start(ctx), from.Start(ctx)); err != nil { // receivers first
		return out, err
	}
	if c.during != nil {
		c.during()
	}
	if c.stop != nil {
		c.stop(from)
	}
	<-from.Done()
	out.ended = time.Now()
	out.send, err = from.Report()
	if x, ok := carrier.(*transport); ok {
		if s, ok := x.frames.(*sender); ok {
			for _, w := range s.workers {
				out.warmupUnsent += load(&w.state.WarmupLost)
			}
		}
	}
	if out.send.Send == nil {
		return out, errors.Join(err, errors.New("no account of the sender"))
	}
	err = errors.Join(err, to.Drain(ctx, engine.Sent{Streams: out.send.Send.Streams, Unsent: out.send.Send.Attempted - out.send.Send.Accepted}))
	var failure error
	out.receive, failure = to.Report()
	return out, errors.Join(err, failure)
}

// matches tells whether a text holds one of several.
func matches(any, text string) bool {
	for _, one := range strings.Split(any, "|") {
		if strings.Contains(text, one) {
			return true
		}
	}
	return false
}

// TestSlotsAreGivenBack: a flow that left makes room for the next one on its interface.
func TestSlotsAreGivenBack(t *testing.T) {
	p := &port{state: &hostState{}}
	for _, r := range []*receiver{{flow: 0, slots: []uint32{0, 1}}, {flow: 1, slots: []uint32{2}}} {
		p.taken[r.flow] = true
		for _, slot := range r.slots {
			p.used[slot] = true
		}
		p.free(r)
	}
	p.free(&receiver{flow: -1}) // it found no room
	if p.used != [len(p.used)]bool{} || p.taken != [len(p.taken)]bool{} {
		t.Errorf("taken flows %v, used slots %v", p.taken[:3], p.used[:3])
	}
}
