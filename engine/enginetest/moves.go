package enginetest

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"pelt/internal/testenv"
)

// A NAT gives a stream another port in mid-run. The receiver follows its sender there with the next check, counts what
// came before, and tells the change. Packets alone move nothing, nor does a check that was answered before.
func testAnotherAddress(t *testing.T, maker Maker) {
	for _, streams := range []int{1, 4} {
		row(t, fmt.Sprintf("%d streams", streams), func(t *testing.T) {
			b := maker(t, Want{Relay: true})
			far := b.Peer
			b.Flow.Streams, b.Timing.MeasureSeconds = streams, 600
			y := newRelay(t, &b.Trial, b.Middle, b.At)
			moved := streams - 1
			var to netip.AddrPort
			on := func(what string, packets uint64, answers int) {
				var from relayed
				y.look(func(s []relayed) { from = s[moved] })
				testenv.Await(t, what, func() (enough bool) {
					y.look(func(s []relayed) {
						enough = s[moved].next >= from.next+packets && s[moved].answers >= from.answers+answers
					})
					return enough
				})
			}
			b.During = func(p *Pair) {
				testenv.Await(t, "the answer to a check", func() (enough bool) {
					y.look(func(s []relayed) { enough = s[moved].check != nil })
					return enough
				})
				on("the flow", 20, 1)
				var check []byte
				y.look(func(s []relayed) { s[moved].holds, check = true, s[moved].check })
				to = y.streams[moved].move()
				on("packets from the new address", 20, 0)
				y.look(func(s []relayed) { s[moved].holds = false })
				on("an answer there", 20, 1)
				received := p.Receiver.Snapshot().Packets
				testenv.Await(t, "packets that count", func() bool {
					return p.Receiver.Snapshot().Packets >= received+100
				})
				stranger := b.replay(t, netip.AddrPortFrom(far, p.Listener.Ports()[moved]), check)
				on("an answer to a later check", 20, 2)
				stranger.SetReadDeadline(time.Now().Add(time.Millisecond))
				if n, err := stranger.Read(zeros(100)); err == nil {
					t.Errorf("who repeats an old check gets %d B", n)
				}
				p.Sender.Stop()
			}
			send, receive := b.Play(t)
			Balance(t, b.Order, send, receive)
			got := receive.Receive
			missing := got.Missing[moved].Packets + got.Missing[moved].Unlisted
			if len(got.Moved) != 1 || got.Unmoved < 20 || got.Unmoved > missing {
				t.Errorf("moves %v, %d before them, missing %d of %d", got.Moved, got.Unmoved, missing,
					send.Send.Streams[moved])
			}
			for _, m := range got.Moved {
				first, last := got.Tally.FirstNanos, got.Tally.LastNanos
				if m.Stream != moved || m.To != to || m.From.Addr() != to.Addr() || m.From == to || m.Nanos < first ||
					m.Nanos > last {
					t.Errorf("%+v: want stream %d at %v, from %d ns to %d ns", m, moved, to, first, last)
				}
			}
			y.look(func(s []relayed) {
				for i := range moved {
					if lost := s[i].lost(t, got.Missing[i], send.Send.Streams[i]); lost > b.Backlog {
						t.Errorf("stream %d lost %d of what was passed on; the machine dropped %d", i, lost, b.Backlog)
					}
				}
			})
		})
	}
}

// replay sends a message from an address of its own.
func (b *Bed) replay(t testing.TB, to netip.AddrPort, message []byte) (conn *net.UDPConn) {
	err := b.Middle.Do(func() (err error) {
		conn, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.Write(message)
	return conn
}
