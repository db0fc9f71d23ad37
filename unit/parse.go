package unit

import (
	"math/big"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxDays fit into a time.Duration.
const maxDays = 1e5

// ParseDuration reads Go duration text ("10s", "5ms", "2h", "1m30s"). A bare
// number is refused, because its unit would be a guess; "0" is 0.
func ParseDuration(text string) (time.Duration, error) {
	t := strings.ToLower(strings.TrimSpace(text))
	if days, ok := strings.CutSuffix(t, "d"); ok {
		if n, err := strconv.ParseFloat(days, 64); err == nil && n >= 0 && n < maxDays {
			return time.Duration(n * 24 * float64(time.Hour)), nil
		}
	}
	d, err := time.ParseDuration(t)
	if err != nil {
		if _, number := decimal(t); number {
			return 0, wrong("duration", text, "lacks a unit: %[1]ss, %[1]sms?", t)
		}
		return 0, wrong("duration", text, "want a number and a unit, as 10s, 5ms, 1h30m or 7d")
	}
	if d < 0 {
		return 0, wrong("duration", text, "must not be negative")
	}
	return d, nil
}

var byteUnits = []scale{
	{"gib", 1 << 30}, {"mib", 1 << 20}, {"kib", 1 << 10},
	{"gb", 1e9}, {"mb", 1e6}, {"kb", 1e3}, {"b", 1}, {"", 1},
}

// ParseBytes reads a size in bytes: "64", "1472B", "64KiB", "640MB".
func ParseBytes(text string) (int64, error) {
	v, ok := scaled(strings.ToLower(strings.TrimSpace(text)), byteUnits)
	if !ok || !v.IsInt() || v.Cmp(new(big.Rat).SetInt64(1<<50)) > 0 {
		return 0, wrong("size", text, "want whole bytes, as 64, 1472 or 64KiB")
	}
	return v.Num().Int64(), nil
}

// MaxListLength bounds what one list of levels may expand to.
const MaxListLength = 10000

// ParseRates reads a list of rates as ParseRate does: "10kpps,20kpps,max".
func ParseRates(text string) ([]Rate, error) {
	var list []Rate
	for _, word := range strings.Split(text, ",") {
		r, err := ParseRate(strings.TrimSpace(word))
		if err != nil {
			return nil, err
		}
		if slices.Contains(list, r) {
			return nil, wrong("rates", text, "names %s twice", r)
		}
		list = append(list, r)
	}
	return list, nil
}

// ParseAddresses reads a list of IP addresses: "192.0.2.1,2001:db8::1" or a range
// "198.18.129.1..198.18.129.8", or both. Order is kept.
func ParseAddresses(text string) ([]netip.Addr, error) {
	var list []netip.Addr
	for _, word := range strings.Split(text, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(word), "..")
		if !isRange {
			to = from
		}
		low, err := netip.ParseAddr(from)
		high, err2 := netip.ParseAddr(to)
		if err != nil || err2 != nil || low.Is4() != high.Is4() || low.Zone() != high.Zone() || high.Less(low) {
			return nil, wrong("addresses", text,
				"want addresses as 192.0.2.1,192.0.2.7 or a range as 192.0.2.1..192.0.2.8")
		}
		for a := low; ; a = a.Next() {
			if len(list) >= MaxListLength {
				return nil, wrong("addresses", text, "is too long")
			}
			list = append(list, a)
			if a == high {
				break
			}
		}
	}
	return list, nil
}

// ParseRatio reads "0.1%" or "0.001" into a ratio 0..1.
func ParseRatio(text string) (float64, error) {
	v, err := readRatio(text)
	if err != nil {
		return 0, err
	}
	f, _ := v.Float64()
	return f, nil
}
