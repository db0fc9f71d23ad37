package model

import "time"

// DropsFormat names what pelt drops --json writes: one object an interval, a line each.
const DropsFormat = "pelt/drops/1"

// LiveDrops is what one kernel dropped in an interval, of any traffic.
type LiveDrops struct {
	Format    string     `json:"format"`
	At        time.Time  `json:"at"`                    // end of the interval
	IntervalS float64    `json:"interval_s"`            // of the sum: since the watch began
	Sum       bool       `json:"sum,omitempty"`         // the last object: all that was seen
	Packets   uint64     `json:"packets"`               // dropped in the interval, of all entries
	Total     uint64     `json:"total_packets"`         // ... since the watch began
	Drops     []LiveDrop `json:"drops"`                 // what moved in the interval, the fastest first
	SitesLost uint64     `json:"sites_lost,omitempty"`  // packets so far whose place found no room
	Unsorted  uint64     `json:"unsorted,omitempty"`    // packets so far of flows without room, maybe of an asked host
	Unwatched uint64     `json:"missed,omitempty"`      // drops so far while the watch was busy there
	Why       Reasons    `json:"cannot_tell,omitempty"` // what this kernel does not let the watch tell
}

// LiveDrop is what one place dropped of one flow.
type LiveDrop struct {
	Layer     string  `json:"layer"`  // as in a ledger; "" for a copy that was lost to nobody
	Reason    string  `json:"reason"` // the kernel's, without SKB_DROP_REASON_, or pelt's
	Function  string  `json:"function,omitempty"`
	Interface string  `json:"interface,omitempty"`
	Namespace string  `json:"namespace,omitempty"` // of ip netns, or host, own, net:[inode]
	Received  bool    `json:"received"`            // it had come in through an interface of that namespace
	Protocol  string  `json:"protocol,omitempty"`  // udp, tcp, icmp, arp, ...; "" for flows that found no room
	From      string  `json:"from,omitempty"`      // address, or address and port
	To        string  `json:"to,omitempty"`
	ICMPType  *int    `json:"icmp_type,omitempty"`
	ICMPCode  *int    `json:"icmp_code,omitempty"`
	Rest      bool    `json:"rest,omitempty"`     // of all flows that found no room in the table
	Ordinary  bool    `json:"ordinary,omitempty"` // healthy hosts drop such packets all the time
	PPS       float64 `json:"pps"`                // in the interval
	Packets   uint64  `json:"packets"`            // in the interval
	Bytes     uint64  `json:"bytes"`              // in the interval, from the network header on
	Total     uint64  `json:"total_packets"`      // since the watch began
}
