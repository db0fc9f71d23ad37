//go:build amd64 || arm64

package xdp

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"pelt/model"
)

// knob is something about the receiving host that may help a socket to keep up.
type knob struct {
	name   string
	buffer int  // B of the socket; 0 is the engine's own choice
	thread int  // core of the interface's NAPI thread; -1: none
	nice   int  // of that thread
	flush  int  // ns for which packets wait to be joined (gro_flush_timeout)
	rps    bool // the stack's work is moved to the receiving process's core
	joined bool // UDP_GRO
	list   bool // packets of one flow go up the stack as a list (rx-gro-list)
}

func (k knob) set(b *bed) {
	b.t.Helper()
	b.do(b.far, func() error {
		return exec.Command("ethtool", "-K", "vb", "gro", "on", "rx-gro-list", onOff(k.list)).Run()
	})
	mask := "0"
	if k.rps {
		mask = "2"
	}
	b.attribute(b.far, "vb", "queues/rx-0/rps_cpus", mask)
	b.attribute(b.far, "vb", "gro_flush_timeout", fmt.Sprint(k.flush))
	b.attribute(b.far, "vb", "napi_defer_hard_irqs", fmt.Sprint(min(k.flush, 2)))
	if k.thread >= 0 {
		b.threaded(b.far, "vb", k.thread, k.nice)
	} else {
		b.attribute(b.far, "vb", "threaded", "0")
	}
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// BenchmarkSocket finds the highest rate that an ordinary process behind a socket
// receives without any loss from the frames of an xdp sender, under each knob:
// full speed if nothing is lost, else the first of falling rates at which nothing is.
func BenchmarkSocket(b *testing.B) {
	bed := newBed(b)
	bed.attachFirst("vb")
	whole, look := 10*time.Second, time.Second
	knobs := []knob{
		{name: "the usual buffer of 208 KiB", buffer: 212992, thread: -1},
		{name: "16 MiB", thread: -1},
		{name: "16 MiB, RPS to the process's core", thread: -1, rps: true},
		{name: "16 MiB, a NAPI thread on the process's core", thread: 1},
		{name: "16 MiB, a list up the stack", thread: -1, list: true},
		{name: "16 MiB, UDP_GRO", thread: -1, joined: true},
		{name: "16 MiB, UDP_GRO, a NAPI thread on the process's core", thread: 1, joined: true},
		{name: "16 MiB, UDP_GRO, gro_flush_timeout of 100 us", thread: -1, joined: true, flush: 100_000},
	}
	rates := []string{"max", "1200kpps", "1mpps", "900kpps", "800kpps", "700kpps", "600kpps", "500kpps", "400kpps", "300kpps", "200kpps", "100kpps"}
	if testing.Short() {
		whole, look, knobs, rates = time.Second, 300*time.Millisecond, knobs[5:6], []string{"max", "100kpps"}
	}
	run := func(k knob, rate string, length time.Duration) (lossless bool, pps float64, busy float64) {
		out, err := bed.run(trial{engines: [2]string{"xdp", "udp"}, measure: length, warmup: 100 * time.Millisecond,
			flow: model.Flow{Rate: mustRate(b, rate), ReceiveBuffer: k.buffer, Joined: k.joined}})
		if err != nil {
			b.Fatal(err)
		}
		s := out.send.Send
		got := out.receive.Receive.Tally.Received
		kept := float64(s.Planned-s.Attempted) < 0.001*float64(s.Planned)
		return kept && got == s.Attempted && got > 0, float64(got) / (float64(s.DurationNanos) / 1e9), out.receive.CPU.ThreadRatio
	}
	for b.Loop() {
		best := 0.0
		for _, k := range knobs {
			k.set(bed)
			found := false
			for _, rate := range rates {
				if ok, _, _ := run(k, rate, look); !ok {
					continue
				}
				ok, pps, busy := run(k, rate, whole)
				if !ok {
					continue
				}
				fmt.Printf("%s: %.0f kpps (asked: %s) for %v without loss, the process's thread %.0f %% busy\n", k.name, pps/1e3, rate, whole, 100*busy)
				best, found = max(best, pps), true
				break
			}
			if !found {
				fmt.Printf("%s: lost some at %s, too\n", k.name, rates[len(rates)-1])
			}
		}
		b.ReportMetric(best, "pps-lossless")
	}
}
