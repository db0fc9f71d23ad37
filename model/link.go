package model

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"pelt/unit"
)

// Link is what one link of a lab does to packets, in both directions unless Toward names the node that the shaped
// direction leads to. A zero field leaves that property alone.
type Link struct {
	Node          string       `json:"node,omitempty"`   // the link at this node; "" means every link
	Toward        string       `json:"toward,omitempty"` // only the direction to this node; "" means both
	Rate          unit.BitRate `json:"rate_bps,omitempty"`
	QueuePackets  int          `json:"queue_packets,omitempty"`
	QueueBytes    int          `json:"queue_bytes,omitempty"`
	MTU           int          `json:"mtu_bytes,omitempty"`
	DelaySeconds  float64      `json:"delay_s,omitempty"`
	JitterSeconds float64      `json:"jitter_s,omitempty"`          // uniform: the most; else the scale
	Correlation   float64      `json:"correlation_ratio,omitempty"` // of a packet's delay with the one before
	Distribution  string       `json:"distribution,omitempty"`      // of the jitter; also file:PATH
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
	OverheadBytes        int        `json:"overhead_bytes,omitempty"` // counts with each frame
	Seed                 uint64     `json:"seed,omitempty"`           // 0: one is drawn
	Buffers              string     `json:"buffers,omitempty"`        // of TCP's large buffers: parts (default) or whole
	Backend              string     `json:"backend,omitempty"`        // user; "" or auto: tbf where a rate is all
	Zero                 string     `json:"zero,omitempty"`           // keys that are set to 0; with commas
}

const (
	BackendAuto = "auto" // a link that only has a rate is the kernel's tbf
	BackendUser = "user" // pelt itself, in user space
)

// BuffersWhole is of links that lose and delay a buffer of segments as one frame, as a loopback interface does.
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

func (l *Link) setLossModel(value string) error {
	word, rest, _ := strings.Cut(value, ":")
	for _, f := range lossForms {
		if f.word != word {
			continue
		}
		_, names, _ := strings.Cut(f.form, ":")
		parts := strings.Split(rest, "/")
		if len(parts) != len(strings.Split(names, "/")) {
			return fmt.Errorf("%q: want %s, each a share", value, f.form)
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
	return fmt.Errorf("%q: want a share as 1%%, %s or %s", value, lossForms[0].form, lossForms[1].form)
}

// distributions of jitter beside those of files; the first is none.
var distributions = []string{"", "uniform", "normal", "pareto", "paretonormal"}

func (l Link) check(at string) error {
	for _, r := range l.LossStates {
		if !(r >= 0 && r <= 1) {
			return wrong(at+".loss_states", "want 0..1, not %v", r)
		}
	}
	for _, k := range linkKnobs {
		if err := k.checkField(at+".", k.on(&l)); err != nil {
			return err
		}
	}
	for key := range strings.SplitSeq(l.Zero, ",") {
		if l.Zero != "" && !canBeZero(key) {
			return wrong(at+".zero", "want keys of --link that can be 0, not %q", clip(l.Zero))
		}
	}
	switch {
	case !printable(l.Node):
		return wrong(at+".node", "want a short name, not %q", clip(l.Node))
	case !printable(l.Toward):
		return wrong(at+".toward", "want a short name, not %q", clip(l.Toward))
	case !slices.Contains(distributions, l.Distribution) && l.DistributionFile() == "":
		return wrong(at+".distribution", "want uniform, normal, pareto, paretonormal or file:PATH, not %q",
			clip(l.Distribution))
	case !printable(l.Distribution):
		return wrong(at+".distribution", "want a short path, not %q", clip(l.Distribution))
	case l.DistributionTable != "" && l.DistributionFile() == "":
		return wrong(at+".distribution_table", "is what a file holds; want distribution file:PATH beside it")
	case l.Buffers == BuffersWhole && l.CorruptRatio > 0:
		return wrong(at+".buffers", "a bit is turned of a frame, not of a whole buffer; want parts")
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

// DistributionFile is the path of the file that a distribution is read from, "" if it is none.
func (l Link) DistributionFile() string {
	path, ok := strings.CutPrefix(l.Distribution, "file:")
	if !ok {
		return ""
	}
	return path
}

// mostTable is how many numbers a distribution may have: NETEM_DIST_MAX, include/uapi/linux/pkt_sched.h.
const mostTable = 16384

// TableText is a distribution's table as a word: two bytes a number, big endian, in base64.
func TableText(values []int16) string {
	b := make([]byte, 0, 2*len(values))
	for _, v := range values {
		b = binary.BigEndian.AppendUint16(b, uint16(v))
	}
	return base64.StdEncoding.EncodeToString(b)
}

// Table is the distribution's table in units of 1/8192 of the jitter; nil if there is none, or it was not read yet.
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
