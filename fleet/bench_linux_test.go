package fleet

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pelt/engine"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/unit"
)

// crowd is a hub and its agents, each of which comes from an address of its own.
type crowd struct {
	b      *testing.B
	hub    *Hub
	at     HubAddress
	agents int
	stop   func()       // ends the agents
	again  atomic.Int64 // how often an agent joined anew

	mu     sync.Mutex
	failed map[string]int // how often something failed, by its text without figures
}

var figures = regexp.MustCompile("[0-9]+")

func (f *crowd) note(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed[figures.ReplaceAllString(what, "N")]++
}

// What a hub carries, by the number of its agents. Hub, controller and agents are in this process and share its cores.
// back-lost counts agents that gave up for good when the hub was started again. A round is over-s longer than its
// trials.
func BenchmarkFleet(b *testing.B) {
	sizes := []int{10, 30, 100, 300, 1000}
	if testing.Short() {
		sizes = sizes[:2]
	}
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				measureFleet(b, n)
			}
		})
	}
}

func measureFleet(b *testing.B, n int) {
	f := &crowd{b: b, agents: n, failed: map[string]int{}}
	defer func() {
		for what, times := range f.failed {
			b.Logf("%d times: %s", times, what)
		}
	}()
	before := heap()
	f.start("127.0.0.1:0")
	defer func() { _ = f.hub.Close() }()

	began, spent := time.Now(), processorTime()
	f.join()
	defer f.stop()
	f.report(began, "join-s")
	b.ReportMetric(float64((processorTime()-spent).Microseconds())/1e3/float64(n), "join-cpu-ms/agent")
	b.ReportMetric(float64(f.again.Load()), "join-retries")
	b.ReportMetric((heap()-before)/float64(n)/1024, "heap-KiB/agent") // of agent and hub, without buffers of the kernel

	began = time.Now()
	c := commander(b, f.at)
	f.report(began, "meet-s")
	f.all(c)

	began = time.Now()
	err := each(c.members, func(m member) error {
		_, err := give[AgentInfo](b.Context(), m, verbHello, none{})
		return err
	})
	if f.report(began, "order-s"); err != nil {
		b.Fatal(err)
	}

	began, in := time.Now(), f.messages()
	time.Sleep(2 * time.Second)
	b.ReportMetric(float64(f.messages()-in)/time.Since(began).Seconds(), "idle-msgs/s")

	f.round(c)
	joined := f.again.Load()
	f.restart(c)
	b.ReportMetric(float64(f.again.Load()-joined), "back-lost")
	_ = c.Close()
}

func (f *crowd) start(at string) {
	h, err := StartHub(HubConfig{Listen: netip.MustParseAddrPort(at), Code: testCode, Joins: true})
	testenv.Must(f.b, err)
	f.hub, f.at = h, HubAddress{Addr: h.Addr(), Code: testCode}
}

// join has all agents join at once, and again those that the hub had no time for.
func (f *crowd) join() {
	ctx, cancel := context.WithCancel(context.Background())
	var living, joined sync.WaitGroup
	f.stop = sync.OnceFunc(func() { cancel(); living.Wait() })
	w := newWire()
	for i := range f.agents {
		cfg := agentOn(w, fmt.Sprint("h", i))
		cfg.Engines = map[string]engine.Engine{"udp": &fakeEngine{name: "udp", host: cfg.ID, wire: w, hears: true}}
		at := f.at
		at.From = netip.AddrFrom4([4]byte{127, 0, byte(1 + i/250), byte(1 + i%250)})
		joined.Add(1)
		ready := sync.OnceFunc(joined.Done)
		living.Go(func() {
			for ctx.Err() == nil {
				err := Join(ctx, at, cfg, func(AgentInfo) { ready() })
				if ctx.Err() == nil {
					f.again.Add(1)
					f.note(fmt.Sprint(err))
				}
			}
		})
	}
	joined.Wait()
}

func (f *crowd) all(c *Controller) {
	f.b.Helper()
	if found := len(c.Agents()); found != f.agents {
		f.b.Errorf("%d agents answered, want %d", found, f.agents)
	}
}

// round measures all pairs side by side.
func (f *crowd) round(c *Controller) {
	var pairs sync.WaitGroup
	var valid atomic.Int64
	began, spent, in := time.Now(), processorTime(), f.messages()
	var length time.Duration
	for i := range f.agents / 2 {
		order := bothTrial(fmt.Sprint("h", 2*i), fmt.Sprint("h", 2*i+1), 5*time.Second)
		order.Timing.WarmupSeconds, order.Drops = 1, model.DropsSeq
		for n := range order.Flows {
			order.Flows[n].Flow.Rate = unit.PacketRate(100)
		}
		length = order.Timing.Warmup() + order.Timing.Measure() + order.Timing.Drain()
		pairs.Go(func() {
			out, err := c.RunTrial(f.b.Context(), order, func(Progress) {})
			if err == nil && said(out.Cut) == "" {
				valid.Add(1)
			} else {
				f.note(fmt.Sprintf("pair: %v, cut: %q", err, said(out.Cut)))
			}
			for _, warning := range out.Warnings {
				f.note(fmt.Sprint("pair: ", warning))
			}
		})
	}
	pairs.Wait()
	took := time.Since(began)
	f.b.ReportMetric(float64(valid.Load())/float64(f.agents/2)*100, "%valid")
	f.b.ReportMetric((took - length).Seconds(), "round-over-s")
	f.b.ReportMetric(float64(f.messages()-in)/took.Seconds(), "round-msgs/s")
	f.b.ReportMetric((processorTime()-spent).Seconds()/took.Seconds(), "round-cores")
}

// restart has the hub start anew, and waits until all are back.
func (f *crowd) restart(c *Controller) {
	subscriptions := f.hub.server.NumSubscriptions()
	_ = f.hub.Close()
	began := time.Now()
	f.start(f.at.Addr.String())
	back := func() bool {
		f.hub.admission.mu.Lock()
		defer f.hub.admission.mu.Unlock()
		return len(f.hub.admission.clients) == f.agents+1 && f.hub.server.NumSubscriptions() >= subscriptions
	}
	for !back() {
		time.Sleep(2 * time.Millisecond)
	}
	f.report(began, "back-s")
	testenv.Await(f.b, "the controller is back", c.links[0].nc.IsConnected)
	again := commander(f.b, f.at)
	f.all(again)
	_ = again.Close()
}

func (f *crowd) report(began time.Time, unit string) {
	f.b.ReportMetric(time.Since(began).Seconds(), unit)
}

// messages is how many the hub took and handed on.
func (f *crowd) messages() int64 {
	v, err := f.hub.server.Varz(nil)
	testenv.Must(f.b, err)
	return v.InMsgs + v.OutMsgs
}

func heap() float64 {
	runtime.GC()
	runtime.GC() // the first one only hands pools over
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

func processorTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
