package test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"pelt/finding"
	"pelt/internal/netbed"
	"pelt/internal/peltproc"
	"pelt/model"
)

// fleet is hosts and its hub, as namespaces without names:
//
//	hub 10.90.0.1 ── switch ──┬── 10.90.1.1 h1
//	                          ├── 10.90.1.2 h2
//	                          └── ...
type fleet struct {
	t      *testing.T
	work   string
	hub    *netbed.Node
	hosts  map[string]*netbed.Node
	names  []string                     // of the hosts, in their order
	agents map[string]*peltproc.Process // pelt join, by host
	server *peltproc.Process            // the hub
}

const fleetCode = "heron-58-umber-otter-17-slate"

// onFleet makes a fleet whose hosts have joined.
func onFleet(t *testing.T, hosts int) *fleet {
	f := newFleet(t, hosts)
	f.begin()
	f.joinAll()
	return f
}

func newFleet(t *testing.T, hosts int) *fleet {
	t.Helper()
	f := &fleet{t: t, work: t.TempDir(), hub: netbed.Namespace(t), hosts: map[string]*netbed.Node{},
		agents: map[string]*peltproc.Process{}}
	if err := os.Mkdir(f.file("temporary"), 0o755); err != nil {
		t.Fatal(err)
	}
	f.addSwitch(f.hub, "10.90.0.1/16")
	for i := range hosts {
		f.addHost(fmt.Sprint("h", i+1), f.hub, fmt.Sprintf("10.90.1.%d/16", i+1))
	}
	return f
}

// begin starts the hub, once all namespaces are there.
func (f *fleet) begin() {
	f.t.Helper()
	f.t.Cleanup(f.nothingLeft) // before the namespaces go, and when all processes have ended
	f.serve()
}

func (f *fleet) file(words ...string) string {
	return filepath.Join(append([]string{f.work}, words...)...)
}

// addSwitch makes a bridge to which addHost connects hosts.
func (f *fleet) addSwitch(n *netbed.Node, address string) {
	n.WithoutIPv6() // which sends by itself
	n.Bridge("switch")
	n.Give("switch", netip.MustParsePrefix(address))
}

// addHost makes a node whose eth0 is at a switch.
func (f *fleet) addHost(name string, at *netbed.Node, address string) {
	n := netbed.Namespace(f.t)
	n.Name = name
	n.WithoutIPv6()
	at.Plug("switch", name, n, "eth0")
	n.Give("eth0", netip.MustParsePrefix(address))
	f.hosts[name], f.names = n, append(f.names, name)
}

// on is where programs run in a node, with a data folder under a name.
func (f *fleet) on(n *netbed.Node, name string) peltproc.Host {
	return peltproc.Host{T: f.t, In: n, Dir: f.work, Data: f.file("data", name),
		Env: []string{"PELT_CODE=" + fleetCode, "TMPDIR=" + f.file("temporary")}}
}

// serve starts the hub, again if it was killed.
func (f *fleet) serve() {
	f.t.Helper()
	f.server = f.on(f.hub, "hub").Start("hub")
	f.server.Await("Ctrl-C ends the hub")
}

// joinAll has every host join, as h1, h2 and so on.
func (f *fleet) joinAll() {
	f.t.Helper()
	for _, name := range f.names {
		f.startJoin(name)
	}
	for _, name := range f.names {
		f.agents[name].Await("joined as " + name)
	}
}

func (f *fleet) startJoin(name string, flags ...string) {
	f.agents[name] = f.on(f.hosts[name], name).Start(append([]string{"join", "10.90.0.1", "--name", name}, flags...)...)
}

// control starts a test at the hub, with its document on the standard output. name is that of its data folder.
func (f *fleet) control(name, line string) *peltproc.Process {
	return f.on(f.hub, name).Start(append(strings.Fields(line), "--hub", "10.90.0.1")...)
}

// told reads the document of a test that has ended, which says why each of its trials has no figures.
func told(t *testing.T, p *peltproc.Process) (d model.Document) {
	t.Helper()
	if err := json.Unmarshal([]byte(p.Out.String()), &d); err != nil {
		t.Fatalf("%v wrote no document: %v\n%s", p.Cmd.Args, err, p.Err)
	}
	for _, r := range d.Results {
		if r.State != model.Valid && len(r.Why) == 0 {
			t.Errorf("%v is %s, and nothing says why", r.Cell, r.State)
		}
		for _, f := range r.Flows {
			if f.Attempted != f.Received+f.Lost || f.Ledger.Lost != f.Lost {
				t.Errorf("%v %s: attempted %d, received %d, lost %d, in the ledger %d", r.Cell, f.Name, f.Attempted,
					f.Received, f.Lost, f.Ledger.Lost)
			}
		}
	}
	return d
}

