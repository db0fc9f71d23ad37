package engine

import "pelt/model"

// Meeting is an end's account of the packets by which it and its peer find each other, before any test packet. Of TCP
// streams that met it counts none.
type Meeting struct {
	Streams []MetStream
	ICMP    []model.ICMPErrors // that came back for them
	Resets  uint64             // of TCP that came back for them: from the peer, or from somebody in its name
}

// MetStream is one stream's part of a meeting.
type MetStream struct {
	Stream
	Met    bool
	Sent   uint64            // packets attempted
	Heard  uint64            // packets of the peer, known by the flow's key
	Errors map[string]uint64 // errno name -> packets of Sent that the kernel did not take
}

// Tuples lists the ports of an end's streams in the direction of its flow; those of a stream that has not met are 0.
func (m Meeting) Tuples(r Role) (list []model.Tuple) {
	for _, s := range m.Streams {
		t := model.Tuple{From: s.Local.Port(), To: s.Remote.Port(), Peer: s.Remote.Addr()}
		if r == Receive || r == Echo {
			t.From, t.To = t.To, t.From
		}
		if !s.Met {
			t = model.Tuple{}
		}
		list = append(list, t)
	}
	return list
}
