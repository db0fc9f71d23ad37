//go:build amd64 || arm64

package drops

import (
	"net/netip"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"pelt/internal/netbed"
	"pelt/internal/testenv"
	"pelt/model"
)

// What the program costs for each packet that is dropped, as the kernel measures it.
func BenchmarkDrop(b *testing.B) {
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	testenv.Must(b, err)
	defer stats.Close()
	for _, c := range []struct {
		name    string
		mode    model.DropMode
		foreign bool
		live    bool
	}{{"seq", model.DropsSeq, false, false}, {"count", model.DropsCount, false, false}, {"foreign", model.DropsSeq,
		true, false}, {"live", "", false, true}} {
		b.Run(c.name, func(b *testing.B) {
			d := &netbed.Bed{T: b, Sender: netbed.Namespace(b)}
			d.Sender.Rule(nftables.ChainHookOutput, &expr.Verdict{Kind: expr.VerdictDrop})
			s := d.Sender.Open(false, netbed.Connected(netip.MustParseAddrPort("127.0.0.1:9077")))
			var m *Machine
			if c.live {
				m = watch(b).machine
			} else {
				m = machine(b)
				if !c.foreign {
					track(b, m, testTrial, "up", TrackOptions{Mode: c.mode}, model.Tuple{From: s.Port, To: testPort})
				}
			}
			p := []*ebpf.Program{m.objects.Program, m.objects.Nested}
			spent, count := runs(b, p)
			b.ResetTimer()
			send(b, s, testTrial, 0, uint64(b.N), 64)
			b.StopTimer()
			now, n := runs(b, p)
			if n > count {
				b.ReportMetric(float64(now-spent)/float64(n-count), "ns/drop")
			}
		})
	}
}

// runs is the time spent in all programs, and how often the first ran.
func runs(b *testing.B, all []*ebpf.Program) (spent time.Duration, count uint64) {
	b.Helper()
	for i, p := range all {
		s, err := p.Stats()
		testenv.Must(b, err)
		if spent += s.Runtime; i == 0 {
			count = s.RunCount
		}
	}
	return spent, count
}
