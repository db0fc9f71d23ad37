package model

import (
	"errors"
	"slices"
	"strings"

	"pelt/unit"
	"pelt/words"
)

// linkKnobs are the settings of a link, in the order the help prints them.
var linkKnobs = []Knob{
	{Name: "rate_bps", Flag: "rate", Unit: unit.BPS, Low: 1000, High: 10e12, Varies: true,
		on: func(l *Link) any { return &l.Rate }},
	{Name: "queue_packets", Flag: "queue", Unit: unit.Count, Low: 1, High: 10_000_000, Varies: true,
		on: func(l *Link) any { return &l.QueuePackets }},
	{Name: "queue_bytes", Flag: "queue", Unit: unit.Bytes, Low: 1, High: 1<<31 - 1, Varies: true,
		Excludes: "queue_packets", on: func(l *Link) any { return &l.QueueBytes }},
	{Name: "overhead_bytes", Flag: "overhead", Unit: unit.Count, Low: 1, High: 256, Varies: true,
		on: func(l *Link) any { return &l.OverheadBytes }},
	{Name: "mtu_bytes", Flag: "mtu", Unit: unit.Count, Low: 68, High: 65535, Fixed: true, // RFC 791
		on: func(l *Link) any { return &l.MTU }},
	{Name: "delay_s", Flag: "delay", Unit: unit.Seconds, High: 60, Varies: true,
		on: func(l *Link) any { return &l.DelaySeconds }},
	{Name: "jitter_s", Flag: "jitter", Unit: unit.Seconds, High: 60, Varies: true,
		on: func(l *Link) any { return &l.JitterSeconds }},
	share("correlation_ratio", "correlation", func(l *Link) any { return &l.Correlation }),
	{Name: "distribution", Flag: "distribution", Kind: Names, Varies: true,
		on: func(l *Link) any { return &l.Distribution }},
	share("loss_ratio", "loss", func(l *Link) any { return linkLoss{l} }),
	share("duplicate_ratio", "duplicate", func(l *Link) any { return &l.DuplicateRatio }),
	share("reorder_ratio", "reorder", func(l *Link) any { return &l.ReorderRatio }),
	share("corrupt_ratio", "corrupt", func(l *Link) any { return &l.CorruptRatio }),
	{Name: "seed", Flag: "seed", Kind: OneText, Unit: unit.Count, on: func(l *Link) any { return &l.Seed }},
	{Name: "backend", Flag: "backend", Kind: Names, Words: []string{BackendAuto, BackendUser}, Fixed: true,
		on: func(l *Link) any { return &l.Backend }},
	{Name: "toward", Flag: "toward", Kind: OneText, Fixed: true, on: func(l *Link) any { return &l.Toward }},
}

func share(name, key string, on func(*Link) any) Knob {
	return Knob{Name: name, Flag: key, Unit: unit.Ratio, High: 1, Varies: true, on: on}
}

// linkKeys are the words of --link that some knobs have.
func linkKeys(which func(Knob) bool) (keys []string) {
	for _, k := range linkKnobs {
		if which(k) {
			keys = append(keys, k.Flag)
		}
	}
	return slices.Compact(keys)
}

func anyKnob(Knob) bool       { return true }
func changes(k Knob) bool     { return !k.Fixed }
func canBeZero(k string) bool { return slices.Contains(linkKeys(changes), k) }

// linkKnobOf finds the knob that a word of --link means: a queue is one of packets unless its length has a unit.
func linkKnobOf(key, value string) (Knob, bool) {
	for _, k := range linkKnobs {
		if k.Flag == key && (k.Name != "queue_packets" || strings.Trim(value, "0123456789.,/ ") == "") {
			return k, true
		}
	}
	return Knob{}, false
}

// linkKnob is what a factor of links does to a trial.
func linkKnob(node, setting string) (Knob, bool) {
	i := slices.IndexFunc(linkKnobs, func(k Knob) bool { return k.Name == setting && k.Varies })
	if i < 0 {
		return Knob{}, false
	}
	k := linkKnobs[i]
	k.Opens = true
	inner := k
	what := strings.TrimSuffix(linkPrefix(node), ".") + " " + strings.ToLower(k.Title())
	k.Label, k.Phrase = strings.ToUpper(what[:1])+what[1:], "% "+what
	if k.Unit == unit.Ratio {
		k.Zero = "no " + what
	}
	k.Low = 0 // 0 puts a setting back to nothing
	if k.Excludes != "" {
		k.Excludes = linkPrefix(node) + k.Excludes
	}
	k.apply = func(t *Trial, v Value) error {
		l := Link{Node: node}
		if v == Number(0) || v.Text == Nothing {
			l.Zero = inner.Flag
		} else if err := l.set(inner, v); err != nil {
			return err
		}
		var field *FieldError
		if err := l.checkChange(); errors.As(err, &field) { // the factor's name says more than the field's
			return errors.New(field.Want)
		}
		t.Links = append(t.Links, l)
		return nil
	}
	return k, true
}

// ParseLink reads the value of --link or --link-NODE: "rate=1gbit,delay=0ms,20ms". A word
// without = is one more level of the key before it: a key with several levels is a factor,
// and the link does not have it. node is the node named by the flag, "" for every link.
func ParseLink(node, text string) (Link, []Factor, error) { return parseLink(node, text, false) }

