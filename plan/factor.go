package plan

import (
	"strings"

	"pelt/model"
	"pelt/unit"
)

// LinkFactor reads one --factor: the setting of a lab's links that varies, and its
// levels, as "link.loss=0,1%,5%" or "link-receiver.delay=0..40ms/10ms". The
// setting is a word of --link. An error names the option.
func LinkFactor(text string) (model.Factor, error) {
	name, list, ok := strings.Cut(text, "=")
	node, key, isLink := model.SplitLinkKnob(strings.TrimSpace(name))
	if !ok || !isLink || list == "" {
		return model.Factor{}, bad("--factor", "%q: want link.KEY=LEVELS or link-NODE.KEY=LEVELS, as link.loss=0,1%%,5%%; KEY is one of %s",
			text, strings.Join(model.LinkKnobKeys(), ", "))
	}
	inBytes := key == "queue" && strings.Trim(list, "0123456789.,/ ") != ""
	knob, known := model.LinkKnob(node, key, inBytes)
	if !known {
		return model.Factor{}, bad("--factor", "%q: no setting %q varies; want one of %s", text, key, strings.Join(model.LinkKnobKeys(), ", "))
	}
	f := model.Factor{Knob: knob}
	levels, err := linkLevels(key, knob, list, inBytes)
	if err != nil {
		return f, bad("--factor", "%s: %v", name, err)
	}
	f.Levels = levels
	return f, nil
}

// linkLevels reads the levels of one setting, in the base unit of its knob.
func linkLevels(key, knob, list string, inBytes bool) (levels []model.Value, err error) {
	number := func(n float64) { levels = append(levels, model.Number(n)) }
	switch {
	case key == "distribution", key == "mode", key == "buffers", key == "loss" && strings.Contains(list, ":"):
		for _, word := range strings.Split(list, ",") {
			if word = strings.TrimSpace(word); key != "loss" || strings.Contains(word, ":") {
				levels = append(levels, model.Word(word))
				continue
			}
			ratios, err := unit.ParseRatios(word)
			if err != nil {
				return nil, err
			}
			for _, r := range ratios {
				number(r)
			}
		}
	case key == "rate":
		rates, err := unit.ParseBitRates(list)
		if err != nil {
			return nil, err
		}
		for _, r := range rates {
			number(float64(r))
		}
	case strings.HasSuffix(knob, "_s"):
		times, err := unit.ParseDurations(list)
		if err != nil {
			return nil, err
		}
		for _, d := range times {
			number(d.Seconds())
		}
	case strings.HasSuffix(knob, "_ratio"):
		ratios, err := unit.ParseRatios(list)
		if err != nil {
			return nil, err
		}
		for _, r := range ratios {
			number(r)
		}
	default:
		if inBytes {
			for _, word := range strings.Split(list, ",") {
				if word = strings.TrimSpace(word); word != "0" && strings.Trim(word, "0123456789") == "" {
					return nil, bad("queue", "%q counts packets where others are bytes; want either", word)
				}
			}
		}
		sizes, err := unit.ParseSizes(list)
		if err != nil {
			return nil, err
		}
		for _, n := range sizes {
			number(float64(n))
		}
	}
	return levels, nil
}
