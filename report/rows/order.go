package rows

import (
	"cmp"
	"slices"
	"strings"

	"pelt/model"
)

func varying(doc model.Document) []string {
	first := map[string]model.Value{}
	count := map[string]int{}
	differs := map[string]bool{}
	for _, r := range doc.Results {
		for k, v := range r.Cell {
			if old, ok := first[k]; !ok {
				first[k] = v
			} else if old != v {
				differs[k] = true
			}
			count[k]++
		}
	}
	var keys []string
	for k := range first {
		if differs[k] || count[k] != len(doc.Results) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	return keys
}

func rank(key string) int {
	if key == "payload_bytes" || key == "frame_bytes" {
		return 0
	}
	return 1
}

func flowOrder(doc model.Document) []string {
	var names []string
	add := func(n string) {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	for _, f := range doc.Plan.Flows {
		add(f.Name)
	}
	seen := map[string]bool{}
	for _, r := range doc.Results {
		for _, f := range r.Flows {
			add(f.Name)
			seen[f.Name] = true
		}
	}
	return slices.DeleteFunc(names, func(n string) bool { return !seen[n] })
}

func sortRows(doc model.Document, t *Table) {
	slices.SortStableFunc(t.Rows, func(a, b Row) int {
		// Other knobs make the groups, the size runs inside each.
		order := []int{cmp.Compare(slices.Index(t.Flows, a.Flow), slices.Index(t.Flows, b.Flow))}
		for i := len(t.Keys) - 1; i >= 0; i-- {
			order = append(order, CompareLevels(doc.Plan, t.Keys[i], a.Cell, b.Cell))
		}
		return cmp.Or(order...)
	})
}

// CompareLevels orders two cells by one knob: absent first, numbers ascending,
// words in the order of the plan, then by name.
func CompareLevels(p model.Plan, key string, a, b model.Cell) int {
	x, okX := a[key]
	y, okY := b[key]
	if okX != okY {
		if okY {
			return -1
		}
		return 1
	}
	if x.Text == "" && y.Text == "" {
		return cmp.Compare(x.Number, y.Number)
	}
	return cmp.Or(cmp.Compare(levelPlace(p, key, x), levelPlace(p, key, y)), strings.Compare(x.Text, y.Text))
}

func levelPlace(p model.Plan, key string, v model.Value) int {
	for _, f := range p.Factors {
		if f.Knob == key {
			return slices.Index(f.Levels, v)
		}
	}
	return -1
}
