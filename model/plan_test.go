package model

import (
	"testing"

	"pgregory.net/rapid"
)

func TestFrameBytes(t *testing.T) {
	for _, c := range []struct {
		protocol        Protocol
		family, payload int
		want            int
	}{
		{UDP, 4, 16, 64}, {UDP, 4, 18, 64}, {UDP, 4, 19, 65}, {UDP, 0, 1472, 1518}, {UDP, 4, 1472, 1518},
		{UDP, 6, 1452, 1518}, {UDP, 6, 16, 82}, {TCP, 4, 1448, 1518}, {TCP, 6, 1428, 1518}, {TCP, 4, 1, 71},
	} {
		if got := FrameBytes(c.protocol, c.family, c.payload); got != c.want {
			t.Errorf("FrameBytes(%s, %d, %d) = %d, want %d", c.protocol, c.family, c.payload, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		family := rapid.SampledFrom([]int{0, 4, 6}).Draw(t, "family")
		frame := rapid.IntRange(84, 9000).Draw(t, "frame")
		if got := FrameBytes(UDP, family, PayloadOf(family, frame)); got != frame {
			t.Fatalf("a frame of %d B holds %d B, which make %d B", frame, PayloadOf(family, frame), got)
		}
	})
}

func TestFragments(t *testing.T) {
	for _, c := range []struct{ family, payload, mtu, want int }{
		{4, 1472, 1500, 1}, {4, 1473, 1500, 2}, {4, 2952, 1500, 2}, {4, 2953, 1500, 3}, {4, 6400, 1500, 5},
		{4, 65507, 1500, 45}, {4, 65507, 65535, 1}, {4, 1472, 0, 1}, {4, 100, 68, 3}, {4, 100, 20, 1},
		{0, 1473, 1500, 2}, {6, 1452, 1500, 1}, {6, 1453, 1500, 2}, {6, 2888, 1500, 2}, {6, 2889, 1500, 3},
	} {
		if got := Fragments(c.family, c.payload, c.mtu); got != c.want {
			t.Errorf("Fragments(%d, %d, %d) = %d, want %d", c.family, c.payload, c.mtu, got, c.want)
		}
	}
}

func TestHostPort(t *testing.T) {
	for target, want := range map[string]struct {
		host string
		port uint16
	}{
		"192.168.1.5": {"192.168.1.5", 0}, "192.168.1.5:7358": {"192.168.1.5", 7358}, "nas": {"nas", 0},
		"nas.local:80": {"nas.local", 80}, "::1": {"::1", 0}, "[::1]": {"::1", 0}, "[::1]:80": {"::1", 80},
		"fe80::1%eth0": {"fe80::1%eth0", 0}, "[fe80::1%eth0]:65535": {"fe80::1%eth0", 65535},
	} {
		host, port, err := HostPort(target)
		if err != nil || host != want.host || port != want.port {
			t.Errorf("HostPort(%q) = %q, %d, %v; want %q, %d", target, host, port, err, want.host, want.port)
		}
	}
	for _, target := range []string{"", ":80", "nas:", "nas:0", "nas:65536", "nas:+80", "nas:080", "nas:80:90",
		"nas:x", "1.2.3.4:0", "]::1[", "[::1", "[1.2.3.4]", "[nas]:80", "user@nas", "a/b", "a b", "a\nb"} {
		if host, port, err := HostPort(target); err == nil {
			t.Errorf("HostPort(%q) = %q, %d; want an error", target, host, port)
		}
	}
}

func FuzzParseLink(f *testing.F) {
	f.Add("rate=1gbit,queue=100,mtu=1500")
	f.Add("delay=20ms,jitter=1ms,correlation=25%,loss=0.1%,seed=18446744073709551615")
	f.Fuzz(func(t *testing.T, text string) {
		l, _, err := ParseLink("n", text)
		if err != nil {
			return
		}
		if err := l.check("link"); err != nil {
			t.Fatalf("ParseLink(%q) = %+v, which cannot be: %v", text, l, err)
		}
	})
}

func FuzzHostPort(f *testing.F) {
	for _, target := range []string{"nas:80", "[::1]:80", "fe80::1%eth0", "1.2.3.4", "a:b:c"} {
		f.Add(target)
	}
	f.Fuzz(func(t *testing.T, target string) {
		host, _, err := HostPort(target)
		if err != nil {
			return
		}
		if again, port, err := HostPort(host); err != nil || again != host || port != 0 {
			t.Fatalf("HostPort(%q) names %q, which reads as %q, %d, %v", target, host, again, port, err)
		}
	})
}
