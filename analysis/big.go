package analysis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pelt/analysis/internal/say"
	"pelt/model"
)

// tooBig reports whether a trial says no more than that its size does not fit.
func tooBig(r model.Result) bool {
	if r.State == model.Valid {
		return false
	}
	if strings.Contains(r.Why, "message too long") {
		return true
	}
	return slices.ContainsFunc(r.Flows, func(f model.FlowResult) bool {
		return f.Attempted > 0 && f.SendErrors["EMSGSIZE"] == f.Attempted
	})
}

// big is what is known of payloads that the path has no packet for.
type big struct {
	payloads []int
	packet   int // IP bytes; 0 where nobody said
	largest  int // payload that fits; 0 where nobody said
}

// Beside the payload a frame of IPv4 or IPv6 has Ethernet's header and FCS,
// 18 B, which are no part of an IP packet.
const etherBytes = 18

func misfits(doc model.Document) (b big) {
	for _, r := range doc.Results {
		if !tooBig(r) {
			continue
		}
		packet := packetBytes(doc, r.Why)
		for _, f := range r.Flows {
			if slices.Contains(b.payloads, f.PayloadBytes) || f.PayloadBytes <= 0 {
				continue
			}
			b.payloads = append(b.payloads, f.PayloadBytes)
			if header := f.FrameBytes - f.PayloadBytes - etherBytes; packet > header && header > 0 {
				b.packet, b.largest = packet, packet-header
			}
		}
		if v, ok := r.Cell["payload_bytes"]; len(r.Flows) == 0 && ok && !slices.Contains(b.payloads, int(v.Number)) {
			b.payloads = append(b.payloads, int(v.Number))
		}
	}
	slices.Sort(b.payloads)
	return b
}

// packetBytes is the largest IP packet of the path: as the sender was told, as
// it was found before the test, or the least MTU that is known; 0 if none is.
func packetBytes(doc model.Document, why string) int {
	if _, rest, ok := strings.Cut(why, "the path takes IP packets of "); ok {
		number, _, _ := strings.Cut(rest, " ")
		if n, err := strconv.Atoi(number); err == nil && n > 0 {
			return n
		}
	}
	if n := foundMTU(doc); n > 0 {
		return n
	}
	least := 0
	know := func(n int) {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	for _, h := range doc.Host {
		know(h.MTUBytes)
	}
	for _, l := range doc.Plan.Links {
		know(l.MTU)
	}
	return least
}

// foundMTU is the least path MTU of a run's flows; 0 if one of them is not known.
func foundMTU(doc model.Document) (least int) {
	for _, m := range doc.PathMTU {
		if m.Bytes <= 0 || m.AtLeast {
			return 0
		}
		if least == 0 || m.Bytes < least {
			least = m.Bytes
		}
	}
	return least
}

// swallowed tells of paths that take larger packets away without a word.
func (a *analyst) swallowed() {
	var ways []string
	values := map[string]float64{}
	for _, m := range a.doc.PathMTU {
		if m.Found != model.MTUSearch || m.AtLeast || m.Bytes <= 0 {
			continue
		}
		ways = append(ways, fmt.Sprintf("above %d B from %s to %s", m.Bytes, m.From, m.To))
		values[slug(m.Flow)+"_path_mtu_bytes"] = float64(m.Bytes)
	}
	if len(ways) > 0 {
		a.add(KindPathMTU, values, "IP packets %s vanish without an ICMP message if they may not be fragmented: what relies on it, as TCP does, can stall there.", say.And(ways))
	}
}

func (b big) text() string {
	var sizes []string
	for _, p := range b.payloads {
		sizes = append(sizes, fmt.Sprint(p))
	}
	text := "a payload of " + say.And(sizes) + " B does not fit into "
	if len(sizes) > 1 {
		text = "payloads of " + say.And(sizes) + " B do not fit into "
	}
	if b.packet == 0 {
		return text + "one packet of the path."
	}
	return fmt.Sprintf("%sthe path's packets of %d B (largest: %d B).", text, b.packet, b.largest)
}

// unfit tells sizes that could not be sent unsplit.
func (a *analyst) unfit() {
	b := misfits(a.doc)
	if len(b.payloads) == 0 {
		return
	}
	values := map[string]float64{}
	if b.packet > 0 {
		values["packet_bytes"], values["largest_payload_bytes"] = float64(b.packet), float64(b.largest)
	}
	a.add(KindFragmentation, values, "%s", sentence(b.text()))
}
