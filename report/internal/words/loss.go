package words

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"pelt/model"
	"pelt/report/rows"
	"pelt/unit"
)

// Unattributed is what no counter explains.
const Unattributed = "unattributed"

// Line says one ledger line: "receiver socket buffer full (SOCKET_RCVBUFF)".
func Line(l model.Line) string {
	text := Shorten(Plain(model.Phrase(l.Layer, l.Cause, l.Host)), 80)
	if l.Layer == model.LayerNetwork && l.Host == "" && l.Cause != model.CauseElimination {
		text = "on the way"
	}
	if cause := Name(l.Cause); !saidBy(text, l) {
		text += " (" + cause + ")"
	}
	return text
}

// saidBy reports whether the phrase holds all that the cause says: there is
// none, it is a netfilter rule's, or it is one of pelt's own words for which
// there is a phrase of its own.
func saidBy(text string, l model.Line) bool {
	switch {
	case l.Cause == "", l.Cause == "NETFILTER_DROP" && strings.Contains(text, "netfilter"):
		return true
	case l.Cause != strings.ToLower(l.Cause):
		return l.Cause == model.CauseElimination
	case model.Phrase(l.Layer, l.Cause, l.Host) != model.Phrase(l.Layer, "", l.Host):
		return true
	}
	return !slices.ContainsFunc(strings.Split(l.Cause, "-"), func(word string) bool { return !strings.Contains(text, word) })
}

// Sure says how sure a line is.
func Sure(l model.Line) string {
	switch l.Confidence {
	case "exact-seq":
		return "exact: known of each packet"
	case "exact-count":
		return "exact: counted of this flow alone"
	case "bounded":
		if foreign(l) {
			return "at most: the counter moved for others' packets, too"
		}
		return "about: counted for a whole namespace, device or host"
	case "inferred":
		return "by elimination: a difference between two hosts"
	}
	return Name(l.Confidence)
}

// foreign reports whether a line's counters also moved for others' packets.
func foreign(l model.Line) bool {
	return slices.ContainsFunc(l.Evidence, func(e model.Evidence) bool { return e.Excess > 0 })
}

// Part is one share of a row's loss.
type Part struct {
	Words      string
	Layer      string
	Packets    uint64
	Ratio      float64 // of the attempted packets
	Share      string  // the same in words, rounded so that the parts make up the whole
	Confidence string
	Shared     bool // its counters also moved for others' packets
	Line       int  // index in the row's ledger, -1 for what is unattributed
}

// LossParts splits what a row lost, largest first, unattributed last.
func LossParts(r rows.Row) []Part {
	var parts []Part
	if r.Attempted == 0 {
		return nil
	}
	ratio := func(n uint64) float64 { return float64(n) / float64(r.Attempted) }
	for i, l := range r.Ledger.Lines {
		if l.Packets > 0 {
			parts = append(parts, Part{Line(l), l.Layer, l.Packets, ratio(l.Packets), "", Plain(l.Confidence), foreign(l), i})
		}
	}
	slices.SortStableFunc(parts, func(a, b Part) int { return cmp.Compare(b.Packets, a.Packets) })
	if u := r.Ledger.Unattributed; u > 0 {
		words := Unattributed
		if r.TCP != nil {
			words = "sent again by TCP"
		}
		if r.Connections != nil {
			words = "connections not established"
		}
		parts = append(parts, Part{Words: words, Layer: Unattributed, Packets: u, Ratio: ratio(u), Line: -1})
	}
	var packets []uint64
	for _, p := range parts {
		packets = append(packets, p.Packets)
	}
	for i, s := range Shares(r.Ledger.Lost, r.Attempted, packets) {
		parts[i].Share = s
	}
	return parts
}

// fewest is the ratio below which packets are said by number: as a share they
// would all look alike.
const fewest = 1e-5

// Total is how much of a row's packets was lost, as its parts say theirs.
func Total(r rows.Row) string {
	ratio, ok := r.LossRatio()
	switch {
	case !ok || r.Lost == 0:
		return ""
	case ratio < fewest:
		return unit.FormatCount(r.Lost) + " of " + unit.FormatCount(r.Attempted)
	}
	steps, digits := roundShare(ratio)
	return shareText(steps, digits)
}

