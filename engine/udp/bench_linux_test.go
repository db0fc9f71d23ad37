package udp

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pelt/engine"
	"pelt/internal/testenv"
)

// lossy is a socket whose peer answers a share of the checks.
type lossy struct {
	socket
	order   engine.Order
	loss    float64
	answers [][]byte
}

func (s *lossy) try(b []byte) error {
	if rand.Float64() >= s.loss {
		if m, _, ok := s.order.StreamKey(0).AnswerCheck(b); ok {
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
	testenv.Must(b, far.Do(func() (err error) { sink, err = net.ListenPacket("udp4", "0.0.0.0:9"); return err }))
	defer sink.Close()
	used := func() time.Duration {
		var u unix.Rusage
		testenv.Must(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	clock := engine.NewClock()
	for _, loss := range []float64{0.97, 1} {
		b.Run(fmt.Sprintf("loss=%g", loss), func(b *testing.B) {
			var all keepers
			for range 100 {
				r := newTrial()
				o := engine.Order{Flow: r.Flow, Role: engine.Send, Trial: r.Order.Trial, Tag: r.Tag, Key: r.Key}
				s, err := connect(near, settingsOf(o, clock, ""), netip.AddrPort{}, netip.AddrPortFrom(farFour, 9), false)
				testenv.Must(b, err)
				defer s.close()
				e := &Sockets{engine: &Engine{}, order: o, sockets: []socket{&lossy{socket: s, order: o, loss: loss}},
					now: clock.Now}
				k := &keeper{engine.NewConsentKeeper(o, clock.Now()), e, func(int) {}}
				defer k.Close()
				all.add(k)
				defer all.remove(k)
			}
			time.Sleep(5 * time.Second)
			before := used()
			for b.Loop() {
				time.Sleep(2 * time.Second)
			}
			share := (used() - before).Seconds() / b.Elapsed().Seconds()
			fmt.Printf("the keepers of 100 receivers take %.1f %% of a core where %g %% of the checks are lost\n",
				100*share, 100*loss)
			b.ReportMetric(100*share, "%_of_a_core")
		})
	}
}
