package drops

import (
	"errors"
	"fmt"
	"io"
	"net/netip"

	"pelt/model"
)

// Config is how much a Machine may take.
type Config struct {
	// Cells is how many verdicts its array holds at a time, over all streams;
	// 4 B each, rounded up to a power of two. 0 takes 4194304.
	Cells int
	// Mode is the most that its tracks may ask for; "" takes model.DropsSeq.
	// With model.DropsCount there is no array.
	Mode model.DropMode
}

// TrackOptions is how one flow is watched.
type TrackOptions struct {
	// Packets is the sequences that each stream will have, 0 if unknown. Beyond
	// its share of the array a stream's verdicts are taken out as the run goes on.
	Packets uint64
	// Fragments says that the flow's datagrams may be fragmented: then what
	// becomes of fragments without a UDP header is followed too, at some cost
	// for every packet that this kernel queues or receives.
	Fragments bool
	// Mode is model.DropsSeq or model.DropsCount; "" takes the machine's.
	Mode model.DropMode
}

// Error is why drops can't be watched here.
type Error struct {
	why    string
	detail string
	cause  error
}

// Error is one line.
func (e *Error) Error() string { return e.why }

// Why is one line: what is in the way, and what would help.
func (e *Error) Why() string { return e.why }

// Detail is all that is known, such as the verifier's log: many lines.
func (e *Error) Detail() string { return e.detail }

func (e *Error) Unwrap() error { return e.cause }

// Format prints Detail for %+v, else Why.
func (e *Error) Format(f fmt.State, verb rune) {
	if verb == 'v' && f.Flag('+') {
		_, _ = io.WriteString(f, e.why+"\n"+e.detail)
		return
	}
	_, _ = io.WriteString(f, e.why)
}

func refuse(why string, cause error) *Error {
	e := &Error{why: why, cause: cause}
	if cause != nil {
		e.detail = fmt.Sprintf("%+v", cause)
	}
	return e
}

var errClosed = errors.New("the watch over drops is closed")

// Stats is what became of the drops that the program saw, since Open, in
// packets as the kernel counts them (super-packets singly).
type Stats struct {
	Exits map[string]uint64 // reason the program ended with -> times
	// Missed is drops, of any traffic, for which the kernel ran no program,
	// because both were running already on the same processor.
	Missed uint64
}

// LiveConfig is what a live watch counts.
type LiveConfig struct {
	// Ports limits it to TCP and UDP from or to one of these, at most 16; empty
	// counts all traffic.
	Ports []uint16
	// Namespace limits it to the network namespace with this inode; 0 counts all.
	Namespace uint64
}

// LiveDrop is what one site dropped of one flow since the watch began.
type LiveDrop struct {
	Site     model.Site
	Protocol string         // udp, tcp, icmp, icmp6, arp, ...; ip-N and ether-0xN for others; "" for the rest
	From, To netip.AddrPort // port 0 where there is none; the zero value where no address is known
	ICMP     uint16         // type<<8 | code
	Rest     bool           // of all flows that found no room in the table: no flow is known
	Packets  uint64         // datagrams or segments
	Bytes    uint64         // from the network header on
}

// LiveAccount is the sum of a live watch.
type LiveAccount struct {
	Drops  []LiveDrop // in no order
	Lost   uint64     // packets whose site found no room in the table
	Missed uint64     // packets dropped while the program was running already on the same processor: the kernel does not nest it
}
