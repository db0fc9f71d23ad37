package model

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"pelt/unit"
)

// linkSetting is one setting of a link: a word of --link and a field of Link.
type linkSetting struct {
	key    string            // of --link
	name   string            // in files, and of the knob that varies it
	unit   unit.Unit         // of the knob; Word if its levels are words
	of     func(l *Link) any // pointer to the field
	fixed  bool              // cannot change while the link is there
	single bool              // no factor varies it, and it has no 0
}

// linkSettings are all of them, in the order the help prints them.
var linkSettings = []linkSetting{
	{key: "rate", name: "rate_bps", unit: unit.BPS, of: func(l *Link) any { return &l.Rate }},
	{key: "queue", name: "queue_packets", unit: unit.Count, of: func(l *Link) any { return &l.QueuePackets }},
	{key: "queue", name: "queue_bytes", unit: unit.Bytes, of: func(l *Link) any { return &l.QueueBytes }},
	{key: "overhead", name: "overhead_bytes", unit: unit.Count, of: func(l *Link) any { return &l.OverheadBytes }},
	{key: "mtu", name: "mtu_bytes", unit: unit.Count, of: func(l *Link) any { return &l.MTU }, fixed: true, single: true},
	{key: "delay", name: "delay_s", unit: unit.Seconds, of: func(l *Link) any { return &l.DelaySeconds }},
	{key: "jitter", name: "jitter_s", unit: unit.Seconds, of: func(l *Link) any { return &l.JitterSeconds }},
	{key: "correlation", name: "correlation_ratio", unit: unit.Ratio, of: func(l *Link) any { return &l.Correlation }},
	{key: "distribution", name: "distribution", of: func(l *Link) any { return &l.Distribution }},
	{key: "loss", name: "loss_ratio", unit: unit.Ratio, of: func(l *Link) any { return &l.LossRatio }},
	{key: "loss-correlation", name: "loss_correlation_ratio", unit: unit.Ratio, of: func(l *Link) any { return &l.LossCorrelation }},
	{key: "duplicate", name: "duplicate_ratio", unit: unit.Ratio, of: func(l *Link) any { return &l.DuplicateRatio }},
	{key: "duplicate-correlation", name: "duplicate_correlation_ratio", unit: unit.Ratio,
		of: func(l *Link) any { return &l.DuplicateCorrelation }},
	{key: "reorder", name: "reorder_ratio", unit: unit.Ratio, of: func(l *Link) any { return &l.ReorderRatio }},
	{key: "reorder-correlation", name: "reorder_correlation_ratio", unit: unit.Ratio,
		of: func(l *Link) any { return &l.ReorderCorrelation }},
	{key: "gap", name: "reorder_gap", unit: unit.Count, of: func(l *Link) any { return &l.Gap }},
	{key: "corrupt", name: "corrupt_ratio", unit: unit.Ratio, of: func(l *Link) any { return &l.CorruptRatio }},
	{key: "corrupt-correlation", name: "corrupt_correlation_ratio", unit: unit.Ratio,
		of: func(l *Link) any { return &l.CorruptCorrelation }},
	{key: "seed", name: "seed", unit: unit.Count, of: func(l *Link) any { return &l.Seed }, single: true},
	{key: "buffers", name: "buffers", of: func(l *Link) any { return &l.Buffers }},
	{key: "backend", name: "backend", of: func(l *Link) any { return &l.Backend }, fixed: true, single: true},
	{key: "toward", name: "toward", of: func(l *Link) any { return &l.Toward }, fixed: true, single: true},
}

// linkKeys are the words of --link that some settings have.
func linkKeys(which func(linkSetting) bool) (keys []string) {
	for _, s := range linkSettings {
		if which(s) {
			keys = append(keys, s.key)
		}
	}
	return slices.Compact(keys)
}

func everySetting(linkSetting) bool      { return true }
func settingVaries(s linkSetting) bool   { return !s.single }
func settingChanges(s linkSetting) bool  { return !s.fixed }
func mayBeZero(key string) bool          { return slices.Contains(linkKeys(settingVaries), key) }
func isLossModel(key, value string) bool { return key == "loss" && strings.Contains(value, ":") }

// settingOf finds the setting that a word of --link means: a queue is one of packets unless
// its length has a unit.
func settingOf(key, value string) (linkSetting, bool) {
	for _, s := range linkSettings {
		if s.key == key && (s.name != "queue_packets" || strings.Trim(value, "0123456789.,/ ") == "") {
			return s, true
		}
	}
	return linkSetting{}, false
}

