//go:build amd64 || arm64

package drops

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pelt/internal/kerneltypes"
	"pelt/internal/netbed"
	"pelt/internal/testenv"
	"pelt/model"
)

// Three faults at once on one path, and each packet has the right one's name, while send calls elsewhere drop packets
// on the same processors: soft interrupts come while the program runs.
func TestThreeFaults(t *testing.T) {
	b, from, to := pair(t, false, slowReader...)
	// The queue must be full, however slow the sender is beside others: it takes an
	// eighth of what can be sent, of 106 B each.
	const tried = 1000
	begun := time.Now()
	send(t, from, testTrial+2, 0, tried, 64)
	rate := min(1_250_000, uint64(106*tried/8/time.Since(begun).Seconds()))
	drain(t, to, testTrial, map[uint64]int{})
	b.Sender.TBF("va", netlink.HANDLE_ROOT, rate, 30_000)
	b.Receiver.DropFourth(nftables.ChainHookInput)
	m := machine(t)
	before, err := m.Missed()
	testenv.Must(t, err)
	track(t, m, testTrial, "up", TrackOptions{Packets: 20_000}, model.Tuple{From: from.Port, To: testPort})
	stop := drops(t)
	send(t, from, testTrial, 0, 20_000, 64)
	stop()
	b.Sender.AwaitSent("va")
	got := map[uint64]int{}
	drain(t, to, testTrial, got)
	d := collect(t, m, testTrial)
	said := verdicts(t, d, "up", 0)
	by := map[string]uint64{}
	for q, s := range said {
		told := s.Reason
		if m.kernel.old {
			told = s.Function
		}
		if by[told]++; got[q] > 0 || because(s, "NETFILTER_DROP") && q&3 != 0 {
			t.Fatalf("sequence %d: arrived %d times, %+v", q, got[q], s)
		}
	}
	if len(by) != 3 || total(d, "up").Packets != uint64(len(said)) {
		t.Errorf("%v; tallies %+v", by, d.Flows[0].Counts)
	}
	after, err := m.Missed()
	testenv.Must(t, err)
	unseen := 20_000 - uint64(len(said)) - uint64(len(got))
	named(t, 20_000-uint64(len(got)), unseen)
	// Without the second program some hundred are missed; a burst may be of any traffic of this host.
	missed := after - before
	t.Logf("%v of %d B/s, %d unseen, %d missed", by, rate, unseen, missed)
	if missed > 70 {
		t.Errorf("%d runs of the program were missed", missed)
	}
}

// drops keeps each processor busy with packets that a rule of another host refuses, until it is stopped.
func drops(t *testing.T) (stop func()) {
	h := netbed.Namespace(t)
	h.Rule(nftables.ChainHookOutput, &expr.Verdict{Kind: expr.VerdictDrop})
	s := h.Open(false, netbed.Connected(netip.MustParseAddrPort("127.0.0.1:9")))
	var done atomic.Bool
	var busy sync.WaitGroup
	for range runtime.NumCPU() {
		busy.Go(func() {
			for p := make([]byte, 64); !done.Load(); {
				header(p, testTrial+1, 0)
				_, _ = unix.Write(s.FD, p)
			}
		})
	}
	return func() { done.Store(true); busy.Wait() }
}

// Without rights there is one line, and nothing is left behind.
func TestDenied(t *testing.T) {
	machine(t) // the library of BPF asks what the kernel can do only once, and takes a refusal for a kernel that cannot
	err := testenv.WithoutRights(func() error {
		m, err := Open(Verdicts)
		if err == nil {
			_ = m.Close()
		}
		return err
	})
	var e *Error
	if !errors.As(err, &e) || e.Reason.Code != model.NoRights || strings.Contains(e.Error(), "\n") ||
		!errors.Is(err, unix.EPERM) {
		t.Errorf("%+v", err)
	}
}

