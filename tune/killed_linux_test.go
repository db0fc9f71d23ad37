package tune

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pelt/internal/nic"
	"pelt/internal/testenv"
	"pelt/words"
)

// What a test run does when it is started again by this one.
const (
	worldEnv  = "PELT_TUNE_WORLD"  // it has namespaces of its own
	workerEnv = "PELT_TUNE_WORKER" // it applies and reverts on this tree, until it is killed
)

// kills is how often the worker is killed.
const kills = 50

// TestKilledAtAnyMoment kills a process that applies, applies again and reverts, with
// kill -9 at random moments of its life, and reverts what it left.
//
//	v0 ---- v1
//
// The interfaces, their drivers, sysfs and the sysctls of a namespace are the kernel's
// own, in namespaces that end with the test. What holds for the whole host is in plain
// files. All of /proc/sys/net, what drivers tell and all of the interfaces' sysfs
// settings are compared.
func TestKilledAtAnyMoment(t *testing.T) {
	if os.Getenv(workerEnv) != "" {
		work(t, os.Getenv(workerEnv))
		return
	}
	inWorld(t, killOften)
}

// inWorld runs a test again in namespaces of its own, and f there.
func inWorld(t *testing.T, f func(*testing.T)) {
	t.Helper()
	if os.Getenv(worldEnv) != "" {
		f(t)
		return
	}
	testenv.Root(t)
	c := again(t, worldEnv+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:   syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		Unshareflags: syscall.CLONE_NEWNS, // makes mounts private
		Pdeathsig:    syscall.SIGKILL,
	}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// What somebody else gave a queue stays when the number of queues is taken back, and is told, unless --force is given;
// a queue that went with the change has its setting again.
func TestSomebodyElsesQueue(t *testing.T) {
	inWorld(t, func(t *testing.T) {
		root := newWorld(t)
		first, second := Place{atSysfs, "class/net/v0/queues/rx-0/rps_cpus"}, Place{atSysfs,
			"class/net/v0/queues/rx-1/rps_cpus"}
		u := openWorld(t, root)
		defer u.Close()
		must := func(err error) {
			t.Helper()
			testenv.Must(t, err)
		}
		apply := func(text string) {
			t.Helper()
			_, err := u.Apply(changes(t, text), "")
			must(err)
		}
		stands := func(when string, p Place, want string) {
			t.Helper()
			if now, err := u.host.read(p); err != nil || !p.same(now, want) {
				t.Errorf("%s: %s is %q, want %s, %v", when, p, now, want, err)
			}
		}
		if _, err := u.Apply(changes(t, "v0.channels_rx=1", "v0.txqueuelen=99999999999"), ""); err == nil {
			t.Error("a queue of 1e11 packets is taken")
		}
		stands("after a change that failed", second, "1")
		apply("v0.channels_rx=1")
		apply("v0.channels_rx=2")
		stands("with both queues again", second, "1")
		_, err := u.Revert(false)
		must(err)
		for force, want := range map[bool]string{false: "1", true: "0"} {
			must(u.host.write(first, "0"))
			apply("v0.channels_rx=1")
			must(u.host.write(first, "1"))
			done, err := u.Revert(force)
			if err != nil || len(done) != 1 ||
				slices.ContainsFunc(done[0].Others, func(o Other) bool { return o.Place == "/sys/"+first.At }) == force {
				t.Errorf("force %v: %+v, %v", force, done, err)
			}
			stands(fmt.Sprint("force ", force), first, want)
			stands(fmt.Sprint("force ", force), second, "1")
		}
	})
}

func again(t *testing.T, env string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	testenv.Must(t, err)
	c := exec.Command(self, "-test.run", "^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), env)
	return c
}

// killOften is the test, in namespaces of its own.
func killOften(t *testing.T) {
	root := newWorld(t)
	before := whole(t, root)
	moments := workerMoments(t, root)
	same(t, root, before, "after a whole life of the worker")
	alive := 0
	for i := range kills {
		// A moment that the worker tells of, and a little later.
		nth, later := rand.IntN(moments), time.Duration(rand.IntN(300))*time.Microsecond
		c, told, next := startWorker(t, root, true)
		for range nth + 1 {
			<-told
			if _, err := next.Write([]byte{1}); err != nil {
				t.Fatalf("the worker did not come to moment %d: %v", nth, err)
			}
		}
		for from := time.Now(); time.Since(from) < later; {
		}
		if err := c.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		for range told {
		}
		if err := c.Wait(); err != nil {
			alive++
		}
		at := fmt.Sprintf("kill %d, %v after moment %d of %d", i, later, nth, moments)
		u := openWorld(t, root)
		done, err := u.Revert(false)
		if err != nil && !errors.Is(err, ErrNothing) {
			t.Fatalf("%s: revert: %v", at, err)
		}
		for _, d := range done {
			if d.State == Kept || d.State == Gone {
				t.Errorf("%s: %s", at, d.In(words.English))
			}
		}
		testenv.Must(t, u.Close())
		same(t, root, before, at)
		if t.Failed() {
			return
		}
	}
	if alive < kills/2 {
		t.Errorf("only %d of %d kills met the worker alive", alive, kills)
	}
	t.Logf("%d of %d kills met the worker alive; %d values compared", alive, kills, len(before))
}

// newWorld makes the interfaces, and a tree in which what is the namespace's is the
// kernel's own.
func newWorld(t *testing.T) string {
	t.Helper()
	must := func(err error) {
		t.Helper()
		testenv.Must(t, err)
	}
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.NumRxQueues, attributes.NumTxQueues = "v0", 2, 2
	must(netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: "v1"}))
	for _, name := range []string{"v0", "v1"} {
		l, err := netlink.LinkByName(name)
		must(err)
		must(netlink.LinkSetUp(l))
	}
	root := newDir(t)
	sysfs := filepath.Join(root, "sys")
	core := filepath.Join(root, "proc/sys/net/core")
	for _, dir := range []string{sysfs, core} {
		must(os.MkdirAll(dir, 0o755))
	}
	must(unix.Mount("sysfs", sysfs, "sysfs", 0, ""))
	t.Cleanup(func() {
		if err := unix.Unmount(sysfs, 0); err != nil {
			t.Error(err)
		}
	})
	must(os.Symlink("/proc/sys/net/ipv4", filepath.Join(root, "proc/sys/net/ipv4")))
	for name, text := range map[string]string{"rmem_max": "212992\n", "netdev_max_backlog": "1000\n"} {
		must(os.WriteFile(filepath.Join(core, name), []byte(text), 0o644))
	}
	must(os.WriteFile(filepath.Join(sysfs, "class/net/v0/queues/rx-1/rps_cpus"), []byte("1"), 0))
	return root
}