// pair is the name of a result's pair.
func pair(r model.Result) string { return r.Cell["pair"].Text }

// final are the last results of the pairs of a mesh: one that failed is tried again.
func final(d model.Document) map[string]model.Result {
	last := map[string]model.Result{}
	for _, r := range d.Results {
		last[pair(r)] = r
	}
	return last
}

// unmeasured lists the pairs of a mesh that were not measured, each with the reason.
func unmeasured(d model.Document) map[string]string {
	list := map[string]string{}
	for name, r := range final(d) {
		if r.Why.Has(model.PairUnmeasured) {
			list[name] = finding.Why(r.Why)
		}
	}
	return list
}

// whole finds out that a mesh has figures of both ways of each pair but those that are missing.
func (f *fleet) whole(d model.Document, missing map[string]string) {
	f.t.Helper()
	last := final(d)
	for i, a := range f.names {
		for _, b := range f.names[i+1:] {
			name := a + model.PairSeparator + b
			r, there := last[name]
			if !there { // a mesh of all hosts has them in the order of their letters
				r = last[b+model.PairSeparator+a]
			}
			_, expected := missing[name]
			if !expected && (r.Why.Has(model.PairUnmeasured) || len(r.Flows) != 2 || r.Flows[0].Received == 0 ||
				r.Flows[1].Received == 0) {
				f.t.Errorf("%s: %s (%s), %d flows", name, r.State, finding.Why(r.Why), len(r.Flows))
			}
		}
	}
}

// sending lists the hosts that send what a test orders, not only what controls it.
func (f *fleet) sending() (list []string) {
	f.t.Helper()
	const took, controls = 200 * time.Millisecond, 150 // packets a second
	from, since := map[string]uint64{}, map[string]time.Time{}
	for _, name := range f.names {
		from[name], since[name] = f.hosts[name].Sent(), time.Now()
	}
	time.Sleep(took)
	for _, name := range f.names {
		if float64(f.hosts[name].Sent()-from[name])/time.Since(since[name]).Seconds() > controls {
			list = append(list, name)
		}
	}
	return list
}

// untilSending waits until some hosts send, as a test orders.
func (f *fleet) untilSending(p *peltproc.Process, names ...string) {
	f.t.Helper()
	for {
		now := f.sending()
		if !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(now, name) }) {
			return
		}
		if p.HasEnded() {
			f.t.Fatalf("%v has ended, and %v never sent at a time:\n%s", p.Cmd.Args, names, p.Err)
		}
	}
}

// untilSilent waits until none of some hosts sends. 3 s is what pelt promises; 1 s is for the look at it, and a machine
// that stands still makes a look long.
func (f *fleet) untilSilent(names ...string) {
	f.t.Helper()
	began, longest := time.Now(), time.Duration(0)
	for {
		looked := time.Now()
		now := slices.DeleteFunc(f.sending(), func(name string) bool { return !slices.Contains(names, name) })
		longest = max(longest, time.Since(looked)-500*time.Millisecond)
		switch took := time.Since(began); {
		case len(now) == 0:
			f.t.Logf("silent after %v", took.Round(10*time.Millisecond))
			return
		case took > 4*time.Second+8*longest:
			f.t.Errorf("%v send for %v without a controller", now, took)
			return
		}
	}
}

// nothingLeft finds out that no namespace of the fleet has a process, no host a program at an interface, and that no
// file is left but what runs are stored in.
func (f *fleet) nothingLeft() {
	f.t.Helper()
	for _, pid := range f.hub.Processes() {
		f.t.Errorf("hub: process %d is left", pid)
	}
	for name, n := range f.hosts {
		for _, pid := range n.Processes() {
			f.t.Errorf("%s: process %d is left", name, pid)
		}
		n.Must(func() error {
			links, err := netlink.LinkList()
			for _, l := range links {
				if l.Attrs().Xdp != nil && l.Attrs().Xdp.Attached {
					f.t.Errorf("%s: %s has an XDP program", name, l.Attrs().Name)
				}
				qdiscs, err := netlink.QdiscList(l)
				if err != nil {
					return err
				}
				for _, q := range qdiscs {
					if q.Type() == "clsact" {
						f.t.Errorf("%s: %s has filters of traffic control", name, l.Attrs().Name)
					}
				}
			}
			return err
		})
	}
	for _, left := range files(f.t, f.file("temporary")) {
		f.t.Errorf("the file %s is left", left)
	}
}
