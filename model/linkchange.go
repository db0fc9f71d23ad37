package model

import "strings"

// Nothing is the value of a setting that leaves packets alone.
const Nothing = "none"

// ParseLinkChange reads "loss=0,delay=20ms" for the links at a node that are there, "" for all.
func ParseLinkChange(node, text string) (Link, error) {
	l, _, err := parseLink(node, text, true)
	return l, err
}

// Apply returns the link after change l: what l sets, or sets back to nothing, replaces the link's own setting.
func (l Link) Apply(link Link) (Link, error) {
	if err := l.checkChange(); err != nil {
		return Link{}, err
	}
	now := l.Over(link)
	return now, now.check("link")
}

// checkChange returns what no link can be told while it is there, as one line.
func (l Link) checkChange() error {
	if l == (Link{Node: l.Node, Toward: l.Toward}) {
		return wrong("link", "changes nothing; keys are %s", strings.Join(linkKeys(changes), ", "))
	}
	for _, k := range linkKnobs {
		if k.Fixed && k.Flag != "toward" && l.has(k) {
			return wrong("link", "%s cannot change while the link is there; want one of %s", k.Flag,
				strings.Join(linkKeys(changes), ", "))
		}
	}
	return l.check("link")
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
