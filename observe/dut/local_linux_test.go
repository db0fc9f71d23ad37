package dut

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"

	"pelt/internal/netbed"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/observe/counters"
)

// holder makes this program hold a local shell until it is killed.
const holder = "PELT_DUT_HOLDS"

func TestMain(m *testing.M) {
	if os.Getenv(holder) == "" {
		os.Exit(m.Run())
	}
	s, err := Local(testenv.Here)(context.Background())
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	// The shell sleeps with its input open elsewhere, so only the kernel ends it.
	_, _ = io.WriteString(s.In, "exec 3<&0; echo $$; exec sleep 1000\n")
	line, _ := bufio.NewReader(s.Out).ReadString('\n')
	fmt.Print(line)
	time.Sleep(time.Hour) // without cgo, select {} alone is a deadlock to the runtime
}

// shells are those that the loop must run in; sh is Debian's dash.
var shells = [][]string{{"sh"}, {"busybox", "ash"}, {"bash"}}

func TestLocalRouter(t *testing.T) {
	testenv.Tool(t, "nft")
	ns := netbed.Namespace(t)
	inode, err := counters.Namespace(ns.Do)
	testenv.Must(t, err)
	ns.Rule(nftables.ChainHookForward, &expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop})
	for _, shell := range shells {
		t.Run(strings.Join(shell, " "), func(t *testing.T) {
			testenv.Tool(t, shell[0])
			start := local(ns.Do, true, shell[0], shell[1:]...)
			r := &Router{node: "router", source: "the lab", start: start, period: 50 * time.Millisecond}
			testenv.Must(t, r.open(context.Background()))
			w := r.Begin()
			moment := func(m model.Moment) { // until it is answered in time, also by a busy host
				testenv.Await(t, string(m), func() bool {
					w.Snapshot(m)
					r.mu.Lock()
					defer r.mu.Unlock()
					return w.missed[m].Code == ""
				})
			}
			moment(model.MomentStart)
			w.Snapshot(model.MomentMeasure) // which is not waited for
			for seen := 0; seen < 5; {      // an event: five samples more
				time.Sleep(5 * time.Millisecond)
				r.mu.Lock()
				seen = len(w.readings)
				r.mu.Unlock()
			}
			moment(model.MomentEnd)
			o := w.Report()
			o.Unread = slices.DeleteFunc(o.Unread, func(r model.Reason) bool {
				return r.Name == string(model.MomentMeasure) || r.Code == model.WarmupCounted
			})
			if c := counter(o, "Ip.ForwDatagrams"); o.Namespace != inode || o.Boot == "" || len(o.Unread) > 0 ||
				len(r.machine.hardware) > 0 || c.Name == "" || c.Whole != 0 {
				t.Errorf("%+v", o)
			}
			if c := counter(o, "nft.inet.fault.hook2.forward.2.packets"); c.Name == "" || c.Reset {
				t.Errorf("no counter of the firewall's rule: %+v", o.Counters)
			}
			if err := errors.Join(w.Close(), r.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestBusyRouterIsAskedLess: while packets pass, counters of a sum that was read before are not asked for, for what came
// meanwhile would make the rest of the sum go back.
func TestBusyRouterIsAskedLess(t *testing.T) {
	for _, m := range []model.Moment{model.MomentStart, model.MomentMeasure, model.MomentEnd} {
		out, err := exec.Command("sh", "-c", marker("@@m").setup()+askMoment+" "+string(m)+" 2>/dev/null").Output()
		if told := strings.Contains(string(out), "/statistics/rx_over_errors:"); told != (m != model.MomentMeasure) {
			t.Errorf("%s: rx_over_errors told: %v (%v)", m, told, err)
		}
	}
}

// What a router forgets of a silent next hop after the last packet is still told.
func TestSilentNextHopIsRemembered(t *testing.T) {
	testenv.Tool(t, "ip")
	all := netbed.Chain(t, "sender", "router", "receiver")
	at, to := all[1], all[2].IP(false)
	r, err := Open(t.Context(), "router", "the lab", Local(at.Do))
	testenv.Must(t, err)
	w := r.Begin()
	back := all[0].IP(false)
	for flow, to := range map[string]netip.Addr{"up": to, "down": back} {
		w.Toward(flow, to)
	}
	// A kernel with many neighbours sweeps those that failed at any moment, and a busy host answers late.
	testenv.Await(t, "a silent next hop", func() bool {
		at.Neigh(netlink.NeighSet, "to-receiver", netlink.Neigh{IP: to.AsSlice(), State: netlink.NUD_FAILED})
		w.Halt(t.Context())
		r.mu.Lock()
		defer r.mu.Unlock()
		return w.halted[to].NoAnswer
	})
	at.Neigh(netlink.NeighDel, "to-receiver", netlink.Neigh{IP: to.AsSlice()})
	w.Snapshot(model.MomentEnd)
	routes := w.Report().Routes
	want := []model.Route{{Flow: "up", Kind: model.RouteUsable, Interface: "to-receiver", MTU: 1500, NoAnswer: true},
		{Flow: "down", Kind: model.RouteUsable, Interface: "to-sender", MTU: 1500}}
	if routes[0].Flow != "up" {
		slices.Reverse(routes)
	}
	if !slices.Equal(routes, want) {
		t.Errorf("got %+v, want %+v", routes, want)
	}
	if err := errors.Join(w.Close(), r.Close()); err != nil {
		t.Error(err)
	}
}

// kill -9 leaves no shell, whatever holds its input.
func TestLocalShellDiesWithTheProcess(t *testing.T) {
	testenv.Tool(t, "sh", "sleep")
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), holder+"=1")
	out, err := cmd.StdoutPipe()
	testenv.Must(t, err)
	testenv.Must(t, cmd.Start())
	pid := 0
	if _, err := fmt.Fscan(out, &pid); err != nil || pid < 2 {
		t.Fatalf("pid %d, %v", pid, err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("the shell is not there: %v", err)
	}
	testenv.Must(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed
	for deadline := time.Now().Add(testenv.Patience); ; time.Sleep(5 * time.Millisecond) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(b), ") Z ") { // whoever adopts it may be slow to take it away
			return
		}
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("the shell outlived the program")
		}
	}
}

// A shell that ignores the end of its input is killed.
func TestCloseDoesNotHang(t *testing.T) {
	testenv.Tool(t, "sh", "sleep")
	s, err := Local(testenv.Here)(context.Background())
	testenv.Must(t, err)
	if _, err := io.WriteString(s.In, "echo ready; exec sleep 1000\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(s.Out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	begun := time.Now()
	if err := s.Close(); err != nil || time.Since(begun) > testenv.Patience {
		t.Errorf("after %v: %v", time.Since(begun), err)
	}
	if got := s.Status(); got != "signal: killed" {
		t.Errorf("it ended with %s", got)
	}
	if _, err := Local(func(func() error) error { return errors.New("no such node") })(context.Background()); err == nil {
		t.Error("a node that cannot be entered has a shell")
	}
}
