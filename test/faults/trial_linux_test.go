package faults

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pelt/engine"
	"pelt/engine/udp"
	"pelt/fleet"
	"pelt/internal/netbed"
	"pelt/internal/testenv"
	"pelt/ledger"
	"pelt/model"
	"pelt/observe"
	"pelt/observe/dut"
	"pelt/run"
	"pelt/unit"
)

// chain is the path of rows: a netbed.Chain of these three, or a netbed.Switch whose bridge is the router's.
type chain struct {
	testing.TB
	sender, router, receiver *netbed.Node
	bridged                  bool
	shell                    *dut.Router // asked over the router's shell
	// Of the row at work:
	six  bool
	port uint16 // of the receiver
	// group is the process's own, if it has one.
	group string
}

// chains makes the next chain of each kind while rows run.
type chains struct {
	made    map[bool]chan *chain // by bridged; closed if one failed
	free    map[bool]chan *chain // that rows have given back as they were
	making  sync.Mutex           // a row that holds it has the process for itself
	stopped chan struct{}
	all     sync.WaitGroup
}

func newChains(t *testing.T) *chains {
	kinds := func(room int) map[bool]chan *chain {
		return map[bool]chan *chain{false: make(chan *chain, room), true: make(chan *chain, room)}
	}
	a := &chains{made: kinds(0), free: kinds(len(table)), stopped: make(chan struct{})}
	for bridged, made := range a.made {
		a.all.Go(func() {
			defer close(made)
			for {
				select {
				case made <- a.chain(t, bridged):
				case <-a.stopped:
					return
				}
			}
		})
	}
	return a
}

func (a *chains) chain(t *testing.T, bridged bool) *chain {
	a.making.Lock()
	defer a.making.Unlock()
	return newChain(t, bridged)
}

// take returns a chain that no row uses; nil if none can be made.
func (a *chains) take(bridged bool) *chain {
	select {
	case c := <-a.free[bridged]:
		return c
	default:
		return <-a.made[bridged]
	}
}

func (a *chains) giveBack(c *chain) { a.free[c.bridged] <- c }

func (a *chains) stop() {
	close(a.stopped)
	a.all.Wait()
}

func newChain(t testing.TB, bridged bool) *chain {
	c := &chain{TB: t, bridged: bridged}
	if bridged {
		all := netbed.Switch(t, "router", "sender", "receiver")
		c.router, c.sender, c.receiver = all[0], all[1], all[2]
	} else {
		all := netbed.Chain(t, "sender", "router", "receiver")
		c.sender, c.router, c.receiver = all[0], all[1], all[2]
	}
	// The router answers as fast as its machine, which may be emulated, lets it.
	start := func(ctx context.Context) (*dut.Shell, error) {
		shell, err := dut.Local(c.router.Do)(ctx)
		if err == nil {
			shell.MomentPatience = testenv.Patience
		}
		return shell, err
	}
	var err error
	// The last rows may end while a chain is made that nobody will take.
	ctx := context.WithoutCancel(t.Context())
	if c.shell, err = dut.Open(ctx, "router", "its shell", start); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.shell.Close() })
	return c
}

// works has a row use the chain.
func (c *chain) works(t testing.TB, r row) {
	c.TB, c.six = t, r.six
	for _, n := range []*netbed.Node{c.sender, c.router, c.receiver} {
		n.T = t
	}
}

// mode is how much of the path is watched.
type mode int

const (
	verdicts mode = iota // an eBPF program sees each drop of all three hosts
	counted              // all three hosts tell their counters only
	overSSH              // of the router, the files that a shell there reads; the ends see their own drops
	modes
)

func (m mode) String() string { return [...]string{"verdicts", "counters", "router over ssh"}[m] }

// trials counts those of this process: each has a number of its own.
var trials atomic.Uint32

// trial is the flow of a row over its chain, ready to send.
type trial struct {
	*chain
	number           uint16
	flow             model.Flow
	timing           model.Timing
	sender, receiver *engine.End
	watched          [3]*observe.Observation // sender, router, receiver
	router           *dut.Watch
	stall            bool // the receiver has a core of its own, and does not get it while packets are sent
}

