package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"pelt/internal/testenv"
	"pelt/model"
	"pelt/test/servers"
)

// joinAs has an agent join a hub until the test ends.
func joinAs(t testing.TB, hub HubAddress, cfg AgentConfig) (info AgentInfo) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan AgentInfo, 1), make(chan error, 1)
	go func() { ended <- Join(ctx, hub, cfg, func(i AgentInfo) { ready <- i }); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	select {
	case info = <-ready:
	case err := <-ended:
		t.Fatalf("joining as %s: %v", cfg.ID, err)
	}
	return info
}

func openHub(t testing.TB) HubAddress {
	t.Helper()
	h := hubAt(t, func(c *HubConfig) { c.Joins = true })
	return HubAddress{Addr: h.Addr(), Code: testCode}
}

// cluster is three servers of a user's own, which let in users of one account by their credentials.
type cluster struct {
	servers []*server.Server
	address HubAddress
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	c := &cluster{address: HubAddress{Credentials: filepath.Join(t.TempDir(), "user.creds")}}
	account := servers.NewAccount(t, c.address.Credentials)
	must := func(err error) {
		t.Helper()
		testenv.Must(t, err)
	}
	var routes, urls []string
	for i := range 3 {
		o, err := account.Options(i, "127.0.0.1", -1, -1)
		must(err)
		o.Routes = server.RoutesFromStr(strings.Join(routes, ","))
		s, err := server.NewServer(o)
		must(err)
		go s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		if !s.ReadyForConnections(testenv.Patience) {
			t.Fatal("a server of the cluster is not ready")
		}
		routes, urls = append(routes, "nats://"+s.ClusterAddr().String()), append(urls, s.ClientURL())
		c.servers = append(c.servers, s)
	}
	for _, s := range c.servers {
		testenv.Await(t, "the servers know each other", func() bool { return s.NumRoutes() >= 2*servers.RoutesToEach })
	}
	c.address.NATS = strings.Join(urls, ",")
	return c
}

