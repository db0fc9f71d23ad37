//go:build amd64 || arm64

package xdp

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os/exec"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// sample is the figures of repeated runs.
type sample []float64

func (s sample) median() float64 {
	v := slices.Sorted(slices.Values(s))
	return v[len(v)/2]
}

func (s sample) String() string {
	return fmt.Sprintf("%.4g (%.4g to %.4g)", s.median(), slices.Min(s), slices.Max(s))
}

// length is how long one run of a benchmark takes, and how often it is repeated.
func length() (time.Duration, int) {
	if testing.Short() {
		return time.Second, 1
	}
	return 2 * time.Second, 5
}

// BenchmarkFlood sends 64-byte frames between two namespaces, from one core to
// another, every sequence checked; in turn with programs that only redirect and
// only count, and with iperf3 in the same namespaces.
func BenchmarkFlood(b *testing.B) {
	floorBed, ours, theirs := newBed(b), newBed(b), newBed(b)
	two := runtime.NumCPU() > 1
	if two {
		ours.attachFirst("vb")
		ours.threaded()
	}
	for b.Loop() {
		var floors, us, them, ratios, over, lost, moves sample
		benchTime, repeats := length()
		for range repeats {
			if two {
				least := math.Inf(1) // but for what else ran
				for range 5 {
					least = min(least, lineTransfer(b))
				}
				moves = append(moves, least)
			}
			low := floorBed.floor(two)
			out, err := ours.run(trial{measure: benchTime, warmup: 200 * time.Millisecond})
			if err != nil {
				b.Fatal(err)
			}
			s, r := out.send.Send, out.receive.Receive
			named := s.Attempted - r.Tally.Received
			for _, n := range s.Unsent {
				named -= n
			}
			if named != 0 {
				b.Errorf("%d lost without a name", named)
			}
			pps := float64(r.Tally.Received) / (float64(s.DurationNanos) / 1e9)
			counts := theirs.iperf3(18, 0, true)
			iperf := counts.received / counts.seconds
			floors, us, them = append(floors, low/1e6), append(us, pps/1e6), append(them, iperf/1e6)
			ratios, over = append(ratios, pps/low), append(over, pps/iperf)
			lost = append(lost, 1-float64(r.Tally.Received)/float64(s.Attempted))
		}
		fmt.Printf("18 B: %v Mpps received, ring full for %v of all; floor %v Mpps, of it %v; iperf3 %v Mpps, times %v\n", us, lost, floors, ratios, them, over)
		if two {
			fmt.Printf("a line of memory that the other core wrote is here after %v ns\n", moves)
		}
		b.ReportMetric(us.median()*1e6, "pps")
		b.ReportMetric(ratios.median(), "of-floor")
		b.ReportMetric(over.median(), "of-iperf3")
	}
}

// lineTransfer is the time in ns that a line of memory takes from one core to the
// other. Each frame's header goes that way, but for the floor's: where a
// hypervisor puts the cores far apart, the ratio of both tells that and not the engine.
func lineTransfer(b *testing.B) float64 {
	const turns = 20000
	var line struct {
		_    [128]byte
		turn atomic.Uint64
		_    [128]byte
	}
	play := func(cpu int, odd uint64, done chan<- error) {
		runtime.LockOSThread() // never unlocked: the thread ends with its pinning
		var set unix.CPUSet
		set.Set(cpu)
		err := unix.SchedSetaffinity(0, &set)
		for t := odd; t < 2*turns && err == nil; t += 2 {
			for tries := 0; line.turn.Load() != t; tries++ {
				if tries == 1e9 {
					err = errors.New("the other core does not answer")
					break
				}
			}
			line.turn.Store(t + 1)
		}
		done <- err
	}
	done := make(chan error, 2)
	began := time.Now()
	go play(0, 0, done)
	go play(1, 1, done)
	if err := errors.Join(<-done, <-done); err != nil {
		b.Fatal(err)
	}
	return float64(time.Since(began).Nanoseconds()) / (2 * turns)
}

// attachFirst keeps the receiving program on an interface, so that what is set
// about its NAPI stays.
func (b *bed) attachFirst(name string) {
	b.t.Helper()
	if err := b.engines[b.far].xdp.Ready(b.far, name); err != nil {
		b.t.Fatal(err)
	}
}

