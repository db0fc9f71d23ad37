package fleet

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pelt/test/golden"
)

// TestWords: each line of the file begins with the name of a function, and is what it is given. Below stands what it
// makes of that.
func TestWords(t *testing.T) {
	address := func(text string) (a netip.Addr) {
		if text != "" {
			a = netip.MustParseAddr(text)
		}
		return a
	}
	golden.Table(t, "testdata/words.txt", func(question string) string {
		what, text, _ := strings.Cut(question, " ")
		words := strings.Fields(text)
		switch what {
		case "ParseCalls":
			calls, err := ParseCalls(text)
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: several lines: %v", text, err)
			}
			return fmt.Sprintf("%q, %v", listPrefixes(calls), err)
		case "mayCall": // what may be called, from --calls or by a fleet whose hub is at an address; then each peer
			of, rest, _ := strings.Cut(text, ": ")
			hub, fleet := strings.CutPrefix(of, "hub ")
			a := &Agent{alone: fleet, cfg: AgentConfig{clientOf: func(string) netip.Addr { return address(hub) }}}
			if !fleet {
				var err error
				if a.cfg.Calls, err = ParseCalls(strings.TrimPrefix(of, "-")); err != nil {
					t.Fatal(err)
				}
			}
			var answers []string
			for peer := range strings.FieldsSeq(rest) {
				peer = strings.ReplaceAll(peer, "ESCAPE", "\x1b[2J") // a zone is any text
				switch err := a.mayCall(address(peer)); {
				case err == nil:
					answers = append(answers, peer)
				case !fleet:
					answers = append(answers, err.Error())
				}
			}
			return strings.Join(answers, "\n")
		case "OwnNetwork":
			return fmt.Sprint(OwnNetwork(address(text)))
		case "Calls": // two hosts, each with the address that it told and the one that was seen
			var host [2]AgentInfo
			for i, word := range words {
				told, seen, _ := strings.Cut(word, ",")
				host[i].Address, host[i].Seen = address(told), address(seen)
			}
			return host[0].Calls(host[1]).String()
		case "breaker": // of each second what was sent, what came, and how far
			var b breaker
			var packets, reach uint64
			for i, second := range words {
				var sent, came, far uint64
				if _, err := fmt.Sscanf(second, "%d/%d/%d", &sent, &came, &far); err != nil {
					t.Fatalf("%s: %v", question, err)
				}
				b.sent += sent
				packets, reach = packets+came, reach+far
				if b.period(packets, reach) {
					return fmt.Sprintf("breaks in second %d, silent %v", i+1, b.silent >= breakPeriods)
				}
			}
			return "goes on"
		}
		t.Fatalf("unknown: %s", question)
		return ""
	})
}
