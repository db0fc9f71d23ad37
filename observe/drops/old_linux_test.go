//go:build amd64 || arm64

package drops

import (
	"testing"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/google/nftables"
	"github.com/vishvananda/netlink"

	"pelt/model"
)

// Watched as Linux 5.5 to 5.16 are, a kernel tells the same drops at the same places, without reasons.
func TestWithoutReasons(t *testing.T) {
	b, from, to := pair(t, false, slowReader...)
	m := machine(t)
	if m.kernel.old {
		t.Skip("reasons to compare with: needs Linux 5.17")
	}
	asOld = "yes"
	old, err := Open(1 << 16)
	asOld = ""
	if err != nil {
		t.Fatalf("%+v", err)
	}
	t.Cleanup(func() {
		if err := old.Close(); err != nil {
			t.Error(err)
		}
	})
	const n = 2000
	for _, m := range []*Machine{m, old} {
		track(t, m, testTrial, "up", TrackOptions{Packets: n}, model.Tuple{From: from.Port, To: testPort})
	}
	b.Receiver.DropFourth(nftables.ChainHookInput)
	send(t, from, testTrial, 0, n/2, 64)
	drain(t, to, testTrial, map[uint64]int{})
	b.Sender.Shot("va", netlink.HANDLE_MIN_EGRESS)
	send(t, from, testTrial, n/2, n/2, 64)
	want, got := verdicts(t, collect(t, m, testTrial), "up", 0), verdicts(t, collect(t, old, testTrial), "up", 0)
	functions := map[string]string{}
	var only int
	for q, s := range want {
		o, ok := got[q]
		if !ok {
			only++
			continue
		}
		functions[s.Reason] = s.Function
		if s.Reason = notSpecified; o != s {
			t.Fatalf("sequence %d: %+v, want %+v", q, o, s)
		}
	}
	for q := range got {
		if _, ok := want[q]; !ok {
			only++
		}
	}
	// A run of one program in which another drop comes is the other's to see.
	if only > 20 || len(functions) != 3 {
		t.Errorf("%d of %d and %d verdicts are one machine's only; causes %v", only, len(want), len(got), functions)
	}
	if d := collect(t, old, testTrial); d.SitesLost > 0 || !old.Why().Has(model.ReasonsUntold) || m.Why().Has(model.ReasonsUntold) {
		t.Errorf("%d without a site; %v", d.SitesLost, old.Why())
	}
}

// Old kernels refuse some instructions even where a program never comes.
func TestPlainInstructions(t *testing.T) {
	spec, err := loadBpf()
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range spec.Programs {
		for _, i := range plain(p.Instructions) {
			if f := btf.FuncMetadata(&i); f != nil && f.Linkage != btf.StaticFunc {
				t.Errorf("%s: %s is global", name, f.Name)
			}
			op := i.OpCode
			if i.IsLoadOfFunctionPointer() || op.Class() == asm.StXClass && op.Mode() == asm.AtomicMode &&
				op.AtomicOp() != asm.AddAtomic {
				t.Errorf("%s: %v", name, i)
			}
		}
	}
}
