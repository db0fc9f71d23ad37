package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pelt/fleet"
	"pelt/internal/privilege"
	"pelt/model"
	"pelt/run"
	"pelt/store"
	"pelt/unit"
	"pelt/words"
)

func newServe() *cobra.Command {
	var end endFlags
	var code codeFlags
	var port, sessions int
	var observeOnly, once, onePort bool
	var iperf iperfService
	var figures metricsFlag
	c := &cobra.Command{
		Use:   "serve",
		Short: "Answer the tests of pelt on another host",
		Long: `serve is the other end of tests from another host. It prints the line to paste there, with
a code that is valid until serve ends. Nobody without the code can start traffic, except
clients of --iperf3.

On a router, --observe-only tells what its processors did and which packets its kernel
dropped.`,
		Example: `  pelt serve --max-rate 100kpps --max-time 30s --calls 203.0.113.7`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s := run.ServeOptions{Port: port, Observe: observeOnly, Once: once, OnePort: onePort}
			for _, name := range []string{"calls", "xdp", "max-rate", "max-time", "iperf3", "open-iperf3", "one-port"} {
				if observeOnly && c.Flags().Changed(name) {
					return usagef("--%s: is for an end of tests; a host that only observes is not one", name)
				}
			}
			if once && c.Flags().Changed("iperf3") {
				return usagef("--once: serve would end with its first pelt client, and cut those of iperf3; " +
					"give --once or --iperf3")
			}
			var err error
			if sessions < 1 || sessions > 1000 {
				return usagef("--max-sessions: want 1 to 1000, not %d", sessions)
			}
			if s.EndOptions, err = end.options(c, sessions, &s.Port); err != nil {
				return err
			}
			switch port = s.Port; {
			case !onePort && (port < 1 || port > 65534):
				return usagef("--port: want 1 to 65534, not %d: the port above it carries the data", port)
			case port < 1 || port > 65535:
				return usagef("--port: want 1 to 65535, not %d", port)
			}
			if s.Iperf, err = iperf.options(c, port, onePort); err != nil {
				return err
			}
			s.Code, err = code.read()
			if err == nil && s.Code == "" {
				s.Code, err = fleet.NewCode()
			}
			switch {
			case err != nil:
				return err
			case len(s.Code) < 8 || strings.Contains(s.Code, ","):
				return usagef("--code: want at least 8 characters and no comma, which stands between two hosts' codes")
			}
			s.Shown = reachedAt(s.Listen)[0]
			s.Ready = func() {
				prefix, note := toldCode(s.Code, code.codeFile)
				fmt.Fprint(c.OutOrStdout(), invitation(s, prefix, note))
				seenCode(c, code.code != "")
			}
			end, err := figures.serve(c)
			if err != nil {
				return err
			}
			defer end()
			dropPrivileges(c)
			return run.Serve(c.Context(), s)
		},
	}
	f := c.Flags()
	end.register(f, "none")
	f.IntVar(&port, "port", fleet.DefaultPort, "control `PORT`; data uses the one above it")
	f.BoolVar(&onePort, "one-port", false, "data uses UDP of the control port, too (Linux): one number for "+
		"firewalls; no TCP tests")
	code.register(f, "use this `CODE`, not a new one (or $PELT_CODE)")
	f.BoolVar(&observeOnly, "observe-only", false, "only watch this host, for pelt router --dut")
	f.BoolVar(&once, "once", false, "end when the first client that tested is gone")
	f.IntVar(&sessions, "max-sessions", 16, "`N` clients served at once")
	iperf.register(f)
	figures.register(f)
	return c
}

// iperfService are how iperf3 clients are served.
type iperfService struct {
	port int
	open bool
}

func (i *iperfService) register(f *pflag.FlagSet) {
	f.IntVar(&i.port, "iperf3", 0, "serve iperf3 clients, too, on `PORT`: iperf3 -u -c HOST --get-server-output")
	f.Lookup("iperf3").NoOptDefVal = strconv.Itoa(run.IperfPort)
	f.BoolVar(&i.open, "open-iperf3", false, "serve iperf3 clients of all networks, not only of this host's own")
}

