package model

import (
	"fmt"
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
	words, err := linkWords(text)
	if err != nil {
		return LinkChange{}, wrongText("%v", err)
	}
	for _, w := range words {
		if w.Key == "toward" {
			c.Toward = w.Value
		} else {
			c.Settings = append(c.Settings, w)
		}
	}
	if len(c.Settings) == 0 {
		return LinkChange{}, wrongText("changes nothing; keys are %s", strings.Join(changeable(), ", "))
	}
	return c, c.Check()
}

// changeable are the keys that a link can change while it is there.
func changeable() []string { return linkKeys(changes) }

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
		k, known := linkKnobOf(s.Key, s.Value)
		switch {
		case !known:
			return Link{}, wrong("link", "unknown key %q; keys are %s", clip(s.Key), strings.Join(changeable(), ", "))
		case k.Fixed:
			return Link{}, wrong("link", "%s cannot change while the link is there; want one of %s",
				s.Key, strings.Join(changeable(), ", "))
		}
		l.clear(s.Key)
		if s.Value == Nothing || s.Value == "0" && k.Kind != Names {
			continue
		}
		values, err := k.Parse(s.Value)
		if err == nil && len(values) != 1 {
			err = fmt.Errorf("%s: want one value, not %q", s.Key, clip(s.Value))
		}
		if err == nil {
			err = l.set(k, values[0])
		}
		if err != nil {
			return Link{}, wrong("link", "%s: %v", s.Key, err)
		}
		if s.Key == "distribution" && l.DistributionFile() != "" {
			return Link{}, wrong("link", "a distribution from a file cannot be given while the link is there; want "+
				"lab up --link distribution=%s", clip(s.Value))
		}
	}
	return l, l.check("link")
}

func linkPrefix(node string) string {
	if node == "" {
		return "link."
	}
	return "link-" + node + "."
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
