package test

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"pelt/finding"
	"pelt/internal/peltproc"
	"pelt/internal/testenv"
	"pelt/model"
)

// TestFleetPaths: each test of a path runs between hosts of a fleet. What the owner of a host allows holds, and
// whoever asks for more or comes with a wrong name or code is told in one line. A host that lets nothing in from one
// other is named, and all else is measured.
func TestFleetPaths(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4)
	f.begin()
	f.startJoin("h1")
	f.startJoin("h2", "--max-rate", "10kpps", "--max-time", "3s")
	f.startJoin("h3", "--calls", "10.90.1.4")
	f.startJoin("h4")
	for _, name := range f.names {
		f.agents[name].Await("joined as " + name)
	}
	const short = " --drops off --payload 64 --time 200ms --warmup 50ms --repeats 1"
	for _, c := range []struct {
		line, hosts string
		wrong       []string
	}{
		{"curve fleet:h1..h2 --rate 10kpps" + short, "h1 h2", nil},
		{"ndr fleet:h3..h4 --drops off --payload 64 --rate 2kpps --time 250ms --warmup 50ms --searches 1", "h3 h4", nil},
		{"sweep fleet:h1,h2,h3,h4 --drops off --from h1 --receivers all --payload 512 --interval 5ms,9ms --count 40 --repeats 1",
			"h1 h2 h3 h4", nil},
		{"cc fleet:h3..h4 --control cubic,reno --time 250ms --warmup 50ms --repeats 1", "h3 h4", nil},
		{"soak fleet:h4..h1 --drops off --payload 64 --rate 1kpps --time 2s", "h4 h1", nil},
		{"curve fleet:h1..h2 --rate 11kpps" + short, "",
			[]string{"h2", "11 kpps", "that host allows 10 kpps (--max-rate there)"}},
		{"curve fleet:h1..h2 --rate 1kpps --payload 64 --time 4s", "",
			[]string{"h2", "that host allows 3 s (--max-time there)"}},
		{"curve fleet:h3..h1 --rate 1kpps" + short, "",
			[]string{"h3", "that host calls 10.90.1.4 only (--calls there), not 10.90.1.1"}},
		{"hosts --code lion-99-teal-lion-99-teal", "", []string{"wrong code: pelt hub printed the right one there"}},
	} {
		name, _, _ := strings.Cut(c.line, " ")
		p := f.control(name, c.line+map[bool]string{true: " --json -"}[c.wrong == nil])
		if c.wrong != nil {
			code, said := p.Code(), p.Err.String()
			lacks := slices.ContainsFunc(c.wrong, func(w string) bool { return !strings.Contains(said, w) })
			if code != 1 || strings.Count("\n"+said, "\npelt: ") != 1 || lacks {
				t.Errorf("pelt %s: exit code %d, want 1 and one line with %q\n%s", c.line, code, c.wrong, said)
			}
			continue
		}
		d := f.ends(p)
		if len(d.Results) == 0 || !d.Complete {
			t.Errorf("%s: %d results, complete: %v\n%s", name, len(d.Results), d.Complete, p.Err)
		}
		for _, r := range d.Results {
			for _, x := range r.Flows {
				if x.Received == 0 {
					t.Errorf("%s: %v %s: nothing arrived (%s)", name, r.Cell, x.Name, finding.Why(r.Why))
				}
			}
		}
		var hosts []string
		for _, h := range d.Host {
			hosts = append(hosts, h.Name)
			if h.Address != "10.90.1."+h.Name[1:] {
				t.Errorf("%s: host %s is at %s", name, h.Name, h.Address)
			}
		}
		if got := strings.Join(hosts, " "); got != c.hosts {
			t.Errorf("%s: the hosts are %s, want %s", name, got, c.hosts)
		}
	}
	p := f.on(f.hosts["h1"], "joins").Start("join", "10.90.0.1", "--name", "h1", "--port", "7400")
	code, said := p.Code(), p.Err.String()
	const want = "a host named h1 is on the hub already: choose another --name"
	if code != 1 || strings.Count(said, "\n") != 1 || !strings.Contains(said, want) {
		t.Errorf("exit code %d, want 1 with one line and %q:\n%s", code, want, said)
	}

	const allowed = `Next: Let UDP port 7359 through on h4: nft insert rule inet fault hook1 udp dport 7359 accept$`
	from := netip.MustParseAddr("10.90.1.1").As4()
	f.hosts["h4"].Rule(nftables.ChainHookInput, with(with(dataPackets,
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: 12, Len: 4},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: from[:]}), dropped)...)
	for _, c := range []struct {
		line, want  string
		dead, alive int
	}{
		{"mesh fleet:h1,h2,h4 --rate 1kpps --time 300ms --warmup 100ms",
			`^Nothing came through from h1 to h4: its firewall drops UDP port 7359\. .*` + allowed, 2, 4},
		{"sweep fleet:h1,h2,h4 --from h1 --receivers all --payload 512 --interval 5ms --count 40 --repeats 1",
			`^Nothing came through to h4: its firewall drops UDP port 7359\. ` +
				`The figures are of the other receiver\. .*` + allowed, 1, 1},
	} {
		p := f.control("cut", c.line+" --json "+f.file("cut.json"))
		code, words := p.Code(), strings.Join(strings.Fields(p.Out.String()), " ")
		if code != 3 || !regexp.MustCompile(c.want).MatchString(words) {
			t.Errorf("%s: exit code %d; want 3 and %q\n%s", c.line, code, c.want, p)
		}
		dead, alive := 0, 0
		d := decoded(t, f.file("cut.json"))
		for _, r := range d.Results {
			for _, x := range r.Flows {
				dead += len(x.DeadStreams)
				if x.Received > 0 {
					alive++
				}
			}
		}
		if dead != c.dead || alive < c.alive || !d.Complete {
			t.Errorf("%s: %d dead streams and %d flows that carry packets, complete: %v; want %d and %d",
				c.line, dead, alive, d.Complete, c.dead, c.alive)
		}
	}
}

