// Package faults is one table of ways to lose a packet, with what an account says of each.
//
// Each row sends some 1000 packets through a router, by the engine's own sockets, and makes its fault when both ends
// have met. The trial is accounted for three times: see mode. Rows that need what this kernel lacks are left out here;
// the guests of package kernels have it.
package faults

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"pelt/internal/testenv"
	"pelt/model"
	"pelt/observe"
)

func TestFaults(t *testing.T) {
	testenv.Root(t) // before its rows, which share namespaces
	var kernel observe.Kernel
	t.Cleanup(func() { _ = kernel.Close() })
	suite := &suite{chains: newChains(t), old: kernel.Ready() == nil && !kernel.Reasons(), kernel: &kernel}
	var lacks []string
	t.Run("rows", func(t *testing.T) {
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
			t.Run(r.name, func(t *testing.T) { suite.test(t, r) })
		}
	})
	suite.chains.stop() // before the namespaces go that the next chain is made of
	if len(lacks) > 0 {
		fmt.Printf("left out: %s\n", strings.Join(lacks, ", ")) // without -v, too
	}
	for m := range modes {
		fmt.Printf("%v: %d rows right", m, suite.score.right[m])
		if suite.old {
			fmt.Printf(", %d of which only the layer is known", suite.score.layers[m])
		}
		fmt.Println()
	}
}

// suite is what rows share.
type suite struct {
	kernel *observe.Kernel
	old    bool // it gives no reasons
	chains *chains
	score  score
}

// test makes a row's fault, and judges what the accounts say of it.
func (s *suite) test(t *testing.T, r row) {
	if !r.alone() {
		t.Parallel()
	}
	c, clean := s.chains.take(r.bridged), false
	if c == nil {
		t.FailNow()
	}
	if r.alone() {
		s.chains.making.Lock()
		t.Cleanup(s.chains.making.Unlock)
	}
	t.Cleanup(func() { // the last one
		if clean {
			s.chains.giveBack(c)
		}
	})
	c.works(t, r)
	var accounts [modes]model.FlowResult
	accounts, clean = r.run(c, s.kernel)
	for m, f := range accounts {
		m := mode(m)
		balances(t, m, f)
		if f.Lost < min(100, f.Attempted/2) {
			t.Fatalf("only %d packets of %d were lost", f.Lost, f.Attempted)
		}
		if told := factsOf(f); r.facts != "" && !matches(r.facts, told) {
			t.Errorf("%v: the facts are %q, want %s", m, told, r.facts)
		}
		got := answer(m, f)
		switch {
		case matches(r.want[m], got):
			s.score.add(&s.score.right, m)
		case s.old && layer(got) == layer(r.want[m]):
			s.score.add(&s.score.layers, m)
			t.Logf("%v: %s, without reasons the layer is all that is known of %s%s", m, got, r.want[m], text(f))
		default:
			t.Errorf("%v: got %s, want %s%s", m, got, r.want[m], text(f))
		}
	}
}

// score counts rows by what is answered.
type score struct {
	mu            sync.Mutex
	right, layers [modes]int
}

func (s *score) add(to *[modes]int, m mode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to[m]++
}

// layer is the layer of an answer.
func layer(answer string) string {
	layer, _, _ := strings.Cut(answer, "/")
	return layer
}

func matches(pattern, s string) bool { return regexp.MustCompile("^(" + pattern + ")$").MatchString(s) }
