package udp

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pelt/engine"
	"pelt/internal/netbed"
	"pelt/measure"
	"pelt/model"
	"pelt/unit"
)

// sample is the rates of repeated runs in packets per second.
type sample []float64

func (s sample) String() string {
	v := slices.Sorted(slices.Values(s))
	return fmt.Sprintf("%.0f kpps (%.0f to %.0f)", s.median()/1e3, v[0]/1e3, v[len(v)-1]/1e3)
}

func (s sample) median() float64 {
	v := slices.Sorted(slices.Values(s))
	return v[len(v)/2]
}

const benchSeconds = 2

// BenchmarkAgainstIperf3 runs both tools in turn over the same veth pair,
// unpaced, and prints what their receivers counted.
func BenchmarkAgainstIperf3(b *testing.B) {
	near, far := linked(b)
	hosts := [2]*netbed.Node{near, far}
	server := exec.Command("taskset", "-c", "1", "iperf3", "-s", "-p", "5299")
	if err := far.Do(server.Start); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { server.Process.Kill(); server.Wait() })
	await(b, hosts[0], "10.77.0.2:5299")
	for _, payload := range []int{18, 64, 1472} {
		b.Run(fmt.Sprintf("%dB", payload), func(b *testing.B) {
			for b.Loop() {
				var ours, theirs, ratios, lost, theirLost, effort, theirEffort sample
				for range pairs() {
					them := iperf3(b, near, payload)
					us := flood(b, hosts, payload, 0)
					ours, theirs, ratios = append(ours, us.pps), append(theirs, them.pps), append(ratios, us.pps/them.pps)
					lost, theirLost = append(lost, us.lost), append(theirLost, them.lost)
					effort, theirEffort = append(effort, us.perSecond), append(theirEffort, them.perSecond)
				}
				fmt.Printf("%d B: engine %v lost %.2g%%, iperf3 %v lost %.2g%%, ratio %.2f (%.2f to %.2f)\n",
					payload, ours, lost.median()*100, theirs, theirLost.median()*100, ratios.median(), slices.Min(ratios), slices.Max(ratios))
				fmt.Printf("%d B: sent per second of the sender's processor time: engine %v, iperf3 %v\n", payload, effort, theirEffort)
				b.ReportMetric(ratios.median(), "ratio")
				b.ReportMetric(ours.median(), "pps")
			}
		})
	}
}

// pairs is how often both tools take their turn.
func pairs() int {
	if testing.Short() {
		return 1
	}
	return 5
}

// await returns when something listens on a TCP port of the far host.
func await(b testing.TB, near *netbed.Node, address string) {
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Second)
	defer cancel()
	for {
		err := near.Do(func() error {
			c, err := net.DialTimeout("tcp", address, time.Second)
			if err == nil {
				c.Close()
			}
			return err
		})
		if err == nil {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			b.Fatalf("nothing listens at %s: %v", address, err)
		}
	}
}

// result is one unpaced run.
type result struct {
	pps, lost float64 // received; share of what was sent
	perSecond float64 // packets sent per second of the sender's processor time
	attempted float64 // packets per second
}

