package model

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pelt/unit"
)

// Link is what one link of a lab does to packets, in both directions unless
// Toward names the node that the shaped direction leads to. A zero field
// leaves that property alone.
type Link struct {
	Node          string       `json:"node,omitempty"`   // the link at this node; "" means every link
	Toward        string       `json:"toward,omitempty"` // only the direction to this node; "" means both
	Rate          unit.BitRate `json:"rate_bps,omitempty"`
	QueuePackets  int          `json:"queue_packets,omitempty"`
	QueueBytes    int          `json:"queue_bytes,omitempty"`
	MTU           int          `json:"mtu_bytes,omitempty"`
	DelaySeconds  float64      `json:"delay_s,omitempty"`
	JitterSeconds float64      `json:"jitter_s,omitempty"`          // uniform: the largest deviation; else the distribution's scale
	Correlation   float64      `json:"correlation_ratio,omitempty"` // of a packet's delay with the one before
	Distribution  string       `json:"distribution,omitempty"`      // of the jitter: uniform, normal, pareto, paretonormal, or file:PATH
	// DistributionTable is what was read from that file, so that nobody needs it
	// again: as TableText writes it. "" if it was not read yet.
	DistributionTable string  `json:"distribution_table,omitempty"`
	LossRatio         float64 `json:"loss_ratio,omitempty"`
	LossModel         string  `json:"loss_model,omitempty"` // random, gilbert-elliott, four-state
	// LossStates are the ratios of a loss model with states: p, r, loss in the bad
	// and in the good state of gilbert-elliott; p13, p31, p32, p23, p14 of four-state.
	LossStates           [5]float64 `json:"loss_states,omitzero"`
	LossCorrelation      float64    `json:"loss_correlation_ratio,omitempty"`
	ReorderRatio         float64    `json:"reorder_ratio,omitempty"` // do not wait for the delay
	ReorderCorrelation   float64    `json:"reorder_correlation_ratio,omitempty"`
	Gap                  int        `json:"reorder_gap,omitempty"` // of those, only every so many-th packet is one
	DuplicateRatio       float64    `json:"duplicate_ratio,omitempty"`
	DuplicateCorrelation float64    `json:"duplicate_correlation_ratio,omitempty"`
	CorruptRatio         float64    `json:"corrupt_ratio,omitempty"` // have one bit turned
	CorruptCorrelation   float64    `json:"corrupt_correlation_ratio,omitempty"`
	OverheadBytes        int        `json:"overhead_bytes,omitempty"` // added to each frame when its time on the link is computed
	Seed                 uint64     `json:"seed,omitempty"`           // 0: one is drawn
	Buffers              string     `json:"buffers,omitempty"`        // what a frame is of a buffer of segments that TCP hands over: parts (default), each segment, or whole
	Backend              string     `json:"backend,omitempty"`        // who does it: user; "" or auto: the kernel where a rate is all
	Zero                 string     `json:"zero,omitempty"`           // keys of --link, with commas, that are said to be 0: what an earlier entry says of them is taken back
}

// Backends of an emulated link.
const (
	BackendAuto = "auto" // a link that only has a rate is the kernel's tbf
	BackendUser = "user" // pelt itself, in user space
)

// BuffersWhole is of links that lose and delay a buffer of segments as one frame, as
// a loopback interface does.
const BuffersWhole = "whole"

// Loss models with states, and what their ratios are called.
const (
	GilbertElliott = "gilbert-elliott"
	FourState      = "four-state"
)

// lossForms are the ways to say loss, beside a plain share.
var lossForms = []struct{ word, model, form string }{
	{"ge", GilbertElliott, "ge:P/R/BAD/GOOD"}, {"4state", FourState, "4state:P13/P31/P32/P23/P14"},
}

