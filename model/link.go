package model

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"pelt/unit"
)

// Link is what one link of a lab does to packets, in both directions unless
// Toward names the node that the shaped direction leads to. A zero field
// leaves that property alone.
type Link struct {
	Node           string       `json:"node,omitempty"`   // the link at this node; "" means every link
	Toward         string       `json:"toward,omitempty"` // only the direction to this node; "" means both
	Rate           unit.BitRate `json:"rate_bps,omitempty"`
	QueuePackets   int          `json:"queue_packets,omitempty"`
	QueueBytes     int          `json:"queue_bytes,omitempty"`
	MTU            int          `json:"mtu_bytes,omitempty"`
	DelaySeconds   float64      `json:"delay_s,omitempty"`
	JitterSeconds  float64      `json:"jitter_s,omitempty"`
	Correlation    float64      `json:"correlation_ratio,omitempty"`
	Distribution   string       `json:"distribution,omitempty"` // uniform, normal, pareto, paretonormal
	LossRatio      float64      `json:"loss_ratio,omitempty"`
	LossModel      string       `json:"loss_model,omitempty"` // random, gilbert-elliott, four-state
	ReorderRatio   float64      `json:"reorder_ratio,omitempty"`
	DuplicateRatio float64      `json:"duplicate_ratio,omitempty"`
	OverheadBytes  int          `json:"overhead_bytes,omitempty"` // added to each frame when its time on the link is computed
	Seed           uint64       `json:"seed,omitempty"`
}

// linkKeys are the words of --link that the lab can give, in the order the help
// prints them; the others are known, and refused by name.
var linkKeys = []string{"rate", "queue", "mtu", "overhead", "toward"}

// ParseLink reads the value of --link or --link-NODE: "rate=1gbit,queue=100,mtu=1500".
// node is the node named by the flag, "" for every link.
func ParseLink(node, text string) (Link, error) {
	l := Link{Node: node}
	seen := map[string]bool{}
	for _, word := range strings.Split(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(word), "=")
		if !ok || value == "" {
			return Link{}, &unit.SyntaxError{Kind: "link", Text: text, Want: fmt.Sprintf("%q is not key=value; keys are %s", word, strings.Join(linkKeys, ", "))}
		}
		if seen[key] {
			return Link{}, &unit.SyntaxError{Kind: "link", Text: text, Want: key + " stands twice"}
		}
		seen[key] = true
		if err := l.set(key, value); err != nil {
			return Link{}, &unit.SyntaxError{Kind: "link", Text: text, Want: err.Error()}
		}
	}
	return l, l.check("link")
}

func (l *Link) set(key, value string) (err error) {
	size := func(to *int) error {
		n, err := unit.ParseBytes(value)
		if err == nil && (n < 1 || n > math.MaxInt32) { // 0 would mean: leave it alone
			return fmt.Errorf("%s %q: want at least 1 and less than 2 GiB", key, value)
		}
		*to = int(n)
		return err
	}
	duration := func(to *float64) error {
		d, err := unit.ParseDuration(value)
		*to = d.Seconds()
		return err
	}
	ratio := func(to *float64) (err error) { *to, err = unit.ParseRatio(value); return err }
	switch key {
	case "rate":
		l.Rate, err = unit.ParseBitRate(value)
	case "queue":
		if strings.Trim(value, "0123456789") == "" {
			return size(&l.QueuePackets)
		}
		return size(&l.QueueBytes)
	case "mtu":
		return size(&l.MTU)
	case "overhead":
		return size(&l.OverheadBytes)
	case "toward":
		l.Toward = value
	case "delay":
		return duration(&l.DelaySeconds)
	case "jitter":
		return duration(&l.JitterSeconds)
	case "correlation":
		return ratio(&l.Correlation)
	case "distribution":
		l.Distribution = value
	case "loss":
		return ratio(&l.LossRatio)
	case "loss-model":
		l.LossModel = value
	case "reorder":
		return ratio(&l.ReorderRatio)
	case "duplicate":
		return ratio(&l.DuplicateRatio)
	case "seed":
		if l.Seed, err = strconv.ParseUint(value, 10, 64); err != nil {
			return fmt.Errorf("seed %q is not a whole number", value)
		}
	default:
		return fmt.Errorf("unknown key %q; keys are %s", key, strings.Join(linkKeys, ", "))
	}
	return err
}

func (l Link) check(at string) error {
	for _, r := range []struct {
		field string
		value float64
	}{
		{"correlation_ratio", l.Correlation}, {"loss_ratio", l.LossRatio},
		{"reorder_ratio", l.ReorderRatio}, {"duplicate_ratio", l.DuplicateRatio},
	} {
		if !(r.value >= 0 && r.value <= 1) {
			return wrong(at+"."+r.field, "want 0..1, not %v", r.value)
		}
	}
	for _, s := range []struct {
		field string
		value float64
	}{{"delay_s", l.DelaySeconds}, {"jitter_s", l.JitterSeconds}} {
		if !(s.value >= 0 && s.value <= 60) || math.IsNaN(s.value) {
			return wrong(at+"."+s.field, "want 0 to 60 s, not %v", s.value)
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
	case !slices.Contains([]string{"", "uniform", "normal", "pareto", "paretonormal"}, l.Distribution):
		return wrong(at+".distribution", "want uniform, normal, pareto or paretonormal, not %q", l.Distribution)
	case !slices.Contains([]string{"", "random", "gilbert-elliott", "four-state"}, l.LossModel):
		return wrong(at+".loss_model", "want random, gilbert-elliott or four-state, not %q", l.LossModel)
	}
	return nil
}

// Unsupported names the first property that the lab cannot give yet, "" if it
// can give all: rate, queue, overhead and mtu are given, by the kernel's tbf.
func (l Link) Unsupported() string {
	switch {
	case l.DelaySeconds != 0:
		return "delay"
	case l.JitterSeconds != 0:
		return "jitter"
	case l.Correlation != 0:
		return "correlation"
	case l.Distribution != "":
		return "distribution"
	case l.LossRatio != 0, l.LossModel != "":
		return "loss"
	case l.ReorderRatio != 0:
		return "reorder"
	case l.DuplicateRatio != 0:
		return "duplicate"
	}
	return ""
}
