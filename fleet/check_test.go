package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pelt/engine"
	"pelt/model"
	"pelt/unit"
)

const (
	aClient  = "0123456789abcdef0123456789abcdef"
	aSession = aClient + "." + aClient
)

// goodOrder is a prepare order of one listening receiver.
func goodOrder() makeOrder {
	trial := upTrial("near", "far", time.Second)
	return makeOrder{sessionOrder: sessionOrder{aSession}, Trial: 7, Ends: []endOrder{{
		End: 1, Engine: "udp", Peer: "near", Order: engine.Order{Flow: trial.Flows[0].Flow, Timing: trial.Timing,
			Role:   engine.Receive,
			Listen: true, Trial: 7, Key: make([]byte, 32), CPU: -1},
	}}}
}

// manyEnds gives an order as many ends like its first.
func manyEnds(p *makeOrder, count int) {
	for len(p.Ends) < count {
		next := p.Ends[0]
		next.End += len(p.Ends)
		p.Ends = append(p.Ends, next)
	}
}

// quietAgent is on a hub of its own and counts what its engine was asked.
func quietAgent(t testing.TB, w *wire, limits Limits) *Agent {
	t.Helper()
	cfg := agentOn(w, "far")
	cfg.Limits = limits
	return hubWith(t, cfg).joined()[0]
}