// behindNAT adds a router that hides hosts of a network of its own behind its address at the hub's switch.
func (f *fleet) behindNAT(outside, inside string, names ...string) {
	f.t.Helper()
	router := "nat-" + names[0]
	f.addHost(router, f.hub, outside+"/16")
	n := f.hosts[router]
	f.names = slices.DeleteFunc(f.names, func(name string) bool { return name == router }) // it joins nothing
	f.addSwitch(n, inside+"1/24")
	n.Forwards()
	n.Masquerade("eth0")
	for i, name := range names {
		f.addHost(name, n, fmt.Sprintf("%s%d/24", inside, i+2))
		f.hosts[name].Route(netip.MustParsePrefix("0.0.0.0/0"), netip.MustParseAddr(inside+"1"))
	}
}

// TestFleetNAT: a host behind a NAT is measured with hosts that are not, and with those behind the same one.
//
//	h1 ── switch ──┬── NAT 10.90.2.1 ── n1, n2
//	               └── NAT 10.90.2.2 ── x1
func TestFleetNAT(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1)
	f.behindNAT("10.90.2.1", "10.91.1.", "n1", "n2")
	f.behindNAT("10.90.2.2", "10.91.2.", "x1")
	f.begin()
	f.joinAll()
	if said := f.agents["n1"].Out.String(); !strings.Contains(said,
		"10.91.1.2 behind a NAT that shows it as 10.90.2.1") ||
		!strings.Contains(said, "Two hosts behind NATs of their own cannot be measured with each other.") {
		t.Errorf("n1 says\n%s", said)
	}
	if said := f.agents["h1"].Out.String(); strings.Contains(said, "NAT") {
		t.Errorf("h1 says\n%s", said)
	}
	d := f.ends(f.control("mesh",
		"mesh fleet:h1,n1,n2,x1 --drops off --rate 1kpps --time 300ms --warmup 100ms --json -"))
	apart := unmeasured(d)
	for name, why := range apart {
		a, b, _ := strings.Cut(name, model.PairSeparator)
		want := fmt.Sprintf("not measured: %s and %s are behind NATs of their own, and neither can call the other: "+
			"give one an address that is let through (pelt join --address there)", a, b)
		if (a != "n1" && a != "n2") || b != "x1" || why != want {
			t.Errorf("%s: %q, want %q", name, why, want)
		}
	}
	if len(apart) != 2 {
		t.Errorf("unmeasured are %v; want x1 with n1 and n2", apart)
	}
	f.whole(d, apart)
}

// TestFleetUnit: systemd takes the unit that pelt join prints, which has no code in it.
func TestFleetUnit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code := filepath.Join(dir, "the code")
	testenv.Must(t, os.WriteFile(code, []byte(fleetCode+"\n"), 0o600))
	unit := filepath.Join(dir, "pelt-join.service")
	args := []string{"join", "hub.example", "--code-file", code, "--name", "fra-1", "--max-rate", "200mbit",
		"--print-unit"}
	text, err := exec.Command(peltproc.Binary, args...).Output()
	testenv.Must(t, err)
	want := `ExecStart=` + peltproc.Binary + ` join hub.example --code-file "` + code +
		`" --name fra-1 --max-rate 200mbit` + "\n"
	if !strings.Contains(string(text), want) {
		t.Errorf("no %q in\n%s", want, text)
	}
	// What the shell knows, a service does not.
	wrong := exec.Command(peltproc.Binary, "join", "--name", "fra-1", "--print-unit")
	wrong.Env = append(os.Environ(), "PELT_HUB=hub.example", "PELT_CODE="+fleetCode)
	if out, err := wrong.CombinedOutput(); wrong.ProcessState.ExitCode() != 2 ||
		!strings.Contains(string(out), "--code-file") {
		t.Errorf("with variables in place of arguments: %v\n%s", err, out)
	}
	both := append(slices.Clone(args), "--code", fleetCode)
	if out, err := exec.Command(peltproc.Binary, both...).CombinedOutput(); err == nil ||
		strings.Contains(string(out), fleetCode) {
		t.Errorf("with the code as an argument: %v\n%s", err, out)
	}
	nats := exec.Command(peltproc.Binary, "join", "--nats", "nats://192.0.2.1", "--code", fleetCode, "--print-unit")
	if out, err := nats.CombinedOutput(); nats.ProcessState.ExitCode() != 2 ||
		strings.Contains(string(out), fleetCode) {
		t.Errorf("with a code that servers of one's own need not: %v\n%s", err, out)
	}
	testenv.Tool(t, "systemd-analyze")
	testenv.Must(t, os.WriteFile(unit, text, 0o600))
	if out, err := exec.Command("systemd-analyze", "verify", unit).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s\n%s", err, out, text)
	}
}
