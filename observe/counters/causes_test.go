package counters

import (
	"maps"
	"slices"
	"testing"

	"pelt/ledger"
)

// unnamed are counters of losses that no row of the table of causes names.
var unnamed = map[string]string{
	"IpExt.ReasmOverlaps": "counts fragments that ReasmFails counts as datagrams",
	"Udp.IgnoredMulti":    "multicast that nobody here wants is no loss of a test's packets; a check reads it",
	"Udp6.IgnoredMulti":   "as Udp.IgnoredMulti",
	"TcpExt.ArpFilter":    "ARP, not packets of a test",
	"rx_errors":           "the sum of those below",
	"tx_aborted_errors":   "part of tx_errors",
	"tx_carrier_errors":   "part of tx_errors",
	"tx_fifo_errors":      "part of tx_errors",
	"tx_heartbeat_errors": "part of tx_errors",
	"tx_window_errors":    "part of tx_errors",
	"rx_nohandler":        "frames at a standby port of a bond, of which another port takes the copy",
}

// A counter that tells of lost packets has a cause, or a reason why it has none.
func TestLossesHaveCauses(t *testing.T) {
	var names []string
	for name, c := range catalogue {
		if c.role&loss != 0 {
			names = append(names, name)
		}
	}
	for _, c := range linkCounters {
		if c.role&loss != 0 {
			names = append(names, c.name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if why := unnamed[name]; ledger.Reads(name) == (why != "") {
			t.Errorf("%s: a row of ledger/causes.go names it: %v; why none needs to: %q", name, ledger.Reads(name), why)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unnamed)) {
		if !slices.Contains(names, name) {
			t.Errorf("%s is no counter of losses", name)
		}
	}
}
