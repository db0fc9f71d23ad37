package run

import (
	"context"
	"errors"
	"fmt"
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
	return errors.New("refused, because it is in no network of this host (--open-iperf3 lets all in)")
}

// admit holds a test against the limits, with all others of the same host.
func (s *iperfServer) admit(x *iperf3.Session, under []*iperf3.Session) error {
	limits := s.Limits.Toward(x.Peer)
	if err := limits.Admit(nil, x.Timing()); err != nil {
		return iperf3.TooLong(err)
	}
	flows, streams := []model.Flow{x.Flow()}, x.Flow().Streams
	for _, other := range under {
		flows, streams = append(flows, other.Flow()), streams+other.Flow().Streams
	}
	if err := limits.Admit(flows, model.Timing{}); err != nil {
		return iperf3.TooFast(err)
	}
	if most := limits.MaxStreams; most > 0 && streams > most {
		return iperf3.TooMany(fmt.Errorf("its tests would have %d streams, and this host carries %d at once", streams, most))
	}
	return planOf(x).Check()
}

// planOf is the plan of a client's test: one trial, of which every second is told.
func planOf(x *iperf3.Session) model.Plan {
	f := x.Flow()
	return model.Plan{Format: model.PlanFormat, Command: "soak", Target: model.IperfClient + x.Peer.String(),
		Flows: []model.Flow{f}, Timing: x.Timing(), Engine: "udp",
		Drops:   model.DropsOff, // the kernel's watch knows packets by pelt's header: counters alone tell of these
		Factors: []model.Factor{{Knob: "payload_bytes", Levels: []model.Value{model.Number(float64(f.PayloadBytes))}}},
		Design:  model.Design{Repeats: 1, Seed: 1}}
}

// run carries out a client's test, and returns what it showed.
func (s *iperfServer) run(ctx context.Context, x *iperf3.Session) (string, error) {
	doc, err := Execute(ctx, planOf(x), Options{Version: s.Version, Store: s.Iperf.Store,
		caller: &caller{session: x, kernel: s.kernel}})
	if err != nil {
		return "", err
	}
	var told []string // what was lost, and where
	for _, f := range finding.Explain(&doc, finding.Ask{}) {
		if f.Level != finding.Next {
			told = append(told, f.Parts()...)
		}
	}
	if doc.ID != "" {
		told = append(told, "More, on that host: pelt explain "+doc.ID)
	}
	s.Events(fmt.Sprintf("iperf3 client %v: %s", x.Peer, strings.Join(told, " ")))
	return strings.Join(told, "\n") + "\n", nil
}

// caller is an iperf3 client for which a run is.
type caller struct {
	session *iperf3.Session
	kernel  *observe.Kernel
}

// open makes a site of the client and this host. The agent of the client's node is in this process, too: it has no
// sockets, and reports what the client says.
func (c *caller) open(ctx context.Context, p model.Plan, o Options) (*site, error) {
	peer := c.session.Peer
	s := &site{engine: p.Engine, noXDP: "an iperf3 client sends through sockets", silent: "it runs iperf3 and not pelt",
		kernel: c.kernel}
	s.nodes = []node{{name: model.Sender, end: true},
		{name: model.Receiver, end: true, address: func(int) netip.Addr { return c.session.Local.Addr() }}}
	near, _ := s.agentHere(model.Receiver, plainHost{}, o, nil, reaching(peer))
	near.Engines = map[string]engine.Engine{string(c.session.Flow().Protocol): c.session.Near()}
	there := fleet.AgentConfig{Node: model.Sender, Host: plainHost{}, Version: o.Version,
		Engines: map[string]engine.Engine{string(c.session.Flow().Protocol): c.session.Far()},
		Facts:   func() model.Host { return model.Host{Name: "iperf3", Address: peer.String()} }}
	if isOwn(peer) {
		there.Watch = near.Watch // the client's kernel is this one
	}
	if err := s.join(ctx, o, []fleet.AgentConfig{near, there}); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}