// parseLink reads a link, or the change of one that is there, which has no levels.
func parseLink(node, text string, change bool) (Link, []Factor, error) {
	l := Link{Node: node}
	var factors []Factor
	refuse := func(format string, args ...any) (Link, []Factor, error) {
		return Link{}, nil, unit.Wrong("link", text, words.Errorf(format, args...))
	}
	list, err := linkWords(text)
	if err != nil {
		return refuse("%v", err)
	}
	for _, w := range list {
		k, known := linkKnobOf(w.Key, w.Value)
		if !known {
			return refuse("unknown key %q; keys are %s", w.Key, strings.Join(linkKeys(anyKnob), ", "))
		}
		if change && (w.Value == Nothing || w.Value == "0") {
			l.Zero = strings.TrimPrefix(l.Zero+","+w.Key, ",")
			continue
		}
		values, err := k.Parse(w.Value)
		switch {
		case err != nil:
			return refuse("%s: %v", w.Key, err)
		case k.Name == "queue_bytes" && slices.ContainsFunc(strings.Split(w.Value, ","), countsPackets):
			return refuse("%s: %q counts packets where others are bytes; want one of the two", w.Key, w.Value)
		case (change || !k.Varies) && (len(values) > 1 || strings.Contains(w.Value, ",")):
			return refuse("%s has one value, not %q", w.Key, w.Value)
		case len(values) > 1:
			factors = append(factors, Factor{linkPrefix(node) + k.Name, values})
			continue
		}
		before := l
		if err := l.set(k, values[0]); err != nil {
			return refuse("%s: %v", w.Key, err)
		}
		if l == before && k.Varies {
			l.Zero = strings.TrimPrefix(l.Zero+","+w.Key, ",")
		}
	}
	err = l.check("link")
	if change {
		err = l.checkChange()
	}
	var wrong *FieldError
	if errors.As(err, &wrong) { // named by the word that was typed
		if wrong.Field == "link" {
			return refuse("%s", wrong.Want)
		}
		name := strings.TrimPrefix(wrong.Field, "link.")
		if i := slices.IndexFunc(linkKnobs, func(k Knob) bool { return k.Name == name }); i >= 0 {
			name = linkKnobs[i].Flag
		}
		return refuse("%s: %s", name, wrong.Want)
	}
	switch {
	case l.Toward != "" && len(factors) > 0:
		return refuse("toward: a list of values holds for both directions")
	case l.Toward != "" && len(list) == 1:
		return refuse("toward needs another key, as toward=receiver,loss=1%%")
	}
	return l, factors, nil
}

// countsPackets reports whether a length of a queue has no unit, and is not the 0 of both.
func countsPackets(word string) bool {
	word = strings.TrimSpace(word)
	return word != "0" && strings.Trim(word, "0123456789") == ""
}

// linkWord is a key of --link and its value as text.
type linkWord struct{ Key, Value string }

// linkWords splits "rate=1gbit,delay=0ms,20ms" into its keys, each once, and their values.
func linkWords(text string) (list []linkWord, err error) {
	for word := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(word), "=")
		switch {
		case !ok && key != "" && len(list) > 0:
			list[len(list)-1].Value += "," + key
		case !ok || value == "":
			return nil, words.Errorf("%q is not key=value; keys are %s", word, strings.Join(linkKeys(anyKnob), ", "))
		case slices.ContainsFunc(list, func(w linkWord) bool { return w.Key == key }):
			return nil, words.Errorf("%s stands twice", key)
		default:
			list = append(list, linkWord{key, value})
		}
	}
	return list, nil
}

func (l *Link) set(k Knob, v Value) error {
	if err := k.check(v); err != nil {
		return err
	}
	err := setField(k.on(l), v)
	if k.Flag == "seed" && (err != nil || l.Seed == 0) {
		err = errors.New("want a whole number, at least 1; without one a seed is drawn")
	}
	return err
}

// clear makes a link as if nobody had set a key.
func (l *Link) clear(key string) {
	for _, k := range linkKnobs {
		if k.Flag == key {
			_ = setField(k.on(l), Value{}) // nothing always fits
		}
	}
}

// Over returns an earlier entry about the same link, with the settings of l in place of its own. Settings that hold
// for both directions stay as they were.
func (l Link) Over(earlier Link) Link {
	zero := strings.Split(l.Zero, ",")
	for _, k := range linkKnobs {
		if !k.Fixed && (l.has(k) || slices.Contains(zero, k.Flag)) {
			earlier.clear(k.Flag)
		}
	}
	for _, k := range linkKnobs {
		if k.Fixed || !l.has(k) {
			continue
		}
		v, _ := getField(k.on(&l))
		_ = setField(k.on(&earlier), v) // it was read from such a field
	}
	return earlier
}

func (l Link) has(k Knob) bool {
	_, set := getField(k.on(&l))
	return set
}

// Words are the link as --link reads it, "" if it leaves packets alone. Of a
// queue of packets and of bytes, which no --link gives, it says both.
func (l Link) Words() string {
	var words []string
	for _, k := range linkKnobs {
		if v, set := getField(k.on(&l)); set {
			words = append(words, k.Flag+"="+k.Print(v))
		}
	}
	if l.Zero != "" {
		for key := range strings.SplitSeq(l.Zero, ",") {
			words = append(words, key+"=0")
		}
	}
	return strings.Join(words, ",")
}