// A program that the verifier refuses makes one line; the log is in the detail.
func TestRefusedProgram(t *testing.T) {
	testenv.Root(t)
	k, err := examineKernel()
	testenv.Must(t, err)
	var o struct {
		Program *ebpf.Program `ebpf:"dropped"`
	}
	err = k.load(&o, func(spec *ebpf.CollectionSpec) error {
		spec.Programs["dropped"].Instructions = asm.Instructions{
			asm.Mov.Reg(asm.R0, asm.R5).WithSymbol("dropped"), asm.Return()} // R5 holds nothing
		return nil
	})
	var e *Error
	if !errors.As(err, &e) || !strings.Contains(e.Error(), "R5 !read_ok") || strings.Contains(e.Error(), "\n") ||
		!strings.Contains(fmt.Sprintf("%+v", e), "\n") {
		t.Errorf("%v\n%+v", err, err)
	}
}

// Of what the library finds itself the kernel has no words: its own stay.
func TestLibraryRefuses(t *testing.T) {
	for said, err := range map[string]error{
		"map rests:; no such map": errors.New("map rests:\nno such map"),
		"cannot allocate memory":  fmt.Errorf("map rests: %w", unix.ENOMEM),
	} {
		if e := explain(watching, err); e.Reason.Code != model.WatchFailed || e.Reason.Text != said {
			t.Errorf("%v: %+v", err, e.Reason)
		}
	}
}

// The kernel checks the programs anew in each process that watches drops: by this many steps, of some 5 µs.
func TestVerifierSteps(t *testing.T) {
	testenv.Root(t)
	for i := range 4 {
		live, old := i&1 != 0, i&2 != 0
		k, err := examineKernel()
		testenv.Must(t, err)
		isOld := k.old
		k.old = k.old || old
		var o struct { // by which the kernel says whether it takes the program that reads anywhere
			Program *ebpf.Program `ebpf:"dropped"`
		}
		var spec *ebpf.CollectionSpec
		err = k.load(&o, func(s *ebpf.CollectionSpec) error {
			spec = s
			return s.Variables["live_view"].Set(live)
		})
		testenv.Must(t, err)
		_ = o.Program.Close()
		if isOld {
			delete(spec.Programs, "function_of") // which needs Linux 5.14: the list of symbols serves instead
		}
		set, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: kerneltypes.Cache(),
			Programs: ebpf.ProgramOptions{LogLevel: ebpf.LogLevelStats}})
		testenv.Must(t, err)
		for name, p := range set.Programs {
			_, after, _ := strings.Cut(p.VerifierLog, "processed ")
			steps := 0
			if _, err := fmt.Sscan(after, &steps); err != nil || steps > 12_000 {
				t.Errorf("%s, live %v, as an old kernel %v: %d steps, %v", name, live, k.old, steps, err)
			}
			t.Logf("%s, live %v, as an old kernel %v: %d steps", name, live, k.old, steps)
		}
		set.Close()
	}
}

// A closed machine refuses, and its tracks close quietly.
func TestClosed(t *testing.T) {
	testenv.Root(t)
	m, err := Open(1024)
	testenv.Must(t, err)
	k, err := m.Track(testTrial, "up", []model.Tuple{{From: 1, To: 2}}, TrackOptions{Fragments: true})
	testenv.Must(t, err)
	if err := errors.Join(m.Close(), m.Close(), k.Close(), k.Close()); err != nil {
		t.Error(err)
	}
	if _, err := m.Collect(testTrial, true); err == nil {
		t.Error("Collect: no error")
	}
	if _, err := m.Track(1, "up", []model.Tuple{{From: 1, To: 2}}, TrackOptions{}); err == nil {
		t.Error("Track: no error")
	}
	if _, err := m.Missed(); err == nil {
		t.Error("Stats: no error")
	}
}

// The kernel names its reasons.
func TestNames(t *testing.T) {
	k, err := examineKernel()
	testenv.Must(t, err)
	if k.old {
		if n := k.reasons.name(0); n != "NOT_SPECIFIED" || len(k.taps) == 0 {
			t.Errorf("no reason is %s; sniffers' functions are at %x", n, k.taps)
		}
		return
	}
	for _, n := range []string{"NOT_SPECIFIED", "SOCKET_RCVBUFF", "NETFILTER_DROP"} {
		if v := k.reasons.value(n); v == 0 || k.reasons.name(v) != n {
			t.Errorf("%s: %d, %s", n, v, k.reasons.name(v))
		}
	}
}