// commander connects a controller to a fleet.
func commander(t testing.TB, hub HubAddress, names ...string) *Controller {
	t.Helper()
	c, err := NewFleetController(t.Context(), "1.0", hub, names...)
	testenv.Must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// A fleet on a hub, and on servers of a user's own. These let nobody in without their credentials, and one that goes away
// takes nothing with it.
func TestFleet(t *testing.T) {
	t.Parallel()
	t.Run("hub", func(t *testing.T) {
		t.Parallel()
		fleetMeasures(t, openHub(t), func() {})
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		own := newCluster(t)
		at := HubAddress{NATS: own.address.NATS}
		_, err := NewFleetController(t.Context(), "1.0", at)
		for _, err := range []error{err, Join(t.Context(), at, agentOn(newWire(), "a"), nil)} {
			if err == nil ||
				err.Error() != "--nats: these servers do not let this user in: want the credentials of one of theirs (--creds FILE)" {
				t.Errorf("got %v", err)
			}
		}
		fleetMeasures(t, own.address, own.servers[0].Shutdown)
	})
}

// fleetMeasures joins six hosts to a hub. One controller runs trials of three pairs beside each other, and something
// happens in the midst.
func fleetMeasures(t *testing.T, hub HubAddress, happens func()) {
	w := newWire()
	for i := range 6 {
		info := joinAs(t, hub, agentOn(w, fmt.Sprint("h-", i)))
		if info.Address != netip.MustParseAddr("127.0.0.1") || info.BehindNAT() {
			t.Errorf("address %v, seen at %v", info.Address, info.Seen)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
	defer cancel()
	if err := Join(ctx, hub, agentOn(w, "h-3"), nil); err == nil || err.Error() != nameTakenError("h-3").Error() {
		t.Errorf("a name that is taken: %v", err)
	}
	c := commander(t, hub)
	if n := len(c.Agents()); n != 6 {
		t.Fatalf("%d agents are there, want 6", n)
	}
	if _, err := NewFleetController(t.Context(), "1.0", hub, "h-1", "gone"); err == nil ||
		err.Error() != "no host named gone is on the hub: pelt hosts shows who is there" {
		t.Errorf("a host that is not there: %v", err)
	}
	var round sync.WaitGroup
	var begun atomic.Int32
	for i := range 3 {
		round.Go(func() {
			from, to := fmt.Sprint("h-", i), fmt.Sprint("h-", 5-i)
			order := bothTrial(from, to, 3*time.Second)
			order.onceMeasured(func() {
				if begun.Add(1) == 3 { // a pair that begins meanwhile would miss its peer
					time.AfterFunc(time.Second, happens)
				}
			})
			out, err := c.RunTrial(t.Context(), order, nil)
			if err != nil || said(out.Cut) != "" {
				t.Errorf("%s to %s: %v, cut: %q", from, to, err, said(out.Cut))
				return
			}
			for _, f := range out.Flows {
				if f.Send == nil || f.Receive == nil || f.Receive.Receive.Tally.Received == 0 {
					t.Errorf("%s to %s: a flow's account is missing", from, to)
				}
			}
		})
	}
	round.Wait()
}

// A host that has the name of another one leaves, however late that answers, and says meanwhile that it may. Where both
// found the name free, the one that joined later leaves.
func TestFleetNameTakenLate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		joined time.Time
		err    error
	}{
		"an old version":    {time.Time{}, nameTakenError("a")},
		"who was there":     {time.Now().Add(-time.Hour), nameTakenError("a")},
		"who came after it": {time.Now().Add(time.Hour), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub := openHub(t)
			other, err := hub.dial(t.Context(), "a", true)
			testenv.Must(t, err)
			defer other.close()
			asked := make(chan *nats.Msg, 1)
			if _, err := other.subscribe(orderSubject("a", "*", "*"), func(m *nats.Msg) { asked <- m }); err != nil {
				t.Fatal(err)
			}
			testenv.Must(t, other.nc.Flush())
			cfg, told := agentOn(newWire(), "a"), ""
			cfg.Events = func(said error) { told += said.Error() + "\n" }
			ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
			defer cancel()
			err = Join(ctx, hub, cfg, func(AgentInfo) {
				_ = (<-asked).Respond(encodeReply(AgentInfo{ID: "a", Joined: c.joined}, nil))
				if c.err == nil {
					time.AfterFunc(300*time.Millisecond, cancel) // a host that is to leave does so in less
				}
			})
			const want = "another host named a may be on the hub, and has not answered for 2s: this one leaves if it does\n"
			if fmt.Sprint(err) != fmt.Sprint(c.err) || told != want {
				t.Errorf("%v; it said %q, want %v, %q", err, told, c.err, want)
			}
		})
	}
}

// A host that is leaving, and still has its hands full, does not say that its name is taken.
func TestFleetLeaving(t *testing.T) {
	t.Parallel()
	hub := openHub(t)
	open := func(agent string) *link {
		l, err := hub.dial(t.Context(), agent, true)
		testenv.Must(t, err)
		t.Cleanup(l.close)
		return l
	}
	leaving, controller := open("a"), open("")
	a, err := newAgent(agentOn(newWire(), "a"))
	testenv.Must(t, err)
	a.cfg.clientOf = func(string) netip.Addr { return leaving.remote().Addr() }
	a.closed.Code = model.PeltStopped
	for range cap(a.busy) {
		a.busy <- struct{}{}
	}
	testenv.Must(t, a.serve(leaving))
	answers, inbox := make(chan *nats.Msg, 2), controller.nc.NewInbox()+"."
	if _, err := controller.subscribe(inbox+"*", func(m *nats.Msg) { answers <- m }); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{verbHello, verbRelease} { // answered in turn
		testenv.Must(t, controller.nc.PublishRequest(orderSubject("a", verb, controller.client), inbox+verb, nil))
	}
	if m := testenv.Receive(t, "an answer", answers); m.Subject != inbox+verbRelease {
		t.Errorf("a hello was answered: %s", m.Data)
	}
}

