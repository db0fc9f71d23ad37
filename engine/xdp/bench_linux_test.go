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

	"pelt/internal/testenv"
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

// BenchmarkFlood floods between two namespaces, from one core to another, every sequence checked: by both engines and
// by iperf3 in turn, which has a pair of its own.
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
					out, err := ours.run(b, trial{engines: [2]string{c.engine, c.engine}, measure: benchTime,
						warmup: 200 * time.Millisecond, flow: model.Flow{PayloadBytes: c.payload}})
					testenv.Must(b, err)
					s, r := out.send.Send, out.receive.Receive
					if named := s.Attempted - r.Tally.Received; c.engine == "xdp" && named != out.unsent() {
						b.Errorf("%d lost without a name", named-out.unsent())
					}
					seconds := float64(s.DurationNanos) / 1e9
					pps := float64(r.Tally.Received) / seconds
					counts := theirs.iperf3(c.payload)
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
	b.far.Setting("vb", "threaded", "1")
	var set unix.CPUSet
	set.Set(1)
	found := false
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries { // all beds' alike
		comm, _ := os.ReadFile("/proc/" + e.Name() + "/comm")
		if pid, err := strconv.Atoi(e.Name()); err == nil && strings.HasPrefix(string(comm), "napi/vb") {
			found = true
			testenv.Must(b.T, unix.SchedSetaffinity(pid, &set))
		}
	}
	if !found {
		b.T.Fatal("vb has no NAPI thread")
	}
}

// iperf3Counts is what iperf3 tells of a test.
type iperf3Counts struct{ sent, received, seconds float64 }

// iperf3 sends datagrams as fast as it can, its ends on a core each.
func (b *bed) iperf3(payload int) iperf3Counts {
	b.T.Helper()
	program := func(core string, args ...string) *exec.Cmd {
		return exec.Command("taskset", append([]string{"-c", core, "iperf3"}, args...)...)
	}
	server := program("1", "-s", "-1", "-p", "5297")
	b.far.Must(server.Start)
	defer server.Wait()
	time.Sleep(300 * time.Millisecond)
	benchTime, _ := length()
	var text []byte
	b.near.Must(func() (err error) {
		text, err = program("0", "-c", "10.77.0.2", "-p", "5297", "-u", "-b", "0", "-l", fmt.Sprint(payload),
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
