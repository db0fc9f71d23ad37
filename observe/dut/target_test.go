package dut

import (
	"slices"
	"strings"
	"testing"
)

func TestParseTarget(t *testing.T) {
	for _, c := range []struct {
		text  string
		want  Target
		fault string
	}{
		{"ssh://192.168.1.1", Target{Host: "192.168.1.1"}, ""},
		{"ssh://root@192.168.1.1:2222", Target{User: "root", Host: "192.168.1.1", Port: 2222}, ""},
		{"ssh://root@openwrt.lan/", Target{User: "root", Host: "openwrt.lan"}, ""},
		{"ssh://home_router", Target{Host: "home_router"}, ""}, // an alias of ~/.ssh/config
		{"ssh://root@[fe80::1%eth0]:22", Target{User: "root", Host: "fe80::1%eth0", Port: 22}, ""},
		{"ssh://[::1]", Target{Host: "::1"}, ""},
		{"ssh://me@corp@gate", Target{User: "me@corp", Host: "gate"}, ""},
		{"192.168.1.1", Target{}, "want ssh://[USER@]HOST[:PORT]"},
		{"", Target{}, "want ssh://[USER@]HOST[:PORT]"},
		{"telnet://a", Target{}, "want ssh://[USER@]HOST[:PORT]"},
		{"ssh://", Target{}, "want ssh://[USER@]HOST[:PORT]"},
		{"ssh://@a", Target{}, "want ssh://[USER@]HOST[:PORT]"},
		{"ssh://root:secret@a", Target{}, "want ssh://[USER@]HOST[:PORT]"},
		{"ssh://a:0", Target{}, "port is not 1 to 65535"},
		{"ssh://a:65536", Target{}, "port is not 1 to 65535"},
		{"ssh://a:", Target{}, "want ssh://[USER@]HOST[:PORT]"},
		{"ssh://[::1]:", Target{}, "want ssh://[USER@]HOST[:PORT]"},
		{"ssh://::1", Target{}, "want ssh://[USER@]HOST[:PORT]"},
		{"ssh://[10.0.0.1]", Target{}, "no IPv6 address"},
		{"ssh://[::1]x", Target{}, "want ssh://[USER@]HOST[:PORT]"},
		{"ssh://[fe80::1%`id`]", Target{}, "want ssh://[USER@]HOST[:PORT]"},
		{"ssh://-oProxyCommand=id", Target{}, "want ssh://[USER@]HOST[:PORT]"},
		{"ssh://-l@a", Target{}, "want ssh://[USER@]HOST[:PORT]"},
		{"ssh://a;id", Target{}, "want ssh://[USER@]HOST[:PORT]"},
		{"ssh://a b", Target{}, "want ssh://[USER@]HOST[:PORT]"},
		{"ssh://a/path", Target{}, "want ssh://[USER@]HOST[:PORT]"},
	} {
		got, err := ParseTarget(c.text)
		check(t, c.text, got, c.want, err, c.fault)
	}
}

// check fails unless a value and an error are as wanted; an error is one line.
func check[T comparable](t *testing.T, input string, got, want T, err error, fault string) {
	t.Helper()
	if got != want {
		t.Errorf("%q: got %+v, want %+v", input, got, want)
	}
	if (err == nil) != (fault == "") || err != nil && (!strings.Contains(err.Error(), fault) || strings.Contains(err.Error(), "\n")) {
		t.Errorf("%q: error %v, want one line with %q", input, err, fault)
	}
}

func TestArguments(t *testing.T) {
	got := Target{User: "root", Host: "::1", Port: 2222}.arguments(true)
	for _, want := range [][]string{
		{"-T", "-x", "-a"}, {"-o", "BatchMode=yes"}, {"-o", "ClearAllForwardings=yes"}, {"-o", "ServerAliveInterval=10"},
		{"-l", "root", "-p", "2222", "--", "::1", "exec /bin/sh"},
	} {
		if !strings.Contains(strings.Join(got, "\x00")+"\x00", strings.Join(want, "\x00")+"\x00") {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	if got := (Target{Host: "a"}).arguments(false); slices.Contains(got, "BatchMode=yes") || slices.Contains(got, "-l") {
		t.Errorf("%q: want a person asked, and nothing the user's configuration decides", got)
	}
}

func TestSSHFault(t *testing.T) {
	for _, c := range []struct{ complaint, want string }{
		{"root@127.0.0.1: Permission denied (publickey).\r\n", "it refuses to log in: root@127.0.0.1: Permission denied (publickey); put a key"},
		{"No ED25519 host key is known for [127.0.0.1]:2222 and you have requested strict checking.\r\nHost key verification failed.\r\n", "its host key is not known here"},
		{"@@@@@\r\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\n@@@@@\r\nHost key verification failed.\r\n", "not the one known here"},
		{"ssh: Could not resolve hostname nowhere.invalid: Name or service not known\r\n", "Could not resolve hostname nowhere.invalid"},
		{"ssh: connect to host 127.0.0.1 port 1: Connection refused\r\n", "port 1: Connection refused"},
		{"ssh: connect to host 10.0.0.1 port 22: Connection timed out\r\n", "Connection timed out"},
		{"Unable to negotiate with 10.0.0.1 port 22: no matching host key type found. Their offer: ssh-rsa\r\n", "Their offer: ssh-rsa"},
		{"kex_exchange_identification: Connection closed by remote host\r\nConnection closed by 10.0.0.1 port 22\r\n", "hung up before the log-in: kex_exchange_identification: Connection closed by remote host"},
		{"channel 0: open failed: connect failed: No route to host\r\nstdio forwarding failed\r\nConnection closed by UNKNOWN port 65535\r\n", "the jump host cannot reach it: channel 0: open failed: connect failed: No route to host"},
		{"sh: uptime: not found\n", ""},
		{"", ""},
	} {
		got := sshFault(c.complaint)
		if !strings.Contains(got, c.want) || c.want == "" && got != "" || strings.ContainsAny(got, "\r\n") {
			t.Errorf("%q: %q, want one line with %q", c.complaint, got, c.want)
		}
	}
}