// A host takes part in the tests of one controller at a time. Another's begins once the ends of that are closed.
func TestFleetTaken(t *testing.T) {
	t.Parallel()
	hub, w := openHub(t), newWire()
	shared, sender := agentOn(w, "b"), agentOn(w, "a")
	var refused atomic.Bool // until then the first controller's trial does not end
	sender.Engines["udp"].(*fakeEngine).ends = refused.Load
	for _, c := range []AgentConfig{sender, shared, agentOn(w, "c")} {
		joinAs(t, hub, c)
	}
	first, second := commander(t, hub, "a", "b"), commander(t, hub, "b", "c")
	closing := make(chan struct{})
	var once sync.Once
	shared.Engines["udp"].(*fakeEngine).closing = func() {
		once.Do(func() {
			close(closing)
			time.Sleep(500 * time.Millisecond) // meanwhile the second controller's order comes
		})
	}
	begun := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		order := upTrial("a", "b", time.Second)
		order.onceMeasured(func() { close(begun) })
		if out, err := first.RunTrial(t.Context(), order, nil); err != nil || said(out.Cut) != "" {
			t.Errorf("the first controller's trial: %v, cut: %q", err, said(out.Cut))
		}
	})
	testenv.Receive(t, "the first controller's trial", begun)
	if _, err := second.RunTrial(t.Context(), upTrial("c", "b", time.Second), nil); !errors.Is(err, ErrTaken) {
		t.Errorf("the second controller's: %v, want %v", err, ErrTaken)
	}
	refused.Store(true)
	testenv.Receive(t, "the end of the first controller's trial", closing)
	measured(t, second, upTrial("c", "b", 100*time.Millisecond), nil)
	running.Wait()
	if run, closed := w.events("b", "run receive")[1], w.events("b", "closed receive")[0]; run.Before(closed) {
		t.Errorf("its ends ran %v before those of the first were closed", closed.Sub(run))
	}
}

// A host of another version is named, once, however often it is asked. One that the hub does not know is not waited for.
func TestFleetUnfit(t *testing.T) {
	t.Parallel()
	hub, w := openHub(t), newWire()
	joinAs(t, hub, agentOn(w, "a"))
	old, err := hub.dial(t.Context(), "old", true)
	testenv.Must(t, err)
	defer old.close()
	hello := fmt.Sprintf(`{"body":{"id":"old","version":"9.1","protocol":%d}}`, protocolVersion+1)
	var asked atomic.Int64
	if _, err := old.subscribe(helloSubject, func(m *nats.Msg) {
		asked.Add(1)
		_ = m.Respond([]byte(hello))
	}); err != nil {
		t.Fatal(err)
	}
	_, err = NewFleetController(t.Context(), "1.0", hub, "a", "old")
	want := fmt.Sprintf("no host named old is on the hub, but old runs pelt 9.1 (protocol %d), "+
		"this is pelt 1.0 (protocol %d): upgrade pelt here", protocolVersion+1, protocolVersion)
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if n := asked.Load(); n == 0 || time.Duration(n)*askAgain > helloFirst/2 {
		t.Errorf("it was asked %d times", n)
	}
}

// A server of a cluster may hear of a host after another host has answered: it is asked again.
func TestFleetHeardLate(t *testing.T) {
	t.Parallel()
	hub, w := openHub(t), newWire()
	joinAs(t, hub, agentOn(w, "a"))
	b, err := newAgent(agentOn(w, "b"))
	testenv.Must(t, err)
	if b.link, err = hub.dial(t.Context(), "b", true); err != nil {
		t.Fatal(err)
	}
	defer b.link.close()
	b.alone = true
	var asked atomic.Int64
	if _, err := b.link.subscribe(helloSubject, func(m *nats.Msg) {
		if asked.Add(1) > 1 {
			_ = m.Respond(b.answer(t.Context(), "", verbHello, []byte(m.Reply)))
		}
	}); err != nil {
		t.Fatal(err)
	}
	if got := commander(t, hub).Agents(); len(got) != 2 {
		t.Errorf("%d hosts were met, want both; b was asked %d times", len(got), asked.Load())
	}
}