// newTrial connects both ends, and begins to watch all three hosts.
func newTrial(c *chain, kernel *observe.Kernel, flow model.Flow, stall bool) *trial {
	c.Helper()
	t := &trial{chain: c, number: uint16(trials.Add(1)), flow: flow, stall: stall,
		timing: model.Timing{MeasureSeconds: 10, DrainSeconds: 1, QuietSeconds: .1}}
	t.connect()
	for i, n := range []*netbed.Node{c.sender, c.router, c.receiver} {
		o := &observe.Observer{Do: n.Do, Kernel: kernel}
		if n != c.router {
			o.Interface = func() string { return "eth0" }
		}
		w, err := o.Begin(t.number, model.DropsSeq)
		testenv.Must(c, err)
		c.Cleanup(func() { _ = w.Close() })
		t.watched[i] = w
	}
	t.router = c.shell.Begin()
	c.Cleanup(func() { _ = t.router.Close() })
	return t
}

// connect opens both ends, which get each other's consent.
func (t *trial) connect() {
	t.Helper()
	order := engine.Order{Flow: t.flow, Timing: t.timing, Role: engine.Receive, Listen: true, Trial: t.number, Tag: 1,
		Key: bytes.Repeat([]byte{7}, engine.KeyBytes), OneClock: true, CPU: -1}
	end := func(host engine.Host) *engine.End {
		made := engine.New(udp.New(udp.Config{}), host, order)
		t.Cleanup(func() { _ = made.Close() })
		testenv.Must(t, made.Open(t.Context(), order.Ports))
		return made
	}
	if t.stall {
		order.CPU = 1
	}
	t.receiver = end(t.chain.receiver)
	if t.stall {
		order.CPU = 0
	}
	order.Listen, order.Role, order.Peer, order.Ports = false, engine.Send, t.chain.receiver.IP(t.six), t.receiver.Ports()
	t.sender = end(t.chain.sender)
	t.port = order.Ports[0]
}

// meet has both ends find each other and tells the watches the ports.
func (t *trial) meet() {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	heard := make(chan error, 1)
	connect := func(e *engine.End) (engine.Meeting, error) {
		met, err := e.Connect(ctx)
		if err != nil || !met.Streams[0].Met {
			return met, cmp.Or(err, errors.New("the ends have not met"))
		}
		return met, e.Settle([]bool{true})
	}
	go func() {
		_, err := connect(t.receiver)
		heard <- err
	}()
	met, err := connect(t.sender)
	testenv.Must(t, cmp.Or(err, <-heard))
	t.flow.Address = t.chain.receiver.IP(t.six)
	t.router.Toward(t.flow.Name, t.flow.Address)
	for _, w := range t.watched {
		testenv.Must(t, w.Track(t.flow, t.number, met.Tuples(engine.Send)))
	}
}

// snapshot reads the counters of all hosts.
func (t *trial) snapshot(m model.Moment) {
	t.Helper()
	var wait sync.WaitGroup
	for _, w := range t.watched {
		wait.Go(func() { w.Snapshot(m) })
	}
	wait.Go(func() { t.router.Snapshot(m) })
	wait.Wait()
}

// run makes the fault, sends the flow and returns its account in each mode. The receiver reads already, so that a fault
// cannot keep it from opening its sockets.
func (t *trial) run(fault, beside func()) (accounts [modes]model.FlowResult) {
	t.Helper()
	testenv.Must(t, t.receiver.Start(t.Context()))
	fault()
	t.snapshot(model.MomentStart)
	beside()
	if t.stall {
		t.keepReaderWaiting()
	}
	testenv.Must(t, t.sender.Start(t.Context()))
	<-t.sender.Done()
	for _, w := range t.watched {
		w.Halt(t.Context())
	}
	t.router.Halt(t.Context())
	sent, err := t.sender.Report()
	if err != nil && !sent.Send.Hopeless {
		t.Fatal(err)
	}
	unsent := sent.Send.Attempted - sent.Send.Accepted
	testenv.Must(t, t.receiver.Drain(t.Context(), engine.Sent{Streams: sent.Send.Streams, Unsent: unsent}))
	received, err := t.receiver.Report()
	testenv.Must(t, err)
	var settled sync.WaitGroup
	for _, w := range t.watched {
		settled.Go(func() { w.Settle(t.Context(), true) })
	}
	settled.Go(func() { t.router.Snapshot(model.MomentEnd) })
	settled.Wait()
	var seen [4]model.Observation
	for i, w := range t.watched {
		seen[i] = w.Report()
	}
	if seen[3] = t.router.Report(); len(seen[3].Unread) > 0 {
		t.Errorf("the router does not tell: %v", seen[3].Unread)
	}
	ends := fleet.FlowOutcome{Send: &sent, Receive: &received}
	for m := range modes {
		accounts[m], _ = run.FlowAccount(t.flow, t.flow.Family, true, t.timing, ends, nodes(m, seen), 0)
	}
	return accounts
}

