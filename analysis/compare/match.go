package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pelt/analysis/internal/say"
	"pelt/model"
	"pelt/unit"
)

// ofTraffic reports whether a knob says what is sent: cells that differ in it are
// never compared with each other.
func ofTraffic(knob string) bool {
	return slices.Contains([]string{"payload_bytes", "frame_bytes", "rate_pps", "interval_ns", "direction", "protocol", "streams", "receivers"}, knob)
}

// sharedKnobs are those by which cells of the runs are matched. Those apart have one
// level in each run that has them: they are what differs.
func sharedKnobs(docs []model.Document) (shared, apart []string, err error) {
	var union []string
	for _, d := range docs {
		for _, k := range knobsOf(d) {
			if !slices.Contains(union, k) {
				union = append(union, k)
			}
		}
	}
	slices.Sort(union)
	for _, k := range union {
		single, all, same := true, true, true
		var first []model.Value
		several := ""
		for i, d := range docs {
			levels := levelsOf(d, k)
			if len(levels) > 1 {
				single, several = false, d.ID
			}
			all = all && (len(levels) > 0 || len(d.Results) == 0 || impliedBy(d, k))
			if i == 0 {
				first = levels
			}
			same = same && slices.Equal(first, levels)
		}
		switch {
		case all && (ofTraffic(k) || same || !single):
			shared = append(shared, k)
		case single:
			apart = append(apart, k)
		default:
			return nil, nil, &AskError{fmt.Sprintf("run %s has several levels of %s, and another run says nothing of it; want runs that both vary it, or one run with --by %s", several, k, k)}
		}
	}
	return shared, apart, nil
}

func impliedBy(d model.Document, knob string) bool {
	return slices.ContainsFunc(d.Results, func(r model.Result) bool {
		_, ok := implied(r, knob)
		return ok
	})
}

// runNames tells runs apart by what differs most tellingly: a setting, the router, the
// target, or else by their ids.
func runNames(docs []model.Document, apart []string) []string {
	var ways []func(model.Document) string
	for _, k := range apart {
		ways = append(ways, func(d model.Document) string { return levelWords(d, k) })
	}
	ways = append(ways,
		func(d model.Document) string {
			if d.Router == nil {
				return ""
			}
			return d.Router.Model
		},
		func(d model.Document) string {
			if d.Router == nil {
				return ""
			}
			return strings.TrimSpace(d.Router.Model + " " + d.Router.Firmware)
		},
		func(d model.Document) string { return d.Plan.Target },
		func(d model.Document) string { return linksText(d.Plan) },
		func(d model.Document) string { return d.ID },
	)
	for _, way := range ways {
		var names []string
		for _, d := range docs {
			if name := way(d); name != "" && !slices.Contains(names, name) && len(name) <= mostName {
				names = append(names, name)
			}
		}
		if len(names) == len(docs) {
			return names
		}
	}
	var names []string
	for i := range docs {
		names = append(names, fmt.Sprintf("run %d", i+1))
	}
	return names
}

// mostName is the longest name of a side, in bytes.
const mostName = 32

func levelWords(d model.Document, knob string) string {
	levels := levelsOf(d, knob)
	if len(levels) == 0 {
		return ""
	}
	return say.And(levelNames(knob, levels))
}

func linksText(p model.Plan) string {
	var list []string
	for _, l := range p.Links {
		text := l.Words()
		if l.Node != "" {
			text = l.Node + ": " + text
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

// differences lists what else differs between runs, a line each.
func differences(docs []model.Document, names, apart []string) []string {
	lines := []string{}
	add := func(what string, get func(model.Document) string) {
		var texts []string
		differ := false
		for i, d := range docs {
			text := get(d)
			differ = differ || text != get(docs[0])
			if text == "" {
				text = "none"
			}
			if !strings.HasPrefix(text, names[i]) {
				text = names[i] + " " + text
			}
			texts = append(texts, text)
		}
		if differ {
			lines = append(lines, what+": "+strings.Join(texts, "; "))
		}
	}
	for _, k := range apart {
		add(k, func(d model.Document) string { return levelWords(d, k) })
	}
	add("command", func(d model.Document) string { return d.Plan.Command })
	add("target", func(d model.Document) string { return d.Plan.Target })
	add("links", func(d model.Document) string { return linksText(d.Plan) })
	add("profile", func(d model.Document) string {
		var list []string
		for _, f := range d.Plan.Flows {
			if f.Profile != nil && !slices.Contains(apart, "profile") {
				list = append(list, f.Name+" "+f.Profile.Words(f.Rate))
			}
		}
		return strings.Join(list, ", ")
	})
	add("engine", func(d model.Document) string { return engines(d.Results) })
	for _, node := range nodes(docs) {
		add("host "+node, func(d model.Document) string { return host(d, node) })
	}
	add("router", router)
	add("offload", func(d model.Document) string {
		if d.Router == nil {
			return ""
		}
		return strings.Join(d.Router.Offload, ", ")
	})
	add("variants", func(d model.Document) string {
		var list []string
		for _, v := range d.Plan.Variants {
			list = append(list, v.Name)
		}
		if slices.Contains(apart, "variant") {
			return ""
		}
		return strings.Join(list, ", ")
	})
	add("length of a trial", func(d model.Document) string { return unit.FormatNanos(d.Plan.Timing.MeasureSeconds * 1e9) })
	add("pelt", func(d model.Document) string { return d.Tool.Version })
	return lines
}

// engines names what carried the packets of valid trials.
func engines(results []model.Result) string {
	seen := map[string]bool{}
	for _, r := range results {
		if r.State == model.Valid && r.Engine != "" {
			seen[r.Engine] = true
		}
	}
	return say.And(slices.Sorted(maps.Keys(seen)))
}

func nodes(docs []model.Document) (list []string) {
	for _, d := range docs {
		for _, h := range d.Host {
			if !slices.Contains(list, h.Node) {
				list = append(list, h.Node)
			}
		}
	}
	return list
}

func host(d model.Document, node string) string {
	for _, h := range d.Host {
		if h.Node == node {
			return strings.Join(strings.Fields(strings.Join([]string{h.Name, h.CPU, h.Kernel, h.Driver, h.Governor}, " ")), " ")
		}
	}
	return ""
}

func router(d model.Document) string {
	if d.Router == nil {
		return ""
	}
	r := d.Router
	return strings.Join(strings.Fields(strings.Join([]string{r.Model, r.Firmware, r.Kernel, r.Source}, " ")), " ")
}