// Whoever learns the name of another client's session has no orders for it.
func TestFleetOthersSession(t *testing.T) {
	t.Parallel()
	hub, w := openHub(t), newWire()
	joinAs(t, hub, agentOn(w, "a"))
	joinAs(t, hub, agentOn(w, "b"))
	spy, err := hub.dial(t.Context(), "spy", true) // an agent hears controllers
	testenv.Must(t, err)
	defer spy.close()
	heard := make(chan string, 1000)
	if _, err := spy.subscribe(sessionSubject("*.*", controllerName),
		func(m *nats.Msg) { heard <- m.Subject }); err != nil {
		t.Fatal(err)
	}
	first, other := commander(t, hub, "a", "b"), commander(t, hub, "a", "b")
	order := upTrial("a", "b", time.Minute)
	begun := make(chan struct{})
	order.onceMeasured(func() { close(begun) })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan Outcome, 1)
	go func() {
		out, err := first.RunTrial(ctx, order, nil)
		if err != nil {
			t.Error(err)
		}
		done <- out
	}()
	testenv.Receive(t, "the trial", begun)
	part := strings.Split(testenv.Receive(t, "a heartbeat", heard), ".")
	about := sessionOrder{part[2] + "." + part[3]}
	data, err := json.Marshal(stopOrder{sessionOrder: about, Why: model.Reason{Code: "stopped by a stranger"}})
	testenv.Must(t, err)
	stranger := other.links[0]
	for _, client := range []string{stranger.client, part[2]} {
		m := &nats.Msg{Subject: orderSubject("a", verbStop, client), Reply: inboxPrefix + part[2] + ".x", Data: data}
		if err := errors.Join(stranger.nc.PublishMsg(m), stranger.nc.Flush()); err != nil {
			t.Error(err)
		}
	}
	for _, verb := range []string{verbStop, verbAccount, verbRelease} {
		if _, err := give[none](t.Context(), other.members[0], verb, about); err == nil ||
			!strings.Contains(err.Error(), errNoSession.Error()) {
			t.Errorf("%s of another client: %v", verb, err)
		}
	}
	theirs := goodOrder()
	theirs.sessionOrder = about
	if _, err := give[none](t.Context(), other.members[0], verbMake, theirs); err == nil ||
		!strings.Contains(err.Error(), errNoSession.Error()) {
		t.Errorf("an end for another client: %v", err)
	}
	cancel()
	if out := testenv.Receive(t, "the end of the trial", done); said(out.Cut) != "interrupted" {
		t.Errorf("the trial: cut: %q", said(out.Cut))
	}
}

// A client of pelt serve cannot be its agent. An agent of a hub commands nobody, and cannot beat as the controller.
func TestFleetRoles(t *testing.T) {
	t.Parallel()
	w := newWire()
	s := serve(t, w, nil)
	if err := Join(t.Context(), HubAddress{Addr: s.addr, Code: testCode}, agentOn(w, "x"), nil); err == nil {
		t.Error("pelt serve let an agent join")
	}
	hub := openHub(t)
	if l, err := hub.dial(t.Context(), controllerName, true); err == nil {
		l.close()
		t.Error("a host joined under the controller's name")
	}
	joinAs(t, hub, agentOn(w, "a"))
	l, err := hub.dial(t.Context(), "b", true)
	testenv.Must(t, err)
	defer l.close()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := l.request(ctx, helloSubject, nil); err == nil {
		t.Error("an agent was answered like a controller")
	}
}

