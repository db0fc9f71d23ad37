package model

import (
	"fmt"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"
)

func checkTarget(t string) error {
	if t == "" || len(t) > maxTextLength || strings.ContainsAny(t, " ") || !printable(t) {
		return wrong("target", "want HOST[:PORT] or lab:NAME, not %q", clip(t))
	}
	return nil
}

// printable reports whether a name is short and can be shown on a terminal as it is.
func printable(s string) bool {
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	return len(s) <= maxTextLength && utf8.ValidString(s) && !strings.ContainsFunc(s, odd)
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
	if host == "" || strings.ContainsAny(host, "/@[]%") {
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
