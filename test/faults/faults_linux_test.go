// Package faults is one table of ways to lose a packet, with what an account says of each.
//
// Each row sends some 1000 packets through a router, by the engine's own sockets, and makes its fault when both ends
// have met. The trial is accounted for three times: see mode. What is answered wrong today stands beside the right
// answer; the test fails when that changes, so that the row is mended, too. Rows that need what this kernel lacks are
// left out here; the guests of package kernels have it.
package faults

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pelt/observe"
)

func TestFaults(t *testing.T) {
	var kernel observe.Kernel
	t.Cleanup(func() { _ = kernel.Close() })
	var right, not, layers [modes]int
	old := kernel.Ready() == nil && !kernel.Reasons()
	var c *chain
	next := makeAhead(t)
	defer next.stop()
	var lacks []string
	for _, r := range table {
		if r.needs != nil {
			if what := r.needs(t); what != "" {
				if inGuest() && !strings.HasPrefix(what, "Linux ") {
					t.Errorf("%s: this guest lacks %s", r.name, what)
				}
				lacks = append(lacks, r.name+" (needs "+what+")")
				continue
			}
		}
		if c == nil || c.bridged != r.bridged {
			if c = <-next.made[r.bridged]; c == nil {
				t.FailNow()
			}
		}
		t.Run(r.name, func(t *testing.T) {
			if r.before != nil {
				next.making.Lock()
				t.Cleanup(next.making.Unlock)
			}
			c.works(t, r)
			on := c
			c = nil
			accounts, clean := r.run(on, &kernel)
			if clean {
				c = on
			}
			for m, f := range accounts {
				m := mode(m)
				balances(t, m, f)
				if f.Lost < min(100, f.Attempted/2) {
					t.Fatalf("only %d packets of %d were lost", f.Lost, f.Attempted)
				}
				if told := factsOf(f); r.facts != "" && !matches(r.facts, told) {
					t.Errorf("%v: the facts are %q, want %s", m, told, r.facts)
				}
				got, today := answer(m, f), r.today[m]
				known := today != "" && matches(today, got) || inGuest() && matches(r.guests[m], got)
				switch {
				case matches(r.want[m], got) && (today == "" || inGuest()):
					right[m]++
				case known:
					not[m]++
					t.Logf("%v: wrong today: %s, right would be %s", m, got, r.want[m])
				case old && layer(got) == layer(r.want[m]):
					layers[m]++
					t.Logf("%v: %s, without reasons the layer is all that is known of %s%s", m, got, r.want[m], text(f))
				default:
					t.Errorf("%v: got %s, want %s%s", m, got, cmp.Or(today, r.want[m]), text(f))
				}
			}
		})
	}
	if len(lacks) > 0 {
		fmt.Printf("left out: %s\n", strings.Join(lacks, ", "))
	}
	for m := range modes { // printed without -v, too
		fmt.Printf("%v: %d rows right, %d wrong today", m, right[m], not[m])
		if old {
			fmt.Printf(", %d of which only the layer is known", layers[m])
		}
		fmt.Println()
	}
}

// layer is the layer of an answer.
func layer(answer string) string {
	layer, _, _ := strings.Cut(answer, "/")
	return layer
}

func matches(pattern, s string) bool { return regexp.MustCompile("^(" + pattern + ")$").MatchString(s) }
