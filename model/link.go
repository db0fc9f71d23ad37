package model

import (
	"slices"
	"strconv"
	"strings"

	"pelt/unit"
	"pelt/words"
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
	Distribution  string       `json:"distribution,omitempty"`      // of the jitter
	LossRatio     float64      `json:"loss_ratio,omitempty"`
	LossModel     string       `json:"loss_model,omitempty"` // random, gilbert-elliott
	// LossStates are the ratios of gilbert-elliott: p, r, loss in the bad and in the good state.
	LossStates     [4]float64 `json:"loss_states,omitzero"`
	ReorderRatio   float64    `json:"reorder_ratio,omitempty"` // do not wait for the delay
	DuplicateRatio float64    `json:"duplicate_ratio,omitempty"`
	CorruptRatio   float64    `json:"corrupt_ratio,omitempty"`  // have one bit turned
	OverheadBytes  int        `json:"overhead_bytes,omitempty"` // counts with each frame
	Seed           uint64     `json:"seed,omitempty"`           // 0: one is drawn
	Backend        string     `json:"backend,omitempty"`        // user; "" or auto: tbf where a rate is all
	Zero           string     `json:"zero,omitempty"`           // keys that are set to 0; with commas
}

const (
	BackendAuto = "auto" // a link that only has a rate is the kernel's tbf
	BackendUser = "user" // pelt itself, in user space
)

// GilbertElliott is the loss model with two states; the other one is a plain share.
const GilbertElliott = "gilbert-elliott"

// lossForm is how --link says the ratios of GilbertElliott, lossWord what begins it.
const (
	lossWord = "ge:"
	lossForm = "ge:P/R/BAD/GOOD"
)

// linkLoss is the loss of a link as one setting: a share, or a word with the ratios of GilbertElliott.
type linkLoss struct{ *Link }

func (l linkLoss) value() Value {
	if l.LossModel != GilbertElliott {
		return Number(l.LossRatio)
	}
	var words []string
	for _, ratio := range l.LossStates {
		words = append(words, strconv.FormatFloat(ratio, 'f', -1, 64))
	}
	return Word(lossWord + strings.Join(words, "/"))
}

func (l linkLoss) set(v Value) (err error) {
	l.LossRatio, l.LossModel, l.LossStates = v.Number, "", [4]float64{}
	if v.Text == "" {
		return nil
	}
	ratios, ok := strings.CutPrefix(v.Text, lossWord)
	parts := strings.Split(ratios, "/")
	if !ok || len(parts) != len(l.LossStates) {
		return words.Errorf("%q: want a share as 1%%, or %s, each a share", v.Text, lossForm)
	}
	l.LossModel = GilbertElliott
	for i, p := range parts {
		if l.LossStates[i], err = unit.ParseRatio(p); err != nil {
			return err
		}
	}
	return nil
}

// distributions of jitter; the first is none.
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
	case !slices.Contains(distributions, l.Distribution):
		return wrong(at+".distribution", "want uniform, normal, pareto or paretonormal, not %q", clip(l.Distribution))
	case l.Backend != "" && l.Toward != "":
		return wrong(at+".backend", "it holds for both directions; give it without toward")
	case !slices.Contains([]string{"", "random", GilbertElliott}, l.LossModel):
		return wrong(at+".loss_model", "want random or gilbert-elliott, not %q", l.LossModel)
	case l.LossModel == GilbertElliott && l.LossRatio != 0:
		return wrong(at+".loss_ratio", "gilbert-elliott has its own ratios; want loss_states alone")
	}
	return nil
}

// Impaired reports whether the link does more to packets than a rate and a
// queue: what the kernel's tbf cannot. Who does it is no part of that.
func (l Link) Impaired() bool {
	return l != Link{Node: l.Node, Toward: l.Toward, Rate: l.Rate, QueuePackets: l.QueuePackets,
		QueueBytes: l.QueueBytes, MTU: l.MTU, OverheadBytes: l.OverheadBytes, Backend: l.Backend, Zero: l.Zero}
}