func TestPrepareChecks(t *testing.T) {
	t.Parallel()
	w := newWire()
	a := quietAgent(t, w, Limits{})
	for _, c := range []struct {
		name   string
		change func(*makeOrder, *engine.Order)
		want   string
	}{
		{"session", func(p *makeOrder, _ *engine.Order) { p.Session = "x.y" },
			"session: want two names of 32 hex digits"},
		{"wild session", func(p *makeOrder, _ *engine.Order) { p.Session = "*.>" }, "session: want two names"},
		{"no ends", func(p *makeOrder, _ *engine.Order) { p.Ends, p.Trial = nil, 0 }, "ends: want at least one"},
		{"many ends", func(p *makeOrder, _ *engine.Order) { p.Ends = make([]endOrder, 301) },
			"ends: want at most 300, not 301"},
		{"same end twice", func(p *makeOrder, _ *engine.Order) { p.Ends = append(p.Ends, p.Ends[0]) },
			"ends[1].end: 1 is out of range or stands twice"},
		{"peer is itself", func(p *makeOrder, _ *engine.Order) { p.Ends[0].Peer = "far" },
			"ends[0].peer: want the name of another agent"},
		{"wild peer", func(p *makeOrder, _ *engine.Order) { p.Ends[0].Peer = ">" },
			"ends[0].peer: want the name of another agent"},
		{"engine", func(p *makeOrder, _ *engine.Order) { p.Ends[0].Engine = "xdp" }, `engine "xdp": that host has udp`},
		{"payload 15", func(_ *makeOrder, o *engine.Order) { o.Flow.PayloadBytes = 15 },
			"payload_bytes: a UDP payload is 16 to 65507 B, not 15"},
		{"readers", func(p *makeOrder, o *engine.Order) {
			o.Role, o.Flow.Protocol, o.Flow.Bulk, o.Flow.Rate, o.Flow.InfoSeconds = engine.Send, model.TCP, true, unit.Rate{}, 0.05
			manyEnds(p, 26)
		}, "MB of that host's memory, and it allows 537 MB: try again later"},
		{"long trials", func(p *makeOrder, o *engine.Order) {
			o.Timing.MeasureSeconds = model.MaxMeasure.Seconds()
			manyEnds(p, maxEnds-1)
		}, "3666 MB of that host's memory"},
		{"record", func(_ *makeOrder, o *engine.Order) { o.Record = &model.RecordID{} }, "that host records nothing"},
	} {
		p := goodOrder()
		c.change(&p, &p.Ends[0].Order)
		if err := orderOf(t, a, verbMake, p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
	if n := w.prepared.Load(); n != 0 {
		t.Errorf("%d ends were opened by bad orders", n)
	}
}

// TestServedAgent: what an agent of pelt serve refuses beyond the rest.
func TestServedAgent(t *testing.T) {
	t.Parallel()
	w := newWire()
	a := quietAgent(t, w, Limits{MaxRatePPS: 1500})
	from := map[byte]string{'0': "192.0.2.1", '1': "192.0.2.1", '2': "192.0.2.2"}
	a.cfg.clientOf = func(session string) netip.Addr {
		client, _ := netip.ParseAddr(from[session[0]])
		return client
	}
	prepare := func(client string, change func(*engine.Order)) error {
		p := goodOrder()
		p.Session = client + aSession[1:]
		p.Ends[0].Order.Flow.Rate = unit.PacketRate(1000)
		change(&p.Ends[0].Order)
		return orderOf(t, a, verbMake, p)
	}
	same := func(*engine.Order) {}
	if err := prepare("0", func(o *engine.Order) { o.Listen, o.Peer = false, netip.MustParseAddr("10.0.0.1") }); err == nil ||
		!strings.HasSuffix(err.Error(), "start pelt serve there with --calls 10.0.0.1") || w.prepared.Load() > 0 {
		t.Errorf("told to call: %v, %d ends opened", err, w.prepared.Load())
	}
	for _, c := range []struct{ client, want string }{
		{"3", "session: is of no client that is connected here"},
		{"0", ""},
		{"1", "the flows ask for 2.00 kpps together; that host allows 1.50 kpps"}, // another session of the same host
		{"2", ""},
	} {
		if err := prepare(c.client, same); (err == nil) != (c.want == "") || err != nil &&
			!strings.Contains(squeeze(err.Error()), squeeze(c.want)) {
			t.Errorf("client %s: %v, want %q", c.client, err, c.want)
		}
	}
	from['0'] = "" // its client is gone, what it has open is not
	if err := prepare("1", same); err == nil || !strings.Contains(err.Error(), "together") {
		t.Errorf("beside a session whose client is gone: %v", err)
	}
}

func TestOrdersOutOfTurn(t *testing.T) {
	t.Parallel()
	w := newWire()
	a := quietAgent(t, w, Limits{})
	data, err := json.Marshal(goodOrder())
	if err != nil {
		t.Fatal(err)
	}
	session := `{"session":"` + aSession + `"`
	for _, c := range []struct{ verb, data, want string }{
		{verbDo, session + `,"step":"meet"}`, "no such session here (any more)"},
		{verbMake, string(data), ""},
		{verbMake, string(data), "session: it is open already"},
		{verbDo, session + `,"step":"open"}`, `step: no such step "open"`},
		{verbDo, session + `,"step":"dance"}`, `step: no such step "dance"`},
		{verbDo, session + `,"step":"go","gate_ns":-1}`, "gate_ns: want 0 to 10s, not -1ns"},
		{verbDo, session + `,"step":"ready","window_ns":10000000000}`, "window_ns: want 0 to 2s, not 10s"},
		{verbDo, session + `,"step":"ready","flows":[{"name":"f","protocol":"udp","number":7}]}`, "flows: this host knows those of its ends"},
		{verbDo, session + `,"step":"ready"}`, "flow up: settle: the end is not connected"},
		{verbDo, session + `,"step":"meet"}`, "meet: the session was told to ready already"},
		{verbDo, session + `,"step":"drain","ends":{"1":{"sent":{"streams":[5,6]}}}}`, "flow up: drain: it has 1 streams, not 2"},
		{verbDo, session + `,"step":"drain","ends":{"1":{"sent":{"streams":[5]}}}}`,
			"flow up: drain: the end is no running receiver"},
		{verbDo, session + `,"step":"drain","ends":{"2":{"sent":{"streams":[5]}}}}`, "drain: it names an end that this session does not have"},
		{verbAccount, session + `}`, `account: there is none of ""`},
		{verbAccount, session + `,"of":"router"}`, "no router is watched in this session"},
		{verbAccount, session + `,"of":"record"}`, "record: nothing is recorded in this session"},
		{verbAccount, session + `,"of":"trial","from":3}`, "report: it has no byte 3"},
		{verbAccount, session + `,"of":"trial"}`, ""},
		{"dance", session + "}", `unknown verb "dance"`},
		{verbRelease, session + "}", ""},
		{verbRelease, session + "}", "no such session here (any more)"},
	} {
		_, err := open(a.answer(t.Context(), aClient, c.verb, []byte(c.data)))
		if got := fmt.Sprint(err); got != c.want && !(err == nil && c.want == "") {
			t.Errorf("%s %s:\ngot  %v\nwant %s", c.verb, c.data, err, c.want)
		}
	}
	nothingOpen(t, w)
}

// What a host grants of rates and times. A profile counts with its busiest second.
func TestLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits  Limits
		profile string // or rate
		flows   int
		want    string // "" if granted
	}{
		"none":                    {Limits{}, "max", 2, ""},
		"exactly the packet rate": {Limits{MaxRatePPS: 3000}, "1.5kpps", 2, ""},
		"packet rate of two flows": {Limits{MaxRatePPS: 3000}, "1.6kpps", 2,
			"the flows ask for 3.20 kpps together; that host allows 3.00 kpps (--max-rate there), so give --rate 1.5kpps"},
		"bit rate": {Limits{MaxRateBPS: 1e6}, "2mbit", 1,
			"the flows ask for 2.00 Mbit/s together; that host allows 1.00 Mbit/s (--max-rate there), so give --rate 1mbit"},
		"exactly the bit rate": {Limits{MaxRateBPS: 2e6}, "2mbit", 1, ""},
		"unpaced": {Limits{MaxRatePPS: 3000}, "max", 1,
			"flow up asks for rate max; that host allows 3.00 kpps (--max-rate there), so give --rate 3kpps"},
		"time": {Limits{MaxTimeSeconds: 1}, "max", 1,
			"the trial takes 1.50 s with its warm-up; that host allows 1.00 s (--max-time there)"},
		"poisson":       {Limits{MaxRatePPS: 2000}, "poisson", 1, ""},
		"more poisson":  {Limits{MaxRatePPS: 1999}, "poisson", 1, "the flows ask for 2 kpps together"},
		"bursts":        {Limits{MaxRatePPS: 2000}, "on=10ms,off=90ms", 1, ""},
		"more bursts":   {Limits{MaxRatePPS: 1999}, "on=10ms,off=90ms", 1, "the flows ask for 2 kpps together"},
		"a ramp":        {Limits{MaxRatePPS: 5000}, "ramp=5kpps..1kpps", 1, ""},
		"a higher ramp": {Limits{MaxRatePPS: 4999}, "ramp=1kpps..5kpps", 1, "the flows ask for 5 kpps together"},
	} {
		f := model.Flow{Name: "up", PayloadBytes: 64}
		var err error
		if f.Rate, err = unit.ParseRate(c.profile); err != nil {
			var p model.Profile
			if p, f.Rate, err = model.ParseProfile(c.profile); err != nil {
				t.Fatal(err)
			}
			if f.Profile = &p; f.Rate == (unit.Rate{}) {
				f.Rate = unit.PacketRate(2000)
			}
		}
		err = c.limits.Admit(slices.Repeat([]model.Flow{f}, c.flows), model.Timing{WarmupSeconds: 0.5, MeasureSeconds: 1})
		var refusal *engine.Refusal
		if (err == nil) != (c.want == "") ||
			err != nil && (!errors.As(err, &refusal) || !strings.HasPrefix(squeeze(err.Error()), squeeze(c.want))) {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, c.want)
		}
	}
}

