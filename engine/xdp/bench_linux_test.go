//go:build amd64 || arm64

package xdp

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pelt/model"
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

// BenchmarkFlood floods between two namespaces, from one core to another, every sequence checked: by both engines and by iperf3
// in turn, which has a pair of its own.
func BenchmarkFlood(b *testing.B) {
	ours, theirs := newBed(b), newBed(b)
	if runtime.NumCPU() > 1 {
		ours.makeReady() // so that what is set about its NAPI stays
		ours.threaded()
	}
	for _, c := range []struct {
		engine  string
		payload int
	}{{"xdp", 18}, {"udp", 18}, {"udp", 64}, {"udp", 1472}} {
		b.Run(fmt.Sprintf("%s-%dB", c.engine, c.payload), func(b *testing.B) {
			for b.Loop() {
				var us, them, over, lost, effort sample
				benchTime, repeats := length()
				for range repeats {
					out, err := ours.run(b, trial{engines: [2]string{c.engine, c.engine}, measure: benchTime, warmup: 200 * time.Millisecond, flow: model.Flow{PayloadBytes: c.payload}})
					if err != nil {
						b.Fatal(err)
					}
					s, r := out.send.Send, out.receive.Receive
					if named := s.Attempted - r.Tally.Received; c.engine == "xdp" && named != out.unsent() {
						b.Errorf("%d lost without a name", named-out.unsent())
					}
					seconds := float64(s.DurationNanos) / 1e9
					pps := float64(r.Tally.Received) / seconds
					counts := theirs.iperf3(c.payload, 0, true)
					iperf := counts.received / counts.seconds
					us, them, over = append(us, pps/1e6), append(them, iperf/1e6), append(over, pps/iperf)
					lost = append(lost, 1-float64(r.Tally.Received)/float64(s.Attempted))
					effort = append(effort, float64(s.Attempted)/seconds/out.send.CPU.ThreadRatio/1e6)
				}
				fmt.Printf("%s, %d B: %v Mpps received, lost %v of all, %v M sent per second of the sender's processor; iperf3 %v Mpps, times %v\n",
					c.engine, c.payload, us, lost, effort, them, over)
				b.ReportMetric(us.median()*1e6, "pps")
				b.ReportMetric(over.median(), "of-iperf3")
			}
		})
	}
}

// threaded gives the far interface's NAPI a thread of its own, pinned to the second core.
func (b *bed) threaded() {
	b.T.Helper()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		done <- func() error {
			if err := b.far.Enter(); err != nil {
				return err
			}
			if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
				return err
			}
			if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
				return err
			}
			if err := unix.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
				return err
			}
			return os.WriteFile("/sys/class/net/vb/threaded", []byte("1"), 0)
		}()
	}()
	if err := <-done; err != nil {
		b.T.Fatal(err)
	}
	var set unix.CPUSet
	set.Set(1)
	found := false
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries { // all beds' alike
		comm, _ := os.ReadFile("/proc/" + e.Name() + "/comm")
		if pid, err := strconv.Atoi(e.Name()); err == nil && strings.HasPrefix(string(comm), "napi/vb") {
			found = true
			if err := unix.SchedSetaffinity(pid, &set); err != nil {
				b.T.Fatal(err)
			}
		}
	}
	if !found {
		b.T.Fatal("vb has no NAPI thread")
	}
}

// iperf3Counts is what iperf3 tells of a test.
type iperf3Counts struct{ sent, received, seconds float64 }

// iperf3 sends datagrams at so many bit/s, 0 for as fast as it can. With pinned, its
// ends have a core each.
func (b *bed) iperf3(payload int, bitsPerSecond float64, pinned bool) iperf3Counts {
	b.T.Helper()
	program := func(core string, args ...string) *exec.Cmd {
		if args = append([]string{"iperf3"}, args...); pinned {
			args = append([]string{"taskset", "-c", core}, args...)
		}
		return exec.Command(args[0], args[1:]...)
	}
	server := program("1", "-s", "-1", "-p", "5297")
	b.far.Must(server.Start)
	defer server.Wait()
	time.Sleep(300 * time.Millisecond)
	benchTime, _ := length()
	var text []byte
	b.near.Must(func() (err error) {
		text, err = program("0", "-c", "10.77.0.2", "-p", "5297", "-u", "-b", fmt.Sprintf("%.0f", bitsPerSecond), "-l", fmt.Sprint(payload),
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
		b.T.Fatalf("iperf3: %v: %s", err, text)
	}
	sum := doc.End.Sum
	return iperf3Counts{sum.Packets, sum.Packets - sum.LostPackets, sum.Seconds}
}

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

// BenchmarkPacing has both engines and iperf3 send at rates, in turn and in the same
// two namespaces, while another program keeps a core half busy. It prints what each
// missed of its schedule, and how many trials kept their mean rate within 0.1 % and
// missed less than 0.5 %.
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
				bed.makeReady()
				for b.Loop() {
					pacedBy(b, bed, rate, payload)
				}
			})
		}
	}
}

func pacedBy(b *testing.B, bed *bed, rate string, payload int) {
	r := mustRate(b, rate)
	each, repeats := length()
	pps, _ := r.PPS(payload)
	senders := []string{"udp", "iperf3", "xdp"}
	all := map[string]sample{}
	kept := map[string]int{}
	for range repeats {
		for _, name := range senders {
			missed, off := 0.0, 0.0
			if name == "iperf3" {
				c := bed.iperf3(payload, pps*8*float64(payload), false)
				missed = 1 - c.sent/c.seconds/pps
				off = missed
			} else {
				out, err := bed.run(b, trial{engines: [2]string{name, "udp"}, measure: each, warmup: 100 * time.Millisecond, free: true, flow: model.Flow{Rate: r, PayloadBytes: payload}})
				if err != nil {
					b.Fatal(err)
				}
				s := out.send.Send
				missed = float64(s.Planned-s.Attempted) / float64(s.Planned)
				off = 1 - float64(s.Attempted)/(float64(s.DurationNanos)/1e9)/pps
			}
			all[name] = append(all[name], 100*missed)
			if missed < 0.005 && off < 0.001 && off > -0.001 {
				kept[name]++
			}
		}
	}
	for _, name := range senders {
		fmt.Printf("%s, %d B by %s: %d of %d trials kept the schedule; missed %v %%\n", rate, payload, name, kept[name], repeats, all[name])
		b.ReportMetric(all[name].median(), name+"-%missed")
	}
}
