package fleet

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// mayCall holds a stranger's order to dial against what this host allows. Consent
// keeps a flood from anybody who did not ask for it, but who could make this host
// dial at will would learn which hosts and ports it reaches, and send hellos, up
// to 10 a second and stream, to anybody.
func (a *Agent) mayCall(peer netip.Addr) error {
	to := peer.Unmap()
	if slices.ContainsFunc(a.cfg.calls, func(p netip.Prefix) bool { return p.Contains(to) }) {
		return nil
	}
	to = to.WithZone("") // which may be any text
	if len(a.cfg.calls) == 0 {
		return refuse("this host only listens, it calls nobody; to let it be the sender's side, start pelt serve there with --calls %v", to)
	}
	return refuse("this host calls %s only (--calls there), not %v", listPrefixes(a.cfg.calls), to)
}

func listPrefixes(all []netip.Prefix) string {
	var words []string
	for _, p := range all {
		if p.IsSingleIP() {
			words = append(words, p.Addr().String())
			continue
		}
		words = append(words, p.String())
	}
	return strings.Join(words, ", ")
}

// ParseCalls reads what [ServeConfig].Calls may be: addresses and networks, with
// commas between, as 192.0.2.7,10.0.0.0/8. "" is none.
func ParseCalls(text string) ([]netip.Prefix, error) {
	if text == "" {
		return nil, nil
	}
	var all []netip.Prefix
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		if a, err := netip.ParseAddr(word); err == nil && a.Zone() == "" {
			a = a.Unmap()
			all = append(all, netip.PrefixFrom(a, a.BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(word)
		if err != nil || p.Addr().Is4In6() {
			return nil, fmt.Errorf("%q is no address and no network; want such as 192.0.2.7 or 10.0.0.0/8", word)
		}
		all = append(all, p.Masked())
	}
	return all, nil
}
