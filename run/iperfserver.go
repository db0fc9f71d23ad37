package run

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"pelt/engine"
	"pelt/finding"
	"pelt/fleet"
	"pelt/iperf3"
	"pelt/model"
	"pelt/observe"
	"pelt/store"
	"pelt/words"
)

// IperfPort is where iperf3 servers listen, unless they are told another port.
const IperfPort = iperf3.DefaultPort

// IperfOptions are how iperf3 clients are served.
type IperfOptions struct {
	Port  int
	Open  bool         // clients from other networks, too
	Store *store.Store // nil keeps nothing
}

// iperfServer serves iperf3 clients: each test is a run.
type iperfServer struct {
	ServeOptions
	kernel *observe.Kernel
	server *iperf3.Server
}

// longestAmount bounds a test that ends by an amount of data, where --max-time is none.
const longestAmount = 24 * time.Hour

// serveIperf opens the port for iperf3 clients. kernel watches this host.
func serveIperf(o ServeOptions, kernel *observe.Kernel) (*iperfServer, error) {
	s := &iperfServer{ServeOptions: o, kernel: kernel}
	longest := longestAmount
	if most := o.Limits.MaxTimeSeconds; most > 0 {
		longest = time.Duration(most * float64(time.Second))
	}
	var err error
	s.server, err = iperf3.Listen(iperf3.ServerConfig{Listen: netip.AddrPortFrom(o.Listen, uint16(o.Iperf.Port)),
		Sessions: o.Limits.MaxSessions, Longest: longest, Welcome: s.welcome, Admit: s.admit, Run: s.run,
		Events: o.Events})
	return s, err
}

func (s *iperfServer) welcome(client netip.Addr) error {
	if s.Iperf.Open || fleet.OwnNetwork(client) {
		return nil
	}
	return finding.NewFault(model.IperfStranger)
}

// admit holds a test against the limits: its rate with the tests of the same host or site, its streams and its memory
// with all others.
func (s *iperfServer) admit(x *iperf3.Session, others []*iperf3.Session) error {
	limits := s.Limits.Toward(x.Peer)
	if err := limits.Admit(nil, x.Timing()); err != nil {
		return iperf3.TooLong(err)
	}
	flows, streams, bytes := x.Flows(), x.Streams(), memoryOf(x)
	for _, other := range others {
		streams, bytes = streams+other.Streams(), bytes+memoryOf(other)
		if fleet.SourceOf(other.Peer) == fleet.SourceOf(x.Peer) {
			flows = append(flows, other.Flows()...)
		}
	}
	if err := limits.Admit(flows, model.Timing{}); err != nil {
		return iperf3.TooFast(err)
	}
	if most := limits.MaxStreams; most > 0 && streams > most {
		return iperf3.TooMany(streams, most)
	}
	if err := limits.AdmitBytes(bytes); err != nil {
		return iperf3.TooLarge(err)
	}
	return planOf(x).Check()
}

// memoryOf is about how many bytes the ends of a client's test may take.
func memoryOf(x *iperf3.Session) (bytes float64) {
	for _, o := range x.Orders() {
		o.OneClock = true // a client's gaps between its packets take what delays do
		bytes += fleet.MemoryOf(o)
	}
	return bytes
}

// planOf is the plan of a client's test: one trial, of which every second is told.
func planOf(x *iperf3.Session) model.Plan {
	flows, drops := x.Flows(), model.DropsSeq
	if x.Wide() {
		drops = model.DropsCount // the kernel's watch reads sequences of 32 bits
	}
	payload := model.Number(float64(flows[0].PayloadBytes))
	return model.Plan{Format: model.PlanFormat, Command: "soak", Target: model.IperfClient + x.Peer.String(),
		Flows: flows, Timing: x.Timing(), Engine: "udp", Drops: drops,
		Factors: []model.Factor{{Knob: "payload_bytes", Levels: []model.Value{payload}}},
		Design:  model.Design{Repeats: 1, Seed: 1}}
}

// run carries out a client's test, and returns what it showed.
func (s *iperfServer) run(ctx context.Context, x *iperf3.Session) (string, error) {
	doc, err := Execute(ctx, planOf(x), Options{Version: s.Version, Store: s.Iperf.Store,
		caller: &caller{session: x, kernel: s.kernel}})
	if err != nil {
		return "", err
	}
	told := func(l words.Language) (list []string) { // what was lost, and where
		said := doc
		said.Language = l
		for _, f := range finding.Explain(&said, finding.Ask{}) {
			if f.Level != finding.Next {
				list = append(list, f.Parts()...)
			}
		}
		if doc.ID != "" {
			list = append(list, l.Sayf("More, on the server: pelt explain %s", doc.ID))
		}
		return list
	}
	text := func(l words.Language) string { return l.Sentences(told(l)) }
	s.Events(words.Errorf("iperf3 client %v: %w", x.Peer, note(text)))
	return strings.Join(told(words.English), "\n") + "\n", nil
}

// caller is an iperf3 client for which a run is.
type caller struct {
	session *iperf3.Session
	kernel  *observe.Kernel
}

// open makes a site of the client and this host.
func (c *caller) open(ctx context.Context, p model.Plan, o Options) (*site, error) {
	x := c.session
	s := &site{engine: p.Engine, noXDP: model.Reason{Code: model.FramesIperf}, kernel: c.kernel}
	s.nodes = []node{{name: model.Sender, end: true},
		{name: model.Receiver, end: true, address: func(int) netip.Addr { return x.Local.Addr() }}}
	near, far := x.Near(), x.Far()
	return s, s.joinIperf(ctx, o, iperfPeer{model.Sender, x.Peer, x.Peer.String(), ""},
		map[string]engine.Engine{near.Name(): near}, map[string]engine.Engine{far.Name(): far})
}