// ParseLink reads the value of --link or --link-NODE: "rate=1gbit,delay=0ms,20ms". A word
// without = is one more level of the key before it: a key with several levels is a factor,
// and the link does not have it. node is the node named by the flag, "" for every link.
func ParseLink(node, text string) (Link, []Factor, error) {
	l := Link{Node: node}
	var factors []Factor
	refuse := func(format string, args ...any) (Link, []Factor, error) {
		return Link{}, nil, &unit.SyntaxError{Kind: "link", Text: text, Want: fmt.Sprintf(format, args...)}
	}
	words, err := linkWords(text)
	if err != nil {
		return refuse("%v", err)
	}
	for _, w := range words {
		s, known := settingOf(w.Key, w.Value)
		if !known {
			return refuse("unknown key %q; keys are %s", w.Key, strings.Join(linkKeys(everySetting), ", "))
		}
		if strings.Contains(w.Value, ",") || strings.Contains(w.Value, "..") && s.unit != unit.Word {
			if s.single {
				return refuse("%s has one value, not %q", w.Key, w.Value)
			}
			levels, err := s.levels(w.Value)
			if err != nil {
				return refuse("%s: %v", w.Key, err)
			}
			factors = append(factors, Factor{linkPrefix(node) + s.name, levels})
			continue
		}
		before := l
		if err := s.set(&l, w.Value); err != nil {
			return refuse("%v", err)
		}
		if l == before && !s.single {
			l.Zero = strings.TrimPrefix(l.Zero+","+w.Key, ",")
		}
	}
	var wrong *FieldError
	if errors.As(l.check("link"), &wrong) { // named by the word that was typed
		key := strings.TrimPrefix(wrong.Field, "link.")
		for _, suffix := range []string{"_s", "_bps", "_bytes", "_ratio"} {
			key = strings.TrimSuffix(key, suffix)
		}
		return refuse("%s: %s", strings.ReplaceAll(key, "_", "-"), wrong.Want)
	}
	switch {
	case l.Toward != "" && len(factors) > 0:
		return refuse("toward: several levels hold for both directions")
	case l.Toward != "" && len(words) == 1:
		return refuse("toward says which direction, and nothing says what that does to packets")
	}
	return l, factors, nil
}

// linkWords parts "rate=1gbit,delay=0ms,20ms" into its keys, each once, and their values.
func linkWords(text string) (words []LinkSetting, err error) {
	for word := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(word), "=")
		switch {
		case !ok && key != "" && len(words) > 0:
			words[len(words)-1].Value += "," + key
		case !ok || value == "":
			return nil, fmt.Errorf("%q is not key=value; keys are %s", word, strings.Join(linkKeys(everySetting), ", "))
		case slices.ContainsFunc(words, func(w LinkSetting) bool { return w.Key == key }):
			return nil, fmt.Errorf("%s stands twice", key)
		default:
			words = append(words, LinkSetting{key, value})
		}
	}
	return words, nil
}

// LossLevels is the factor of what all links lose, as "0,1%,10%".
func LossLevels(text string) (Factor, error) {
	s, _ := settingOf("loss", text)
	levels, err := s.levels(text)
	return Factor{linkPrefix("") + s.name, levels}, err
}

// levels reads the levels of a setting in the base unit of its knob.
func (s linkSetting) levels(text string) (levels []Value, err error) {
	if s.name == "queue_bytes" {
		for word := range strings.SplitSeq(text, ",") {
			if word = strings.TrimSpace(word); word != "0" && strings.Trim(word, "0123456789") == "" {
				return nil, fmt.Errorf("%q counts packets where others are bytes; want either", word)
			}
		}
	}
	if !isLossModel(s.key, text) {
		return ParseLevels(s.unit, text)
	}
	for word := range strings.SplitSeq(text, ",") {
		if isLossModel(s.key, word) {
			levels = append(levels, Word(strings.TrimSpace(word)))
			continue
		}
		more, err := ParseLevels(s.unit, word)
		if err != nil {
			return nil, err
		}
		levels = append(levels, more...)
	}
	return levels, nil
}

// ParseLevels reads a list of levels and ranges, as "0..9ms/1ms,20ms", in the base unit u.
func ParseLevels(u unit.Unit, text string) (levels []Value, err error) {
	switch u {
	case unit.PPS:
		return rateLevels(text)
	case unit.Word:
		for word := range strings.SplitSeq(text, ",") {
			levels = append(levels, Word(strings.TrimSpace(word)))
		}
		return levels, nil
	}
	list, err := unit.ParseList(u, text)
	for _, n := range list {
		levels = append(levels, Number(n))
	}
	return levels, err
}

