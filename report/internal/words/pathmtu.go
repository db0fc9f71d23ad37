package words

import (
	"slices"
	"strings"

	"pelt/model"
	"pelt/unit"
)

// PathMTU says what the flows' paths carry in one piece, and how that is known:
// "path MTU 1400 B (an ICMP message said it): UDP payloads up to 1372 B stay
// whole". "" if the run did not ask.
func PathMTU(doc model.Document) string {
	var texts, flows, payloads []string
	for _, m := range doc.PathMTU {
		if size := unit.FormatSize(m.PayloadBytes); m.Bytes > 0 && !slices.Contains(payloads, size) {
			payloads = append(payloads, size)
		}
		text := mtuText(m)
		if i := slices.Index(texts, text); i >= 0 {
			flows[i] += " and " + Name(m.Flow)
			continue
		}
		texts, flows = append(texts, text), append(flows, Name(m.Flow))
	}
	if len(texts) == 0 {
		return ""
	}
	if len(texts) > 1 {
		for i := range texts {
			texts[i] = flows[i] + " " + texts[i]
		}
	}
	line := "path MTU " + strings.Join(texts, ", ")
	if len(payloads) > 0 {
		line += ": UDP payloads up to " + strings.Join(payloads, " and ") + " stay whole"
	}
	return line
}

func mtuText(m model.PathMTU) string {
	why := Plain(m.Why)
	switch {
	case m.Bytes <= 0 && why == "":
		return "unknown"
	case m.Bytes <= 0:
		return "unknown (" + why + ")"
	case m.AtLeast:
		return "at least " + unit.FormatSize(m.Bytes) + " (" + why + ")"
	}
	how := map[model.MTUFound]string{model.MTUOfRoute: " (all that the route takes)", model.MTUTold: " (an ICMP message said it)",
		model.MTUSearch: " (found by trying: larger packets vanish)"}
	return unit.FormatSize(m.Bytes) + how[m.Found]
}
