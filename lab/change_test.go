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

func TestWhatLinksCanBecome(t *testing.T) {
	for _, c := range []struct {
		topology, link, node, change string
		want                         string // in the error; "" for none
	}{
		{"direct", "delay=5ms", "", "loss=5%,delay=0", ""},
		{"direct", "delay=5ms", "receiver", "rate=10mbit,queue=20,toward=sender", ""},
		{"direct", "backend=user", "", "loss=ge:1%/10%/70%/0", ""},
		{"direct", "rate=10mbit", "sender-receiver", "rate=20mbit,queue=64KiB", ""},
		{"direct", "rate=10mbit", "receiver-sender", "overhead=24", ""},
		{"star:3", "delay=5ms", "switch-receiver-2", "loss=5%", ""},
		{"star:3", "delay=5ms", "receiver", "loss=5%", ""},
		{"direct", "rate=10mbit", "", "loss=5%", "only an emulated link can do loss=5%, and this one is shaped by the kernel's tbf; take the lab down"},
		{"router", "delay=1ms,toward=router", "receiver", "toward=receiver,rate=1mbit", ""},
		{"direct", "mtu=1400", "", "delay=5ms", "this one is a plain cable"},
		{"direct", "mtu=1400", "", "rate=5mbit", "made without a rate"},
		{"direct", "rate=10mbit", "", "rate=0", "cannot be without one"},
		{"direct", "rate=10mbit", "", "queue=100B", "no room for a frame"},
		{"direct", "delay=5ms", "", "jitter=6ms", "is more than the delay of"},
		{"direct", "delay=5ms", "", "queue=100", "needs a rate"},
		{"direct", "delay=5ms", "router", "loss=1%", `no node "router"`},
		{"direct", "delay=5ms", "", "loss=1%,toward=router", `no node "router"`},
		{"router", "delay=5ms", "sender-receiver", "loss=1%", `no node "sender-receiver"`},
	} {
		l, _, err := model.ParseLink("", c.link)
		must(t, err)
		err = CheckChanges(c.topology, []model.Link{l}, [][]model.Link{{change(t, c.node, c.change)}})
		if (err == nil) != (c.want == "") || err != nil && !refused(err, c.want) {
			t.Errorf("%s, links %s, %s to %s: %v; want %q", c.topology, c.link, c.node, c.change, err, c.want)
		}
	}
}

// A change reaches what it speaks of, and leaves the plans that it is given.
func TestChanged(t *testing.T) {
	spec, err := findTopology("router")
	must(t, err)
	l, _, err := model.ParseLink("", "delay=5ms,loss=1%,rate=1mbit")
	must(t, err)
	plans, err := planLinks(spec, []model.Link{l})
	must(t, err)
	next, reached, err := changed(spec, plans, plans, []model.Link{change(t, "", "loss=0"), change(t, "receiver", "delay=9ms,toward=receiver")})
	must(t, err)
	if want := [][2]bool{{true, true}, {true, true}}; !reflect.DeepEqual(reached, want) {
		t.Errorf("reached %v, want %v", reached, want)
	}
	for i, want := range []string{"rate=1mbit,delay=5ms", "rate=1mbit,delay=5ms", "rate=1mbit,delay=9ms", "rate=1mbit,delay=5ms"} {
		if got := next[i/2].toward[i%2].Words(); got != want {
			t.Errorf("%s: %s, want %s", spec.wayName(i/2, i%2), got, want)
		}
		if got := plans[i/2].toward[i%2].Words(); got != "rate=1mbit,delay=5ms,loss=1%" {
			t.Errorf("%s was changed itself: %s", spec.wayName(i/2, i%2), got)
		}
	}
}

func TestVerdictsBetweenProcesses(t *testing.T) {
	list := verdicts{{From: 1, To: 9, Sequence: 7 << 40, Cause: userlink.Damaged, Warmup: true}, {From: 2, To: 9, Sequence: 8}}
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
