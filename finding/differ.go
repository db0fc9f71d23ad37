package finding

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pelt/model"
	"pelt/table"
	"pelt/unit"
	"pelt/words"
)

// Difference is a setting, or a property of a host, that is not the same on all sides.
type Difference struct {
	Setting string   `json:"setting"`
	Values  []string `json:"values"` // by side; "" is none
}

// In is the difference as people read it in a language.
func (d Difference) In(l words.Language) Difference {
	d.Values = slices.Clone(d.Values)
	for i, v := range d.Values {
		d.Values[i] = cmp.Or(v, l.Say("none"))
	}
	for _, name := range []string{d.Setting, Capital(d.Setting)} {
		if said := l.Say(name); said != name {
			d.Setting = said
			break
		}
	}
	return d
}

// Parts of a document that are no settings, or are told as keys.
var (
	noSettings = []string{"format", "factors", "cells", "engine", "links", "dut", "repeats", "redo", "seed",
		"ordered", "paired", "max_loss_ratio"}
	noFacts = []string{"node", "name", "boot", "address", "source", "before", "after", "untold"}
)

// differences compares the levels of keys and the engines that carried the packets. Of
// runs, it compares all that plans, hosts and routers say, so that a setting that is new
// in a later version is compared, too.
func differences(sides []Side, keys []table.Key, runs bool) []Difference {
	facts := make([]map[string]string, len(sides))
	var order []string
	for i, s := range sides {
		facts[i] = map[string]string{}
		put := func(name, value string) {
			facts[i][name] = value
			if !slices.Contains(order, name) {
				order = append(order, name)
			}
		}
		add := func(name string, v any, but []string) {
			var parts any
			if text, err := json.Marshal(v); err == nil && json.Unmarshal(text, &parts) == nil {
				flatten(name, parts, but, put)
			}
		}
		for _, k := range keys {
			put(strings.ToLower(k.Label), strings.Join(levelsOf(s.Rows, k), ", "))
		}
		put("engine", strings.Join(levelsOf(table.Usable(s.Rows), table.KeyOf("engine")), ", "))
		if !runs {
			continue
		}
		add("", s.Doc.Plan, noSettings)
		links := map[string][]string{} // a node may have one for each direction
		for _, l := range s.Doc.Plan.Links {
			name := strings.TrimSuffix("--link-"+l.Node, "-") // the flag that sets it
			links[name] = append(links[name], l.Words())
		}
		for _, name := range slices.Sorted(maps.Keys(links)) {
			put(name, strings.Join(links[name], "; "))
		}
		if s.Doc.Router != nil {
			add("router", s.Doc.Router, noFacts)
		}
		for _, h := range s.Doc.Host {
			if s.Doc.Lab == nil {
				put(h.Node+" host", h.Name)
			}
			add(h.Node, h, noFacts)
		}
		put(cmp.Or(s.Doc.Tool.Name, "pelt")+" version", s.Doc.Tool.Version)
	}
	var out []Difference
	for _, name := range order {
		d := Difference{Setting: name}
		for i := range sides {
			d.Values = append(d.Values, facts[i][name])
		}
		if len(slices.Compact(slices.Clone(d.Values))) > 1 {
			out = append(out, d)
		}
	}
	return out
}

// flatten yields the leaves of a JSON value with their names. Numbers are printed in the
// unit that their name ends with.
func flatten(name string, v any, but []string, yield func(name, value string)) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if !slices.Contains(but, key) {
				flatten(strings.TrimSpace(name+" "+key), v[key], but, yield)
			}
		}
	case []any:
		var words []string
		for i, x := range v {
			part, ok := x.(map[string]any)
			if !ok {
				words = append(words, fmt.Sprint(x))
				continue
			}
			own, named := part["name"].(string)
			if !named {
				own = fmt.Sprint(i + 1)
			}
			name := strings.TrimSpace(strings.TrimSuffix(name, "flows") + " " + own)
			flatten(name, part, append([]string{"name"}, but...), yield)
		}
		if len(words) > 0 {
			yield(settingName(name), strings.Join(words, ", "))
		}
	case float64:
		text := model.Number(v).String()
		if _, ok := unit.FormatNamed(name, v); ok {
			text = unit.UnitOf("_" + name).Exact(v)
		}
		yield(settingName(name), text)
	default:
		yield(settingName(name), fmt.Sprint(v))
	}
}

// settingName is a name in files as people say it: "receiver link speed".
func settingName(name string) string {
	for _, end := range []string{"_bytes", "_bps", "_pps", "_ns", "_s", "_seconds"} {
		name = strings.TrimSuffix(name, end)
	}
	return strings.ReplaceAll(strings.TrimPrefix(name, "set "), "_", " ")
}

// longestName is how long a setting may be to name a run, in bytes.
const longestName = 32

func (c *Comparison) nameRuns(apart []table.Key) {
	telling := [][]string{{"router model"}, {"target"}, {"rate", "--link", "engine"}}
	for _, k := range apart {
		telling = append([][]string{{strings.ToLower(k.Label)}}, telling...)
	}
	for _, settings := range telling {
		names := make([]string, len(c.Sides))
		for _, name := range settings {
			for _, d := range c.Differ {
				if d.Setting == name {
					names = d.longer(c.language(), names)
				}
			}
		}
		if len(slices.Compact(slices.Sorted(slices.Values(names)))) == len(names) {
			for i := range c.Sides {
				c.Sides[i].Name = names[i]
			}
			return
		}
	}
	for i := range c.Sides {
		c.Sides[i].Name = cmp.Or(c.Sides[i].Name, c.language().Sayf("run %s", fmt.Sprint(i+1)))
	}
}

// longer adds a setting's values to names of runs, unless these become too long. No run is named by one setting where
// another one differs, too.
func (d Difference) longer(said words.Language, names []string) []string {
	out := slices.Clone(names)
	for i, v := range d.Values {
		out[i] = strings.TrimPrefix(names[i]+", "+cmp.Or(v, said.Sayf("no %s", d.In(said).Setting)), ", ")
		if len(out[i]) > longestName {
			return names
		}
	}
	return out
}

const mostSettings = 3

func (c Comparison) differ() []Finding {
	switch {
	case len(c.Differ) == 0 && c.By == "run":
		return []Finding{say("compare.alike", Answer, "tool", c.Sides[0].Doc.Tool.Name)}
	case len(c.Differ) == 0:
		return nil
	}
	var names []string
	for _, d := range c.Differ {
		d = d.In(c.language())
		name, values := d.Setting, strings.Join(d.Values, c.language().Say(" against "))
		if len(c.Differ) <= mostSettings && len(values) <= 2*longestName {
			name = c.language().Sayf("%s (%s)", name, values)
		}
		names = append(names, name)
	}
	return []Finding{say("compare.differ", Answer, "settings", fewNames(c.language(), names))}
}
