package run

import (
	"maps"
	"strings"
	"testing"
)

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
