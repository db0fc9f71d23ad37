package words

import (
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/model"
	"pelt/report/rows"
)

func row(attempted uint64, unattributed uint64, lines ...model.Line) rows.Row {
	r := rows.Row{Attempted: attempted, Lost: unattributed, Ledger: model.Ledger{Unattributed: unattributed, Lines: lines}}
	for _, l := range lines {
		r.Lost += l.Packets
	}
	r.Ledger.Lost = r.Lost
	return r
}

func buffer(n uint64) model.Line {
	return model.Line{Layer: "receiver-buffer", Host: "receiver", Cause: "SOCKET_RCVBUFF", Packets: n, Confidence: "exact-seq"}
}

func filter(n uint64) model.Line {
	return model.Line{Layer: "receiver-filter", Host: "receiver", Cause: "NETFILTER_DROP", Packets: n, Confidence: "exact-seq"}
}

func backlog(n, excess uint64) model.Line {
	return model.Line{Layer: "receiver-backlog", Host: "receiver", Cause: "CPU_BACKLOG", Packets: n, Confidence: "bounded", Evidence: []model.Evidence{{Counter: "softnet.dropped", Delta: n + excess, Excess: excess}}}
}

func wire(n uint64) model.Line {
	return model.Line{Layer: "network", Cause: model.CauseElimination, Packets: n, Confidence: "inferred"}
}

func TestLoss(t *testing.T) {
	unseen := row(1000, 10, buffer(20))
	unseen.Observed = []model.Observed{{Node: "sender", Mode: model.DropsSeq}, {Node: "router"}, {Node: "receiver"}}
	for _, c := range []struct {
		name string
		row  rows.Row
		want string
	}{
		{"the issue's", row(300000, 0, buffer(7800), filter(1500)), "3.1 % lost: 2.6 % receiver socket buffer full (SOCKET_RCVBUFF), 0.5 % netfilter rule at the receiver; 0 unattributed"},
		{"nothing", row(1000, 0), ""},
		{"one exact", row(1000, 0, buffer(31)), "3.1 % lost, all receiver socket buffer full (SOCKET_RCVBUFF); 0 unattributed"},
		{"one of shared counters", row(1000, 0, backlog(31, 5)), "3.1 % lost: at most 3.1 % CPU backlog at the receiver full (CPU_BACKLOG); 0 unattributed"},
		{"one of a host's counter", row(1000, 0, backlog(31, 0)), "3.1 % lost: about 3.1 % CPU backlog at the receiver full (CPU_BACKLOG); 0 unattributed"},
		{"by elimination", row(1000, 1, buffer(20), wire(10)), "3.1 % lost: 2 % receiver socket buffer full (SOCKET_RCVBUFF), 1 % on the wire or in a device between (by elimination); 0.1 % unattributed"},
		{"no counter", row(1000, 31), "3.1 % lost, all unattributed"},
		{"not observed", unseen, "3 % lost: 2 % receiver socket buffer full (SOCKET_RCVBUFF); 1 % unattributed; router and receiver not observed"},
		{"thirds make up the whole", row(3000, 1, buffer(1), filter(1)), "0.10 % lost: 0.04 % receiver socket buffer full (SOCKET_RCVBUFF), 0.03 % netfilter rule at the receiver; 0.03 % unattributed"},
		{"a speck beside much", row(1e6, 0, buffer(500000), filter(1)), "50 % lost: 50 % receiver socket buffer full (SOCKET_RCVBUFF), <0.1 % netfilter rule at the receiver; 0 unattributed"},
		{"three of a million", row(1e6, 1, buffer(2)), "3 of 1 000 000 lost: 2 receiver socket buffer full (SOCKET_RCVBUFF); 1 unattributed"},
		{"all", row(1000, 0, buffer(1000)), "100 % lost, all receiver socket buffer full (SOCKET_RCVBUFF); 0 unattributed"},
		{"nearly all", row(1e6, 0, buffer(999998)), "99.99 % lost, all receiver socket buffer full (SOCKET_RCVBUFF); 0 unattributed"},
	} {
		if got := Loss(c.row); got != c.want {
			t.Errorf("%s: Loss = %q\nwant %q", c.name, got, c.want)
		}
	}
}

// What is printed for the parts adds up to what is printed for the whole.
func TestSharesMakeUpTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.OneOf(rapid.Uint64Range(1, 50), rapid.Uint64Range(1, 1e9)), 1, 8).Draw(t, "parts")
		var lost uint64
		for _, p := range parts {
			lost += p
		}
		attempted := lost + rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64Range(0, 1e5), rapid.Uint64Range(0, 1e12)).Draw(t, "arrived")
		whole := Total(rows.Row{Attempted: attempted, Lost: lost})
		texts := Shares(lost, attempted, parts)
		if strings.Contains(whole, " of ") {
			return // numbers of packets, which need no rounding
		}
		digits := 0
		if _, after, ok := strings.Cut(strings.TrimSuffix(whole, " %"), "."); ok {
			digits = len(after)
		}
		sum := 0.0
		for i, text := range texts {
			if strings.HasPrefix(text, "<") {
				continue
			}
			v, err := strconv.ParseFloat(strings.TrimSuffix(text, " %"), 64)
			if err != nil || v == 0 {
				t.Fatalf("share %q of %d packets", text, parts[i])
			}
			sum += v
		}
		if got := strconv.FormatFloat(sum, 'f', digits, 64) + " %"; got != whole {
			t.Fatalf("parts %q make %q, the whole is %q", texts, got, whole)
		}
	})
}

// Parts of an account that does not balance are printed, too.
func TestSharesOfBrokenAccounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64()
		parts := rapid.SliceOfN(n, 0, 5).Draw(t, "parts")
		if got := Shares(n.Draw(t, "lost"), n.Draw(t, "attempted"), parts); len(got) != len(parts) {
			t.Fatalf("%d shares of %d parts", len(got), len(parts))
		}
	})
}