// keepReaderWaiting takes the receiver's core until all is sent.
func (t *trial) keepReaderWaiting() {
	taken := make(chan struct{})
	go netbed.Pinned(1, func() {
		close(taken)
		for sending := true; sending; {
			select {
			case <-t.sender.Done():
				sending = false
			default: // the core is to be busy
			}
		}
	})
	<-taken
}

// nodes are the hosts of the path as one mode shows them.
func nodes(m mode, seen [4]model.Observation) []ledger.Node {
	sender, router, receiver := seen[0], seen[1], seen[2]
	switch m {
	case counted:
		for _, o := range []*model.Observation{&sender, &router, &receiver} {
			o.Mode, o.Drops = model.DropsOff, nil
		}
	case overSSH:
		router = seen[3]
		for i, o := range []*model.Observation{&sender, &router, &receiver} {
			o.Boot = fmt.Sprint("host ", i)
			if o.Drops != nil {
				o.Drops = within(o.Drops, o.Namespace)
			}
		}
	}
	return []ledger.Node{
		{Name: model.Sender, Observation: &sender, Out: []string{"eth0"}},
		{Name: "router", Observation: &router, In: []string{"to-sender"}, Out: []string{"to-receiver"}},
		{Name: model.Receiver, Observation: &receiver, In: []string{"eth0"}},
	}
}

// within leaves of a machine's drops those that the kernel of a host alone would have seen. The function of a drop
// without a namespace belongs to a socket.
func within(d *model.Drops, namespace uint64) *model.Drops {
	own := *d
	here := func(site int) bool {
		n := d.Sites[site].Namespace
		return n == namespace || n == 0
	}
	own.Flows = nil
	for _, f := range d.Flows {
		f.Counts = slices.DeleteFunc(slices.Clone(f.Counts), func(c model.SiteCount) bool { return !here(c.Site) })
		var streams []model.Marks
		for _, s := range f.Streams {
			var w model.MarksWriter
			for stretch := range s.Stretches() {
				if here(int(stretch.Mark)) {
					w.Add(stretch.From, stretch.Count, stretch.Mark)
				}
			}
			streams = append(streams, w.Marks())
		}
		f.Streams = streams
		own.Flows = append(own.Flows, f)
	}
	return &own
}

// usual is a flow that a row may change. It has no schedule for a busy machine to miss, and no backlog is too short for
// it.
func usual() model.Flow {
	return model.Flow{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, PayloadBytes: 64,
		Streams: 1, Rate: unit.IntervalRate(0), Packets: 1000}
}

// answer is where most of the lost packets are, as layer/cause; @host follows where that is not the layer's own. Where
// no line has most of them, it is all lines.
func answer(m mode, f model.FlowResult) string {
	packets := map[string]uint64{}
	if f.Ledger.Unattributed > 0 {
		open := "unattributed"
		for _, p := range f.Ledger.Possible {
			open += ", possibly " + p.Layer + "/" + p.Cause
		}
		packets[open] = f.Ledger.Unattributed
	}
	for _, l := range f.Ledger.Lines {
		name := l.Layer + "/" + l.Cause
		if l.Host != hostOf(l) {
			name += "@" + l.Host
		}
		seen := l.Confidence == ledger.ExactSeq || slices.ContainsFunc(l.Evidence, func(e model.Evidence) bool {
			return strings.HasPrefix(e.Counter, "verdict ")
		})
		own := l.Layer == model.LayerSendCall || l.Layer == model.LayerSenderQdisc // told by send()
		switch {
		case m == verdicts && !seen:
			name += " by a counter"
		case m == counted && seen && !own:
			name += " by sequence"
		}
		packets[name] += l.Packets
	}
	// Some makers' kernels hide drops from a watch: observe/drops/hidden_test.go.
	most := map[mode]uint64{verdicts: 66, counted: 95, overSSH: 66}[m] * f.Lost / 100
	names := slices.SortedFunc(maps.Keys(packets), func(a, b string) int {
		return cmp.Or(cmp.Compare(packets[b], packets[a]), cmp.Compare(a, b))
	})
	if len(names) > 0 && packets[names[0]] >= most {
		return names[0]
	}
	return strings.Join(names, " + ")
}