// rateLevels reads rates. One may be of bits, which a payload makes packets; several are
// levels, and those count packets.
func rateLevels(text string) (levels []Value, err error) {
	rates, err := unit.ParseRates(text)
	for _, r := range rates {
		pps, paced := r.PPS(1)
		switch {
		case paced && r == unit.PacketRate(uint64(pps)):
			levels = append(levels, Number(pps))
		case paced && len(rates) > 1:
			return nil, fmt.Errorf("a list holds whole packets per second and max, not %v", r)
		default:
			levels = append(levels, Word(r.String()))
		}
	}
	return levels, err
}

// set reads one value as --link has it.
func (s linkSetting) set(l *Link, value string) (err error) {
	switch field := s.of(l).(type) {
	case *string:
		*field = value
	case *unit.BitRate:
		*field, err = unit.ParseBitRate(value)
	case *uint64: // a seed: 0 would mean: draw one
		if *field, err = strconv.ParseUint(value, 10, 64); err != nil || *field == 0 {
			err = fmt.Errorf("%s %q: want a whole number, at least 1; without one a %s is drawn", s.key, value, s.key)
		}
	case *int:
		if s.key == "gap" {
			if *field, err = strconv.Atoi(value); err != nil || *field < 1 {
				err = fmt.Errorf("%s %q: want a whole number of packets, at least 1", s.key, value)
			}
			return err
		}
		n, err := unit.ParseBytes(value)
		if err == nil && (n < 1 || n > math.MaxInt32) { // 0 would mean: leave it alone
			err = fmt.Errorf("%s %q: want at least 1 and less than 2 GiB", s.key, value)
		}
		*field = int(n)
		return err
	case *float64:
		if isLossModel(s.key, value) {
			return l.setLossModel(value)
		}
		if s.unit == unit.Ratio {
			*field, err = unit.ParseRatio(value)
			return err
		}
		d, err := unit.ParseDuration(value)
		*field = d.Seconds()
		return err
	}
	return err
}

// words is what set reads back, "" if nothing is set.
func (s linkSetting) words(l *Link) string {
	if s.key == "loss" {
		return l.LossText()
	}
	switch field := s.of(l).(type) {
	case *string:
		return *field
	case *unit.BitRate:
		return sayIf(*field > 0, field.String())
	case *uint64:
		return sayIf(*field > 0, strconv.FormatUint(*field, 10))
	case *int:
		return sayIf(*field > 0, strconv.Itoa(*field)+sayIf(s.unit == unit.Bytes, "B"))
	case *float64:
		if s.unit == unit.Ratio {
			return sayIf(*field > 0, plainNumber(*field))
		}
		return sayIf(*field > 0, durationWord(*field))
	}
	return ""
}

// clearSetting makes a link as if nobody had said a key.
func clearSetting(l *Link, key string) {
	for _, s := range linkSettings {
		if s.key == key {
			reflect.ValueOf(s.of(l)).Elem().SetZero()
		}
	}
	switch key {
	case "loss":
		l.LossModel, l.LossStates = "", [5]float64{}
	case "distribution":
		l.DistributionTable = ""
	}
}

// Over returns an earlier entry about the same link with what l says in its place. What
// holds for both directions is left out.
func (l Link) Over(earlier Link) Link {
	var said []linkSetting
	for _, s := range linkSettings {
		if s.fixed {
			continue
		}
		if s.words(&l) != "" {
			said = append(said, s)
		} else if !slices.Contains(strings.Split(l.Zero, ","), s.key) {
			continue
		}
		clearSetting(&earlier, s.key)
	}
	for _, s := range said {
		reflect.ValueOf(s.of(&earlier)).Elem().Set(reflect.ValueOf(s.of(&l)).Elem())
		switch s.key {
		case "loss":
			earlier.LossModel, earlier.LossStates = l.LossModel, l.LossStates
		case "distribution":
			earlier.DistributionTable = l.DistributionTable
		}
	}
	return earlier
}

// Words says the link as --link reads it, "" if it leaves packets alone. Of a
// queue of packets and of bytes, which no --link gives, it says both.
func (l Link) Words() string {
	var words []string
	for _, s := range linkSettings {
		if value := s.words(&l); value != "" {
			words = append(words, s.key+"="+value)
		}
	}
	if l.Zero != "" {
		for key := range strings.SplitSeq(l.Zero, ",") {
			words = append(words, key+"=0")
		}
	}
	return strings.Join(words, ",")
}

func sayIf(set bool, value string) string {
	if !set {
		return ""
	}
	return value
}

func plainNumber(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// durationWord is text that unit.ParseDuration reads back: "3s", "500ms".
func durationWord(s float64) string {
	if s >= 1 && s == float64(int64(s)) {
		return fmt.Sprintf("%ds", int64(s))
	}
	return plainNumber(s*1000) + "ms"
}