func openWorld(t *testing.T, root string) *Tuner {
	t.Helper()
	u := newTuner(root)
	testenv.Must(t, u.take())
	return u
}

// work is the worker's life.
func work(t *testing.T, root string) {
	u := openWorld(t, root)
	u.host.onWrite = func(Place, bool) error {
		fmt.Println(moment)
		_, _ = os.Stdin.Read(make([]byte, 1)) // one that nobody leads goes on
		return nil
	}
	for _, list := range [][]string{
		{"net.core.rmem_max=4194304", "net.core.netdev_max_backlog=5000", "net.ipv4.conf.v0.rp_filter=2",
			"net.ipv4.neigh.v0.unres_qlen_bytes=400000", "v0.txqueuelen=5000"},
		{"net.core.rmem_max=8388608", "v0.channels_rx=1", "net.ipv4.conf.v0.rp_filter=1"},
	} {
		if _, err := u.Apply(changes(t, list...), ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := u.Revert(false); err != nil {
		t.Fatal(err)
	}
}

// moment is what the worker says before and after each write.
const moment = "a moment"

// startWorker starts one; the channel has a value for each moment that it tells of, and is
// closed at its end. One that is led waits at each moment for a byte, so that it is still
// at it, or on its way to the next, whenever this process comes to run.
func startWorker(t *testing.T, root string, led bool) (c *exec.Cmd, told chan bool, next io.Writer) {
	t.Helper()
	c = again(t, workerEnv+"="+root)
	out, err := c.StdoutPipe()
	if led && err == nil {
		next, err = c.StdinPipe()
	}
	if err == nil {
		err = c.Start()
	}
	testenv.Must(t, err)
	told = make(chan bool, 1000)
	lines := bufio.NewScanner(out)
	go func() {
		defer close(told)
		for lines.Scan() {
			if strings.HasSuffix(lines.Text(), moment) {
				told <- true
			}
		}
	}()
	return c, told, next
}

// workerMoments lets a worker live to its end, and counts.
func workerMoments(t *testing.T, root string) (n int) {
	t.Helper()
	c, told, _ := startWorker(t, root, false)
	for range told {
		n++
	}
	if err := c.Wait(); err != nil {
		out, _ := again(t, workerEnv+"="+root).CombinedOutput() // only for what it says
		t.Fatalf("the worker failed: %v\n%s", err, out)
	}
	return n
}

// whole is every setting: the tree's plain files, all of the namespace's sysctls, the
// interfaces' sysfs but what counts, and what the drivers tell.
func whole(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	add := func(path string) {
		b, err := os.ReadFile(path)
		if err == nil { // what cannot be read is no setting
			all[path] = string(b)
		}
	}
	walk := func(dir string, skip ...string) {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			for _, s := range skip {
				if strings.Contains(path, s) {
					if d != nil && d.IsDir() {
						return fs.SkipDir
					}
					return nil
				}
			}
			if err == nil && d.Type().IsRegular() {
				add(path)
			}
			return nil
		})
		testenv.Must(t, err)
	}
	// The kernel's own files have no copy beside them for a moment; the next write there removes one that was left.
	walk(filepath.Join(root, "proc"), "/.pelt-")
	walk("/proc/sys/net", "_count", "/proc/sys/net/core")
	c, err := nic.Open()
	testenv.Must(t, err)
	defer c.Close()
	for _, dev := range []string{"v0", "v1", "lo"} {
		at, err := filepath.EvalSymlinks(filepath.Join(root, "sys/class/net", dev))
		testenv.Must(t, err)
		walk(at, "/statistics", "/byte_queue_limits/inflight", "/byte_queue_limits/stall", "/power/", "/tx_timeout",
			"carrier_")
		for _, s := range c.Settings(dev) {
			all["driver "+dev+" "+s.Name] = s.Value
		}
	}
	return all
}

func same(t *testing.T, root string, before map[string]string, when string) {
	t.Helper()
	now := whole(t, root)
	for _, name := range differences(before, now) {
		t.Errorf("%s: %s was %q and is %q", when, name, before[name], now[name])
	}
	if left, _ := filepath.Glob(filepath.Join(root, "var/lib/pelt/tune", journalName)); len(left) > 0 {
		t.Errorf("%s: the journal is still there", when)
	}
}
