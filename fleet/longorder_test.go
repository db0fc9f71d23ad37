package fleet

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"pelt/engine"
	"pelt/internal/testenv"
	"pelt/model"
)

// irregular is a trace of gaps that hardly compress.
func irregular(t *testing.T, packets int) *model.Profile {
	t.Helper()
	draw := rand.New(rand.NewPCG(1, 2))
	gaps := make([]int64, packets)
	for i := range gaps {
		gaps[i] = draw.Int64N(1 << 20)
	}
	trace, err := model.TraceText(gaps)
	testenv.Must(t, err)
	return &model.Profile{Kind: model.TraceProfile, File: strings.Repeat("f", 120) + ".csv", Trace: trace}
}

// The longest traces that a plan may have are obeyed in one order of prepare, and it
// fits a message.
func TestOrdersHoldTraces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		flows, packets int
	}{{"one long trace", 1, 92_000}, {"a trace to 256 receivers", 256, 805}, {"256 receivers", 256, 0}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWire()
			a := quietAgent(t, w, Limits{})
			p := goodOrder()
			one := p.Ends[0]
			one.Peer, one.Counts = randomHex(), true
			o := &one.Order
			o.Flow.From, o.Flow.To, o.Flow.DSCP, o.Flow.Family = "sender", "receiver256", 46, 6
			o.Timing.WarmupSeconds, o.Timing.MeasureSeconds, o.Timing.QuietSeconds, o.Timing.PatienceSeconds = 0.123456, 1234.56789, 0.123456, 60
			o.Role, o.Listen, o.Peer = engine.Send, false, netip.MustParseAddr("2001:db8:1111:2222:3333:4444:5555:6666")
			o.Flow.Profile = &model.Profile{Kind: model.Poisson, Seed: 1 << 63}
			if c.packets > 0 {
				o.Flow.Profile = irregular(t, c.packets)
			}
			t.Logf("%d characters of traces", c.flows*len(strings.Join(o.Flow.Profile.Trace, "")))
			p.Ends = nil
			for i := range c.flows {
				one.End = 2 * i
				o.Flow.Name = fmt.Sprintf("receiver%d", i)
				p.Ends = append(p.Ends, one)
			}
			data, err := json.Marshal(p)
			testenv.Must(t, err)
			t.Logf("an order of %d B", len(data))
			if len(data) > maxPayload-4096 {
				t.Errorf("%d B fit no message with its headers", len(data))
			}
			if _, err := open(a.answer(t.Context(), aClient, verbMake, data)); err != nil {
				t.Error(err)
			}
		})
	}
}
