package udp

import (
	"testing"
	"time"
)

// What came before the end was run counts as the first, even if a worker hears of later
// packets before it looks for new streams.
func TestEarlyPacketComesFirst(t *testing.T) {
	r := newTrial()
	dialer, listener := r.prepare(t)
	connectBoth(t, dialer, listener)
	e := listener.t
	e.stopAnswering()
	e.early[0] = packetOf(r.number, 0)
	if err := dialer.t.sockets[0].write(packetOf(r.number, 1).head); err != nil {
		t.Fatal(err)
	}
	w := e.role.(*receiver).streams[0]
	w.open()
	w.receiver.reading = func() {}
	l := &pooledStream{receiveStream: w, in: w.in.(*batchInbox)}
	for deadline := time.Now().Add(5 * time.Second); w.seen.Load() < 2 && time.Now().Before(deadline); {
		l.read()
	}
	if tally := w.receiver.meter.Tally(); tally.Received != 2 || tally.Reordered != 0 {
		t.Errorf("%d of 2 received, %d reordered", tally.Received, tally.Reordered)
	}
}
