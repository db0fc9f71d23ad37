package run

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"pelt/model"
	"pelt/unit"
)

// BenchmarkRecordedTraffic sends through lab:direct with a record and without one:
// what the two differ by is the record's cost. It wants a machine with nothing else to do.
func BenchmarkRecordedTraffic(b *testing.B) {
	type traffic struct {
		rate    string
		payload int
	}
	list, seconds := []traffic{{"40kpps", 512}, {"60kpps", 512}, {"max", 64}}, 3.0
	if testing.Short() {
		list, seconds = list[:1], 0.1
	}
	for _, c := range list {
		rate, err := unit.ParseRate(c.rate)
		if err != nil {
			b.Fatal(err)
		}
		for _, record := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/%dB/record=%v", c.rate, c.payload, record), func(b *testing.B) {
				p := model.Plan{Format: model.PlanFormat,
					Target: "lab:direct", Engine: "udp", Drops: model.DropsOff, Command: "curve",
					Flows:  []model.Flow{{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, PayloadBytes: c.payload, Rate: rate, Streams: 1}},
					Timing: model.Timing{WarmupSeconds: 0.2, MeasureSeconds: seconds, DrainSeconds: 0.5},
					Design: model.Design{Repeats: 1, Seed: 1},
				}
				o := Options{Version: "bench"}
				if record {
					o.Record = filepath.Join(b.TempDir(), "bench.rec")
				}
				for b.Loop() {
					before := processor(b)
					doc, err := Execute(b.Context(), p, o)
					if err != nil {
						b.Fatal(err)
					}
					spent := processor(b) - before
					f := doc.Results[0].Flows[0]
					b.ReportMetric(float64(spent.Nanoseconds())/float64(max(f.Received, 1)), "cpu-ns/packet")
					b.ReportMetric(f.ReceiverCPU.ThreadRatio*f.DurationS*1e9/float64(max(f.Received, 1)), "receiver-ns/packet")
					b.ReportMetric(f.ReceivePPS, "packets/s")
					b.ReportMetric(float64(f.Lost), "lost")
					if x := f.Record; x != nil {
						b.ReportMetric(x.BytesPerPacket, "B/packet")
						b.ReportMetric(float64(x.Dropped), "dropped")
					}
					b.ReportMetric(0, "ns/op")
				}
			})
		}
	}
}

func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