// options are nil without --iperf3.
func (i *iperfService) options(c *cobra.Command, port int, onePort bool) (*run.IperfOptions, error) {
	switch asked := c.Flags().Changed("iperf3"); {
	case !asked && i.open:
		return nil, usagef("--open-iperf3: want --iperf3, too")
	case !asked:
		return nil, nil
	case i.port < 1 || i.port > 65535 || i.port == port || i.port == port+1 && !onePort:
		return nil, usagef("--iperf3: want a port from 1 to 65535 that is none of pelt's own, not %d", i.port)
	}
	st, err := store.Open("")
	if err != nil {
		tellf(c, "pelt: tests of iperf3 clients will not be kept: %v", spoken().Error(err))
	}
	return &run.IperfOptions{Port: i.port, Open: i.open, Store: st}, nil
}

// dropPrivileges has a process that obeys others keep only the rights of root that its tests use.
func dropPrivileges(c *cobra.Command) {
	err := privilege.Drop()
	if errors.Is(err, errors.ErrUnsupported) {
		err = words.Errorf("it was built with cgo; want CGO_ENABLED=0")
	}
	if err != nil {
		tellf(c, "pelt: this process keeps all rights of root: %v", spoken().Error(err))
	}
}

// endFlags are what a host that is an end of others' tests lets them do.
type endFlags struct {
	listen, calls, maxRate, maxTime string
	withXDP                         bool
}

// register adds the flags. calls is what --calls is without the flag.
func (e *endFlags) register(f *pflag.FlagSet, calls string) {
	f.StringVar(&e.listen, "listen", "",
		"`ADDRESS`, ADDRESS:PORT or :PORT to listen on, PORT as in --port (default: every address)")
	f.StringVar(&e.calls, "calls", "", "`ADDRESSES` or networks that this host may call (default: "+calls+")")
	f.BoolVar(&e.withXDP, "xdp", false, "allow XDP programs on real interfaces, too")
	f.StringVar(&e.maxRate, "max-rate", "",
		"highest total `RATE` of a client host's tests, or none (default: 100mbit; no limit to private "+
			"addresses and own subnets)")
	f.StringVar(&e.maxTime, "max-time", defaultTime, "longest `TIME` of a trial, or none")
}

func (e *endFlags) options(c *cobra.Command, sessions int, port *int) (o run.EndOptions, err error) {
	o = run.EndOptions{Version: version(), XDP: e.withXDP, Events: teller(c)}
	if o.Listen, err = listenAddress(c, e.listen, port); err != nil {
		return o, err
	}
	if o.Calls, err = fleet.ParseCalls(e.calls); err != nil {
		return o, usagef("--calls: %v", err)
	}
	o.Limits, err = serveLimits(e.maxRate, e.maxTime, sessions)
	return o, err
}

// teller prints a line with the time for each thing that happens to a command that waits for others.
func teller(c *cobra.Command) func(error) {
	return func(said error) {
		fmt.Fprintf(c.ErrOrStderr(), "%s  %s\n", time.Now().Format(time.TimeOnly), spoken().Error(said))
	}
}

// listenAddress reads --listen. The address is invalid if there is none. Its port is --port's, and both may be given
// only if they are equal.
func listenAddress(c *cobra.Command, text string, port *int) (netip.Addr, error) {
	if text == "" {
		return netip.Addr{}, nil
	}
	a, n, err := addressPort("listen", text, *port)
	switch {
	case err != nil:
		return a, err
	case c.Flags().Changed("port") && n != *port:
		return a, usagef("--port: %d is not the port in --listen %s; give one of them", *port, text)
	}
	*port = n
	return a, nil
}

// addressPort reads ADDRESS, ADDRESS:PORT or :PORT of a flag; port is the one of an ADDRESS without. The address of
// :PORT is invalid.
func addressPort(flag, text string, port int) (a netip.Addr, _ int, err error) {
	if a, err = netip.ParseAddr(text); err == nil {
		return a, port, nil
	}
	host, number, err := net.SplitHostPort(text)
	n, wrong := strconv.ParseUint(number, 10, 16)
	if err = errors.Join(err, wrong); err == nil && host != "" {
		a, err = netip.ParseAddr(host)
	}
	if err != nil {
		return netip.Addr{}, 0, usagef("--%s: want ADDRESS, ADDRESS:PORT or :PORT, with an IP address of this "+
			"host, not %q", flag, text)
	}
	return a, int(n), nil
}

