package fleet

import (
	"maps"
	"net/netip"
	"slices"

	"pelt/engine"
	"pelt/finding"
	"pelt/model"
)

// Meeting is what the two ends of a flow say of how they sought each other. Of the addresses of their streams the ports
// are known, and the address that an end sends from.
type Meeting struct {
	Asks    engine.Meeting // of the end that calls
	Answers engine.Meeting // of the end that listens
	Dead    []int          // streams on which they did not meet: they carry nothing
	None    bool           // nothing is carried: no stream is left, or one of TCP is dead
}

// Lossy reports whether a stream is dead that something came through on, and something not, or a TCP flow for some of
// its streams: another try may do.
func (m Meeting) Lossy() bool {
	return slices.ContainsFunc(m.Dead, func(i int) bool {
		heard := m.Answers.Streams[i].Heard
		return m.Asks.Streams[i].Heard > 0 || heard > 0 && heard < m.Asks.Streams[i].Sent
	}) || m.None && len(m.Dead) < len(m.Asks.Streams)
}

// meetingAnswer is an end's account of a meeting, in few bytes a stream.
type meetingAnswer struct {
	From   netip.Addr                `json:"from,omitzero"` // of an end that calls: its address
	Ports  []model.Tuple             `json:"ports"`         // from the local one to the peer's
	Sent   []uint64                  `json:"sent"`
	Heard  []uint64                  `json:"heard"`
	Unmet  []int                     `json:"unmet,omitempty"`
	Errors map[int]map[string]uint64 `json:"errors,omitempty"` // by stream
	ICMP   []model.ICMPErrors        `json:"icmp,omitempty"`
	Resets uint64                    `json:"resets,omitempty"`
}

func answerOf(m engine.Meeting) meetingAnswer {
	a := meetingAnswer{ICMP: m.ICMP, Resets: m.Resets, Errors: map[int]map[string]uint64{}}
	if len(m.Streams) > 0 && !m.Streams[0].Local.Addr().IsUnspecified() {
		a.From = m.Streams[0].Local.Addr().WithZone("")
	}
	for i, s := range m.Streams {
		a.Ports = append(a.Ports, model.Tuple{From: s.Local.Port(), To: s.Remote.Port()})
		a.Sent, a.Heard = append(a.Sent, s.Sent), append(a.Heard, s.Heard)
		if !s.Met {
			a.Unmet = append(a.Unmet, i)
		}
		if len(s.Errors) > 0 {
			a.Errors[i] = s.Errors
		}
	}
	return a
}

// Bounds of what another host says of a meeting.
const (
	mostMeetingPackets = 1 << 20 // of a stream
	mostMeetingErrors  = 16      // kinds
)

// meeting is the account of an end of so many streams, within its bounds.
func (a meetingAnswer) meeting(streams int) (m engine.Meeting, err error) {
	if len(a.Ports) != streams || len(a.Sent) != streams || len(a.Heard) != streams {
		return m, finding.NewFault(model.StreamsUntold)
	}
	at := func(a netip.Addr, port uint16) netip.AddrPort { return netip.AddrPortFrom(a.WithZone(""), port) }
	for i, p := range a.Ports {
		s := engine.MetStream{Stream: engine.Stream{Local: at(a.From, p.From), Remote: at(netip.Addr{}, p.To)},
			Met:  !slices.Contains(a.Unmet, i),
			Sent: min(a.Sent[i], mostMeetingPackets), Heard: min(a.Heard[i], mostMeetingPackets)}
		left := s.Sent
		for _, name := range slices.Sorted(maps.Keys(a.Errors[i])) {
			if n := a.Errors[i][name]; model.Clip(name) == name && n <= left && len(s.Errors) < mostMeetingErrors {
				if s.Errors == nil {
					s.Errors = map[string]uint64{}
				}
				s.Errors[name], left = n, left-n
			}
		}
		m.Streams = append(m.Streams, s)
	}
	m.Resets = min(a.Resets, mostMeetingPackets)
	for _, e := range a.ICMP[:min(len(a.ICMP), mostMeetingErrors)] {
		m.ICMP = append(m.ICMP, model.ICMPErrors{From: model.Clip(e.From), What: model.Clip(e.What),
			Packets: min(e.Packets, mostMeetingPackets)})
	}
	return m, nil
}
