package drops

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"pelt/model"
)

// Verdicts are as many as a machine for any trial holds at a time, 4 B each.
const Verdicts = 1 << 22

// TrackOptions is how one flow is watched.
type TrackOptions struct {
	// Packets is the sequences that each stream will have, 0 if unknown. Beyond
	// its share of the array a stream's verdicts are taken out as the run goes on.
	Packets uint64
	// Fragments says that the flow's datagrams may be fragmented: then what
	// becomes of fragments without a UDP header is followed too, at some cost
	// for every packet that this kernel queues or receives.
	Fragments bool
	// Number is what the flow's packets carry, and no other flow's. It names those whose ports are none of the tuples,
	// as NAT may change them; they have verdicts by sequence if there is one stream. 0: they carry the trial's number,
	// as those of other flows may, and only their ports name them.
	Number uint16
	// Mode is model.DropsSeq or model.DropsCount; "" takes model.DropsSeq.
	Mode model.DropMode
	// TCP says that the flow's packets are TCP's, known by their ports alone: segments with data are counted.
	TCP bool
	// Iperf says that the flow's packets have the header of iperf3, with a sequence of 32 bits. Those that pelt sends
	// bear the number, too; those of iperf3 are known by their ports.
	Iperf bool
}

// Error is why drops can't be watched here. With %+v it tells all that is known, such as the verifier's log.
type Error struct {
	Reason model.Reason
	doing  string
	cause  error
	// Passes says that the kernel may do another time what it did not do now: it was out of memory, say.
	Passes bool
}

func (e *Error) Error() string {
	return strings.Join(slices.DeleteFunc([]string{e.doing, e.Reason.Code, e.Reason.Name, e.Reason.Text},
		func(text string) bool { return text == "" }), ": ")
}

func (e *Error) Unwrap() error { return e.cause }

// Format prints the detail for %+v.
func (e *Error) Format(f fmt.State, verb rune) {
	_, _ = io.WriteString(f, e.Error())
	if verb == 'v' && f.Flag('+') && e.cause != nil {
		fmt.Fprintf(f, "\n%+v", e.cause)
	}
}

const watching = "watch drops"

func refuse(doing string, why model.Reason, cause error) *Error {
	return &Error{Reason: why, doing: doing, cause: cause}
}

// Why is the reason of an error of this package.
func Why(err error) model.Reason {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Reason
	}
	return model.Reason{Code: model.WatchFailed, Text: model.SystemSaid(err)}
}

var errClosed = errors.New("the watch over drops is closed")

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
	Missed uint64     // packets dropped while both programs were running already on the same processor
}
