package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"pelt/unit"
)

// LinkChange is what becomes of links that are there. A setting takes the place
// of the one before; unlike in a Link, nothing is a value of it, too.
type LinkChange struct {
	Node     string        `json:"node,omitempty"`   // as in a Link; "" means every link
	Toward   string        `json:"toward,omitempty"` // as in a Link
	Settings []LinkSetting `json:"settings"`
}

// LinkSetting is one word of --link: its key, and a value as it is written there.
type LinkSetting struct {
	Key   string `json:"key"`
	Value string `json:"value"` // "none" or, for a number, "0" puts it back to nothing
}

// Nothing is the value of a setting that leaves packets alone.
const Nothing = "none"

// ParseLinkChange reads "loss=0,delay=20ms" for the links at a node, "" for all.
func ParseLinkChange(node, text string) (LinkChange, error) {
	c := LinkChange{Node: node}
	wrongText := func(format string, args ...any) error {
		return &unit.SyntaxError{Kind: "link", Text: text, Want: fmt.Sprintf(format, args...)}
	}
	for _, word := range strings.Split(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(word), "=")
		switch {
		case !ok || value == "":
			return LinkChange{}, wrongText("%q is not key=value; keys are %s", word, strings.Join(changeable(), ", "))
		case key == "toward":
			if c.Toward != "" {
				return LinkChange{}, wrongText("toward stands twice")
			}
			c.Toward = value
			continue
		case slices.ContainsFunc(c.Settings, func(s LinkSetting) bool { return s.Key == key }):
			return LinkChange{}, wrongText("%s stands twice", key)
		}
		c.Settings = append(c.Settings, LinkSetting{key, value})
	}
	if len(c.Settings) == 0 {
		return LinkChange{}, wrongText("changes nothing; keys are %s", strings.Join(changeable(), ", "))
	}
	return c, c.Check()
}

// changeable are the keys that a link can change while it is there.
func changeable() []string {
	return slices.DeleteFunc(linkKeys(), func(key string) bool { return key == "mtu" || key == "backend" })
}

// Check returns what no link can be told, as one line.
func (c LinkChange) Check() error {
	if !printable(c.Node) || !printable(c.Toward) {
		return wrong("link", "want a short name of a node, not %q", clip(c.Node+c.Toward))
	}
	_, err := c.Apply(Link{})
	return err
}

// Apply is the link after the change.
func (c LinkChange) Apply(l Link) (Link, error) {
	for _, s := range c.Settings {
		if s.Key == "mtu" || s.Key == "toward" || s.Key == "backend" {
			return Link{}, wrong("link", "%s cannot change while the link is there; it can: %s", s.Key, strings.Join(changeable(), ", "))
		}
		i := slices.IndexFunc(linkSettings, func(k linkSetting) bool { return k.key == s.Key })
		if i < 0 {
			return Link{}, wrong("link", "unknown key %q; keys are %s", clip(s.Key), strings.Join(changeable(), ", "))
		}
		linkSettings[i].clear(&l)
		word := s.Key == "mode" || s.Key == "distribution" || s.Key == "buffers"
		if s.Value == Nothing || s.Value == "0" && !word {
			continue
		}
		if err := linkSettings[i].set(&l, s.Value); err != nil {
			return Link{}, wrong("link", "%v", err)
		}
		if s.Key == "distribution" && l.DistributionFile() != "" {
			return Link{}, wrong("link", "a distribution from a file cannot be given while the link is there; make the lab with it: up --link distribution=%s", clip(s.Value))
		}
	}
	return l, l.check("link")
}

type linkKnobSpec struct {
	name, key string
	suffix    string // of the number, for --link
	words     bool   // levels may be words, as --link takes them
}

// linkKnobs are the settings of a link that a factor may vary: by their names in
// files, the words of --link.
var linkKnobs = []linkKnobSpec{
	{"rate_bps", "rate", "bit", false}, {"queue_packets", "queue", "", false}, {"queue_bytes", "queue", "B", false}, {"overhead_bytes", "overhead", "", false},
	{"delay_s", "delay", "s", false}, {"jitter_s", "jitter", "s", false}, {"correlation_ratio", "correlation", "", false}, {"distribution", "distribution", "", true}, {"mode", "mode", "", true}, {"buffers", "buffers", "", true},
	{"loss_ratio", "loss", "", true}, {"loss_correlation_ratio", "loss-correlation", "", false},
	{"duplicate_ratio", "duplicate", "", false}, {"duplicate_correlation_ratio", "duplicate-correlation", "", false},
	{"reorder_ratio", "reorder", "", false}, {"reorder_correlation_ratio", "reorder-correlation", "", false}, {"reorder_gap", "gap", "", false},
	{"corrupt_ratio", "corrupt", "", false}, {"corrupt_correlation_ratio", "corrupt-correlation", "", false},
}

