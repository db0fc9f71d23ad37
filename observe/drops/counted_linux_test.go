//go:build amd64 || arm64

package drops

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"pelt/internal/netbed"
	"pelt/observe/counters"
)

// snapshots are what both ends count, once they stand still.
func snapshots(t *testing.T, b *netbed.Bed) (ends [2]counters.Snapshot) {
	t.Helper()
	for i, n := range []*netbed.Node{b.Sender, b.Receiver} {
		reader, err := counters.Open(n.Do)
		if err != nil {
			t.Fatal(err)
		}
		counters.Settle(context.Background(), 10*time.Millisecond, false, func() (counters.Snapshot, bool) {
			ends[i] = reader.Read()
			return ends[i], true
		})
	}
	return ends
}

// macros are what packets move on their way out and in.
var macros = map[string]string{
	"sent":    "Ip.OutRequests Ip.OutTransmits Udp.OutDatagrams dev.va.tx_packets",
	"arrived": "dev.vb.rx_packets Ip.InReceives Ip.InDelivers",
}

// ofUDP6 are the same counters over IPv6, of those that no group reports of its own move.
func ofUDP6(wanted string) string {
	kept := []string{"~"}
	for _, word := range strings.Fields(strings.TrimPrefix(wanted, "~")) {
		if kind, rest, _ := strings.Cut(word, "."); strings.EqualFold(kind, "udp") {
			kept = append(kept, kind+"6."+rest)
		}
	}
	return strings.Join(kept, " ")
}

// moved fails unless just the wanted counters moved: "NAME:QUANTITY ...", of which one that is named twice moved by
// both. After a ~ others may have moved, too. Those of the whole host, which others move as well, are left out. Kernels
// without OutTransmits (6.1) count in OutRequests what others count there.
func moved(t *testing.T, end string, before, after counters.Snapshot, wanted string, quantities map[string]uint64) {
	t.Helper()
	want, got, known := map[string]uint64{}, map[string]uint64{}, map[string]bool{}
	wanted, others := strings.CutPrefix(wanted, "~")
	for _, word := range strings.Fields(wanted) {
		last := strings.LastIndexByte(word, ':')
		name, quantity := word[:last], word[last+1:]
		for _, one := range strings.Fields(cmp.Or(macros[name], name)) {
			want[one] += quantities[quantity]
		}
	}
	for _, c := range counters.Diff(counters.Snapshot{}, before, counters.Snapshot{}, after, 0) {
		known[c.Name] = true
		if _, asked := want[c.Name]; c.Scope != "host" && (c.Whole > 0 || c.Reset) && (asked || !others) {
			got[c.Name] = c.Whole
		}
	}
	if _, asked := want["Ip.OutTransmits"]; asked && !known["Ip.OutTransmits"] {
		want["Ip.OutRequests"] = want["Ip.OutTransmits"]
		delete(want, "Ip.OutTransmits")
	}
	maps.DeleteFunc(want, func(_ string, n uint64) bool { return n == 0 })
	if !maps.Equal(got, want) {
		t.Errorf("at the %s, of %v:\ngot  %v\nwant %v", end, quantities, got, want)
	}
	if len(after.Unread) > 0 {
		t.Errorf("at the %s: not read: %q", end, after.Unread)
	}
}