// Whoever takes a pelt serve for a hub, or a hub for a pelt serve, is told which it is.
func TestHubForServe(t *testing.T) {
	t.Parallel()
	w := newWire()
	hub, s := openHub(t), serve(t, w, nil)
	_, asServe := NewController(t.Context(), "1.0", hub)
	at := HubAddress{Addr: s.addr, Code: testCode}
	_, asHub := at.dial(t.Context(), "b", true)
	_, hosts := NewFleetController(t.Context(), "1.0", at)
	_, mesh := NewFleetController(t.Context(), "1.0", at, "a", "b")
	const serves = "%v: a `pelt serve` listens there, and hosts join a `pelt hub`: start one there, or test with that host alone: pelt curve %v"
	for _, c := range []struct {
		err  error
		want string
	}{
		{asServe,
			"127.0.0.1: a `pelt hub` listens there, which is no end of a test: name its hosts as fleet:FROM..TO, and give --hub " + hub.Addr.String()},
		{asHub, fmt.Sprintf(serves, s.addr, s.addr)},
		{hosts, fmt.Sprintf(serves, s.addr, s.addr)},
		{mesh, fmt.Sprintf(serves, s.addr, s.addr)},
	} {
		if c.err == nil || c.err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", c.err, c.want)
		}
	}
}

// A host that nobody reaches stops by itself, as does who was measured with it. Others go on, and it is measured when
// it is back.
func TestFleetPartition(t *testing.T) {
	t.Parallel()
	late := heldUp(t)
	hub := openHub(t)
	path := newCable(t, hub.Addr)
	touched, other := newWire(), newWire()
	joinAs(t, hub, agentOn(touched, "a"))
	joinAs(t, HubAddress{Addr: path.addr, Code: testCode}, agentOn(touched, "b"))
	joinAs(t, hub, agentOn(other, "c"))
	joinAs(t, hub, agentOn(other, "d"))
	c := commander(t, hub)
	beside := make(chan Outcome, 1)
	go func() {
		out, err := c.RunTrial(t.Context(), bothTrial("c", "d", 5*time.Second), nil)
		if err != nil {
			t.Error(err)
		}
		beside <- out
	}()
	pulled := whenSending(touched, 2, func() { path.out.Store(true); touched.cut.Store(true) })
	out, err := c.RunTrial(t.Context(), bothTrial("a", "b", time.Minute), nil)
	at := <-pulled
	if err != nil || said(out.Cut) == "" || out.Flows[0].Send == nil {
		t.Errorf("%+v, %v; want a cut trial with the account of a", out, err)
	}
	for _, host := range []string{"a", "b"} {
		testenv.Await(t, host+" stops", func() bool { return len(touched.events(host, "ended send")) == 1 })
		if d := touched.events(host, "ended send")[0].Sub(at); d > stopLimit(t, late) {
			t.Errorf("%s stopped after %v", host, d)
		}
	}
	if out := testenv.Receive(t, "the end of the other trial", beside); said(out.Cut) != "" {
		t.Errorf("the other trial was cut: %s", said(out.Cut))
	}
	path.out.Store(false)
	touched.cut.Store(false)
	close(path.back)
	testenv.Await(t, "a trial once it is back", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		out, err = c.RunTrial(ctx, bothTrial("a", "b", 100*time.Millisecond), nil)
		return err == nil && said(out.Cut) == ""
	})
}

// Another code after a restart is told, not guessed at for ever.
func TestFleetCodeChanges(t *testing.T) {
	t.Parallel()
	w := newWire()
	h, err := StartHub(HubConfig{Listen: ownAddress(), Code: testCode, Joins: true})
	testenv.Must(t, err)
	at := h.Addr()
	ended := make(chan error, 1)
	ready := make(chan struct{})
	go func() {
		ended <- Join(context.WithoutCancel(t.Context()), HubAddress{Addr: at, Code: testCode}, agentOn(w, "a"),
			func(AgentInfo) { close(ready) })
	}()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	_ = h.Close()
	if h, err = StartHub(HubConfig{Listen: at, Code: "lion-99-teal", Joins: true}); err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := testenv.Receive(t, "its end, with a code that is wrong", ended); err == nil ||
		!strings.Contains(err.Error(), "has another code now") {
		t.Errorf("it ended with: %v", err)
	}
}
