package test

import (
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pelt/internal/netbed"
	"pelt/internal/peltproc"
	"pelt/internal/testenv"
	"pelt/model"
)

// TestNATGivesOtherPorts empties a router's table of connections in mid-run, so that its NAT gives each of them another
// port. The receiver follows every stream to its new port: what came before is lost and accounted for, and the change
// is told. So does a sender that was called.
func TestNATGivesOtherPorts(t *testing.T) {
	t.Parallel()
	const after, ports = ` another port after [\d.]+ m?s: `, `[12]\d{4} became [12]\d{4}`
	const lost = `; \d+ packets? (was|were) lost meanwhile\.`
	for _, c := range []struct{ name, args, want string }{
		{"to the client", "--engine udp --direction down", `The path gave the flow` + after + ports + `\.`},
		{"four streams", "--engine udp --streams 4",
			`The path gave 4 of 4 streams` + after + ports + `, the first of 4 changes` + lost},
		{"three streams, received as XDP frames", "--engine udp:xdp --streams 3",
			`The path gave 3 of 3 streams` + after + ports + `, the first of 3 changes` + lost},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			nodes, work := netbed.Chain(t, "client", "router", "server"), t.TempDir()
			client, router, server := nodes[0], nodes[1], nodes[2]
			least := netip.AddrPortFrom(netip.MustParseAddr("10.77.1.1"), 10_000)
			router.Translate(netbed.Of(unix.IPPROTO_UDP, netbed.ToSources(least, 29_999)...)...) // each gets a port by chance
			at(server, work).Start("serve", "--code", "tiger-42-amber").Await("pelt curve")
			near, file, page := at(client, work), filepath.Join(work, "run.json"), filepath.Join(work, "run.html")
			near.Env = []string{"COLUMNS=80", "PELT_CODE=tiger-42-amber"}
			args := "curve " + server.IP(false).String() + " --payload 64 --rate 1kpps --repeats 1 --time 8s " + c.args
			down := strings.Contains(args, "down")
			to := map[bool]*netbed.Node{false: server, true: client}[down]
			var p *peltproc.Process
			for try := 1; ; try++ {
				before := to.Received()
				p = near.Start(append(strings.Fields(args), "--json", file)...)
				testenv.Await(t, "packets", func() bool { return to.Received() > before+1500 }) // of which the warm-up has 1000
				router.ForgetConnections()
				if to.Received() < before+8000 || try == 3 { // the warm-up and the trial have 9000
					break
				}
				t.Logf("measured again: the change of try %d came when the trial was over, or nearly", try)
				_ = p.Wait()
			}
			code := p.Code()
			t.Logf("exit code %d\n%s", code, p)
			f := decoded(t, file).Results[0].Flows[0]
			report, err := near.Run("report", "--all", "--html", page)
			t.Logf("%v\n%s", err, report)
			account, err := near.Run("explain")
			t.Logf("%v\n%s", err, account)
			html, err := os.ReadFile(page)
			testenv.Must(t, err)
			want := regexp.MustCompile(c.want)
			texts := []string{report, account, string(html), p.Out.String()}
			for _, text := range texts {
				if !want.MatchString(strings.Join(strings.Fields(text), " ")) {
					t.Errorf("want %q in\n%.4000s", c.want, text)
				}
			}
			var early, sum uint64
			for _, l := range f.Ledger.Lines {
				if sum += l.Packets; l.Layer == model.LayerApplication && l.Cause == model.CauseNewAddress {
					early = l.Packets
				}
			}
			if (early == 0) != down || sum+f.Ledger.Unattributed != f.Lost || f.Received < f.Attempted/2 ||
				len(f.Moved) != f.Streams {
				t.Errorf("%d of %d received, %d from a new address, %d of %d lost accounted for, moves %v",
					f.Received, f.Attempted,
					early, sum+f.Ledger.Unattributed, f.Lost, f.Moved)
			}
		})
	}
}
