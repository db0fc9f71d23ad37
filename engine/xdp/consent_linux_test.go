//go:build amd64 || arm64

package xdp

import (
	"testing"
	"time"

	"pelt/engine/enginetest"
	"pelt/internal/testenv"
	"pelt/model"
)

// A stream of a flood that loses its consent ends, and the others go on, also those of the same thread.
func TestStreamWithoutConsent(t *testing.T) {
	for _, streams := range []int{4, 16} {
		x := trial{measure: time.Hour, flow: model.Flow{Streams: streams}}
		x.during = func(p *enginetest.Pair) {
			frames := p.Sender.Transport.(*transport).frames.(*sender)
			sent := func(stream int) uint64 { return load(&frames.out(stream).Sequence) }
			testenv.Await(t, "packets", func() bool { return p.Sender.Snapshot().Packets > 1000 })
			frames.silence(0)
			testenv.Await(t, "the others to go on", func() bool { return sent(streams-1) > sent(0)+1000 })
			p.Sender.Stop()
		}
		out, err := newBed(t).run(t, x)
		if err != nil {
			t.Fatal(err)
		}
		out.balanced(t)
		if s := out.send.Send; s.Silent != 1 || s.Streams[0] >= s.Streams[streams-1] {
			t.Errorf("%d streams: silent %d, sent %v", streams, s.Silent, s.Streams)
		}
	}
}