// LinkKnob is the name of a factor: the setting that key has in --link, of the
// links at a node, "" for all. A queue is one of packets, or of bytes.
func LinkKnob(node, key string, bytes bool) (name string, ok bool) {
	for _, k := range linkKnobs {
		if k.key == key && (key != "queue" || bytes == (k.name == "queue_bytes")) {
			return linkPrefix(node) + k.name, true
		}
	}
	return "", false
}

// LinkKnobKeys are the words of --link that a factor may vary.
func LinkKnobKeys() []string {
	var keys []string
	for _, k := range linkKnobs {
		keys = append(keys, k.key)
	}
	return slices.Compact(keys)
}

func linkPrefix(node string) string {
	if node == "" {
		return "link."
	}
	return "link-" + node + "."
}

// LinkFactorWords say a factor of links as --factor reads it: "link.loss=0,0.01"; ok is
// false for any other factor.
func LinkFactorWords(f Factor) (text string, ok bool) {
	node, setting, link := SplitLinkKnob(f.Knob)
	i := slices.IndexFunc(linkKnobs, func(k linkKnobSpec) bool { return k.name == setting })
	if !link || i < 0 {
		return "", false
	}
	var levels []string
	for _, v := range f.Levels {
		level := v.Text
		if level == "" {
			if level = "0"; v.Number != 0 {
				level = plainNumber(v.Number) + linkKnobs[i].suffix
			}
		}
		levels = append(levels, level)
	}
	return linkPrefix(node) + linkKnobs[i].key + "=" + strings.Join(levels, ","), true
}

// SplitLinkKnob parts the name of a factor that sets links into the node and the
// setting; ok is false for any other.
func SplitLinkKnob(name string) (node, setting string, ok bool) {
	rest, isLink := strings.CutPrefix(name, "link")
	dot := strings.LastIndexByte(rest, '.')
	if !isLink || dot < 0 {
		return "", "", false
	}
	node, setting = rest[:dot], rest[dot+1:]
	if node == "" {
		return "", setting, true
	}
	node, named := strings.CutPrefix(node, "-")
	return node, setting, named && node != ""
}

// linkKnob finds what a factor of that name does to a trial.
func linkKnob(name string) (knob, bool) {
	node, setting, ok := SplitLinkKnob(name)
	if !ok {
		return nil, false
	}
	for _, k := range linkKnobs {
		if k.name != setting {
			continue
		}
		return func(t *Trial, v Value) error {
			if v.Text != "" && !k.words {
				return fmt.Errorf("want a number, not %v", v)
			}
			value := v.Text
			if value == "" {
				if value = "0"; v.Number != 0 {
					value = plainNumber(v.Number) + k.suffix
				}
				if k.key == "distribution" || k.key == "mode" || k.key == "buffers" {
					return fmt.Errorf("a %s is a word, not %v", k.key, v)
				}
			}
			c := LinkChange{Node: node, Settings: []LinkSetting{{k.key, value}}}
			if err := c.Check(); err != nil {
				var field *FieldError
				if errors.As(err, &field) { // the factor's name says more than the field's
					return errors.New(field.Want)
				}
				return err
			}
			t.Links = append(t.Links, c)
			return nil
		}, true
	}
	return nil, false
}

func durationWords(s float64) string {
	if s == 0 {
		return "0 ms" // not of the smallest unit
	}
	return unit.FormatNanos(s * 1e9)
}

// LinkKnobWords says a factor's setting of links as people would: "link-receiver
// delay" and "20 ms"; ok is false if it sets no links.
func LinkKnobWords(name string, v Value) (what, value string, ok bool) {
	node, setting, ok := SplitLinkKnob(name)
	if !ok {
		return "", "", false
	}
	what, value = strings.TrimSuffix(linkPrefix(node), ".")+" ", v.Text
	base := setting
	count := func(n float64) string { return unit.FormatCount(uint64(max(n, 0))) }
	number := func(text string) string { return strings.Replace(text, ".0 ", " ", 1) } // a level has no digits of doubt
	for _, s := range []struct {
		suffix string
		format func(float64) string
	}{
		{"_bps", unit.FormatBits}, {"_s", durationWords}, {"_ratio", unit.FormatRatio},
		{"_packets", func(n float64) string { return count(n) + " packets" }},
		{"_bytes", func(n float64) string { return count(n) + " B" }},
	} {
		short, has := strings.CutSuffix(setting, s.suffix)
		if !has {
			continue
		}
		if base = short; value == "" {
			value = number(s.format(v.Number))
		}
		break
	}
	if value == "" {
		value = v.String()
	}
	if base == "rate" && v.Text == "" && v.Number == 0 || base == "queue" && v.Text == "" && v.Number == 0 {
		value = map[string]string{"rate": "without limit", "queue": "usual"}[base]
	}
	return what + strings.ReplaceAll(base, "_", " "), value, true
}