// What serve allows unless its flags say otherwise; the rate is for other networks only.
const (
	noLimit     = "none"
	defaultRate = "100mbit"
	defaultTime = "1h"
)

func serveLimits(maxRate, maxTime string, sessions int) (l fleet.Limits, err error) {
	l.MaxSessions, l.MemoryBytes, l.MaxStreams = sessions, run.MemoryForClients(), run.StreamsForClients()
	if maxTime != noLimit {
		d, err := positive(maxTime)
		if err != nil {
			return l, usagef("--max-time: %v, or none", err)
		}
		l.MaxTimeSeconds = d.Seconds()
	}
	switch maxRate {
	case noLimit:
		return l, nil
	case "":
		maxRate, l.OwnFree = defaultRate, true
	}
	if b, err := unit.ParseBitRate(maxRate); err == nil {
		l.MaxRateBPS = float64(b)
		return l, nil
	}
	r, err := unit.ParseRate(maxRate)
	if err != nil || r.IsMax() || strings.HasPrefix(strings.ToLower(strings.TrimSpace(maxRate)), "every ") {
		return l, usagef("--max-rate: want packets as 100kpps, payload bits as 500mbit, or none, not %q", maxRate)
	}
	l.MaxRatePPS, _ = r.PPS(1)
	return l, nil
}

// invitation is what serve prints: the line to paste on the near host, which asks for a rate
// that this host allows, or how a router's bench names this host. code stands in front of the line, and note behind.
func invitation(s run.ServeOptions, code, note string) string {
	addresses := reachedAt(s.Listen)
	var b strings.Builder
	l := spoken()
	if s.Observe {
		fmt.Fprint(&b, l.Sayf("pelt serve: control on %d/tcp, no data: this host only observes\n\n"+
			"To the command that tests the router, add one of:\n", s.Port))
		for _, a := range addresses {
			fmt.Fprintf(&b, "\n    --dut %s%s\n", model.AgentDUT, targetText(a, s.Port))
		}
		if code = strings.TrimSpace(code); code != "" {
			fmt.Fprint(&b, l.Sayf("\nIts code is the last of several: %s\n", strings.Replace(code, "=", "=FAR,", 1)))
		}
	} else {
		fmt.Fprint(&b, l.Sayf("pelt serve: control on %d/tcp, data on %s\nAllowed: %v\n\nOn the other host, paste:\n",
			s.Port, s.DataPorts(l), s.Limits.In(l)))
		for i, a := range addresses {
			if i == 1 {
				fmt.Fprintln(&b, l.Say("\nor, if that address is not the one it reaches:"))
			}
			fmt.Fprintf(&b, "\n    %spelt curve %s%s\n", code, targetText(a, s.Port), s.Limits.RateFlag(a))
		}
	}
	if note != "" {
		fmt.Fprint(&b, "\n"+note)
	}
	if s.Iperf != nil {
		port := ""
		if s.Iperf.Port != run.IperfPort {
			port = fmt.Sprintf(" -p %d", s.Iperf.Port)
		}
		fmt.Fprint(&b, l.Sayf("\nor, with iperf3 in place of pelt:\n\n    iperf3 -u -c %v%s --get-server-output\n",
			addresses[0], port))
	}
	fmt.Fprint(&b, l.Say("\nCtrl-C ends it.\n"))
	return b.String()
}

func targetText(a netip.Addr, port int) string {
	if port != fleet.DefaultPort {
		return netip.AddrPortFrom(a, uint16(port)).String()
	}
	return a.String()
}

// reachedAt lists the addresses at which others reach a listener: its own, or those of this host, IPv4 first.
func reachedAt(at netip.Addr) []netip.Addr {
	if at.IsValid() && !at.IsUnspecified() {
		return []netip.Addr{at}
	}
	var four, six []netip.Addr
	for _, p := range fleet.OwnPrefixes() {
		switch a := p.Addr(); {
		case a.IsLoopback() || a.IsLinkLocalUnicast():
		case a.Is4():
			four = append(four, a)
		default:
			six = append(six, a)
		}
	}
	if all := append(four, six...); len(all) > 0 {
		return all
	}
	return []netip.Addr{loopback}
}
