package finding

import (
	"cmp"
	"strings"

	"pelt/model"
	"pelt/table"
	"pelt/unit"
)

// linksAllow is the goodput that a lab's links let through of a group's packets, in
// bit/s, headers counted; 0 if no link on their way has a rate. Each receiver has a link
// of its own, so theirs add up.
func linksAllow(g table.Group) (least float64) {
	d, f := g.Rows[0].Doc, g.Rows[0].Flow
	if !strings.HasPrefix(d.Plan.Target, "lab:") || f.Protocol != model.UDP || !strings.HasPrefix(f.To, model.Receiver) {
		return 0
	}
	links := map[string]model.Link{} // by node; a later entry replaces what it says of an earlier one
	for _, l := range d.Plan.Links {
		if l.Toward == "" || strings.HasPrefix(l.Toward, model.Receiver) {
			before := l.TakeBack(links[l.Node])
			links[l.Node] = model.Link{Rate: cmp.Or(l.Rate, before.Rate),
				OverheadBytes: cmp.Or(l.OverheadBytes, before.OverheadBytes)}
		}
	}
	for name, v := range g.Rows[0].Trial.Cell {
		if node, setting, ok := model.SplitLinkKnob(name); ok && setting == "rate_bps" {
			links[node] = model.Link{Rate: unit.BitRate(v.Number), OverheadBytes: links[node].OverheadBytes}
		}
	}
	for node, l := range links {
		if strings.HasPrefix(node, model.Receiver+"-") { // of one of many
			continue
		}
		allowed := allowedBy(l, f)
		if node == model.Receiver {
			allowed *= float64(max(1, len(f.Receivers)))
		}
		if allowed > 0 && (least == 0 || allowed < least) {
			least = allowed
		}
	}
	return least
}

// allowedBy is the goodput that one link lets through. Emulated links count frames
// without the 4 B of their checksum; each fragment has a header of its own.
func allowedBy(l model.Link, f *model.FlowResult) float64 {
	const checksum, udpHeader, fragmentHeader, ipv4Frame = 4, 8, 8, 46
	bytes := f.FrameBytes - checksum + l.OverheadBytes
	if f.Fragments > 1 {
		header := f.FrameBytes - f.PayloadBytes - checksum - udpHeader + l.OverheadBytes
		if f.FrameBytes-f.PayloadBytes > ipv4Frame {
			header += fragmentHeader // RFC 8200 section 4.5
		}
		bytes = f.PayloadBytes + udpHeader + f.Fragments*header
	}
	return float64(l.Rate) * float64(f.PayloadBytes) / float64(max(bytes, 1))
}
