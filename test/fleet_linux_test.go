package test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	nats "github.com/nats-io/nats-server/v2/server"
	"github.com/vishvananda/netlink"

	"pelt/internal/netbed"
	"pelt/model"
	"pelt/test/servers"
)

// fleet is hosts and its hub, as namespaces without names:
//
//	hub 10.90.0.1 ── switch ──┬── 10.90.1.1 h1
//	                          ├── 10.90.1.2 h2
//	                          └── ...
type fleet struct {
	t       *testing.T
	work    string
	hub     *netbed.Node
	hosts   map[string]*netbed.Node
	names   []string            // of the hosts, in their order
	agents  map[string]*process // pelt join, by host
	servers []*process          // the hub, or the user's own in its place
	serve   func()              // starts them, again if they were killed
	join    []string            // where the hub is, for pelt join
	at      []string            // and for other commands
}

// process is a program in a namespace.
type process struct {
	name      string
	cmd       *exec.Cmd
	out, said *lockedBuffer
	ended     chan struct{}
	err       error // once it has ended
}

const fleetCode = "heron-58-umber-otter-17-slate"

// eachHub runs a test with a hub of pelt, and with servers of a user's own.
func eachHub(t *testing.T, hosts int, test func(f *fleet)) {
	for _, kind := range []string{"hub", "cluster"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, kind, hosts)
			f.begin()
			f.joinAll()
			test(f)
		})
	}
}

func newFleet(t *testing.T, kind string, hosts int) *fleet {
	t.Helper()
	f := &fleet{t: t, work: t.TempDir(), hub: netbed.Namespace(t), hosts: map[string]*netbed.Node{}, agents: map[string]*process{}}
	if err := os.Mkdir(f.file("temporary"), 0o755); err != nil {
		t.Fatal(err)
	}
	f.addSwitch(f.hub, "10.90.0.1/16")
	for i := range hosts {
		f.addHost(fmt.Sprint("h", i+1), f.hub, fmt.Sprintf("10.90.1.%d/16", i+1))
	}
	if f.serve = f.startHub; kind == "cluster" {
		f.ownServers()
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
	f.t.Helper()
	f.quiet(n)
	n.Must(func() error { return netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "switch"}}) })
	f.address(n, "switch", address)
}

// addHost makes a namespace whose eth0 is at a switch.
func (f *fleet) addHost(name string, at *netbed.Node, address string) {
	f.t.Helper()
	n := netbed.Namespace(f.t)
	f.quiet(n)
	at.Link("switch", func(l netlink.Link) error {
		port := netlink.NewLinkAttrs()
		port.Name, port.MasterIndex = name, l.Attrs().Index
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: port, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(n.File().Fd()))})
	})
	f.address(n, "eth0", address)
	at.Link(name, netlink.LinkSetUp)
	f.hosts[name], f.names = n, append(f.names, name)
}

// quiet switches off IPv6, which sends by itself.
func (f *fleet) quiet(n *netbed.Node) {
	n.Sysctl("net/ipv6/conf/default/disable_ipv6", "1")
	n.Sysctl("net/ipv6/conf/all/disable_ipv6", "1")
}

func (f *fleet) address(n *netbed.Node, link, address string) {
	f.t.Helper()
	n.Link(link, func(l netlink.Link) error {
		p := netip.MustParsePrefix(address)
		a := &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 32)}
		if err := netlink.AddrAdd(l, &netlink.Addr{IPNet: a}); err != nil {
			return fmt.Errorf("address %s: %w", address, err)
		}
		return netlink.LinkSetUp(l)
	})
}

// start starts pelt in a namespace, with a data folder of its own under a name.
func (f *fleet) start(n *netbed.Node, name string, args ...string) *process {
	f.t.Helper()
	return f.launch(n, name, exec.Command(binary, args...))
}

