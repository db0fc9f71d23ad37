package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/test/golden"
)

// TestClassify: each line of the file is a reason and a function of a kernel. Below stand layer and cause on each side,
// for a packet that was on its way out or in.
func TestClassify(t *testing.T) {
	sides := []struct {
		name string
		side Side
	}{{"sender", SideSender}, {"receiver", SideReceiver}, {"both in one namespace", SideBoth}, {"on the way",
		SideOther}, {"unknown", SideUnknown}}
	golden.Table(t, "testdata/verdicts.txt", func(question string) string {
		reason, function, _ := strings.Cut(question, " ")
		var out strings.Builder
		for _, s := range sides {
			var ways []string
			for _, received := range []bool{false, true} {
				layer, cause := Classify(strings.TrimPrefix(reason, "-"), function, s.side, received)
				ways = append(ways, cmp.Or(layer, "none")+" "+cause)
			}
			fmt.Fprintf(&out, "%s: %s\n", s.name, strings.Join(slices.Compact(ways), ", in: "))
		}
		return out.String()
	})
}

// Whatever a kernel calls things, a layer of the list comes out.
func TestClassifyAnyNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reason, function := rapid.String().Draw(t, "reason"), rapid.String().Draw(t, "function")
		layer, cause := Classify(reason, function, Side(rapid.IntRange(-1, 9).Draw(t, "side")),
			rapid.Bool().Draw(t, "received"))
		if layer != "" && layerPlace(layer) < 0 || cause == "" || layer == "" && reason != "PACKET_SOCK_ERROR" {
			t.Fatalf("Classify(%q, %q) = %q, %q", reason, function, layer, cause)
		}
	})
}
