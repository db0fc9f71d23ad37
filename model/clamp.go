package model

import (
	"cmp"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// bounds limit texts and lists by their JSON name where another limit than the usual one makes sense: letters of each
// text, and entries of a list.
var bounds = map[string]struct{ letters, entries int }{
	"counters": {entries: 16384}, "routes": {entries: 64}, "knobs": {entries: 1024},
	"sites": {entries: maxSites}, "counts": {entries: maxSites},
	"unread": {entries: 64}, "unwatched": {entries: 64},
	"told":   {entries: 256},
	"before": {entries: 64}, "after": {entries: 64}, "text": {letters: 64 << 10},
	"series": {entries: maxSeries}, "cores": {entries: maxSeries}, "values": {entries: maxValues},
}

const (
	maxSites  = 4096 // as many as a watch's table holds
	maxSeries = 8192
	maxValues = 1 << 17
	maxNames  = 256     // of a table
	maxFigure = 1 << 60 // the sum of many is a number still
)

// Clip cuts a text of another host to the longest that a report shows.
func Clip(text string) string { return text[:min(len(text), maxTextLength)] }

// Clamp limits all that v, a pointer, points to and that another host told, which may run another's program: texts,
// lists and tables in length, and figures to the range of the unit that their JSON names end in. Percentiles that
// cannot be those of a distribution go. What makes a trial invalid if it cannot be, a run judges itself: it stays.
func Clamp(v any) { walk(reflect.ValueOf(v).Elem(), "", clampOne) }

func clampOne(v reflect.Value, name string) {
	letters := cmp.Or(bounds[name].letters, maxTextLength)
	switch v.Kind() {
	case reflect.String:
		if s := v.String(); len(s) > letters {
			v.SetString(s[:letters])
		}
	case reflect.Float64:
		switch f := v.Float(); {
		case math.IsNaN(f) && name == "values": // no sample
		case strings.HasSuffix(name, "_ratio"):
			v.SetFloat(min(notNegative(f), 1))
		case f != min(notNegative(f), maxFigure):
			v.SetFloat(min(notNegative(f), maxFigure))
		}
	case reflect.Slice:
		if n := bounds[name].entries; n > 0 && v.Len() > n {
			v.Set(v.Slice(0, n))
		}
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			return
		}
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
		kept := 0
		for _, k := range keys {
			if kept < maxNames && len(k.String()) <= letters {
				kept++
			} else {
				v.SetMapIndex(k, reflect.Value{})
			}
		}
	case reflect.Pointer:
		if p, of := reflect.TypeAssert[*Percentiles](v); of && name != "gap" && name != "lateness" && !p.Ordered() {
			v.SetZero()
		}
	}
}

// Printable replaces in all texts that v, a pointer, points to what could steer a terminal or hide in a report; see
// PrintableText. lines keeps line breaks.
func Printable(v any, lines bool) {
	walk(reflect.ValueOf(v).Elem(), "", func(v reflect.Value, _ string) {
		switch {
		case v.Kind() == reflect.String:
			if s := printed(v.String(), lines); s != v.String() {
				v.SetString(s)
			}
		case v.Type() == reflect.TypeFor[netip.Addr]():
			a, _ := reflect.TypeAssert[netip.Addr](v)
			v.Set(reflect.ValueOf(a.WithZone(printed(a.Zone(), lines)))) // a zone is any text
		case v.Type() == reflect.TypeFor[netip.AddrPort]():
			a, _ := reflect.TypeAssert[netip.AddrPort](v)
			v.Set(reflect.ValueOf(netip.AddrPortFrom(a.Addr().WithZone(printed(a.Addr().Zone(), lines)), a.Port())))
		case v.Kind() == reflect.Map && v.Type().Key().Kind() == reflect.String:
			for _, k := range v.MapKeys() {
				if s := printed(k.String(), lines); s != k.String() {
					value := v.MapIndex(k)
					v.SetMapIndex(k, reflect.Value{})
					v.SetMapIndex(reflect.ValueOf(s).Convert(k.Type()), value)
				}
			}
		}
	})
}

// PrintableText is s with a space for each tab and line break and U+FFFD for all else that cannot be printed.
func PrintableText(s string) string { return printed(s, false) }

// printed replaces what cannot be printed in a text. lines keeps line breaks.
func printed(s string, lines bool) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r), lines && r == '\n':
			return r
		case strings.ContainsRune("\b\f\n\r\t", r):
			return ' '
		}
		return utf8.RuneError
	}, s)
}