// floor is what the bare mechanism carries in packets a second.
func (b *bed) floor(two bool) float64 {
	b.t.Helper()
	count, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1, Flags: unix.BPF_F_MMAPABLE})
	if err != nil {
		b.t.Fatal(err)
	}
	defer count.Close()
	program := func(list ...asm.Instruction) *ebpf.Program {
		p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "GPL", Instructions: append(list, asm.Return())})
		if err != nil {
			b.t.Fatal(err)
		}
		return p
	}
	receive := program(asm.LoadMapValue(asm.R1, count.FD(), 0), asm.LoadMem(asm.R2, asm.R1, 0, asm.DWord), asm.Add.Imm(asm.R2, 1),
		asm.StoreMem(asm.R1, 0, asm.R2, asm.DWord), asm.Mov.Imm(asm.R0, 1))
	defer receive.Close()
	var out, in netlink.Link
	b.do(b.near, func() (err error) { out, err = netlink.LinkByName("va"); return err })
	var hook link.Link
	b.do(b.far, func() (err error) {
		if in, err = netlink.LinkByName("vb"); err != nil {
			return err
		}
		hook, err = link.AttachXDP(link.XDPOptions{Program: receive, Interface: in.Attrs().Index, Flags: link.XDPDriverMode})
		return err
	})
	defer hook.Close()
	if two {
		b.threaded()
	}
	send := program(asm.Mov.Imm(asm.R1, int32(out.Attrs().Index)), asm.Mov.Imm(asm.R2, 0), asm.FnRedirect.Call())
	defer send.Close()
	frame := shape{source: [6]byte(out.Attrs().HardwareAddr), target: [6]byte(in.Attrs().HardwareAddr), payloadBytes: 18,
		from: netip.AddrPortFrom(farFour, 9), to: netip.AddrPortFrom(farFour, 9)}.layOut()
	page, err := unix.Mmap(count.FD(), 0, unix.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		b.t.Fatal(err)
	}
	defer unix.Munmap(page)
	counted := (*uint64)(unsafe.Pointer(&page[0]))
	var began time.Time
	var took time.Duration
	run := func(repeat uint32) {
		attr := runAttr{program: uint32(send.FD()), dataInBytes: uint32(len(frame)), dataIn: uint64(uintptr(unsafe.Pointer(&frame[0]))),
			repeat: repeat, flags: testLiveFrames, batchBytes: fullBatch}
		done := make(chan error, 1)
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends with its pinning
			done <- b.near.Do(func() error {
				var set unix.CPUSet
				set.Set(0)
				if err := unix.SchedSetaffinity(0, &set); err != nil {
					return err
				}
				began = time.Now()
				if _, _, errno := unix.Syscall(unix.SYS_BPF, bpfProgRun, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr)); errno != 0 {
					return errno
				}
				took = time.Since(began)
				return nil
			})
		}()
		if err := <-done; err != nil {
			b.t.Fatal(err)
		}
	}
	run(1 << 20)
	pps := float64(1<<20) / took.Seconds()
	before := load(counted)
	benchTime, _ := length()
	run(uint32(math.Min(pps*benchTime.Seconds(), math.MaxUint32)))
	return float64(load(counted)-before) / took.Seconds()
}

// iperf3Counts is what iperf3 tells of a test.
type iperf3Counts struct{ sent, received, seconds float64 }

// iperf3 sends datagrams at so many bit/s, 0 for as fast as it can. With pinned, its
// ends have a core each.
func (b *bed) iperf3(payload int, bitsPerSecond float64, pinned bool) iperf3Counts {
	b.t.Helper()
	program := func(core string, args ...string) *exec.Cmd {
		if args = append([]string{"iperf3"}, args...); pinned {
			args = append([]string{"taskset", "-c", core}, args...)
		}
		return exec.Command(args[0], args[1:]...)
	}
	server := program("1", "-s", "-1", "-p", "5297")
	b.do(b.far, server.Start)
	defer server.Wait()
	time.Sleep(300 * time.Millisecond)
	benchTime, _ := length()
	var text []byte
	b.do(b.near, func() (err error) {
		text, err = program("0", "-c", "10.78.0.2", "-p", "5297", "-u", "-b", fmt.Sprintf("%.0f", bitsPerSecond), "-l", fmt.Sprint(payload),
			"-t", fmt.Sprint(int(benchTime.Seconds())), "-J").Output()
		return err
	})
	var doc struct {
		End struct {
			Sum struct {
				Packets     float64 `json:"packets"`
				LostPackets float64 `json:"lost_packets"`
				Seconds     float64 `json:"seconds"`
			} `json:"sum"`
		} `json:"end"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		b.t.Fatalf("iperf3: %v: %s", err, text)
	}
	sum := doc.End.Sum
	return iperf3Counts{sum.Packets, sum.Packets - sum.LostPackets, sum.Seconds}
}
