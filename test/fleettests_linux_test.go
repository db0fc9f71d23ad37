package test

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pelt/internal/peltproc"
	"pelt/internal/testenv"
	"pelt/model"
)

// TestFleetPaths: each test of a path runs between hosts of a fleet.
func TestFleetPaths(t *testing.T) {
	t.Parallel()
	f := onFleet(t, 4)
	for _, c := range []struct{ line, hosts string }{
		{"curve fleet:h1..h2 --payload 64 --rate 1kpps --time 200ms --warmup 50ms --repeats 1", "h1 h2"},
		{"ndr fleet:h2..h3 --payload 64 --rate 2kpps --time 250ms --warmup 50ms", "h2 h3"},
		{"sweep fleet:h1,h2,h3,h4 --from h1 --receivers all --payload 512,1472 --interval 5ms,9ms --count 40 --repeats 1", "h1 h2 h3 h4"},
		{"cc fleet:h3..h4 --control cubic,reno --time 250ms --warmup 50ms --repeats 1", "h3 h4"},
		{"soak fleet:h4..h1 --payload 64 --rate 1kpps --time 2s", "h4 h1"},
	} {
		name, _, _ := strings.Cut(c.line, " ")
		p := f.control(name, c.line+" --json -")
		d := f.ends(p)
		if len(d.Results) == 0 || !d.Complete {
			f.t.Errorf("%s: %d results, complete: %v\n%s", name, len(d.Results), d.Complete, p.Err)
		}
		for _, r := range d.Results {
			for _, x := range r.Flows {
				if x.Received == 0 {
					f.t.Errorf("%s: %v %s: nothing arrived (%s)", name, r.Cell, x.Name, r.Why)
				}
			}
		}
		var hosts []string
		for _, h := range d.Host {
			hosts = append(hosts, h.Name)
			if h.Address != "10.90.1."+h.Name[1:] {
				f.t.Errorf("%s: host %s is at %s", name, h.Name, h.Address)
			}
		}
		if got := strings.Join(hosts, " "); got != c.hosts {
			f.t.Errorf("%s: the hosts are %s, want %s", name, got, c.hosts)
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
//	h1, h2 ── switch ──┬── NAT 10.90.2.1 ── n1, n2
//	                   └── NAT 10.90.2.2 ── x1
func TestFleetNAT(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	f.behindNAT("10.90.2.1", "10.91.1.", "n1", "n2")
	f.behindNAT("10.90.2.2", "10.91.2.", "x1")
	f.begin()
	f.joinAll()
	if said := f.agents["n1"].Out.String(); !strings.Contains(said, "10.91.1.2 behind a NAT that shows it as 10.90.2.1") ||
		!strings.Contains(said, "Two hosts behind NATs of their own cannot be measured with each other.") {
		t.Errorf("n1 says\n%s", said)
	}
	if said := f.agents["h1"].Out.String(); strings.Contains(said, "NAT") {
		t.Errorf("h1 says\n%s", said)
	}
	d := f.ends(f.control("mesh", "mesh fleet:h1,h2,n1,n2,x1 --rate 1kpps --time 300ms --warmup 100ms --json -"))
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

// TestFleetLimits: what an owner of a host allows holds, and whoever asks for more or comes with a wrong name or code is
// told in one line.
func TestFleetLimits(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4)
	f.begin()
	f.startJoin("h1")
	f.startJoin("h2", "--max-rate", "10kpps")
	f.startJoin("h3", "--calls", "10.90.1.4", "--max-time", "1s")
	f.startJoin("h4")
	for _, name := range f.names {
		f.agents[name].Await("joined as " + name)
	}
	const short = " --payload 64 --time 200ms --warmup 50ms --repeats 1"
	for _, c := range []struct {
		line string
		code int
		want []string
	}{
		{"curve fleet:h1..h2 --rate 10kpps" + short, 0, nil},
		{"curve fleet:h1..h2 --rate 11kpps" + short, 1, []string{"h2", "11.0 kpps", "that host allows 10.0 kpps (--max-rate there)"}},
		{"curve fleet:h1..h3 --rate 1kpps --payload 64 --time 2s", 1, []string{"h3", "that host allows 1 s (--max-time there)"}},
		{"curve fleet:h3..h4 --rate 1kpps" + short, 0, nil},
		{"curve fleet:h3..h1 --rate 1kpps" + short, 1, []string{"h3", "that host calls 10.90.1.4 only (--calls there), not 10.90.1.1"}},
		{"mesh fleet:h1,h9", 1, []string{"no host named h9 is on the hub: pelt hosts shows who is there"}},
		{"mesh fleet:h1,h/9", 2, []string{"h/9"}},
		{"mesh fleet:h1", 2, []string{"a mesh has two hosts at least"}},
		{"mesh fleet:h1,h1", 2, []string{"h1 stands twice"}},
		{"curve fleet:h1..h1", 2, []string{"h1"}},
		{"sweep fleet:h1,h2 --payload 64 --interval 1ms", 2, []string{"--from: say which host sends to the others"}},
		{"hosts --code lion-99-teal-lion-99-teal", 1, []string{"wrong code: pelt hub printed the right one there"}},
	} {
		p := f.control("limits", c.line)
		code, said := p.Code(), p.Err.String()
		if code == invalid && c.code == 0 {
			code = 0 // the machine was busy
		}
		if code != c.code {
			t.Errorf("pelt %s: exit code %d, want %d\n%s", c.line, code, c.code, said)
			continue
		}
		if wrong := strings.Count("\n"+said, "\npelt: "); c.code != 0 && wrong != 1 {
			t.Errorf("pelt %s: %d lines say what is wrong, want one:\n%s", c.line, wrong, said)
		}
		for _, w := range c.want {
			if !strings.Contains(said, w) {
				t.Errorf("pelt %s: no %q in\n%s", c.line, w, said)
			}
		}
	}
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{"10.90.0.1 --name h1 --port 7400", 1, "a host named h1 is on the hub already: choose another --name"},
		{"10.90.0.1 --name h/5 --port 7400", 2, `--name: want up to 64 letters, digits, - and _, not "h/5"`},
		{"10.90.0.1 --name h5 --port 7400 --code lion-99-teal-lion-99-teal", 1, "wrong code: pelt hub printed the right one there"},
		{"10.90.0.1:7399 --name h5 --port 7400", 1, "connection refused: is `pelt hub` running there"},
		{"10.90.0.1 --name h5 --port 7400 --max-rate much", 2, "--max-rate: want packets as 100kpps"},
		{"10.90.0.1 --name h5 --port 7400 --calls nobody", 2, "--calls: "},
		{"--name h5 --port 7400", 2, "want the HUB to join, or --nats"},
		{"--nats nats://10.90.0.1:4222 --name h5 --port 7400", 1, "no NATS server answers there"},
		{"--nats nats://10.90.0.1:4222 --creds nowhere --name h5 --port 7400", 1, "--creds: "},
	} {
		p := f.on(f.hosts["h1"], "joins").Start(append([]string{"join"}, strings.Fields(c.line)...)...)
		code := p.Code()
		if said := p.Err.String(); code != c.code || strings.Count(said, "\n") != 1 || !strings.Contains(said, c.want) {
			t.Errorf("pelt join %s: exit code %d, want %d with one line and %q:\n%s", c.line, code, c.code, c.want, said)
		}
	}
	f.whole(f.ends(f.control("mesh", mesh+"300ms")), nil) // which none of them disturbed
}

// TestFleetUnit: systemd takes the unit that pelt join prints, which has no code in it.
func TestFleetUnit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code := filepath.Join(dir, "the code")
	if err := os.WriteFile(code, []byte(fleetCode+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(dir, "pelt-join.service")
	args := []string{"join", "hub.example", "--code-file", code, "--name", "fra-1", "--max-rate", "200mbit", "--print-unit"}
	text, err := exec.Command(peltproc.Binary, args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := `ExecStart=` + peltproc.Binary + ` join hub.example --code-file "` + code + `" --name fra-1 --max-rate 200mbit` + "\n"
	if !strings.Contains(string(text), want) {
		t.Errorf("no %q in\n%s", want, text)
	}
	// What the shell knows, a service does not.
	wrong := exec.Command(peltproc.Binary, "join", "--name", "fra-1", "--print-unit")
	wrong.Env = append(os.Environ(), "PELT_HUB=hub.example", "PELT_CODE="+fleetCode)
	if out, err := wrong.CombinedOutput(); wrong.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "--code-file") {
		t.Errorf("with variables in place of arguments: %v\n%s", err, out)
	}
	both := append(slices.Clone(args), "--code", fleetCode)
	if out, err := exec.Command(peltproc.Binary, both...).CombinedOutput(); err == nil || strings.Contains(string(out), fleetCode) {
		t.Errorf("with the code as an argument: %v\n%s", err, out)
	}
	nats := exec.Command(peltproc.Binary, "join", "--nats", "nats://192.0.2.1", "--code", fleetCode, "--print-unit")
	if out, err := nats.CombinedOutput(); nats.ProcessState.ExitCode() != 2 || strings.Contains(string(out), fleetCode) {
		t.Errorf("with a code that servers of one's own need not: %v\n%s", err, out)
	}
	testenv.Tool(t, "systemd-analyze")
	if err := os.WriteFile(unit, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("systemd-analyze", "verify", unit).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s\n%s", err, out, text)
	}
}