// Shares prints parts of a loss as percent of what was attempted, all with the
// digits of the whole. They are rounded by largest remainders, so that parts
// that make up the whole add up to what is printed for it; a part too small
// for a digit says so. Of a very small loss the parts are numbers of packets.
func Shares(lost, attempted uint64, parts []uint64) []string {
	texts := make([]string, len(parts))
	if attempted == 0 {
		return texts
	}
	ratio := float64(lost) / float64(attempted)
	if ratio < fewest {
		for i, n := range parts {
			texts[i] = unit.FormatCount(n)
		}
		return texts
	}
	left, digits := roundShare(ratio)
	type share struct {
		steps int64
		rest  float64
	}
	shares, order := make([]share, len(parts)), make([]int, len(parts))
	var sum float64
	for i, n := range parts {
		exact := float64(n) / float64(attempted) * 100 * math.Pow10(digits)
		shares[i], order[i] = share{int64(exact), exact - math.Floor(exact)}, i
		left -= shares[i].steps
		sum += float64(n)
	}
	// Parts of a broken account may make up anything: then each is cut on its own.
	if math.Abs(sum-float64(lost)) < 0.5 {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(shares[b].rest, shares[a].rest) })
		for _, i := range order[:min(len(order), int(max(left, 0)))] {
			shares[i].steps++
		}
	}
	for i, s := range shares {
		texts[i] = shareText(s.steps, digits)
		if s.steps == 0 && parts[i] > 0 {
			texts[i] = "<" + shareText(1, digits)
		}
	}
	return texts
}

// roundShare cuts a ratio to steps of so many digits after the point of its
// percentage; only all is 100 %.
func roundShare(ratio float64) (steps int64, digits int) {
	p := ratio * 100
	digits = 1
	switch {
	case p < 1:
		digits = 1 - int(math.Floor(math.Log10(p)))
	case p > 99.9 && p < 100:
		digits = 2
		return int64(p * 100), digits
	}
	return int64(math.Round(p * math.Pow10(digits))), digits
}

func shareText(steps int64, digits int) string {
	text := strconv.FormatFloat(float64(steps)/math.Pow10(digits), 'f', digits, 64)
	return strings.TrimSuffix(text, ".0") + " %"
}

// Loss is "3.1 % lost: 2.6 % receiver socket buffer full (SOCKET_RCVBUFF), 0.5 %
// netfilter rule at the receiver; 0 unattributed"; "" when nothing was lost.
// Shares are of the attempted packets, and one that is not exact says so.
func Loss(r rows.Row) string {
	if r.Ledger.Lost == 0 || r.Attempted == 0 {
		return ""
	}
	if r.Connections != nil {
		return fmt.Sprintf("%s of the connections not established", unit.FormatRatio(float64(r.Ledger.Lost)/float64(r.Attempted)))
	}
	if r.TCP != nil {
		return fmt.Sprintf("%s of the segments sent again", unit.FormatRatio(float64(r.Ledger.Lost)/float64(r.Attempted)))
	}
	text := Total(r) + " lost"
	parts := LossParts(r)
	rest := "; 0 " + Unattributed
	if n := len(parts) - 1; n >= 0 && parts[n].Line < 0 {
		rest = "; " + parts[n].Share + " " + Unattributed
		parts = parts[:n]
	}
	switch {
	case len(parts) == 0:
		return text + ", all " + Unattributed + notObserved(r)
	case len(parts) == 1 && r.Ledger.Unattributed == 0 && rows.Exact(parts[0].Confidence):
		return text + ", all " + parts[0].Words + rest + notObserved(r)
	}
	var words []string
	for _, p := range parts {
		words = append(words, p.Said())
	}
	return text + ": " + strings.Join(words, ", ") + rest + notObserved(r)
}

// Said is the part with its share and how sure that is: "at most 0.5 %
// receiver's CPU backlog full (CPU_BACKLOG)".
func (p Part) Said() string {
	text := p.Amount() + " " + p.Words
	if p.Confidence == "inferred" && !strings.Contains(p.Words, "elimination") {
		if head, ok := strings.CutSuffix(text, ")"); ok {
			return head + ", by elimination)"
		}
		return text + " (by elimination)"
	}
	return text
}

// Amount is the share, with what is known of its error: "at most 0.5 %".
func (p Part) Amount() string {
	switch {
	case p.Confidence == "bounded" && p.Shared:
		return "at most " + p.Share
	case p.Confidence == "bounded":
		return "about " + p.Share
	}
	return p.Share
}

// notObserved names the nodes of which nothing is known.
func notObserved(r rows.Row) string {
	var nodes []string
	for _, o := range r.Observed {
		if o.Mode == "" {
			nodes = append(nodes, Name(o.Node))
		}
	}
	if len(nodes) == 0 {
		return ""
	}
	return "; " + And(nodes) + " not observed"
}

// And joins names: "a, b and c".
func And(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// Missed is "0.06 % of the schedule missed"; "" when all of it was kept.
func Missed(r rows.Row) string {
	if missed := r.MissedRatio(); missed > 0 && r.TCP == nil {
		return unit.FormatRatio(missed) + " of the schedule missed"
	}
	return ""
}

// Below is what stands below a row: its loss, and what its sender missed.
func Below(r rows.Row) string {
	loss := Loss(r)
	if loss == "" && r.Attempted > 0 && r.TCP == nil {
		loss = "nothing lost"
	}
	return strings.Trim(loss+"; "+Missed(r), "; ")
}
