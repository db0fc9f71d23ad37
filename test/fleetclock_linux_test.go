package test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"pelt/internal/peltproc"
	"pelt/internal/testenv"
	"pelt/model"
)

// TestClockFleetFaults: of three faults in a mesh of 12 hosts each is named, and nothing else is.
func TestClockFleetFaults(t *testing.T) {
	testenv.Clock(t)
	f := newFleet(t, "hub", 12)
	f.begin()
	f.joinAll()
	f.hosts["h3"].Rule(nftables.ChainHookInput,
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_UDP}},
		&expr.Numgen{Register: 1, Modulus: 10, Type: unix.NFT_NG_RANDOM},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{0, 0, 0, 0}},
		&expr.Verdict{Kind: expr.VerdictDrop})
	f.hub.LoseTo("h10", netip.MustParseAddr("10.90.1.2"), 16)
	var p *peltproc.Process
	var d model.Document
	var got []string
	for try := 1; ; try++ {
		p = f.control("mesh", "mesh fleet: --rate 1kpps --time 3s --json -")
		f.slow("h7", p)
		d = f.ends(p)
		f.whole(d, nil)
		got = nil
		for _, x := range d.Findings {
			if slices.Contains([]string{"mesh.lost", "mesh.rounds", "mesh.page"}, x.Code) || !strings.HasPrefix(x.Code, "mesh.") {
				continue
			}
			got = append(got, fmt.Sprint(x.Code, " ", x.Words["host"], x.Words["from"], " ", x.Words["to"]))
			t.Log(x.Text)
		}
		slices.Sort(got)
		disturbed := slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "mesh.unmeasured") })
		if !disturbed || try == 3 {
			break
		}
		testenv.AwaitCalm(t.Logf) // no host of this mesh goes away, so the machine spoilt a pair's trials
	}
	if want := []string{"mesh.into h3 ", "mesh.into h7 ", "mesh.oneway h10 h2"}; !slices.Equal(got, want) {
		t.Errorf("the mesh shows %q, want %q\n%s", got, want, p.Err)
	}
	for host, layer := range map[string]string{"h3": model.LayerReceiverFilter, "h7": model.LayerReceiverBuffer} {
		if lines := linesAt(d, host); lines[layer] == 0 {
			t.Errorf("%s: no packets were lost at the layer %s: %v", host, layer, lines)
		}
	}
}

// linesAt sums what was lost on the way to a host, by layer.
func linesAt(d model.Document, host string) map[string]uint64 {
	lines := map[string]uint64{}
	for _, r := range d.Results {
		from, to, _ := strings.Cut(pair(r), model.PairSeparator)
		for _, x := range r.Flows {
			if x.Name == "up" && to == host || x.Name == "down" && from == host {
				for _, l := range x.Ledger.Lines {
					lines[l.Layer] += l.Packets
				}
			}
		}
	}
	return lines
}

// slow has the agent of a host keep small socket buffers, and stand still now and then while it takes part in a trial,
// until a test ends.
func (f *fleet) slow(name string, until *peltproc.Process) {
	f.t.Helper()
	const every, still, flowing = 40 * time.Millisecond, 6 * time.Millisecond, 20 // of the 40 packets that a trial sends
	pid := f.agents[name].Cmd.Process.Pid
	for before := f.hosts[name].Sent(); ; {
		select {
		case <-until.Ended:
			return
		case <-time.After(every):
		}
		smallBuffers(f.t, pid)
		now := f.hosts[name].Sent()
		if now-before >= flowing { // what stands still as it loads programs into the kernel never ends loading
			_ = syscall.Kill(pid, syscall.SIGSTOP) // both fail only if it has ended
			time.Sleep(still)
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
		before = now
	}
}

// smallBuffers gives all UDP sockets of a process the least receive buffer.
func smallBuffers(t *testing.T, pid int) {
	t.Helper()
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(process)
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, link := range links {
		if to, err := os.Readlink(link); err != nil || !strings.HasPrefix(to, "socket:") {
			continue
		}
		n, err := strconv.Atoi(filepath.Base(link))
		if err != nil {
			continue
		}
		fd, err := unix.PidfdGetfd(process, n, 0)
		if err != nil {
			continue // it was closed meanwhile
		}
		if kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL); err == nil && kind == unix.IPPROTO_UDP {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 0) // which cannot fail for an open socket
		}
		_ = unix.Close(fd)
	}
}
