package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pelt/engine"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/test/golden"
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

// repeated is a count of something in JSON.
var repeated = regexp.MustCompile(`(\d+)\*(\{[^{}]*\}|\w+)`)

// written is JSON in full: $ is the name of a session, with another last digit if one stands behind it; 3*x is x,x,x.
func written(text string) string {
	for digit := range 10 {
		text = strings.ReplaceAll(text, fmt.Sprint("$", digit), fmt.Sprint(aSession[:len(aSession)-1], digit))
	}
	return repeated.ReplaceAllStringFunc(strings.ReplaceAll(text, "$", aSession), func(text string) string {
		count, what, _ := strings.Cut(text, "*")
		n, _ := strconv.Atoi(count)
		return strings.TrimSuffix(strings.Repeat(what+",", n), ",")
	})
}

// TestOrders: each line of the file is an order: the agent, a verb, and JSON. Of an agent with ends, make stands for an
// order that is right: JSON changes it, and *N gives it so many ends like the first. An agent of clients has the limits
// of a pelt serve, and is new each time. Below stands what the agent says, and what it opened or asked its router.
func TestOrders(t *testing.T) {
	t.Parallel()
	wires, agents, router := map[string]*wire{}, map[string]*Agent{}, &fakeRouter{}
	merge := func(text string, into any) {
		d := json.NewDecoder(strings.NewReader(written(text)))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	said := func(err error) string {
		var refusal *engine.Refusal
		switch {
		case errors.As(err, &refusal):
			return "refused: " + err.Error()
		case err != nil:
			return err.Error()
		}
		return "done"
	}
	golden.Table(t, "testdata/orders.txt", func(line string) string {
		words := append(strings.Fields(line), `{"session":"$"}`)
		who, verb := words[0], words[1]
		if who == "limits" {
			var limits Limits
			merge(words[1], &limits)
			return said(limits.Admit(asksFor(t, words[2], words[3]), model.Timing{WarmupSeconds: 0.5, MeasureSeconds: 1}))
		}
		client, served := strings.CutPrefix(who, "client:")
		switch {
		case served:
			wires[who] = newWire()
			agents[who] = servedAgent(t, wires[who], client)
			agents[who].cfg.Engines["tcp"] = agents[who].cfg.Engines["udp"]
		case agents[who] != nil:
		case who == "observer":
			_, agents[who] = observingHub(t, router)
		default:
			wires[who] = newWire()
			agents[who] = quietAgent(t, wires[who], Limits{})
		}
		asked := router.noted()
		data := written(words[2])
		if verb == verbMake && who != "observer" {
			order := goodOrder()
			for _, change := range words[2 : len(words)-1] {
				if count, is := strings.CutPrefix(change, "*"); is {
					n, _ := strconv.Atoi(count)
					manyEnds(&order, n)
				} else {
					merge(change, &order)
				}
			}
			whole, err := json.Marshal(order)
			testenv.Must(t, err)
			data = string(whole)
		}
		var about sessionOrder
		if err := json.Unmarshal([]byte(data), &about); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		of, _, _ := strings.Cut(about.Session, ".")
		_, err := open(agents[who].answer(t.Context(), of, verb, []byte(data)))
		answer := said(err)
		if served && wires[who].prepared.Load() > 0 {
			answer += "\nopened"
		}
		if more := strings.TrimPrefix(strings.TrimPrefix(router.noted(), asked), "; "); more != "" {
			answer += "\nthe router is asked: " + more
		}
		return answer
	})
	if n := wires["plain"].prepared.Load(); n != 0 {
		t.Errorf("%d ends were opened by orders that are wrong", n)
	}
	nothingOpen(t, wires["turns"])
	agents["observer"].shutdown(model.Reason{Code: model.PeltStopped})
	if calls := router.noted(); strings.Count(calls, "close") != maxWatchers || strings.Count(calls, "ended") != 2 {
		t.Errorf("at the end: %s", calls)
	}
	if err := orderOf(t, agents["observer"], verbMake, makeOrder{sessionOrder: sessionOrder{aSession}}); err == nil {
		t.Error("it takes a session after its end")
	}
}

// asksFor are flows of a profile, or of a rate.
func asksFor(t *testing.T, count, profile string) []model.Flow {
	f := model.Flow{Name: "up", PayloadBytes: 64}
	var err error
	if f.Rate, err = unit.ParseRate(profile); err != nil {
		var p model.Profile
		if p, f.Rate, err = model.ParseProfile(profile); err != nil {
			t.Fatal(err)
		}
		if f.Profile = &p; f.Rate == (unit.Rate{}) {
			f.Rate = unit.PacketRate(2000)
		}
	}
	n, _ := strconv.Atoi(count)
	return slices.Repeat([]model.Flow{f}, n)
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
		{"3", "the client of this test is not connected here"},
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

// squeeze leaves out how package unit writes decimals.
func squeeze(s string) string { return strings.NewReplacer(".00 ", " ", "0 kpps", " kpps").Replace(s) }

// FuzzOrders: whatever comes, there is one well-formed reply, nothing panics,
// and what was not a valid order opens nothing that stays.
func FuzzOrders(f *testing.F) {
	good, err := json.Marshal(goodOrder())
	testenv.Must(f, err)
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
		if err != nil || (r.Fault == nil) == (r.Body == nil) {
			t.Errorf("%s %q: reply %+v, %v", verb, data, r, err)
		}
		a.endSessions(model.Reason{Code: model.PeltStopped})
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
	testenv.Must(t, err)
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
	testenv.Must(t, err)
	now := time.Now()
	tr.open()
	defer tr.close()
	defer tr.release()
	if who, after, silent := tr.liveness.silent(now.Add(2 * makeTimeout)); silent {
		t.Errorf("%s is cut off after %v, and its order has %v", who, after, 2*makeTimeout)
	}
	testenv.Must(t, tr.prepare(t.Context()))
	if _, after, silent := tr.liveness.silent(now.Add(2 * makeTimeout)); !silent || after != makeTimeout {
		t.Errorf("with its parts made, a host may be silent for %v", after)
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