// squeeze leaves out how package unit writes decimals.
func squeeze(s string) string { return strings.NewReplacer(".00 ", " ", "0 kpps", " kpps").Replace(s) }

// FuzzOrders: whatever comes, there is one well-formed reply, nothing panics,
// and what was not a valid order opens nothing that stays.
func FuzzOrders(f *testing.F) {
	good, err := json.Marshal(goodOrder())
	if err != nil {
		f.Fatal(err)
	}
	for _, verb := range append(slices.Sorted(maps.Keys(orders)), "", ">") {
		for _, data := range []string{string(good), "", "null", "[]", "{}", `{"session":1e999}`,
			`{"session":"` + aSession + `","from":1e40}`,
			`{"session":"` + aSession + `","unknown":true}`, `{"session":"` + aSession +
				`"}{}`, `{"protocol":1,"version":"x"}`,
			strings.Repeat(`{"a":`, 20000), strings.Replace(string(good), `"payload_bytes":64`,
				`"payload_bytes":6e99`, 1)} {
			f.Add(verb, []byte(data))
		}
	}
	w := newWire()
	a := quietAgent(f, w, Limits{})
	f.Fuzz(func(t *testing.T, verb string, data []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r, err := decode[reply](a.answer(ctx, aClient, verb, data))
		if err != nil || (r.Fault == "") == (r.Body == nil) {
			t.Errorf("%s %q: reply %+v, %v", verb, data, r, err)
		}
		a.endSessions("the test goes on")
		if w.opened.Load() != w.closed.Load() {
			t.Errorf("%s %q left an end open", verb, data)
		}
	})
}

