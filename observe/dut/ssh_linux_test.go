package dut

import (
	"context"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"pelt/internal/sshbed"
	"pelt/internal/testenv"
	"pelt/model"
)

func target(t *testing.T, text string) Start {
	t.Helper()
	to, err := ParseTarget(text)
	testenv.Must(t, err)
	return to.Start()
}

// startServer makes this host a router that ssh reaches on the loopback, under several names.
func startServer(t *testing.T) *sshbed.Server {
	t.Helper()
	testenv.Tool(t, "busybox")
	const own = `/bin/sh -c "$SSH_ORIGINAL_COMMAND"`
	port := testenv.Port(t)
	at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port))
	s := sshbed.Start(t, at, (*exec.Cmd).Start,
		sshbed.Host{Name: "ash", Command: "busybox ash"},
		sshbed.Host{Name: "false", Command: "/bin/false"},
		sshbed.Host{Name: "menu", Command: `echo "Main menu"; echo "1) status"; read x; echo "no such choice"; exit 3`},
		sshbed.Host{Name: "wrongkey"},
		sshbed.Host{Name: "unknown", Command: own, Known: sshbed.Unknown},
		sshbed.Host{Name: "changed", Command: own, Known: sshbed.Changed},
		sshbed.Host{Name: "refused", Command: own, Port: uint16(port + 1)})
	t.Setenv("PATH", s.Path)
	return s
}

// The server's end goes away in the middle of a trial. What a whole trial tells is the matter of package test.
func TestServerHangsUp(t *testing.T) {
	s := startServer(t)
	ctx := context.Background()
	r := &Router{node: "router", source: "ssh://ash", start: target(t, "ssh://ash"), period: 250 * time.Millisecond}
	testenv.Must(t, r.open(ctx))
	defer r.Close()
	if f := r.Facts(); f.System != "linux" || f.Source != "ssh://ash" || f.Node != "router" {
		t.Errorf("%+v", f)
	}
	w := r.Begin()
	defer w.Close()
	w.Snapshot(model.MomentStart)
	w.Snapshot(model.MomentMeasure)
	r.mu.Lock()
	gone := r.session.shell.Ended
	r.mu.Unlock()
	s.HangUp()
	<-gone
	w.Snapshot(model.MomentEnd)
	watched, _ := w.Watched(time.Second)
	late := func(g model.RouterGap) bool { return g.Why == model.GapLate } // a busy host, before
	list := slices.DeleteFunc(watched.Gaps, late)
	if len(list) != 1 || list[0].Why != model.GapClosed || len(list[0].Of) == 0 || watched.CPU != nil {
		t.Errorf("%+v", watched)
	}
	begun := time.Now()
	if err := r.Close(); err != nil || time.Since(begun) > testenv.Patience {
		t.Errorf("closed after %v: %v", time.Since(begun), err)
	}
}

// Each way of no watch is one clear line, soon.
func TestSSHThatGivesNoWatch(t *testing.T) {
	startServer(t)
	for _, c := range []struct{ name, want string }{
		{"wrongkey", "it refuses to log in: root@127.0.0.1: Permission denied (publickey)"},
		{"unknown", "its host key is not known here"},
		{"changed", "its host key is not the one known here"},
		{"refused", "Connection refused"},
		{"false", "it gives no shell: it ended with exit status 1"},
		{"menu", `it gives no shell: it said "Main menu"; it ended with exit status 3`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), testenv.Patience)
			defer cancel()
			r, err := Open(ctx, "router", "ssh://"+c.name, target(t, "ssh://"+c.name))
			if err == nil {
				_ = r.Close()
				t.Fatal("it is watched")
			}
			if got := err.Error(); !strings.HasPrefix(got, "router ssh://"+c.name+" cannot be watched: ") ||
				!strings.Contains(got, c.want) || strings.ContainsAny(got, "\r\n") {
				t.Errorf("%q, want one line with %q", got, c.want)
			}
		})
	}
}