// factsOf are the facts of the line that lost most.
func factsOf(f model.FlowResult) string {
	var texts []string
	most := uint64(0)
	for _, l := range f.Ledger.Lines {
		if l.Packets <= most {
			continue
		}
		most, texts = l.Packets, nil
		for _, e := range l.Evidence {
			if e.Role == model.RoleFact {
				texts = append(texts, fmt.Sprintf("%s=%d %s", e.Counter, e.After, e.Unit))
			}
		}
	}
	return strings.Join(texts, ", ")
}

// hostOf is the host that a line must name.
func hostOf(l model.Line) string {
	switch {
	case l.Cause == model.CauseElimination:
		return ""
	case l.Layer == model.LayerNetwork:
		return "router"
	case strings.HasPrefix(l.Layer, "send"):
		return model.Sender
	}
	return model.Receiver
}

// balances reports what is wrong with the sum of an account.
func balances(t testing.TB, m mode, f model.FlowResult) {
	t.Helper()
	sum := f.Ledger.Unattributed
	for _, l := range f.Ledger.Lines {
		sum += l.Packets
	}
	if sum != f.Lost || f.Lost != f.Attempted-f.Received || f.Ledger.Lost != f.Lost {
		t.Errorf("%v: lines and unattributed are %d of %d lost", m, sum, f.Lost)
	}
}

// alone tells whether no other row may run beside a row: it wants the process or a core for itself, or the kernel counts
// what it drops for all namespaces together.
func (r row) alone() bool {
	return r.before != nil || r.stall || strings.HasSuffix(r.want[counted], unanswered)
}

// run makes the fault of a row and returns its accounts. clean says that the chain is as it was.
func (r row) run(c *chain, kernel *observe.Kernel) (accounts [modes]model.FlowResult, clean bool) {
	flow := usual()
	if flow.Family = 4; r.six {
		flow.Family = 6
	}
	if r.flow != nil {
		r.flow(&flow)
	}
	if r.before != nil {
		r.before(c)
	}
	t := newTrial(c, kernel, flow, r.stall)
	t.meet()
	make := r.make
	if make == nil {
		make = func(*chain) func() { return func() {} }
	}
	var undo func()
	beside := func() {
		if r.from != nil {
			toNobody(r.from(c), c.receiver)
		}
	}
	accounts = t.run(func() { undo = make(c) }, beside)
	if undo != nil {
		undo()
	}
	// What waits for its other fragments is given up, and counted, half a minute later.
	whole := flow.PayloadBytes <= 1400
	return accounts, undo != nil && r.before == nil && whole
}

// text is an account in full.
func text(f model.FlowResult) string {
	text := fmt.Sprintf("\n  attempted %d, lost %d, unattributed %d\n", f.Attempted, f.Lost, f.Ledger.Unattributed)
	for _, l := range f.Ledger.Lines {
		text += fmt.Sprintf("  %s/%s@%s %d %s %s\n", l.Layer, l.Cause, l.Host, l.Packets, l.Confidence, l.Function)
		for _, e := range l.Evidence {
			text += fmt.Sprintf("      %s %s %s %d, excess %d, %s\n", e.Host, e.Counter, e.Unit, e.Delta, e.Excess,
				e.Role)
		}
	}
	for _, p := range f.Ledger.Possible {
		text += fmt.Sprintf("  possibly %s/%s@%s %d %v\n", p.Layer, p.Cause, p.Host, p.Most, p.Evidence)
	}
	for _, c := range f.Ledger.Checks {
		if !c.Held {
			text += fmt.Sprintf("  %s: %s\n", c.Name, ledger.Law(c))
		}
	}
	return text
}