func TestCode(t *testing.T) {
	seen := map[string]bool{}
	for text := range strings.SplitSeq(codeWords, "\n\n") {
		list := strings.Fields(text)
		if len(list) < 256 {
			t.Errorf("a list has %d words", len(list))
		}
		for _, word := range list {
			if seen[word] || len(word) < 2 || len(word) > 12 || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") != "" {
				t.Errorf("word %q stands twice, is too long or not plain", word)
			}
			seen[word] = true
		}
	}
	code, err := NewCode()
	if err != nil {
		t.Fatal(err)
	}
	if parts := strings.Split(code, "-"); len(parts) != 3 || len(parts[1]) != 2 {
		t.Errorf("code %q", code)
	}
	for _, bad := range []string{"", " - ", strings.Repeat("x", 65)} {
		if _, err := tidyCode(bad); err == nil {
			t.Errorf("code %q was taken", bad)
		}
	}
}

// TestLiveness plays a controller and agents that pass numbers on in any pattern, then takes the controller away.
func TestLiveness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1000, 0)
		var agents [3]*session
		for i := range agents {
			agents[i] = &session{liveness: newLiveness(now, 0)}
			agents[i].liveness.expect(controllerName, now)
		}
		number := uint64(0)
		agent := func(label string) *session { return agents[rapid.IntRange(0, 2).Draw(t, label)] }
		gossip := func(label string) {
			for range rapid.IntRange(0, 6).Draw(t, label) {
				agent("to").hearNumber(agent("from").number, now)
			}
		}
		for range rapid.IntRange(1, 20).Draw(t, "alive") {
			now = now.Add(beatEvery)
			number++
			agent("told").hear(beat{Number: number}, now)
			gossip("messages")
		}
		for _, s := range agents { // everything that was ever said arrives everywhere, at the latest now
			s.hearNumber(number, now)
		}
		died := now
		for now.Sub(died) < silentAfter {
			now = now.Add(beatEvery)
			gossip("gossip")
		}
		for i, s := range agents {
			if _, _, silent := s.liveness.silent(now); !silent || s.number != number {
				t.Fatalf("%v after the controller's end agent %d waits on; it knows number %d of %d", now.Sub(died), i,
					s.number, number)
			}
		}
	})
}