// walk calls visit with v and all that it holds and that can be set, and with the JSON name that each stands under.
func walk(v reflect.Value, name string, visit func(v reflect.Value, name string)) {
	visit(v, name)
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			walk(v.Elem(), name, visit)
		}
	case reflect.Struct:
		for i, name := range jsonNames(v.Type()) {
			if name != "" {
				walk(v.Field(i), name, visit)
			}
		}
	case reflect.Slice, reflect.Array:
		if kind := v.Type().Elem().Kind(); kind > reflect.Uintptr { // no list of whole numbers
			for i := range v.Len() {
				walk(v.Index(i), name, visit)
			}
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			entry := reflect.New(v.Type().Elem()).Elem()
			entry.Set(v.MapIndex(k))
			walk(entry, name, visit)
			v.SetMapIndex(k, entry)
		}
	}
}

var namesOfTypes sync.Map // of []string by reflect.Type

// jsonNames are the names of a struct's fields, "" for one that is not set from JSON or that holds nothing to visit.
func jsonNames(t reflect.Type) []string {
	if names, known := namesOfTypes.Load(t); known {
		return names.([]string)
	}
	names := make([]string, t.NumField())
	if t == reflect.TypeFor[Percentiles]() || t == reflect.TypeFor[Tally]() { // have no text, and are judged as a whole
		names = nil
	}
	for i := range names {
		f := t.Field(i)
		kind := f.Type.Kind()
		if unsigned := kind >= reflect.Uint && kind <= reflect.Uintptr; kind != reflect.Bool && !unsigned &&
			(f.IsExported() || f.Anonymous) {
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			names[i] = cmp.Or(tag, f.Name)
		}
	}
	namesOfTypes.Store(t, names)
	return names
}

// Clamp limits an observation of another host to what a trial of these flows can hold.
func (o *Observation) Clamp(flows []Flow) {
	Clamp(o)
	o.Unread.Clip()
	o.Why.Clip()
	if o.Router != nil {
		for i := range o.Router.Gaps {
			o.Router.Gaps[i].Of.Clip()
		}
	}
	o.Counters = slices.DeleteFunc(o.Counters, func(c Counter) bool { return c.Name == "" })
	for i := range o.Counters {
		c := &o.Counters[i]
		c.Host, c.Measure = "", min(c.Measure, c.Whole)
	}
	if o.Mode != DropsSeq && o.Mode != DropsCount {
		o.Mode = DropsOff
	}
	if d := o.Drops; d != nil {
		d.Flows = slices.DeleteFunc(d.Flows, func(told FlowDrops) bool {
			return !slices.ContainsFunc(flows, func(f Flow) bool {
				return f.Name == told.Flow && len(told.Streams) <= f.Streams &&
					(told.Way == "" || len(told.Streams) == 0 && (told.Way == WayAsks || told.Way == WayAnswers))
			})
		})
		for i := range d.Sites {
			if a, err := netip.ParseAddr(d.Sites[i].Address); err != nil || a.Zone() != "" {
				d.Sites[i].Address = ""
			}
		}
	}
}

// Clamp limits what another host tells of the router that it is.
func (f *RouterFacts) Clamp() {
	Clamp(f)
	f.Cores = max(f.Cores, 0)
	for i := range f.Told {
		f.Told[i].Of.Clip()
	}
}

// Ordered reports whether percentiles can be those of a distribution; nil can.
func (p *Percentiles) Ordered() bool {
	if p == nil {
		return true
	}
	p95 := cmp.Or(p.P95, p.P90) // runs of before have none
	list := []float64{0, p.Min, p.P50, p.P90, p95, p.P99, p.P999, p.Max}
	return slices.IsSorted(list) && !slices.ContainsFunc(list, math.IsNaN)
}

// ClampSeries keeps the series of a host that lie within a trial of so many seconds.
func ClampSeries(all []Series, seconds float64) []Series {
	kept := slices.DeleteFunc(all[:min(len(all), maxSeries)], func(s Series) bool {
		return len(s.Metric) > maxTextLength || !(s.StepSeconds >= 0.001 && s.StepSeconds <= seconds) ||
			s.Stream != nil && (*s.Stream < 0 || *s.Stream >= MaxStreams) ||
			!(s.StartSeconds >= 0 && s.StartSeconds <= seconds)
	})
	for i := range kept {
		s := &kept[i]
		s.Values = s.Values[:min(len(s.Values), int(seconds/s.StepSeconds)+1)]
	}
	return kept
}

// notNegative is the number, or 0 if it is none that can be.
func notNegative(f float64) float64 {
	if !(f >= 0) || math.IsInf(f, 0) { // NaN too
		return 0
	}
	return f
}
