package engine

import (
	"encoding/json"
	"net/netip"
	"regexp"
	"slices"
	"testing"

	"pelt/model"
	"pelt/test/golden"
)

// oneField is how an error names what is out of range.
var oneField = regexp.MustCompile(`^order-field: order\.[a-z_.]+(: [^\n]+)?$`)

// TestOrderCheck: each line of the file changes an order of a dialing sender, in JSON. Below stands what is wrong then.
func TestOrderCheck(t *testing.T) {
	golden.Table(t, "testdata/orders.txt", func(question string) string {
		o := Order{Flow: model.Flow{Name: "up", Protocol: model.UDP, From: "sender", To: "receiver", PayloadBytes: 64,
			Streams: 1}, Timing: model.Timing{MeasureSeconds: 1}, Role: Send, Peer: netip.MustParseAddr("127.0.0.1"),
			Trial: 1, Key: make([]byte, KeyBytes), CPU: -1}
		if err := json.Unmarshal([]byte(question), &o); err != nil {
			t.Fatalf("%s: %v", question, err)
		}
		o.Ports = slices.Repeat([]uint16{9}, o.Flow.Streams)
		err := o.Check()
		if err == nil {
			return "fine"
		}
		if !oneField.MatchString(err.Error()) {
			t.Errorf("%s: %v; want one line that names the field", question, err)
		}
		return err.Error()
	})
}