// How long a party may be silent: a test packet gives less than a heartbeat, seconds count only while a sender can be on,
// and a number that a peer made up hides no heartbeat.
func TestSilence(t *testing.T) {
	begun := time.Now()
	for name, c := range map[string]struct {
		happens func(*session)
		want    time.Duration
	}{
		"nothing comes": {func(*session) {}, silentAfter},
		"a packet may not shorten what a heartbeat gave": {func(s *session) {
			s.liveness.note(controllerName, begun.Add(beatEvery-queued))
		}, silentAfter},
		"a packet": {func(s *session) {
			s.liveness.note(controllerName, begun.Add(2*time.Second-queued))
		}, 2*time.Second - queued + silentAfter},
		"nobody sends": {func(s *session) { s.liveness.calm(true, begun) }, calmAfter},
		"senders begin": {func(s *session) {
			s.liveness.calm(true, begun)
			s.liveness.calm(false, begun.Add(calmAfter-1))
		}, calmAfter - 1 + silentAfter},
		"a number that was made up": {func(s *session) {
			s.hearNumber(1<<60, begun)
			s.hear(beat{Number: 3}, begun.Add(time.Second))
		}, time.Second + silentAfter},
	} {
		s := &session{liveness: newLiveness(begun, 0)}
		s.liveness.expect(controllerName, begun)
		c.happens(s)
		for after, want := range map[time.Duration]bool{c.want - 1: false, c.want: true} {
			if _, _, silent := s.liveness.silent(begun.Add(after)); silent != want {
				t.Errorf("%s: after %v silent %v", name, after, silent)
			}
		}
	}
}

// Making its parts may take a host as long as its order has; then it beats.
func TestSilenceInSetUp(t *testing.T) {
	t.Parallel()
	tr, err := quick(t, agentOn(newWire(), "near"),
		agentOn(newWire(), "far")).place(upTrial("near", "far", time.Second))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	tr.open()
	defer tr.close()
	defer tr.release()
	if who, after, silent := tr.liveness.silent(now.Add(2 * makeTimeout)); silent {
		t.Errorf("%s is cut off after %v, and its order has %v", who, after, 2*makeTimeout)
	}
	if err := tr.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, after, silent := tr.liveness.silent(now.Add(2 * makeTimeout)); !silent || after != makeTimeout {
		t.Errorf("with its parts made, a host may be silent for %v", after)
	}
}

func TestParseCalls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"192.0.2.7", "192.0.2.7"},
		{" 192.0.2.7 , 10.1.2.3/8", "192.0.2.7, 10.0.0.0/8"},
		{"::ffff:192.0.2.7,2001:db8::/32", "192.0.2.7, 2001:db8::/32"},
	} {
		if got, err := ParseCalls(c.text); err != nil || listPrefixes(got) != c.want {
			t.Errorf("%q: %v, %v; want %q", c.text, listPrefixes(got), err, c.want)
		}
	}
	for _, text := range []string{",", "any", "router.lan", "10.0.0.0/33", "::ffff:1.2.3.0/120", "fe80::1%eth0",
		"10.0.0.1 10.0.0.2"} {
		if got, err := ParseCalls(text); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q is read as %v, %v; want one line of error", text, got, err)
		}
	}
}

// A process whose ticks come unevenly is not held up, one that stands still is.
func TestForgiven(t *testing.T) {
	for _, c := range []struct {
		name        string
		gaps        []time.Duration // between ticks, again and again
		least, most time.Duration   // of silence before it is too long
	}{
		{"even", []time.Duration{beatEvery}, silentAfter, silentAfter + beatEvery},
		{"uneven", []time.Duration{beatEvery + 100*time.Millisecond, beatEvery - 100*time.Millisecond}, silentAfter,
			silentAfter + beatEvery + 100*time.Millisecond},
		{"stands still once", append([]time.Duration{time.Second, 10 * time.Millisecond},
			slices.Repeat([]time.Duration{beatEvery}, 20)...), silentAfter + 500*time.Millisecond,
			silentAfter + time.Second},
		{"slow", []time.Duration{2 * beatEvery}, silentAfter + 1500*time.Millisecond,
			silentAfter + 2*time.Second + beatEvery},
	} {
		begun := time.Now()
		h, now := newLiveness(begun, 0), begun
		h.expect("far", begun)
		for i := 0; ; i++ {
			now = now.Add(c.gaps[i%len(c.gaps)])
			h.tick(now)
			if _, _, found := h.silent(now); found {
				break
			}
			if now.Sub(begun) > time.Minute {
				break
			}
		}
		if d := now.Sub(begun); d < c.least || d > c.most {
			t.Errorf("%s: silent after %v, want %v to %v", c.name, d, c.least, c.most)
		}
	}
}
