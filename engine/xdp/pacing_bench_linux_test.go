//go:build amd64 || arm64

package xdp

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pelt/model"
)

// busyEnv makes the test program another program that keeps a core half busy.
const busyEnv = "PELT_BENCH_BUSY"

func TestMain(m *testing.M) {
	if os.Getenv(busyEnv) == "" {
		os.Exit(m.Run())
	}
	for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for begun := time.Now(); time.Since(begun) < 5*time.Millisecond; {
		}
	}
}

// halfBusy keeps a core half busy until the benchmark ends.
func halfBusy(b *testing.B) {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), busyEnv+"=1")
	c.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
}

// meter is a program on the far interface that notes when UDP packets of one length come.
type meter struct {
	count *uint64
	times []uint64 // ns
}

func (b *bed) meter(payload int) meter {
	b.t.Helper()
	const most, udpAt = 1 << 21, 23
	var maps [2]*ebpf.Map
	var pages [2][]byte
	for i, bytes := range []uint32{8, 8 * most} {
		m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: bytes, MaxEntries: 1, Flags: unix.BPF_F_MMAPABLE})
		if err != nil {
			b.t.Fatal(err)
		}
		b.t.Cleanup(func() { m.Close() })
		page, err := unix.Mmap(m.FD(), 0, max(int(bytes), unix.Getpagesize()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			b.t.Fatal(err)
		}
		b.t.Cleanup(func() { unix.Munmap(page) })
		maps[i], pages[i] = m, page
	}
	frame := int32(14 + 20 + 8 + payload)
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "GPL", Instructions: asm.Instructions{
		asm.LoadMem(asm.R2, asm.R1, 0, asm.Word), asm.LoadMem(asm.R3, asm.R1, 4, asm.Word),
		asm.Mov.Reg(asm.R4, asm.R2), asm.Add.Imm(asm.R4, frame), asm.JGT.Reg(asm.R4, asm.R3, "pass"),
		asm.Add.Imm(asm.R4, 1), asm.JLE.Reg(asm.R4, asm.R3, "pass"),
		asm.LoadMem(asm.R5, asm.R2, udpAt, asm.Byte), asm.JNE.Imm(asm.R5, unix.IPPROTO_UDP, "pass"),
		asm.FnKtimeGetNs.Call(),
		asm.LoadMapValue(asm.R1, maps[0].FD(), 0), asm.LoadMem(asm.R2, asm.R1, 0, asm.DWord),
		asm.Mov.Reg(asm.R3, asm.R2), asm.Add.Imm(asm.R3, 1), asm.StoreMem(asm.R1, 0, asm.R3, asm.DWord),
		asm.And.Imm(asm.R2, most-1), asm.LSh.Imm(asm.R2, 3),
		asm.LoadMapValue(asm.R1, maps[1].FD(), 0), asm.Add.Reg(asm.R1, asm.R2), asm.StoreMem(asm.R1, 0, asm.R0, asm.DWord),
		asm.Mov.Imm(asm.R0, 2).WithSymbol("pass"), asm.Return(),
	}})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { program.Close() })
	b.do(b.far, func() error {
		in, err := netlink.LinkByName("vb")
		if err != nil {
			return err
		}
		hook, err := link.AttachXDP(link.XDPOptions{Program: program, Interface: in.Attrs().Index, Flags: link.XDPDriverMode})
		if err == nil {
			b.t.Cleanup(func() { hook.Close() })
		}
		return err
	})
	return meter{(*uint64)(unsafe.Pointer(&pages[0][0])), unsafe.Slice((*uint64)(unsafe.Pointer(&pages[1][0])), most)}
}

// spread says how evenly packets came: gaps in us, and the most within 100 us.
func (m meter) spread() (p50, p99, longest, burst float64) {
	times := m.times[:min(int(load(m.count)), len(m.times))]
	if len(times) < 2 {
		return 0, 0, 0, float64(len(times))
	}
	var gaps []float64
	first := 0
	for i, at := range times {
		if i > 0 {
			gaps = append(gaps, float64(at-times[i-1])/1e3)
		}
		for at-times[first] >= 100_000 {
			first++
		}
		burst = max(burst, float64(i-first+1))
	}
	slices.Sort(gaps)
	part := func(q float64) float64 { return gaps[int(q*float64(len(gaps)-1))] }
	return part(0.5), part(0.99), part(1), burst
}

// BenchmarkPacing has both engines and iperf3 send at rates, in turn and in the same
// two namespaces, while another program keeps a core half busy. It prints what each
// missed of its schedule and how its packets came, and how many trials kept their mean
// rate within 0.1 % and missed less than 0.5 %.
func BenchmarkPacing(b *testing.B) {
	halfBusy(b)
	rates, payloads := []string{"1kpps", "8kpps", "20kpps", "60kpps", "100kpps", "150kpps"}, []int{18, 512, 1472}
	if testing.Short() {
		rates, payloads = rates[2:3], payloads[1:2]
	}
	for _, rate := range rates {
		for _, payload := range payloads {
			b.Run(fmt.Sprintf("%s-%dB", rate, payload), func(b *testing.B) {
				bed := newBed(b)
				m := bed.meter(payload)
				for b.Loop() {
					pacedBy(b, bed, m, rate, payload)
				}
			})
		}
	}
}

func pacedBy(b *testing.B, bed *bed, m meter, rate string, payload int) {
	r := mustRate(b, rate)
	each, repeats := length()
	pps, _ := r.PPS(payload)
	senders := []string{"udp", "iperf3", "xdp"}
	type figures struct{ missed, p50, p99, longest, burst sample }
	all := map[string]*figures{"udp": {}, "iperf3": {}, "xdp": {}}
	kept := map[string]int{}
	for range repeats {
		for _, name := range senders {
			store(m.count, 0)
			missed, off := 0.0, 0.0
			if name == "iperf3" {
				c := bed.iperf3(payload, pps*8*float64(payload), false)
				missed = 1 - c.sent/c.seconds/pps
				off = missed
			} else {
				out, err := bed.run(trial{engines: [2]string{name, "udp"}, measure: each, warmup: 100 * time.Millisecond, free: true, flow: model.Flow{Rate: r, PayloadBytes: payload}})
				if err != nil {
					b.Fatal(err)
				}
				s := out.send.Send
				missed = float64(s.Planned-s.Attempted) / float64(s.Planned)
				off = 1 - float64(s.Attempted)/(float64(s.DurationNanos)/1e9)/pps
			}
			f := all[name]
			p50, p99, longest, burst := m.spread()
			f.missed, f.p50, f.p99 = append(f.missed, 100*missed), append(f.p50, p50), append(f.p99, p99)
			f.longest, f.burst = append(f.longest, longest), append(f.burst, burst)
			if missed < 0.005 && off < 0.001 && off > -0.001 {
				kept[name]++
			}
		}
	}
	for _, name := range senders {
		f := all[name]
		fmt.Printf("%s, %d B by %s: %d of %d trials kept the schedule; missed %v %%; gaps as they came: p50 %v us, p99 %v us, longest %v us; most in 100 us: %v\n",
			rate, payload, name, kept[name], repeats, f.missed, f.p50, f.p99, f.longest, f.burst)
		b.ReportMetric(f.missed.median(), name+"-%missed")
		b.ReportMetric(f.p99.median(), name+"-gap-p99-us")
	}
}