// launch starts a program in a namespace. It ends with the test.
func (f *fleet) launch(n *netbed.Node, name string, c *exec.Cmd, environment ...string) *process {
	f.t.Helper()
	p := &process{name: name, cmd: c, out: &lockedBuffer{}, said: &lockedBuffer{}, ended: make(chan struct{})}
	c.Dir, c.Stdout, c.Stderr = f.work, p.out, p.said
	c.Env = append(os.Environ(), "PELT_DATA="+f.file("data", name), "PELT_CODE="+fleetCode, "TMPDIR="+f.file("temporary"),
		binaryEnv+"="+binary)
	c.Env = append(c.Env, environment...)
	n.Must(c.Start) // a child is born where its parent's thread is
	go func() {
		defer close(p.ended)
		p.err = c.Wait()
	}()
	f.t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-p.ended:
		case <-time.After(15 * time.Second):
			p.kill()
			f.t.Errorf("%s went on for 15 s after SIGTERM:\n%s", name, p.said)
		}
	})
	return p
}

// kill ends a process at once, as kill -9 does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// wait waits until a process ends by itself, and returns its exit code.
func (p *process) wait(t *testing.T, limit time.Duration) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(limit):
		p.kill()
		t.Fatalf("%s had not ended after %v:\n%s", p.name, limit, p.said)
	}
	return exitCode(p.err)
}

func (f *fleet) startHub() {
	f.t.Helper()
	p := f.start(f.hub, "hub", "hub")
	waitText(f.t, p.out, "Ctrl-C ends the hub")
	f.servers, f.join, f.at = []*process{p}, []string{"10.90.0.1"}, []string{"--hub", "10.90.0.1"}
}

// serverEnv has the test program be one of the servers of a cluster.
const serverEnv = "PELT_TEST_SERVER"

type ownServer struct {
	Account servers.Account
	Number  int
}

// ownServers prepares three servers in the hub's place.
func (f *fleet) ownServers() {
	f.t.Helper()
	account := servers.NewAccount(f.t, f.file("user.creds"))
	f.at = []string{"--nats", "nats://10.90.0.1:4222,nats://10.90.0.1:4223,nats://10.90.0.1:4224", "--creds", f.file("user.creds")}
	f.join = f.at
	f.serve = func() {
		f.t.Helper()
		self, err := os.Executable()
		if err != nil {
			f.t.Fatal(err)
		}
		f.servers = nil
		for i := range 3 {
			text, err := json.Marshal(ownServer{account, i})
			if err != nil {
				f.t.Fatal(err)
			}
			c := exec.Command(self, "-test.run", "^TestServerOfCluster$")
			f.servers = append(f.servers, f.launch(f.hub, fmt.Sprint("server-", i), c, serverEnv+"="+string(text)))
		}
		for _, p := range f.servers {
			waitText(f.t, p.out, "ready")
		}
	}
}

