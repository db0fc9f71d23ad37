package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"pelt/internal/testenv"
)

func setRouter(t *testing.T, l *Lab, words string) {
	t.Helper()
	must(t, l.SetRouter(words))
}

func accountOf(t *testing.T, l *Lab) RouterAccount {
	t.Helper()
	a, err := l.RouterAccount()
	must(t, err)
	return a
}

// ruleset is a node's, as nft prints it, without the counters' values.
func ruleset(t *testing.T, n *Node) string {
	t.Helper()
	var text []byte
	if err := n.Do(func() (err error) {
		text, err = exec.Command("nft", "--stateless", "list", "ruleset").CombinedOutput()
		return err
	}); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return string(text)
}

// sender -- switch or router -- receiver, whatever that was made to be: packets
// pass both ways, what was asked is there, and gone again.
func TestSetRouter(t *testing.T) {
	testenv.Tool(t, "nft")
	for _, topology := range []string{"switch", "router", "nat", "fast"} {
		t.Run(topology, func(t *testing.T) {
			l := openLab(t, topology)
			sender, receiver := node(t, l, "sender"), node(t, l, "receiver")
			middle, ok := l.Router()
			if !ok || middle != l.Nodes()[1] {
				t.Fatalf("the router is %v, %v", middle, ok)
			}
			words := []string{"rules=250", "log", "rules=3+log", "", "log+rules=1", "plain"}
			if topology == "fast" {
				words = append([]string{"plain", "fast", "rules=250"},
					append(words, "rules=2+log+fast", "log", "fast")...)
			}
			plain := ruleset(t, middle)
			for _, w := range words {
				began := time.Now()
				setRouter(t, l, w)
				took := time.Since(began)
				c, err := l.spec.parseRouter(w)
				must(t, err)
				rules := ruleset(t, middle)
				logs := strings.Count(rules, "log group 7 snaplen 96 queue-threshold 1")
				if n := strings.Count(rules, `iifname "none-`); n != c.rules || (logs == 1) != c.log ||
					(rules == plain) != (c.rules == 0 && !c.log) {
					t.Errorf("%q: %d rules, %d log:\n%s", w, n, logs, rules)
				}
				for _, family := range []int{4, 6} {
					exchange(t, sender, receiver, family)
				}
				a := accountOf(t, l)
				least := uint64(4)
				if c.fast { // there and back of each family, and the answers go past the rules
					least = 2
				}
				if a.Setup != c.String() || c.log != (a.Logged >= least) || !c.log && a.Logged > 0 {
					t.Errorf("%q: %+v", w, a)
				}
				t.Logf("%q took %v", w, took)
			}
			if err := l.SetRouter("rules=x"); err == nil || accountOf(t, l).Setup != words[len(words)-1] {
				t.Errorf("nonsense: %v, and then %s", err, accountOf(t, l).Setup)
			}
		})
	}
	for _, topology := range []string{"direct", "star:2"} {
		l := openLab(t, topology)
		if n, ok := l.Router(); ok || !refused(l.SetRouter("log"), "") {
			t.Errorf("%s has the router %v", topology, n)
		}
	}
}

// A lab of another process is not this one's to change.
func TestSetHeldRouter(t *testing.T) {
	hold(t, "setups", "nat")
	l, err := Attach("setups")
	must(t, err)
	defer l.Close()
	if err := l.SetRouter("log"); !refused(err, "pelt lab up keeps that lab") {
		t.Error(err)
	}
	if n, ok := l.Router(); !ok || n.Name() != "router" || n.TakesFrames() {
		t.Errorf("its router is %v, %v", n, ok)
	}
}

// converse sends numbered datagrams one by one and receives each before the next.
func converse(t *testing.T, in, out *net.UDPConn, count int) {
	t.Helper()
	buf := make([]byte, 64)
	for i := range count {
		text := fmt.Appendf(nil, "number %d", i)
		if _, err := out.Write(text); err != nil {
			t.Fatal(err)
		}
		must(t, in.SetReadDeadline(time.Now().Add(testenv.Patience)))
		n, peer, err := in.ReadFromUDPAddrPort(buf)
		if err != nil || !bytes.Equal(buf[:n], text) {
			t.Fatalf("%q, %v; want %q", buf[:n], err, text)
		}
		if _, err := in.WriteToUDPAddrPort(text, peer); err != nil {
			t.Fatal(err)
		}
		must(t, out.SetReadDeadline(time.Now().Add(testenv.Patience)))
		if n, err := out.Read(buf); err != nil || !bytes.Equal(buf[:n], text) {
			t.Fatalf("back: %q, %v; want %q", buf[:n], err, text)
		}
	}
}

// written waits until the router's daemon has done with what was logged.
func written(t *testing.T, l *Lab) (a RouterAccount) {
	t.Helper()
	testenv.Await(t, "lines that add up", func() bool { a = accountOf(t, l); return a.Lines+a.Missed == a.Logged })
	return a
}

// Each packet that is forwarded is a line, both ways.
func TestRouterLogs(t *testing.T) {
	for _, topology := range []string{"nat", "switch"} {
		t.Run(topology, func(t *testing.T) {
			l := openLab(t, topology)
			sender, receiver := node(t, l, "sender"), node(t, l, "receiver")
			for _, family := range []int{4, 6} {
				setRouter(t, l, "plain")
				setRouter(t, l, "log")
				const count = 150 // whose lines are all kept
				in := listen(t, receiver, receiver.Addr(family))
				converse(t, in, dial(t, sender, local(in)), count)
				others := uint64(0)
				if topology == "switch" {
					others = 20 // IPv6 multicast reports of the ends
				}
				if a := written(t, l); a.Missed != 0 || a.Logged < 2*count || a.Logged > 2*count+others {
					t.Errorf("%+v; %d packets were sent", a, 2*count)
				}
				log := l.router.log
				setRouter(t, l, "plain")
				text := string(log.Kept())
				for _, way := range [][2]string{{"IN=to-sender OUT=to-receiver", sender.Addr(family).String()},
					{"IN=to-receiver OUT=to-sender", receiver.Addr(family).String()}} {
					want := fmt.Sprintf("%s SRC=%s DST=", way[0], way[1])
					if n := strings.Count(text, want); n != count {
						t.Errorf("%d lines have %q, want %d; they begin\n%.400s", n, want, count, text)
					}
				}
			}
		})
	}
}

