package model

import "slices"

// PathMTU is the largest IP packet that a flow's path carries in one piece, as it was found before the first trial:
// in RFC 8899's words the PLPMTU, and PayloadBytes the maximum packet size (MPS) above it.
type PathMTU struct {
	Flow         string   `json:"flow"`                    // of the plan
	From         string   `json:"from"`                    // node
	To           string   `json:"to"`                      // node; of many receivers the one with the least
	Family       int      `json:"family"`                  // 4 or 6
	Bytes        int      `json:"path_mtu_bytes"`          // 0: unknown
	PayloadBytes int      `json:"payload_bytes"`           // largest UDP payload that needs no fragments; 0: unknown
	Found        MTUFound `json:"found,omitempty"`         // how
	AtLeast      bool     `json:"at_least,omitempty"`      // time was up: a larger packet may pass
	Probes       int      `json:"probe_packets,omitempty"` // that it took
	Why          Doubts   `json:"why,omitempty"`           // it is unknown, or in doubt
}

// MTUFound says how a path MTU was found. Whatever it was, a packet of that size passed.
type MTUFound string

const (
	MTUOfRoute MTUFound = "route"          // a packet as large as the route takes passed
	MTUTold    MTUFound = "packet-too-big" // an ICMP message said it
	MTUSearch  MTUFound = "search"         // larger packets vanished without a word
)

// WholePayload is the largest UDP payload that needs no fragments over a path
// MTU in bytes; 0 if there is none. Family 0 counts as IPv4.
func WholePayload(family, mtu int) int {
	header := ipv4Bytes
	if family == 6 {
		header = ipv6Bytes
	}
	return max(0, min(mtu-header-udpBytes, MaxUDPPayload))
}

// PathMTULevel is the level of payload_bytes that stands for the largest payload
// that needs no fragments. A run puts the number in its place before it begins.
const PathMTULevel = "mtu"

// usualMTU is Ethernet's: what a plan is checked with while the path's is not known.
const usualMTU = 1500

// AsksPathMTU reports whether a level of the plan waits for the path MTU.
func (p Plan) AsksPathMTU() bool {
	return slices.ContainsFunc(p.Factors, func(f Factor) bool {
		return f.Knob == payloadKnob && slices.Contains(f.Levels, Word(PathMTULevel))
	})
}

// WithPayload puts a payload in bytes in the place of PathMTULevel; twice says
// that the list held it already, and then it stands there once.
func (p Plan) WithPayload(payload int) (_ Plan, twice bool) {
	p.Factors = slices.Clone(p.Factors)
	for i, f := range p.Factors {
		at, number := slices.Index(f.Levels, Word(PathMTULevel)), Number(float64(payload))
		if f.Knob != payloadKnob || at < 0 {
			continue
		}
		levels := slices.Clone(f.Levels)
		levels[at] = number
		if other := slices.Index(f.Levels, number); other >= 0 {
			levels, twice = slices.Delete(levels, max(at, other), max(at, other)+1), true
		}
		p.Factors[i].Levels = levels
	}
	return p, twice
}
