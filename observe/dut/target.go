package dut

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Target is where ssh is to go.
type Target struct {
	User string // "" leaves it to ssh's own configuration
	Host string // a name, an alias of the user's ssh configuration, or an address
	Port int    // 0 leaves it to ssh's own configuration
}

const scheme = "ssh://"

// ParseTarget reads ssh://[USER@]HOST[:PORT], an IPv6 address in brackets.
func ParseTarget(text string) (Target, error) {
	t, why := parseTarget(text)
	if why != "" {
		return Target{}, fmt.Errorf("%.80q is no router to watch: %s; want ssh://[USER@]HOST[:PORT]", text, why)
	}
	return t, nil
}

func parseTarget(text string) (t Target, why string) {
	rest, ok := strings.CutPrefix(text, scheme)
	if !ok {
		return t, "it does not begin with " + scheme
	}
	rest = strings.TrimSuffix(rest, "/")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		t.User, rest = rest[:at], rest[at+1:]
		switch {
		case strings.Contains(t.User, ":"):
			return t, "a password has no place there, ssh asks for it or takes a key"
		case !plain(t.User, "._-+@\\"):
			return t, "its user is not one word"
		}
	}
	port := ""
	if inner, after, ok := strings.Cut(strings.TrimPrefix(rest, "["), "]"); ok && strings.HasPrefix(rest, "[") {
		if a, err := netip.ParseAddr(inner); err != nil || !a.Is6() || a.Zone() != "" && !plain(a.Zone(), "._-") {
			return t, "what is in brackets is no IPv6 address"
		}
		t.Host = inner
		if port, ok = strings.CutPrefix(after, ":"); !ok && after != "" {
			return t, "something other than a port follows the bracket"
		} else if ok && port == "" {
			return t, "its port is missing"
		}
	} else {
		var colon bool
		if t.Host, port, colon = strings.Cut(rest, ":"); colon && strings.Contains(port, ":") {
			return t, "an IPv6 address stands in brackets"
		} else if colon && port == "" {
			return t, "its port is missing"
		}
		if !plain(t.Host, "._-") {
			return t, "its host is not one name"
		}
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return t, "its port is not 1 to 65535"
		}
		t.Port = int(n)
	}
	return t, ""
}

// plain reports whether a word cannot be taken for an option, nor for anything by
// a shell that the user's ssh configuration starts with it.
func plain(word, also string) bool {
	if word == "" || word[0] == '-' {
		return false
	}
	for _, c := range []byte(word) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
		if !letter && strings.IndexByte(also, c) < 0 {
			return false
		}
	}
	return true
}

// String is the target as ParseTarget reads it.
func (t Target) String() string {
	host := t.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if t.User != "" {
		host = t.User + "@" + host
	}
	if t.Port != 0 {
		host += ":" + strconv.Itoa(t.Port)
	}
	return scheme + host
}

// arguments are ssh's. What the user has configured holds, but for what would let
// the connection outlive this process, carry anything else, or wait for a person.
func (t Target) arguments(batch bool, command string) []string {
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
	args = append(args, "--", t.Host)
	if command != "" {
		args = append(args, command)
	}
	return args
}

// sshFault says in one line why ssh ended, by its own last words; "" if it does
// not tell. The words are those of OpenSSH's ssh.c, sshconnect.c and sshconnect2.c.
func sshFault(complaint string) string {
	for _, f := range []struct{ words, why string }{
		{"REMOTE HOST IDENTIFICATION HAS CHANGED", "its host key is not the one known here; if it was set up anew, ssh-keygen -R HOST forgets the old one, and ssh HOST shows the new"},
		{"Host key verification failed", "its host key is not known here; log in once by hand with ssh, and compare the key"},
		{"Permission denied (", "it refuses to log in: %s; put a key of yours on it, or name the right one in ~/.ssh/config"},
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