// A flood may be more than the daemon can take: then it says how many it missed.
func TestRouterLogAddsUp(t *testing.T) {
	l := openLab(t, "router")
	setRouter(t, l, "log")
	before := backlogDrops(t)
	f := floodFor(t, node(t, l, "sender"), node(t, l, "receiver"), 4, 64, 200*time.Millisecond)
	most := uint64(f.sent)
	var a RouterAccount
	// The daemon learns from the next packet what it missed, and may miss that one too.
	for began := time.Now(); (a.Logged == 0 || a.Lines+a.Missed != a.Logged) && time.Since(began) < testenv.Patience; {
		exchange(t, node(t, l, "sender"), node(t, l, "receiver"), 4)
		most += 2
		time.Sleep(50 * time.Millisecond) // let it write
		a = accountOf(t, l)
	}
	if a.Lines+a.Missed != a.Logged {
		t.Errorf("lines do not add up: %+v", a)
	}
	t.Logf("%d sent: %+v", f.sent, a)
	// A full backlog of a busy machine drops packets before the router logs them, and counts them.
	dropped := backlogDrops(t) - before
	if a.Logged > most || a.Logged+dropped < most || a.Lines == 0 {
		t.Errorf("%+v; %d packets were sent, and %d dropped by this machine's backlogs", a, most, dropped)
	}
}

// backlogDrops are the packets that all backlogs of this machine dropped so far.
func backlogDrops(t *testing.T) (sum uint64) {
	t.Helper()
	text, err := os.ReadFile("/proc/net/softnet_stat")
	must(t, err)
	for line := range strings.Lines(string(text)) {
		n, err := strconv.ParseUint(strings.Fields(line)[1], 16, 64)
		must(t, err)
		sum += n
	}
	return sum
}

// fastCounts are how many frames were carried, and were not known.
func fastCounts(t *testing.T, l *Lab) (carried, unknown uint64) {
	t.Helper()
	for _, c := range accountOf(t, l).Fast {
		switch c.Reason {
		case "carried":
			carried = c.Frames
		case "unknown":
			unknown = c.Frames
		}
	}
	return carried, unknown
}

// sender -- [router -- receiver: the first packet of a flow goes through the
// kernel, the others past it, and the receiver sees no difference.
func TestFastPathCarries(t *testing.T) {
	l := openLab(t, "fast")
	sender, receiver := node(t, l, "sender"), node(t, l, "receiver")
	router, _ := l.Router()
	if !router.TakesFrames() || sender.TakesFrames() {
		t.Error("who takes frames?")
	}
	for _, family := range []int{4, 6} {
		in := listen(t, receiver, receiver.Addr(family))
		// In both directions, and not at all once it is turned off.
		for _, words := range []string{"fast", "plain", "log+fast"} {
			setRouter(t, l, words)
			carried, unknown := fastCounts(t, l)
			converse(t, in, dial(t, sender, local(in)), 50)
			now, unknownNow := fastCounts(t, l)
			want := [2]uint64{2*50 - 1, 1} // the first one makes the flow known
			if words == "plain" {
				want = [2]uint64{}
			}
			if got := [2]uint64{now - carried, unknownNow - unknown}; got != want {
				t.Errorf("IPv%d, %s: of 100 packets %v were carried and unknown, want %v", family, words, got, want)
			}
		}
	}
}

func TestThreadTime(t *testing.T) {
	l := openLab(t, "fast")
	router, _ := l.Router()
	if _, err := router.ThreadTime("to-sender"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a thread of its own: %v", err)
	}
	must(t, router.OwnThread("to-sender", 0))
	before, err := router.ThreadTime("to-sender")
	must(t, err)
	floodFor(t, node(t, l, "sender"), node(t, l, "receiver"), 4, 64, 200*time.Millisecond)
	after, err := router.ThreadTime("to-sender")
	if took := after - before; err != nil || took < time.Millisecond || took > testenv.Patience {
		t.Errorf("%v on a processor for a flood of 200 ms, %v", took, err)
	}
	if _, err := router.ThreadTime("none"); err == nil || !strings.Contains(err.Error(), "none of router") {
		t.Errorf("an interface that is not there: %v", err)
	}
}

// A command runs in the router's node alone, and sees the node's devices. What it says comes back, also when it fails.
func TestShell(t *testing.T) {
	testenv.Tool(t, "sh", "ls", "ip")
	l := openLab(t, "router")
	router, _ := l.Router()
	said, err := router.Shell(t.Context(), "ls /sys/class/net && ip link set to-receiver mtu 1300")
	if err != nil || string(said) != "lo\nto-receiver\nto-sender\n" {
		t.Errorf("%q, %v", said, err)
	}
	must(t, router.Do(func() error {
		link, err := net.InterfaceByName("to-receiver")
		if err == nil && link.MTU != 1300 {
			t.Errorf("the router's interface has an MTU of %d", link.MTU)
		}
		return err
	}))
	if said, err := router.Shell(t.Context(), "echo so; exit 3"); err == nil || string(said) != "so\n" {
		t.Errorf("%q, %v", said, err)
	}
}
