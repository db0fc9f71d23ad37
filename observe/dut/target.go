package dut

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"pelt/finding"
	"pelt/model"
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

// sshFault is why ssh ended, by its own last words; without a code it does not tell. The words are those of OpenSSH's
// ssh.c, sshconnect.c and sshconnect2.c.
func sshFault(complaint string) model.Reason {
	for _, f := range []struct{ words, why string }{
		{"REMOTE HOST IDENTIFICATION HAS CHANGED", model.SSHKeyChanged},
		{"Host key verification failed", model.SSHKeyUnknown},
		{"Permission denied (", model.SSHDenied},
		{"Too many authentication failures", model.SSHKeysMany},
		{"no matching host key type", model.SSHNoMethod},
		{"Unable to negotiate", model.SSHNoMethod},
		{"open failed: connect failed", model.SSHJump},
		{"Could not resolve hostname", model.SSHSays},
		{"ssh: connect to host", model.SSHSays},
		{"kex_exchange_identification", model.SSHHungUp},
		{"Bad configuration option", model.SSHSays},
	} {
		if at := strings.Index(complaint, f.words); at >= 0 {
			line := firstLine(complaint[strings.LastIndexByte(complaint[:at], '\n')+1:])
			return model.NewReason(f.why, "said", strings.TrimSuffix(line, "."))
		}
	}
	return model.Reason{}
}

// errNoSSH is what a shell over ssh gives where there is no ssh.
var errNoSSH error = finding.NewFault(model.NoSSH)
