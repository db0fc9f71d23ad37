package lab

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"pelt/lab/userlink"
	"pelt/model"
)

func change(t *testing.T, node, text string) model.Link {
	t.Helper()
	c, err := model.ParseLinkChange(node, text)
	must(t, err)
	return c
}

// A change reaches what it speaks of, and leaves the plans that it is given.
func TestChanged(t *testing.T) {
	spec, err := findTopology("router")
	must(t, err)
	l, _, err := model.ParseLink("", "delay=5ms,loss=1%,rate=1mbit")
	must(t, err)
	plans, err := planLinks(spec, []model.Link{l})
	must(t, err)
	next, reached, err := changed(spec, plans, plans,
		[]model.Link{change(t, "", "loss=0"), change(t, "receiver", "delay=9ms,toward=receiver")})
	must(t, err)
	if want := [][2]bool{{true, true}, {true, true}}; !reflect.DeepEqual(reached, want) {
		t.Errorf("reached %v, want %v", reached, want)
	}
	for i, want := range []string{"rate=1mbit,delay=5ms", "rate=1mbit,delay=5ms", "rate=1mbit,delay=9ms",
		"rate=1mbit,delay=5ms"} {
		if got := next[i/2].Toward[i%2].Words(); got != want {
			t.Errorf("%s: %s, want %s", spec.wayName(i/2, i%2), got, want)
		}
		if got := plans[i/2].Toward[i%2].Words(); got != "rate=1mbit,delay=5ms,loss=1%" {
			t.Errorf("%s was changed itself: %s", spec.wayName(i/2, i%2), got)
		}
	}
}

func TestVerdictsBetweenProcesses(t *testing.T) {
	list := verdicts{{From: 1, To: 9, Sequence: 7 << 40, Cause: userlink.Damaged, Warmup: true},
		{From: 2, To: 9, Sequence: 8}}
	text, err := json.Marshal(LinkAccount{Verdicts: list, Unlisted: 3})
	must(t, err)
	var got LinkAccount
	if err := json.Unmarshal(text, &got); err != nil || !slices.Equal(got.Verdicts, list) || got.Unlisted != 3 {
		t.Errorf("%+v, %v; want %+v", got, err, list)
	}
	for _, list := range []verdicts{{{Cause: userlink.Damaged + 1}}} {
		text, _ := list.MarshalText()
		if err := got.Verdicts.UnmarshalText(text); err == nil {
			t.Errorf("%+v was taken", list)
		}
	}
}
