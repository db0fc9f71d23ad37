package run

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"pelt/finding"
	"pelt/model"
	"pelt/words"
)

// callsAgain is when a watch over unanswered calls begins: TCP calls again 1 s and 3 s after its first SYN.
const callsAgain = 1200 * time.Millisecond

// whileCalling returns what call returns. The error of a call to one of these hosts that took long also tells what this
// machine's kernel dropped of it, in whichever namespace.
func whileCalling(port uint16, hosts []netip.Addr, call func() error) error {
	over, told := make(chan struct{}), make(chan string, 1)
	go func() { told <- callDropped(port, hosts, over) }()
	err := call()
	close(over)
	if why := <-told; err != nil && why != "" {
		return fmt.Errorf("%w. This machine's kernel drops it %s", err, why)
	}
	return err
}

// callDropped says where and why most packets of a call were dropped until it is over; "" if it is not known.
func callDropped(port uint16, hosts []netip.Addr, over <-chan struct{}) string {
	select {
	case <-over:
		return ""
	case <-time.After(callsAgain):
	}
	d, err := WatchDrops(DropsFilter{Ports: []uint16{port}})
	if err != nil {
		return "" // an ordinary user's kernel does not tell
	}
	defer d.Close()
	<-over
	sum, err := d.Sum()
	if err != nil {
		return ""
	}
	for _, x := range sum.Drops {
		if x.Ordinary || x.Protocol != string(model.TCP) || strings.HasPrefix(x.Reason, "NEIGH_") || !slices.ContainsFunc(hosts, func(h netip.Addr) bool {
			at := endpoint(netip.AddrPortFrom(h.Unmap(), port))
			return x.To == at || x.From == at
		}) {
			continue
		}
		where := "at " + x.Interface
		if x.Interface == "" {
			where = "on its way out"
		}
		if of := x.Namespace; of != "" && of != "own" && !strings.HasPrefix(of, "net:") {
			where += " in " + of
		}
		return where + ": " + finding.DropWhy(words.English, x)
	}
	return ""
}