// setLossModel reads a model with the ratios of its states.
func (l *Link) setLossModel(value string) error {
	word, rest, _ := strings.Cut(value, ":")
	for _, f := range lossForms {
		if f.word != word {
			continue
		}
		_, names, _ := strings.Cut(f.form, ":")
		parts := strings.Split(rest, "/")
		if len(parts) != len(strings.Split(names, "/")) {
			return fmt.Errorf("loss %q: want %s, each a share", value, f.form)
		}
		l.LossModel = f.model
		for i, p := range parts {
			var err error
			if l.LossStates[i], err = unit.ParseRatio(p); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("loss %q: want a share as 1%%, %s or %s", value, lossForms[0].form, lossForms[1].form)
}

// LossText says the loss as --link reads it, "" if there is none.
func (l Link) LossText() string {
	plain := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	for _, f := range lossForms {
		if f.model != l.LossModel {
			continue
		}
		var words []string
		for i := range strings.Split(f.form, "/") {
			words = append(words, plain(l.LossStates[i]))
		}
		return f.word + ":" + strings.Join(words, "/")
	}
	if l.LossRatio == 0 {
		return ""
	}
	return plain(l.LossRatio)
}

func (l Link) check(at string) error {
	for _, r := range l.LossStates {
		if !(r >= 0 && r <= 1) {
			return wrong(at+".loss_states", "want 0..1, not %v", r)
		}
	}
	for _, s := range linkSettings {
		number, _ := s.of(&l).(*float64)
		switch {
		case number == nil:
		case s.unit == unit.Ratio && !(*number >= 0 && *number <= 1):
			return wrong(at+"."+s.name, "want 0..1, not %v", *number)
		case !(*number >= 0 && *number <= 60):
			return wrong(at+"."+s.name, "want 0 to 60 s, not %v", *number)
		}
	}
	for key := range strings.SplitSeq(l.Zero, ",") {
		if l.Zero != "" && !mayBeZero(key) {
			return wrong(at+".zero", "want keys of --link that can be 0, not %q", clip(l.Zero))
		}
	}
	switch {
	case !printable(l.Node):
		return wrong(at+".node", "want a short name, not %q", clip(l.Node))
	case !printable(l.Toward):
		return wrong(at+".toward", "want a short name, not %q", clip(l.Toward))
	case l.MTU != 0 && (l.MTU < 68 || l.MTU > 65535): // RFC 791: every link carries 68 B
		return wrong(at+".mtu_bytes", "want 68 to 65535 B, not %d", l.MTU)
	case l.QueuePackets < 0 || l.QueuePackets > 10_000_000 || l.QueueBytes < 0 || l.QueueBytes > 1<<31-1:
		return wrong(at+".queue", "want 1 to 10 000 000 packets, or bytes with a unit as 100KiB up to 2 GiB")
	case l.OverheadBytes < 0 || l.OverheadBytes > 256:
		return wrong(at+".overhead_bytes", "want 0 to 256 B, not %d", l.OverheadBytes)
	case l.Rate != 0 && l.Rate < 1000:
		return wrong(at+".rate_bps", "want at least 1kbit")
	case !slices.Contains([]string{"", "uniform", "normal", "pareto", "paretonormal"}, l.Distribution) && l.DistributionFile() == "":
		return wrong(at+".distribution", "want uniform, normal, pareto, paretonormal or file:PATH, not %q", clip(l.Distribution))
	case !printable(l.Distribution):
		return wrong(at+".distribution", "want a short path, not %q", clip(l.Distribution))
	case l.DistributionTable != "" && l.DistributionFile() == "":
		return wrong(at+".distribution_table", "is what a file holds; want distribution file:PATH beside it")
	case l.Gap < 0:
		return wrong(at+".reorder_gap", "want at least 1 packet, not %d", l.Gap)
	case !slices.Contains([]string{"", "parts", BuffersWhole}, l.Buffers):
		return wrong(at+".buffers", "want parts or whole, not %q", clip(l.Buffers))
	case l.Buffers == BuffersWhole && l.CorruptRatio > 0:
		return wrong(at+".buffers", "a bit is turned of a frame, not of a whole buffer; want parts")
	case !slices.Contains([]string{"", BackendAuto, BackendUser}, l.Backend):
		return wrong(at+".backend", "want auto or user, not %q", clip(l.Backend))
	case l.Backend != "" && l.Toward != "":
		return wrong(at+".backend", "it holds for both directions; give it without toward")
	case !slices.Contains([]string{"", "random", GilbertElliott, FourState}, l.LossModel):
		return wrong(at+".loss_model", "want random, gilbert-elliott or four-state, not %q", l.LossModel)
	}
	if _, err := l.Table(); err != nil {
		return wrong(at+".distribution_table", "%v", err)
	}
	return nil
}

// DistributionFile is the path of the file that a distribution is read from, ""
// if it is none.
func (l Link) DistributionFile() string {
	path, ok := strings.CutPrefix(l.Distribution, "file:")
	if !ok {
		return ""
	}
	return path
}

// mostTable is how many numbers a distribution may have: NETEM_DIST_MAX,
// include/uapi/linux/pkt_sched.h.
const mostTable = 16384

// TableText is a distribution's table as a word: two bytes a number, big endian, in base64.
func TableText(values []int16) string {
	b := make([]byte, 0, 2*len(values))
	for _, v := range values {
		b = binary.BigEndian.AppendUint16(b, uint16(v))
	}
	return base64.StdEncoding.EncodeToString(b)
}

// Table is the distribution's table in units of 1/8192 of the jitter; nil if
// there is none, or it was not read yet.
func (l Link) Table() ([]int16, error) {
	b, err := base64.StdEncoding.DecodeString(l.DistributionTable)
	if err != nil || len(b)%2 != 0 || len(b) > 2*mostTable {
		return nil, fmt.Errorf("want at most %d numbers of two bytes each in base64", mostTable)
	}
	var values []int16
	for ; len(b) > 0; b = b[2:] {
		values = append(values, int16(binary.BigEndian.Uint16(b)))
	}
	return values, nil
}

// Impaired reports whether the link does more to packets than a rate and a
// queue: what the kernel's tbf cannot. Who does it is no part of that.
func (l Link) Impaired() bool {
	return l != Link{Node: l.Node, Toward: l.Toward, Rate: l.Rate, QueuePackets: l.QueuePackets, QueueBytes: l.QueueBytes,
		MTU: l.MTU, OverheadBytes: l.OverheadBytes, Backend: l.Backend, Zero: l.Zero}
}
