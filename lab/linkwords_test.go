package lab

import (
	"errors"
	"strings"
	"testing"

	"pelt/model"
)

// TestLinkWords holds the one line that a user reads for each nonsense said of a
// link, from its words to the lab; "" where there is none.
func TestLinkWords(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`loss=120%`, `link "loss=120%": loss: ratio "120%": must lie between 0 and 100%`},
		{`loss=100%`, ``},
		{`delay=5ms,jitter=6ms`, `link sender to receiver: jitter 6ms is more than the delay of 5ms, and frames cannot leave before they came: want at most that`},
		{`jitter=5ms`, `link sender to receiver: jitter needs a delay that it can vary, as delay=20ms,jitter=5ms`},
		{`delay=5ms,jitter=5ms`, ``},
		{`delay=-5ms`, `link "delay=-5ms": delay: duration "-5ms": must not be negative`},
		{`rate=1mbit,queue=1`, ``},
		{`delay=1ms,mtu=65535`, `link sender-receiver: an emulated link's mtu is at most 65521 B, not 65535: its frames have a header in the same 64 KiB`},
		{`rate=1mbit,queue=100B`, `link sender to receiver: a queue of 100 B has no room for a frame of 1514 B; want at least that, or a number of packets`},
		{`rate=1kbit,queue=1000000`, `link sender to receiver: at 1kbit a frame of 1514 B takes 12.1s; want at least 2.5kbit, or a smaller mtu`},
		{`queue=100`, `link: queue needs a rate on the same link; without one nothing queues`},
		{`overhead=24`, `link: overhead needs a rate on the same link; without one no frame takes time`},
		{`distribution=normal`, `link sender to receiver: a distribution needs a jitter that it can shape, as delay=20ms,jitter=5ms`},
		{`delay=5ms,jitter=1ms,distribution=gauss`, `link "delay=5ms,jitter=1ms,distribution=gauss": distribution: want uniform, normal, pareto or paretonormal, not "gauss"`},
		{`delay=5ms,jitter=1ms,distribution=uniform`, ``},
		{`delay=5ms,distribution=uniform`, `link sender to receiver: a distribution needs a jitter that it can shape, as delay=20ms,jitter=5ms`},
		{`reorder=5%`, `link sender to receiver: reorder needs a delay: a reordered frame overtakes by not waiting`},
		{`delay=5ms,reorder=100%`, `link sender to receiver: reorder of 100 % lets every frame pass without the delay: want less, or no delay`},
		{`rate=1mbit,delay=5ms,reorder=5%`, ``},
		{`duplicate=100%`, ``},
		{`corrupt=100%`, ``},
		{`loss=ge:1%/0/100%/0`, `link sender to receiver: loss ge never leaves its bad state: want R above 0`},
		{`loss=ge:1%/10%/0/0`, `link sender to receiver: loss ge loses nothing in either state: want BAD above 0`},
		{`loss=xyz:1/2`, `link "loss=xyz:1/2": loss: "xyz:1/2": want a share as 1%, or ge:P/R/BAD/GOOD`},
		{`backend=user`, ``},
		{`backend=bpf`, `link "backend=bpf": backend: want auto or user, not "bpf"`},
		{`mode=exact`, `link "mode=exact": unknown key "mode"`},
		{`seed=7`, ``},
		{`seed=0`, `link "seed=0": seed: want a whole number, at least 1; without one a seed is drawn`},
		{`mtu=1400,toward=sender`, `link: mtu holds for both directions; give it without toward`},
		{`mtu=1400,delay=5ms`, ``},
		{`delay=5ms,toward=moon`, `link: lab direct has no node "moon"; there are sender, receiver`},
		{`toward=receiver`, `link "toward=receiver": toward says which direction, and nothing says what that does to packets`},
		{`loss=0`, ``},
		{`delay=20ms,jitter=10ms,rate=1mbit`, ``},
		{`delay`, `link "delay": "delay" is not key=value`},
		{`speed=5`, `link "speed=5": unknown key "speed"`},
	} {
		l, _, err := model.ParseLink("", c.text)
		if err == nil {
			err = Check("direct", []model.Link{l})
		}
		got := ""
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) || (c.want == "") != (got == "") || strings.Contains(got, "\n") {
			t.Errorf("%s\ngot  %s\nwant %s", c.text, got, c.want)
		}
	}
}

func mustTopology(t *testing.T, name string) topologySpec {
	t.Helper()
	spec, err := findTopology(name)
	must(t, err)
	return spec
}

func TestBlocked(t *testing.T) {
	l := &Lab{links: []*Link{{Ends: [2]string{"sender", "receiver"}}}}
	l.links[0].ways[0].settings.Loss.Ratio, l.links[0].ways[1].settings.Loss.Ratio = 0.5, 1
	if got := l.Blocked(); got != "receiver to sender loses every packet" {
		t.Error(got)
	}
	changed := make(chan struct{}) // as SetLinks does; the race detector looks on
	go func() {
		defer close(changed)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.links[0].ways[0].settings.Loss.Ratio = 0
	}()
	if l.Blocked() == "" {
		t.Error("nothing is blocked after the other direction changed")
	}
	<-changed
}

// must ends a test that cannot go on after an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused reports whether an error is that of a request that cannot be fulfilled, and says in one line what is wanted.
func refused(err error, want string) bool {
	return errors.As(err, new(*UsageError)) && strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "\n")
}
