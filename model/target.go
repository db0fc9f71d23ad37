package model

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"
)

func checkTarget(t string) error {
	if t == "" || len(t) > maxTextLength || strings.ContainsAny(t, " ") || !printable(t) {
		return wrong("target", "want HOST[:PORT], lab:NAME, fleet:FROM..TO or iperf3://HOST[:PORT], not %q", clip(t))
	}
	if server, ok := IperfServer(t); ok {
		_, _, err := HostPort(server)
		return err
	}
	if client, ok := strings.CutPrefix(t, IperfClient); ok {
		if _, err := netip.ParseAddr(client); err != nil {
			return wrong("target", "want the address of an iperf3 client, not %q", clip(client))
		}
		return nil
	}
	if strings.HasPrefix(t, FleetTarget) {
		_, _, err := FleetHosts(t)
		return err
	}
	return nil
}

// FleetTarget is what the targets of a fleet begin with: fleet: is all of its hosts, fleet:a,b,c are these, and
// fleet:a..b is a path from a to b.
const FleetTarget = "fleet:"

// IperfServer is the HOST[:PORT] of a target iperf3://HOST[:PORT]; false: it is another target.
func IperfServer(target string) (server string, ok bool) {
	return strings.CutPrefix(target, "iperf3://")
}

// IperfClient begins the target of a run that an iperf3 client asked for; its address stands behind.
const IperfClient = "iperf3-client://"

// IperfNode is the node of a target's path that runs iperf3; "" if none does.
func IperfNode(target string) string {
	if _, ok := IperfServer(target); ok {
		return Receiver
	}
	if strings.HasPrefix(target, IperfClient) {
		return Sender
	}
	return ""
}

// checkIperf refuses what an iperf3 server cannot do.
func (p Plan) checkIperf() error {
	if _, ok := IperfServer(p.Target); !ok {
		return nil
	}
	for _, f := range p.Flows {
		down := f.From != Sender
		switch {
		case f.Connections != "" || f.HTTP || f.Bytes > 0:
			return wrong("target", "an iperf3 server carries a stream of data for a time, not single connections "+
				"or transfers")
		case down && (f.Profile != nil || f.Burst > 0 || f.Packets > 0 || f.Segments > 1 || f.DontFragment):
			return wrong("--direction", "an iperf3 server sends packets evenly for a time: leave out "+
				"--profile, --burst, --count, --gso and --df, or want up")
		case down && len(f.Controls()) > 1:
			return wrong("--control", "an iperf3 server has one congestion control for all streams: want one, or "+
				"--direction up")
		}
	}
	switch {
	case p.Timing.LeadSeconds > 0 || p.AsksPathMTU() || p.Design.Search != nil && len(p.Design.Search.Loads) > 0:
		return wrong("target", "this test times round trips, which an iperf3 server does not; want curve, ndr, "+
			"sweep, soak or cc, with payloads in bytes")
	case p.Timing.WarmupSeconds > 0:
		return wrong("--warmup", "an iperf3 server counts all packets: want 0")
	case p.Near != "" || p.DUT != "":
		return wrong("target", "an iperf3 server is tested from this host, without a router under test")
	case p.Engine != EngineAuto && p.Engine != "udp":
		return wrong("--engine", "sockets carry what an iperf3 server sends and gets: want udp")
	}
	return nil
}

// checkDevice refuses a device where this host's sockets do not call the target.
func (p Plan) checkDevice() error {
	const mostName = 15 // IFNAMSIZ with its last byte
	at, _, _ := strings.Cut(p.Target, ":")
	switch {
	case p.Device == "":
		return nil
	case len(p.Device) > mostName || strings.ContainsAny(p.Device, " /") || !printable(p.Device):
		return wrong("device", "want the name of an interface, not %q", clip(p.Device))
	case p.Near != "" || slices.Contains([]string{"lab", "fleet", "iperf3-client"}, at):
		return wrong("device", "binds sockets of this host: want HOST[:PORT] or iperf3://HOST[:PORT] as target")
	case p.Engine != EngineAuto && p.Engine != "udp":
		return wrong("engine", "--dev binds sockets, and frames of %s bypass them: want udp", p.Engine)
	}
	return nil
}

// FleetHosts are the hosts that a fleet's target names, the sender first if it is a path of two; none is all.
func FleetHosts(target string) (hosts []string, path bool, err error) {
	names := strings.TrimPrefix(target, FleetTarget)
	from, to, path := PairHosts(names)
	switch {
	case path:
		hosts = []string{from, to}
	case names != "":
		hosts = strings.Split(names, ",")
	}
	for i, h := range hosts {
		if !IsHostName(h) {
			return nil, path, wrong("target",
				"%q is no host of a fleet; want fleet:FROM..TO, fleet:A,B,C or fleet: for all", clip(h))
		}
		if slices.Contains(hosts[:i], h) {
			return nil, path, wrong("target", "%s stands twice", h)
		}
	}
	return hosts, path, nil
}

// PairHosts are the hosts of a pair, the first of which sends up; false: it is no pair.
func PairHosts(pair string) (from, to string, ok bool) { return strings.Cut(pair, PairSeparator) }

// IsHostName reports whether a host of a fleet can have a name: up to 64 letters, digits, - and _.
func IsHostName(name string) bool {
	odd := func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '_'
	}
	return name != "" && len(name) <= 64 && !strings.ContainsFunc(name, odd)
}

// printable reports whether a name is short and can be shown on a terminal as it is.
func printable(s string) bool {
	return len(s) <= maxTextLength && PrintableText(s) == s
}

// HostPort splits a plain target; port 0 means none was given.
func HostPort(target string) (host string, port uint16, err error) {
	if strings.ContainsAny(target, " \t\r\n\x00") {
		return "", 0, wrong("target", "want HOST[:PORT] or lab:NAME, not %q", target)
	}
	bare, bracket := target, strings.HasPrefix(target, "[") && strings.HasSuffix(target, "]")
	if bracket {
		bare = target[1 : len(target)-1]
	}
	if a, e := netip.ParseAddr(bare); e == nil && (!bracket || a.Is6()) {
		return a.String(), 0, nil
	}
	if ap, e := netip.ParseAddrPort(target); e == nil && ap.Port() != 0 {
		return ap.Addr().String(), ap.Port(), nil
	}
	host, portText, found := strings.Cut(target, ":")
	if host == "" || strings.ContainsAny(target, "/@[]%") {
		return "", 0, wrong("target", "want HOST[:PORT] or lab:NAME, not %q", target)
	}
	if !found {
		return host, 0, nil
	}
	var n int
	if _, e := fmt.Sscanf(portText, "%d", &n); e != nil || n < 1 || n > 65535 || fmt.Sprint(n) != portText {
		return "", 0, wrong("target", "port %q is not 1..65535", portText)
	}
	return host, uint16(n), nil
}
