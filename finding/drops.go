package finding

import (
	"cmp"
	"fmt"
	"strings"

	"pelt/model"
	"pelt/words"
)

// Drops says what a host dropped since a watch began, of the traffic that a filter lets
// through, and what the watch could not see. rest is what is not listed.
func Drops(in words.Language, d model.LiveDrops, filter string, seconds float64, rest uint64) []Finding {
	f := say("drops.now", Answer, "filter", filter, "drops_count", d.Total, "watched_s", seconds)
	switch {
	case d.Total == 0 && d.Packets == 0:
		f.Code = "drops.none"
	case d.Sum:
		f.Numbers[0].Value = float64(d.Packets)
	case d.IntervalS > 0:
		f = f.with("drops_pps", float64(d.Packets)/d.IntervalS)
	}
	out := []Finding{f}
	besides := func(code string, drops uint64) {
		if drops > 0 {
			out = append(out, say(code, Doubt, "drops_count", drops))
		}
	}
	besides("drops.ordinary", rest)
	besides("drops.places", d.SitesLost)
	besides("drops.unsorted", d.Unsorted)
	besides("drops.unseen", d.Unwatched)
	if len(d.Why) > 0 {
		out = append(out, say("drops.why", Doubt, "why", WhyIn(in, d.Why)))
	}
	return out
}

func DropLine(l words.Language, d model.LiveDrops, x model.LiveDrop) Finding {
	return say("drops.line", Fact, "drops_pps", x.PPS, "drops_count", x.Packets, "at", d.At.Local().Format("15:04:05"),
		"why", DropWhy(l, x), "reason", x.Reason, "layer", cmp.Or(x.Layer, "copy"),
		"function", cmp.Or(x.Function, "–"), "place", cmp.Or(strings.TrimSpace(x.Namespace+" "+x.Interface), "–"),
		"flow", DropFlow(x))
}

// DropWhy says why packets were dropped, in the words of a ledger's line.
func DropWhy(l words.Language, x model.LiveDrop) string {
	if x.Rest && x.Function == "" {
		return l.Say("several causes")
	}
	why, known := phraseHere(l, x.Layer, x.Reason)
	switch {
	case known:
		return why
	case x.Function != "":
		return l.Sayf("in %s", x.Function)
	}
	return l.Say("not told by this kernel")
}

// DropFlow names the flow of a drop: "udp 10.0.0.1:5201 > 10.0.0.2:41000".
func DropFlow(x model.LiveDrop) string {
	text := DropProtocol(x)
	if x.From != "" || x.To != "" {
		text += " " + x.From + " > " + x.To
	}
	return strings.TrimSpace(text)
}

// DropProtocol names what was dropped: "udp", "icmp 3/1" of type 3 and code 1.
func DropProtocol(x model.LiveDrop) string {
	switch {
	case x.Rest:
		return "other flows"
	case x.ICMPType != nil && x.ICMPCode != nil:
		return fmt.Sprintf("%s %d/%d", x.Protocol, *x.ICMPType, *x.ICMPCode)
	}
	return x.Protocol
}
