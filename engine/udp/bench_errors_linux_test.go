package udp

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"pelt/engine"
)

// deaf makes senders that do not ask what becomes of their packets.
type deaf struct{ socketMaker }

func (c deaf) dial(host engine.Host, s settings, stream int, peer netip.AddrPort) (socket, error) {
	w, err := c.socketMaker.dial(host, s, stream, peer)
	if err != nil {
		return nil, err
	}
	return deafSocket{w.(*linuxSocket)}, nil
}

type deafSocket struct{ *linuxSocket }

func (w deafSocket) outbox(payloadBytes, batch, segments int) outbox {
	out := w.linuxSocket.outbox(payloadBytes, batch, segments)
	unix.SetsockoptInt(w.fd, unix.IPPROTO_IP, unix.IP_RECVERR, 0)
	return out
}

// BenchmarkRecvErr compares senders with and without IP_RECVERR, in turn: over a
// path that loses nothing, and into a full queue. It prints the ratios of the
// sending rates, and of the packets per second of the sender's processor time,
// which other work on the machine disturbs less.
func BenchmarkRecvErr(b *testing.B) {
	near, far := linked(b)
	for _, c := range []struct {
		name    string
		payload int
		queue   string
	}{
		{"free", 64, ""},
		{"full", 1200, "tbf rate 50mbit burst 10kb limit 30000"},
	} {
		b.Run(c.name, func(b *testing.B) {
			if c.queue != "" {
				near.command(b, "tc qdisc add dev v0 root "+c.queue)
				defer near.command(b, "tc qdisc del dev v0 root")
			}
			for b.Loop() {
				var with, without, rates, efforts sample
				rounds := 6 * pairs()
				if testing.Short() {
					rounds = 2
				}
				for i := range rounds {
					var got [2]result // without and with
					for _, on := range []int{i % 2, 1 - i%2} {
						r := newTrial()
						r.cpu, r.nearE = 0, testEngine(b, false)
						if on == 0 {
							r.nearE.socketMaker = deaf{r.nearE.socketMaker}
						}
						r.timing.WarmupSeconds, r.timing.MeasureSeconds = 0.1, 0.5
						got[on] = r.flood(b, [2]space{near, far}, c.payload)
					}
					without, with = append(without, got[0].attempted), append(with, got[1].attempted)
					rates = append(rates, got[1].attempted/got[0].attempted)
					efforts = append(efforts, got[1].perSecond/got[0].perSecond)
				}
				fmt.Printf("%d B, queue %s: with IP_RECVERR %v, without %v; ratio of rates %s, per processor time %s\n",
					c.payload, c.name, with, without, rates.quartiles(), efforts.quartiles())
				b.ReportMetric(rates.median(), "ratio")
				b.ReportMetric(efforts.median(), "cpu-ratio")
			}
		})
	}
}

// quartiles prints the median and the quartiles beside it.
func (s sample) quartiles() string {
	v := slices.Sorted(slices.Values(s))
	return fmt.Sprintf("%.3f (%.3f to %.3f)", s.median(), v[len(v)/4], v[len(v)*3/4])
}
