package dut

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// Target is where ssh is to go.
type Target struct {
	User string // "" leaves it to ssh's own configuration
	Host string // a name, an alias of the user's ssh configuration, or an address
	Port int    // 0 leaves it to ssh's own configuration
}

// targetForm is ssh://[USER@]HOST[:PORT]. No part of it can be taken for an option, nor for anything by a shell that
// the user's ssh configuration starts with it.
var targetForm = regexp.MustCompile(`^ssh://(?:([\w.+@\\][\w.+@\\-]*)@)?` +
	`(?:\[([0-9A-Fa-f:.]+(?:%[\w.][\w.-]*)?)\]|([\w.][\w.-]*))(?::(\d+))?/?$`)

// ParseTarget reads ssh://[USER@]HOST[:PORT], an IPv6 address in brackets.
func ParseTarget(text string) (Target, error) {
	const want = "want ssh://[USER@]HOST[:PORT], an IPv6 address in brackets and no password: ssh asks for it"
	m := targetForm.FindStringSubmatch(text)
	if m == nil {
		return Target{}, fmt.Errorf("%.80q is no router to watch: %s", text, want)
	}
	if a, err := netip.ParseAddr(m[2]); m[2] != "" && (err != nil || !a.Is6()) {
		return Target{}, fmt.Errorf("%.80q is no router to watch: in brackets is no IPv6 address; %s", text, want)
	}
	port, err := strconv.ParseUint(cmp.Or(m[4], "1"), 10, 16)
	if err != nil || port == 0 {
		return Target{}, fmt.Errorf("%.80q is no router to watch: its port is not 1 to 65535", text)
	}
	if m[4] == "" {
		port = 0
	}
	return Target{User: m[1], Host: m[2] + m[3], Port: int(port)}, nil
}

// arguments are ssh's. What the user has configured holds, but for what would let
// the connection outlive this process, carry anything else, or wait for a person.
func (t Target) arguments(batch bool) []string {
	args := []string{"-T", "-x", "-a"}
	options := []string{
		"ClearAllForwardings=yes", "PermitLocalCommand=no", "RemoteCommand=none", "EscapeChar=none",
		"ControlMaster=no", // a master would stay behind
		"ConnectTimeout=15", "ServerAliveInterval=10", "ServerAliveCountMax=6",
	}
	if batch {
		options = append(options, "BatchMode=yes")
	}
	for _, o := range options {
		args = append(args, "-o", o)
	}
	if t.User != "" {
		args = append(args, "-l", t.User)
	}
	if t.Port != 0 {
		args = append(args, "-p", strconv.Itoa(t.Port))
	}
	return append(args, "--", t.Host, "exec /bin/sh")
}

// sshFault says in one line why ssh ended, by its own last words; "" if it does
// not tell. The words are those of OpenSSH's ssh.c, sshconnect.c and sshconnect2.c.
func sshFault(complaint string) string {
	for _, f := range []struct{ words, why string }{
		{"REMOTE HOST IDENTIFICATION HAS CHANGED", "its host key is not the one known here; if it was set up anew, " +
			"ssh-keygen -R HOST forgets the old one, and ssh HOST shows the new"},
		{"Host key verification failed", "its host key is not known here; log in once by hand with ssh, " +
			"and compare the key"},
		{"Permission denied (", "it refuses to log in: %s; put a key of yours on it, " +
			"or name the right one in ~/.ssh/config"},
		{"Too many authentication failures", "it refuses to log in: %s; name the right key in ~/.ssh/config"},
		{"no matching host key type", "this ssh and it have no method in common: %s"},
		{"Unable to negotiate", "this ssh and it have no method in common: %s"},
		{"open failed: connect failed", "the jump host cannot reach it: %s"},
		{"Could not resolve hostname", "%s"},
		{"ssh: connect to host", "%s"},
		{"kex_exchange_identification", "it hung up before the log-in: %s"},
		{"Bad configuration option", "%s"},
	} {
		at := strings.Index(complaint, f.words)
		if at < 0 {
			continue
		}
		if strings.Contains(f.why, "%s") {
			line := firstLine(complaint[strings.LastIndexByte(complaint[:at], '\n')+1:])
			return fmt.Sprintf(f.why, strings.TrimSuffix(line, "."))
		}
		return f.why
	}
	return ""
}

// errNoSSH is what a shell over ssh gives where there is no ssh.
var errNoSSH = errors.New("no program ssh is found on this host; install OpenSSH's client")
