package udp

import "testing"

// An end that is told that its packets get nowhere gives up sooner, and says who told it.
func TestClosedPort(t *testing.T) {
	t.Parallel()
	r := newTrial()
	dialer, listener := r.prepare(t)
	if err := listener.Close(); err != nil { // with its port
		t.Fatal(err)
	}
	met, err := dialer.End.End.Connect(t.Context())
	if err != nil || len(met.ICMP) != 1 {
		t.Fatalf("%+v, %v", met, err)
	}
	s, said := met.Streams[0], met.ICMP[0]
	if s.Met || s.Heard > 0 || s.Sent < 2 || s.Sent > 6 || said.From != r.Peer.String() ||
		said.What != "port unreachable" || said.Packets != s.Sent {
		t.Errorf("stream %+v, ICMP %+v", s, said)
	}
}
