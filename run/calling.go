package run

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"pelt/finding"
	"pelt/model"
)

// callsAgain is when a watch over unanswered calls begins: TCP calls again 1 s and 3 s after its first SYN.
const callsAgain = 1200 * time.Millisecond

// whileCalling returns what call returns. The error of a call to one of these hosts that took long also tells what this
// machine's kernel dropped of it, in whichever namespace.
func whileCalling(port uint16, hosts []netip.Addr, call func() error) error {
	over, told := make(chan struct{}), make(chan model.Reason, 1)
	go func() { told <- callDropped(port, hosts, over) }()
	err := call()
	close(over)
	if why := <-told; err != nil && why.Code != "" {
		failed := finding.ReasonOf(err)
		if failed.Code == model.ConnectUnanswered { // then nothing is left to guess
			failed.Names = maps.Clone(failed.Names)
			failed.Names["known"] = "yes"
		}
		why.Of = model.Reasons{failed}
		return (&finding.Fault{Reason: why}).From(err)
	}
	return err
}

// callDropped returns where and why most packets of a call were dropped until it is over; it has no code if that is not
// known.
func callDropped(port uint16, hosts []netip.Addr, over <-chan struct{}) (why model.Reason) {
	select {
	case <-over:
		return why
	case <-time.After(callsAgain):
	}
	d, err := WatchDrops(DropsFilter{Ports: []uint16{port}})
	if err != nil {
		return why // an ordinary user's kernel does not tell
	}
	defer d.Close()
	<-over
	sum, err := d.Sum()
	if err != nil {
		return why
	}
	for _, x := range sum.Drops {
		if x.Ordinary || x.Protocol != string(model.TCP) || strings.HasPrefix(x.Reason, "NEIGH_") ||
			!slices.ContainsFunc(hosts, func(h netip.Addr) bool {
				at := endpoint(netip.AddrPortFrom(h.Unmap(), port))
				return x.To == at || x.From == at
			}) {
			continue
		}
		in := x.Namespace
		if in == "own" || strings.HasPrefix(in, "net:") {
			in = ""
		}
		return model.NewReason(model.CallDropped, "interface", x.Interface, "namespace", in, "layer", x.Layer,
			"reason", x.Reason, "function", x.Function)
	}
	return why
}