// TestServerOfCluster is a server's process, started by ownServers alone.
func TestServerOfCluster(t *testing.T) {
	text := os.Getenv(serverEnv)
	if text == "" {
		return
	}
	var own ownServer
	if err := json.Unmarshal([]byte(text), &own); err != nil {
		t.Fatal(err)
	}
	const firstPort, firstRoute = 4222, 6222
	o, err := own.Account.Options(own.Number, "10.90.0.1", firstPort+own.Number, firstRoute+own.Number)
	if err != nil {
		t.Fatal(err)
	}
	for i := range own.Number {
		o.Routes = append(o.Routes, nats.RoutesFromStr(fmt.Sprintf("nats://10.90.0.1:%d", firstRoute+i))...)
	}
	s, err := nats.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	for s.NumRoutes() < 2*servers.RoutesToEach || !s.ReadyForConnections(time.Second) {
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println("ready")
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	<-ended
	s.Shutdown()
}

// joinAll has every host join, as h1, h2 and so on.
func (f *fleet) joinAll() {
	f.t.Helper()
	for _, name := range f.names {
		f.startJoin(name)
	}
	for _, name := range f.names {
		waitText(f.t, f.agents[name].out, "joined as "+name)
	}
}

func (f *fleet) startJoin(name string, flags ...string) *process {
	f.t.Helper()
	args := slices.Concat([]string{"join"}, f.join, []string{"--name", name}, flags)
	f.agents[name] = f.start(f.hosts[name], name, args...)
	return f.agents[name]
}

// control starts a test at the hub, with its document on the standard output. name is that of its data folder.
func (f *fleet) control(name, line string) *process {
	f.t.Helper()
	return f.start(f.hub, name, slices.Concat(strings.Fields(line), f.at)...)
}

// told is the document of a test that has ended, which says why each of its trials has no figures.
func (p *process) told(t *testing.T) (d model.Document) {
	t.Helper()
	if err := json.Unmarshal([]byte(p.out.String()), &d); err != nil {
		t.Fatalf("%s wrote no document: %v\n%s", p.name, err, p.said)
	}
	for _, r := range d.Results {
		if r.State != model.Valid && len(r.Why) == 0 {
			t.Errorf("%v is %s, and nothing says why", r.Cell, r.State)
		}
		for _, f := range r.Flows {
			if f.Attempted != f.Received+f.Lost || f.Ledger.Lost != f.Lost {
				t.Errorf("%v %s: attempted %d, received %d, lost %d, in the ledger %d", r.Cell, f.Name, f.Attempted, f.Received, f.Lost, f.Ledger.Lost)
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
			list[name] = r.Why.String()
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
			if !expected && (r.Why.Has(model.PairUnmeasured) || len(r.Flows) != 2 || r.Flows[0].Received == 0 || r.Flows[1].Received == 0) {
				f.t.Errorf("%s: %s (%s), %d flows", name, r.State, r.Why, len(r.Flows))
			}
		}
	}
}

// sent is how many packets a host has sent.
func (f *fleet) sent(name string) (packets uint64) {
	f.t.Helper()
	f.hosts[name].Link("eth0", func(l netlink.Link) error {
		packets = l.Attrs().Statistics.TxPackets
		return nil
	})
	return packets
}

// sending lists the hosts that send what a test orders, not only what controls it.
func (f *fleet) sending() (list []string) {
	f.t.Helper()
	const took, controls = 200 * time.Millisecond, 150 // packets a second
	from := map[string]uint64{}
	for _, name := range f.names {
		from[name] = f.sent(name)
	}
	time.Sleep(took)
	for _, name := range f.names {
		if float64(f.sent(name)-from[name])/took.Seconds() > controls {
			list = append(list, name)
		}
	}
	return list
}

// untilSending waits until some hosts send, as a test orders.
func (f *fleet) untilSending(p *process, names ...string) {
	f.t.Helper()
	for {
		now := f.sending()
		if !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(now, name) }) {
			return
		}
		select {
		case <-p.ended:
			f.t.Fatalf("%s has ended, and %v never sent at a time:\n%s", p.name, names, p.said)
		default:
		}
	}
}

// untilSilent waits until none of some hosts sends. 3 s is what pelt promises; 1 s is for the look at it.
func (f *fleet) untilSilent(names ...string) {
	f.t.Helper()
	began := time.Now()
	for {
		now := slices.DeleteFunc(f.sending(), func(name string) bool { return !slices.Contains(names, name) })
		switch took := time.Since(began); {
		case len(now) == 0:
			f.t.Logf("silent after %v", took.Round(10*time.Millisecond))
			return
		case took > 4*time.Second:
			f.t.Errorf("%v send for %v without a controller", now, took)
			return
		}
	}
}

// nothingLeft finds out that no namespace of the fleet has a process, no host a program at an interface, and that no file
// is left but what runs are stored in.
func (f *fleet) nothingLeft() {
	f.t.Helper()
	for _, pid := range processesIn(f.hub) {
		f.t.Errorf("hub: process %s is left", pid)
	}
	for name, n := range f.hosts {
		for _, pid := range processesIn(n) {
			f.t.Errorf("%s: process %s is left", name, pid)
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

func processesIn(n *netbed.Node) (pids []string) {
	inode := fmt.Sprintf("net:[%d]", n.ID())
	paths, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	for _, path := range paths {
		if to, err := os.Readlink(path); err == nil && to == inode {
			pids = append(pids, strings.Split(path, "/")[2])
		}
	}
	return pids
}