func iperf3(b testing.TB, from *netbed.Node, payload int) result {
	b.Helper()
	client := exec.Command("taskset", "-c", "0", "iperf3", "-c", "10.77.0.2", "-p", "5299",
		"-u", "-b", "0", "-l", fmt.Sprint(payload), "-t", fmt.Sprint(benchSeconds), "-O", "1", "-J")
	var out []byte
	err := from.Do(func() (err error) { out, err = client.Output(); return err })
	if err != nil {
		b.Fatalf("iperf3: %v: %s", err, out)
	}
	var report struct {
		End struct {
			CPU struct {
				Percent float64 `json:"host_total"`
			} `json:"cpu_utilization_percent"`
			Sum struct {
				Seconds float64
				Packets float64
				Lost    float64 `json:"lost_packets"`
			}
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		b.Fatalf("iperf3: %v", err)
	}
	s := report.End.Sum
	return result{(s.Packets - s.Lost) / s.Seconds, s.Lost / s.Packets, s.Packets / s.Seconds / report.End.CPU.Percent * 100, s.Packets / s.Seconds}
}

// flood runs one unpaced trial.
func flood(b testing.TB, hosts [2]*netbed.Node, payload, cpu int) result {
	r := newTrial()
	r.CPU = cpu
	r.Timing.WarmupSeconds, r.Timing.MeasureSeconds = 1, benchSeconds
	return r.flood(b, hosts, payload)
}

// flood runs the trial over the veth pair, unpaced.
func (r *trial) flood(b testing.TB, hosts [2]*netbed.Node, payload int) result {
	r.Near.Host, r.Far.Host, r.Peer = hosts[0], hosts[1], farFour
	r.Flow.PayloadBytes, r.Flow.Rate = payload, unit.Rate{}
	send, receive := r.Play(b)
	n := float64(receive.Receive.Tally.Received)
	attempted, seconds := float64(send.Send.Attempted), float64(send.Send.DurationNanos)/1e9
	return result{n / seconds, 1 - n/attempted, attempted / seconds / send.CPU.ThreadRatio, attempted / seconds}
}

// BenchmarkProfiles prints, for each profile, how far the gaps achieved are from
// those asked, and how late packets left.
func BenchmarkProfiles(b *testing.B) {
	near, far := linked(b)
	for _, pps := range []uint64{40_000, 200_000} {
		for _, p := range []model.Profile{
			{Kind: model.Poisson, Seed: 1}, {Kind: model.Burst, BurstPackets: 64}, {Kind: model.OnOff, OnSeconds: 0.01, OffSeconds: 0.01}, {Kind: model.Ramp, From: unit.PacketRate(pps / 10)},
		} {
			b.Run(fmt.Sprintf("%s-%dpps", p.Kind, pps), func(b *testing.B) {
				for b.Loop() {
					r := newTrial()
					r.Near.Host, r.Far.Host, r.Peer, r.CPU = near, far, farFour, 0
					r.Flow.Rate, r.Flow.Profile = unit.PacketRate(pps), &p
					if r.Timing.WarmupSeconds, r.Timing.MeasureSeconds = 0.5, 3; testing.Short() {
						r.Timing.WarmupSeconds, r.Timing.MeasureSeconds = 0, 0.1
					}
					send, receive := r.Play(b)
					s := send.Send
					distance, _ := measure.GapDistance(s.Asked.GapCounts, s.GapCounts)
					fmt.Printf("%s at %d pps: planned %d, forfeited %.4f%%, gaps asked p50 %.0f p99 %.0f, sent p50 %.0f p99 %.0f ns, %.2f%% not as asked, late p50 %.0f p99 %.0f max %.0f ns, lost %d\n",
						p.Kind, pps, s.Planned, float64(s.Planned-s.Attempted)/float64(s.Planned)*100, s.Asked.Gap.P50, s.Asked.Gap.P99, s.Gap.P50, s.Gap.P99,
						distance*100, s.Lateness.P50, s.Lateness.P99, s.Lateness.Max, s.Attempted-receive.Receive.Tally.Received)
					b.ReportMetric(distance*100, "%not-as-asked")
				}
			})
		}
	}
}

// lossy is a socket whose peer answers a share of the checks.
type lossy struct {
	socket
	order   engine.Order
	loss    float64
	answers [][]byte
}

func (s *lossy) try(b []byte) error {
	if rand.Float64() >= s.loss {
		if m, ok := s.order.StreamKey(0).Agree(b); ok {
			s.answers = append(s.answers, m[:])
		}
	}
	return s.socket.try(b)
}

func (s *lossy) read(wait time.Duration) (datagram, error) {
	if len(s.answers) == 0 {
		return s.socket.read(wait)
	}
	b := s.answers[0]
	s.answers = s.answers[1:]
	return datagram{head: b, bytes: len(b), nanos: 1}, nil
}

// BenchmarkKeepers prints what the checks of a hundred senders cost: on a path that loses 97 % of them, and while no
// receiver answers, when they are 6400 a second.
func BenchmarkKeepers(b *testing.B) {
	near, far := linked(b)
	var sink net.PacketConn
	if err := far.Do(func() (err error) { sink, err = net.ListenPacket("udp4", "0.0.0.0:9"); return err }); err != nil {
		b.Fatal(err)
	}
	defer sink.Close()
	used := func() time.Duration {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	clock := engine.NewClock()
	for _, loss := range []float64{0.97, 1} {
		b.Run(fmt.Sprintf("loss=%g", loss), func(b *testing.B) {
			var all keepers
			for range 100 {
				r := newTrial()
				o := engine.Order{Flow: r.Flow, Role: engine.Send, Trial: r.Order.Trial, Tag: r.Tag, Key: r.Key}
				s, err := connect(near, settingsOf(o, clock), netip.AddrPort{}, netip.AddrPortFrom(farFour, 9), false)
				if err != nil {
					b.Fatal(err)
				}
				defer s.close()
				e := &Sockets{order: o, sockets: []socket{&lossy{socket: s, order: o, loss: loss}}, now: clock.Now}
				k := &keeper{engine.NewConsentKeeper(o, clock.Now()), e, func(int) {}}
				defer k.Close()
				all.add(k)
				defer all.remove(k)
			}
			time.Sleep(5 * time.Second)
			before := used()
			for b.Loop() {
				time.Sleep(benchSeconds * time.Second)
			}
			share := (used() - before).Seconds() / b.Elapsed().Seconds()
			fmt.Printf("the keepers of 100 receivers take %.1f %% of a core where %g %% of the checks are lost\n", 100*share, 100*loss)
			b.ReportMetric(100*share, "%_of_a_core")
		})
	}
}
