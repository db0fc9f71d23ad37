package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"pelt/internal/netbed"
	"pelt/internal/testenv"
	"pelt/model"
)

// TestTCPLosses breaks a path for what follows the first packets of a connection. What TCP sent again is put to the
// place where it was dropped.
func TestTCPLosses(t *testing.T) {
	t.Parallel()
	long := []expr.Any{ // than a segment that opens a connection
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpGt, Register: 1, Data: binaryutil.BigEndian.PutUint16(500)},
	}
	for _, c := range []struct {
		name  string
		fault func(router *netbed.Node)
		all   bool   // nothing arrives
		port  uint16 // every watch on this kernel sees its segments
		want  string
		// of the default text
		headline, lines string
	}{
		{"a router is silent about its MTU", func(router *netbed.Node) {
			router.MTU("to-server", 1400)
			router.Rule(nftables.ChainHookOutput, netbed.Of(unix.IPPROTO_ICMP, dropped)...)
		}, true, 7421, `# packets: too long for the next link's MTU at 10.77.0.2`,
			"Nothing came through to 10.77.1.2: the TCP connection opens, but no data arrives. Losses: too long for the " +
				"next link's MTU at 10.77.0.2.",
			`too long for the next link's MTU at 10\.77\.0\.2 \d+ .*Sent again, not known to be lost 0`},
		{"a router drops some of the data", func(router *netbed.Node) {
			router.Rule(nftables.ChainHookForward, with(with(calls(7423), long...),
				&expr.Numgen{Register: 1, Modulus: 50, Type: unix.NFT_NG_INCREMENTAL},
				&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(0)}, dropped)...)
		}, false, 7423, `# packets: netfilter rule at 10.77.0.2 (NETFILTER_DROP).`, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			nodes, work := netbed.Chain(t, "client", "router", "server"), t.TempDir()
			at(nodes[1], work).Launch(exec.Command("sleep", "300")) // by whose namespace it is known as a host
			at(nodes[2], work).Start("serve", "--code", "tiger-42-amber", "--port", fmt.Sprint(c.port-1)).Await("pelt curve")
			c.fault(nodes[1])
			near, file := at(nodes[0], work), filepath.Join(work, "run.json")
			near.Env = []string{"COLUMNS=80", "PELT_CODE=tiger-42-amber"}
			p := near.Start(strings.Fields(fmt.Sprintf("curve 10.77.1.2:%d --proto tcp --payload 1460 --repeats 1 "+
				"--time 1s --warmup 500ms --json %s", c.port-1, file))...)
			code := p.Code()
			out := p.Out.String()
			if wanted := map[bool]int{false: 0, true: 3}[c.all]; code != wanted && (c.all || code != invalid) {
				t.Fatalf("exit code %d, want %d\n%s", code, wanted, p)
			}
			if words := strings.Join(strings.Fields(out), " "); c.all && !(strings.HasPrefix(words, c.headline) &&
				regexp.MustCompile(c.lines).MatchString(words)) {
				t.Errorf("want %s, then %s in\n%s", c.headline, c.lines, out)
			}
			account, err := near.Run("explain", "--all")
			if err != nil {
				t.Error(err)
			}
			want := regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(c.want), "#", `[\d ]+`))
			if !want.MatchString(strings.Join(strings.Fields(account), " ")) {
				t.Errorf("want %s in\n%s\n%s", want, out, account)
			}
			r := document(t, file, "").Results[0]
			f := r.Flows[0]
			for _, l := range f.Ledger.Lines {
				if l.Confidence != "exact-count" && l.Confidence != "bounded" {
					t.Errorf("%+v is not by count", l)
				}
			}
			if f.Lost != f.TCP.Retransmits || c.all != (f.GoodputBPS == 0) || f.Ledger.Unattributed > f.Lost/2 {
				t.Errorf("%d sent again, %d lost, %+v; watched %+v", f.TCP.Retransmits, f.Lost, f.Ledger, r.Observed)
			}
		})
	}
}

// TestTCPLossesOnALink: what an emulated link lost of a flow of TCP stands in its ledger, in a lab of this run and in one that
// another process holds.
func TestTCPLossesOnALink(t *testing.T) {
	testenv.Root(t)
	t.Parallel()
	work, held := t.TempDir(), fmt.Sprint("tcp-", os.Getpid())
	pelt(t, work, "lab", "up", "direct", "--name", held, "--link", "loss=2%")
	t.Cleanup(func() { pelt(t, work, "lab", "down", held) })
	for name, flags := range map[string][]string{"own": {"lab:direct", "--link", "loss=2%"}, "held": {"lab:" + held}} {
		file := filepath.Join(work, name+".json")
		flags = append(flags, strings.Fields("--proto tcp --payload 1460 --time 1s --warmup 500ms --repeats 1 --json "+file)...)
		pelt(t, work, append([]string{"curve"}, flags...)...)
		r := document(t, file, "").Results[0]
		f := r.Flows[0]
		i := slices.IndexFunc(f.Ledger.Lines, func(l model.Line) bool { return l.Cause == model.CauseLinkLoss })
		if i < 0 || f.TCP.Retransmits == 0 {
			t.Errorf("%s: %d sent again, none lost by the link: %+v", name, f.TCP.Retransmits, f.Ledger)
			continue
		}
		l := f.Ledger.Lines[i]
		if l.Packets == 0 || l.Packets+f.Ledger.Unattributed > f.Lost || l.Packets > *r.Links[0].Lost ||
			f.Ledger.Unattributed > f.Lost/2 {
			t.Errorf("%s: of %d sent again the link lost %d, and of %d nothing is known; it lost %d frames in all", name, f.Lost,
				l.Packets, f.Ledger.Unattributed, *r.Links[0].Lost)
		}
		t.Logf("%s: %d sent again, %+v", name, f.Lost, f.Ledger)
	}
}
