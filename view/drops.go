package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"pelt/finding"
	"pelt/model"
	"pelt/words"
)

// Drops is what a host dropped so far. It is for one goroutine.
type Drops struct {
	language words.Language
	filter   string // "port 5201"; "" is none
	all      bool   // ordinary drops are listed, not counted
	known    map[string]model.LiveDrop
	why      map[model.LiveDrop]string // by layer, reason and function: looking it up takes long
	seconds  float64
	now      model.LiveDrops
}

// copied is the layer of copies that were lost to nobody.
const copied = "copy"

func NewDrops(language words.Language, filter string, all bool) *Drops {
	return &Drops{language: language, filter: filter, all: all, known: map[string]model.LiveDrop{},
		why: map[model.LiveDrop]string{}}
}

func (d *Drops) whyOf(x model.LiveDrop) string {
	key := model.LiveDrop{Layer: x.Layer, Reason: x.Reason, Function: x.Function, Rest: x.Rest}
	if _, known := d.why[key]; !known {
		d.why[key] = finding.DropWhy(d.language, key)
	}
	return d.why[key]
}

func (d *Drops) Add(x model.LiveDrops) {
	d.now, d.seconds = x, d.seconds+x.IntervalS
	for name, k := range d.known {
		k.PPS, k.Packets, k.Bytes = 0, 0, 0
		d.known[name] = k
	}
	for _, k := range x.Drops {
		d.known[dropName(k)] = k
	}
}

func dropName(x model.LiveDrop) string {
	return fmt.Sprintf("%q", []string{x.Layer, x.Reason, x.Function, x.Interface, x.Namespace, finding.DropFlow(x),
		fmt.Sprint(x.Received)})
}

// Page shows the watch as it stands, the fastest drops first.
func (d *Drops) Page() Page {
	var listed []model.LiveDrop
	var ordinary uint64
	for _, x := range d.known {
		if x.Ordinary && !d.all {
			ordinary += x.Total
			continue
		}
		listed = append(listed, x)
	}
	slices.SortFunc(listed, func(a, b model.LiveDrop) int {
		return cmp.Or(cmp.Compare(b.PPS, a.PPS), cmp.Compare(b.Total, a.Total), cmp.Compare(dropName(a), dropName(b)))
	})
	t := listing("Drops", "drops_pps Now", "total_packets Dropped", "why Why", "protocol Protocol", "from From", "to To",
		"reason Reason", "function Function", "interface Interface", "layer Layer", "namespace Namespace")
	t.Lead = len(listed)
	for _, x := range listed {
		now := Cell{Value: x.PPS}
		if x.PPS == 0 || d.now.Sum {
			now = Cell{Value: math.NaN(), Tone: Muted}
		}
		t.add(now, x.Total, d.whyOf(x), finding.DropProtocol(x), x.From, x.To, x.Reason, x.Function, x.Interface,
			cmp.Or(x.Layer, copied), x.Namespace)
	}
	p := Page{Language: d.language, Title: "Drops", Subject: d.language.Say("this host"), Sections: shown(t)}
	p.say(finding.Drops(d.language, d.now, d.filter, d.seconds, ordinary))
	return p.translated()
}

// Gauges are the totals of the watch so far, for programs that watch it.
func (d *Drops) Gauges() []Gauge {
	dropped := Gauge{Name: "pelt_dropped_packets_total", Counter: true,
		Help: "Packets that this host dropped since the watch began, by where and why."}
	places := map[model.LiveDrop]float64{}
	for _, x := range d.known {
		if !x.Ordinary || d.all {
			places[model.LiveDrop{Layer: cmp.Or(x.Layer, copied), Reason: x.Reason,
				Function: x.Function}] += float64(x.Total)
		}
	}
	for x, packets := range places {
		dropped.Samples = append(dropped.Samples,
			Sample{[]Label{{"layer", x.Layer}, {"reason", x.Reason}, {"function", x.Function}}, packets})
	}
	slices.SortFunc(dropped.Samples, func(a, b Sample) int {
		return slices.CompareFunc(a.Labels, b.Labels, func(a, b Label) int { return cmp.Compare(a.Value, b.Value) })
	})
	return []Gauge{dropped, {Name: "pelt_drops_missed_packets_total", Counter: true,
		Help:    "Packets that this host dropped since the watch began, and that the watch missed or found no room for.",
		Samples: []Sample{{nil, float64(d.now.SitesLost + d.now.Unsorted + d.now.Unwatched)}}}}
}

func DropsTotal(language words.Language, sum model.LiveDrops, filter string, all bool) Page {
	d := NewDrops(language, filter, all)
	d.Add(sum)
	return d.Page()
}

const mostDropLines = 20

func DropLines(in words.Language, x model.LiveDrops, all bool) []string {
	var out []string
	rest := model.LiveDrop{Rest: true, Layer: "all", Reason: "others"}
	for _, k := range x.Drops {
		switch {
		case k.Ordinary && !all:
		case len(out) < mostDropLines:
			out = append(out, finding.DropLine(in, x, k).Text())
		default:
			rest.PPS, rest.Packets = rest.PPS+k.PPS, rest.Packets+k.Packets
		}
	}
	if rest.Packets > 0 {
		out = append(out, finding.DropLine(in, x, rest).Text())
	}
	return out
}
