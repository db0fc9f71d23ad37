package main

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pelt/fleet"
	"pelt/live"
	"pelt/model"
	"pelt/run"
)

// consents asks for both ends that are other hosts.
func (f *commonFlags) consents(c *cobra.Command, p model.Plan) error {
	family := 0
	if len(p.Flows) > 0 {
		family = p.Flows[0].Family
	}
	for _, host := range []string{p.Near, p.Target} {
		if host == "" {
			continue
		}
		if err := f.consent(c, host, family); err != nil {
			return err
		}
	}
	return nil
}

// resolve is what a run asks, too.
var resolve = fleet.Resolve

// consent asks before traffic goes to an address that is not a private one:
// RFC 6815 keeps such tests to isolated networks.
func (f *commonFlags) consent(c *cobra.Command, target string, family int) error {
	if strings.HasPrefix(target, "lab:") || strings.HasPrefix(target, "fleet:") {
		return nil
	}
	if server, iperf := model.IperfServer(target); iperf {
		target = server
	}
	host, _, err := model.HostPort(target)
	if err != nil {
		return err
	}
	addr, err := netip.ParseAddr(host)
	if err == nil {
		return f.consentTo(c, addr, host)
	}
	all, err := resolve(c.Context(), host, family)
	if err != nil {
		return err
	}
	for _, addr := range all {
		if err := f.consentTo(c, addr, spoken().Bracketed(host, addr.String())); err != nil {
			return err
		}
	}
	return nil
}

func (f *commonFlags) consentTo(c *cobra.Command, addr netip.Addr, said string) error {
	switch {
	case !run.OneHost(addr):
		return usagef("target: %s is not the address of one host", said)
	case addr.Is6() && addr.IsLinkLocalUnicast() && addr.Zone() == "":
		return usagef("target: %s is link-local, so say on which interface: %s%%eth0", addr, addr)
	}
	if fleet.Private(addr) || benchmarking(addr) {
		return nil
	}
	return agreed(c, f.yes, spoken().Sayf("%s is a public address: that host must be yours, and a fast test floods "+
		"every network between", said))
}

// Whoever types a range or several lists may not see how many trials they make. So many, and so long, are asked for
// again.
const (
	manyTrials = 100
	longRun    = time.Hour
)

// long says how long a plan takes that its user may not have meant to take so long; "" for others.
func long(p model.Plan) string {
	text, seconds, trials := live.Estimate(spoken(), p)
	if trials <= manyTrials || seconds < longRun.Seconds() {
		return ""
	}
	return text
}

// canAsk reports whether somebody sees a question and can answer it.
func canAsk() bool { return isTerminal(os.Stdin) && isTerminal(os.Stderr) }

// agreed asks whether to go on; without a terminal it says how to agree.
func agreed(c *cobra.Command, yes bool, what string) error {
	if yes {
		return nil
	}
	if !canAsk() {
		return usagef("%s; if you agree, say --yes", what)
	}
	fmt.Fprint(c.ErrOrStderr(), spoken().Sayf("%s. Go on? [y/N] ", what))
	in, answer := bufio.NewReader(os.Stdin), make(chan string, 1)
	go func() {
		text, _ := in.ReadString('\n') // none is no
		answer <- text
	}()
	select {
	case <-c.Context().Done():
		fmt.Fprintln(c.ErrOrStderr())
		return c.Context().Err()
	case text := <-answer:
		if a := strings.ToLower(strings.TrimSpace(text)); a != "y" && a != "yes" {
			return usagef("nothing was done")
		}
	}
	return nil
}

// benchmarking reports whether an address is set aside for tests: RFC 2544
// appendix C.2.2, RFC 5180 section 8, and RFC 6598 for carrier-side NAT.
func benchmarking(a netip.Addr) bool {
	for _, p := range []string{"198.18.0.0/15", "2001:2::/48", "100.64.0.0/10"} {
		if netip.MustParsePrefix(p).Contains(a.Unmap()) {
			return true
		}
	}
	return false
}
