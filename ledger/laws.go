package ledger

import (
	"strings"

	"pelt/model"
	"pelt/unit"
	"pelt/words"
)

// laws are the words of checks. A # is the next count, a @ the next word.
var laws = map[string]string{
	"balance":          "# lost = # in named lines + # unexplained",
	"attempted":        "# attempted = # accepted + # refused by the kernel",
	"attempted.device": "# attempted = # sent by the device + # that it did not take",
	"received":         "# received, at most the # attempted",
	"planned":          "# attempted + # given up, at most the # planned",
	"missing":          "# sequences listed as missing + # without room in the list = # lost",
	"peer":             "reported by @: # lost = # in gaps + # after the last packet that it saw",
	"socket":           "# dropped by the receiver's sockets = # drop events there",
	"lists.streams":    "missing sequences of # streams; there are #",
	"lists.missing":    "missing sequences of stream #: @",
	"lists.beyond":     "stream #: sequence # is missing, but only # were attempted",
	"lists.refused":    "refused sequences of stream #: @",
	"lists.verdicts":   "drop events of stream # from @: @",
	"lists.nowhere":    "# drop events from @ name no place",
	"lists.more":       "# further lists with faults",
	"refused":          "# packets arrived that the sender's kernel had refused",
	"accepted":         "# accepted of # attempted, and # in the warm-up: Udp.OutDatagrams # + SndbufErrors #",
	"wire":             "# tx_packets at @ ≥ # rx_packets + # missed at @",
	"filter":           "# @ = # NETFILTER_DROP + # IP errors",
	"udp": "# Ip.InDelivers = # Udp.InDatagrams + # InErrors + # NoPorts, " +
		"with # left unread or of other protocols",
	"recorded": "# received + # duplicates + # late = # recorded + # left out of the record",
	"each":     "holds for each receiver",
}

// Law says in English what a check compared.
func Law(c model.Check) string { return LawIn(words.English, c) }

// LawIn says what a check compared. Of a law without words, as that of another version, it gives the name.
func LawIn(l words.Language, c model.Check) string {
	law, counts, names := l.Say(laws[c.Law]), c.Counts, c.Words
	if strings.Count(law, "#") != len(counts) || strings.Count(law, "@") != len(names) || law == "" {
		law, names = "@", []string{c.Name}
	}
	var text strings.Builder
	for _, r := range law {
		switch r {
		case '#':
			text.WriteString(unit.FormatCount(counts[0]))
			counts = counts[1:]
		case '@':
			text.WriteString(l.Say(names[0]))
			names = names[1:]
		case '=', '≥':
			if !c.Held {
				r = map[rune]rune{'=': '≠', '≥': '<'}[r]
			}
			fallthrough
		default:
			text.WriteRune(r)
		}
	}
	return text.String()
}
