package run

import (
	"maps"
	"net/netip"
	"strings"
	"testing"

	"pelt/model"
	"pelt/observe/drops"
)

// A filter takes what fits all of its lists, and does not judge flows that found no room by their hosts.
func TestDropsFilter(t *testing.T) {
	drop := func(from, to, at string) drops.LiveDrop {
		x := drops.LiveDrop{Site: model.Site{Interface: at}, Rest: from == ""}
		if from != "" {
			x.From, x.To = netip.MustParseAddrPort(from), netip.MustParseAddrPort(to)
		}
		return x
	}
	up, rest := drop("10.0.1.2:7", "[2001:db8::1]:9", "eth0"), drop("", "", "eth0")
	networks := func(list ...string) (out []netip.Prefix) {
		for _, text := range list {
			out = append(out, netip.MustParsePrefix(text))
		}
		return out
	}
	for _, c := range []struct {
		filter      DropsFilter
		drop        drops.LiveDrop
		fits, known bool
		text        string
	}{
		{DropsFilter{}, up, true, true, ""},
		{DropsFilter{}, rest, true, true, ""},
		{DropsFilter{Hosts: networks("10.0.1.2/32", "10.9.0.0/16")}, up, true, true, "host 10.0.1.2 or 10.9.0.0/16"},
		{DropsFilter{Hosts: networks("2001:db8::/32")}, up, true, true, "host 2001:db8::/32"},
		{DropsFilter{Hosts: networks("10.0.1.3/32")}, up, false, true, "host 10.0.1.3"},
		{DropsFilter{Hosts: networks("10.0.1.3/32")}, rest, false, false, "host 10.0.1.3"},
		{DropsFilter{Interfaces: []string{"eth0"}}, up, true, true, "interface eth0"},
		{DropsFilter{Interfaces: []string{"eth0"}}, rest, true, true, "interface eth0"},
		{DropsFilter{Interfaces: []string{"eth1"}}, up, false, true, "interface eth1"},
		{DropsFilter{Ports: []uint16{7, 9}, Hosts: networks("10.0.1.0/24"), Interfaces: []string{"eth1"}}, rest, false, true,
			"port 7 or 9, host 10.0.1.0/24, interface eth1"},
	} {
		if fits, known := c.filter.fits(c.drop); fits != c.fits || known != c.known || c.filter.String() != c.text {
			t.Errorf("%q, want %q, of %+v: fits %v, known %v", c.filter, c.text, c.drop, fits, known)
		}
	}
}

func TestParseSpaces(t *testing.T) {
	got := parseSpaces(strings.Join([]string{
		"22 1 254:0 / / rw,relatime - ext4 /dev/root rw",
		"40 22 0:23 / /run rw,nosuid shared:5 - tmpfs tmpfs rw",
		"98 40 0:4 net:[4026532281] /run/netns/far rw shared:7 - nsfs nsfs rw",
		"99 40 0:4 net:[4026532300] /run/docker/netns/3f1a rw - nsfs nsfs rw",
		"97 40 0:4 mnt:[4026532300] /run/x rw - nsfs nsfs rw",
		"98 40 0:4 net:[x] /run/netns/y rw", "net:[1]", "", "1 2 3 net:[] 5 6",
	}, "\n"))
	want := map[uint64]string{4026532281: "far", 4026532300: "3f1a"}
	if !maps.Equal(got, want) {
		t.Errorf("parseSpaces = %v; want %v", got, want)
	}
}
