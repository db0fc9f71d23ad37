package test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
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

	"golang.org/x/sys/unix"

	"pelt/internal/peltproc"
	"pelt/internal/testenv"
)

// takeTraces reads all that a killed pelt might leave, in namespaces, on the machine and as files.
func takeTraces(t *testing.T, dirs ...string) (traces []string) {
	t.Helper()
	traces, err := testenv.Traces(slices.Concat(testenv.HostTraces, testenv.MachineTraces)...)
	testenv.Must(t, err)
	for _, d := range dirs {
		for _, f := range files(t, d) {
			traces = append(traces, "file "+f)
		}
	}
	return traces
}

func output(t *testing.T, name string, args ...string) []string {
	t.Helper()
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func files(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		if !d.IsDir() {
			list = append(list, path)
		}
		return nil
	})
	testenv.Must(t, err)
	return list
}

// kills is how many times TestClockKilledAnywhereLeavesNothing ends a process.
var kills = flag.Int("kills", len(victims), "how many processes to kill")

// victim is a command to kill, whose files have names that wholeFile knows.
type victim struct {
	args   string
	beside string // has started before: a server, or what ends by itself; killed half of the times if it is a server
	after  string // ends what shall outlive the killed
}

const (
	brief       = " --time 250ms --warmup 100ms --repeats 1 --json out.json --html out.html"
	servingHost = "serve --port 7400 --listen 127.0.0.1 --code tiger-42-amber"
	clientHost  = "curve 127.0.0.1:7400 --code tiger-42-amber --payload 64"
	apply       = "tune apply --set net.ipv4.neigh.lo.unres_qlen_bytes=400000 --yes"
)

var victims = []victim{
	{args: "curve lab:router --engine udp --link rate=100mbit --payload 64,1472" + brief},
	{args: "curve lab:router --engine xdp --payload 64" + brief},
	{args: "curve lab:direct --payload 64 --rate 20kpps --record out.rec" + brief},
	{args: "sweep lab:star --receivers 5 --payload 64 --interval 1ms --link loss=5%" + brief},
	{args: "soak lab:direct --rate 5kpps --payload 64 --time 1s --html out.html"},
	{args: "router lab:nat --frame 64 --direction up" + brief},
	{args: "cc lab:direct --control cubic,reno --loss 1% --time 250ms --repeats 1 --json out.json"},
	{args: "run --resume last", beside: "curve lab:direct --payload 64 --rate 1kpps" + brief}, // of a lab that is there
	{args: clientHost + " --rate 20kpps" + brief, beside: servingHost},
	{args: "lab up nat --name held", after: "lab down held"},
	{args: "curve lab:held --payload 64" + brief, beside: "lab up nat --name held", after: "lab down held"},
	{args: "drops --time 1s"},
	{args: "doctor"},
	{args: "report last --html out.html"},
	{args: "explain last"},
	{args: apply, after: "tune revert"},
	{args: "tune revert", beside: apply, after: "tune revert"},
}

// TestClockKilledAnywhereLeavesNothing ends pelt with kill -9 at random moments of its
// life: building the lab, shaking hands, measuring, storing, reporting.
//
// It looks at a machine of its own: namespaces in which no other test makes
// links or processes. BPF programs have no namespaces, so it runs alone.
func TestClockKilledAnywhereLeavesNothing(t *testing.T) {
	testenv.Clock(t)
	testenv.Root(t)
	testenv.Tool(t, "ip", "tc", "nft")
	if !alone(t) {
		return
	}
	work := t.TempDir()
	t.Setenv("PELT_STATE", filepath.Join(work, "state"))
	life := make([]time.Duration, len(victims))
	before := takeTraces(t, work, "/run", "/dev/shm") // before the kernel has programs to free
	victims[0].run(t, work, nil)                      // some others need a run that is kept
	order := rand.Perm(len(victims))
	for i := range *kills {
		n := order[i%len(victims)]
		v := victims[n]
		if life[n] == 0 {
			from := time.Now()
			v.run(t, work, nil)
			life[n] = time.Since(from)
		}
		at := time.Duration(rand.Int64N(int64(life[n])))
		v.run(t, work, &at)
		left := slices.DeleteFunc(waitFor(before, func() []string { return takeTraces(t, work, "/run", "/dev/shm") }),
			func(s string) bool {
				return wholeFile(t, s, work) // what was asked for may be there
			})
		if len(left) > 0 {
			t.Fatalf("kill %d, pelt %s after %v of %v: this was left:\n%s", i, v.args, at, life[n],
				strings.Join(left, "\n"))
		}
		pelt(t, work, "list")
	}
	t.Logf("%d kills of %d commands; nothing was left", *kills, len(victims))
}

// run runs a victim to its end, or kills it or its server at a moment of its life.
func (v victim) run(t *testing.T, work string, kill *time.Duration) {
	t.Helper()
	var beside *peltproc.Process
	if v.beside != "" {
		beside = in(t, work).Start(strings.Fields(v.beside)...)
		if v.beside == servingHost {
			beside.Await("Ctrl-C ends it")
		} else if err := beside.Wait(); err != nil {
			t.Fatalf("pelt %s: %v\n%s", v.beside, err, beside)
		}
	}
	if kill == nil {
		pelt(t, work, strings.Fields(v.args)...)
	} else {
		p := in(t, work).Start(strings.Fields(v.args)...)
		time.Sleep(*kill)
		if v.beside == servingHost && rand.IntN(2) == 0 {
			beside.Kill() // and the client ends by itself
			_ = p.Wait()
		} else {
			p.Kill()
		}
	}
	if v.beside == servingHost {
		beside.Kill()
	}
	for end := time.Now().Add(testenv.Patience); v.after != ""; time.Sleep(20 * time.Millisecond) {
		_, _ = in(t, work).Run(strings.Fields(v.after)...) // there may be nothing to end, yet or at all
		if processes() == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("pelt %s was killed, and a process of it goes on", v.args)
		}
	}
}

// processes is how many processes of pelt there are.
func processes() (n int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, p := range paths {
		if to, err := os.Readlink(p); err == nil && to == peltproc.Binary {
			n++
		}
	}
	return n
}

func data(work string) string { return filepath.Join(work, "data") }

// in is where a victim runs.
func in(t *testing.T, work string) peltproc.Host {
	return peltproc.Host{T: t, Dir: work, Data: data(work)}
}

// pelt runs a command that must do its work.
func pelt(t *testing.T, work string, args ...string) {
	t.Helper()
	if out, err := in(t, work).Run(args...); orInvalid(err) != nil {
		t.Fatalf("pelt %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// alone reports whether this process has a process, mount and network namespace
// to itself. If not, it runs the test again in one that has, and takes over its verdict.
func alone(t *testing.T) bool {
	t.Helper()
	const inside = "PELT_TEST_ALONE"
	if os.Getenv(inside) != "" {
		// Files of others that come and go in memory are no traces of the killed.
		for _, m := range []struct{ kind, at string }{{"proc", "/proc"}, {"sysfs", "/sys"}, {"tmpfs", "/run"},
			{"tmpfs", "/dev/shm"}} {
			if err := unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil {
				t.Fatalf("mount %s: %v", m.at, err)
			}
		}
		output(t, "ip", "link", "set", "lo", "up")
		return true
	}
	self, err := os.Executable()
	testenv.Must(t, err)
	c := exec.Command(self, append(slices.Clip(os.Args[1:]), "-test.run", "^"+t.Name()+"$", "-test.v")...)
	c.Env = append(os.Environ(), inside+"=1", peltproc.BinaryEnv+"="+peltproc.Binary)
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:   syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET,
		Unshareflags: syscall.CLONE_NEWNS, // makes mounts private, so that /proc outside stays
		Pdeathsig:    syscall.SIGKILL,
	}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	return false
}

// waitFor gives the kernel a moment: it frees namespaces behind the process's back.
func waitFor(before []string, take func() []string) (left []string) {
	for range 40 {
		if left = testenv.Left(before, take()); !slices.ContainsFunc(left,
			func(s string) bool { return !strings.HasPrefix(s, "file ") }) {
			return left
		}
		time.Sleep(50 * time.Millisecond)
	}
	return left
}

// wholeFile tells of a file that a command was asked for: it must be whole.
func wholeFile(t *testing.T, trace, work string) bool {
	t.Helper()
	path, isFile := strings.CutPrefix(trace, "file ")
	if isFile && (strings.HasPrefix(path, data(work)+"/") ||
		strings.HasPrefix(path, filepath.Join(work, "state")+"/")) {
		return true
	}
	if !isFile || filepath.Dir(path) != work {
		return false
	}
	b, err := os.ReadFile(path)
	testenv.Must(t, err)
	name := filepath.Base(path)
	if strings.HasPrefix(name, ".pelt-") { // killed between its name and its place, which held another
		_, err := readDocument(path, "")
		if err != nil && !bytes.Contains(b, []byte("</html>")) {
			return false
		}
		pelt(t, work, "report", "last", "--html", "out.html") // clears up
		_, err = os.Stat(path)
		return errors.Is(err, fs.ErrNotExist)
	}
	switch name {
	case "out.json":
		_, err := readDocument(path, "")
		return err == nil
	case "out.html":
		return bytes.Contains(b, []byte("</html>"))
	case "out.rec": // written while packets come: the head of it is enough
		pelt(t, work, "record", "show", path)
		return true
	}
	return false
}

// stored waits until the runs that are kept hold so many lines with a word.
func stored(t *testing.T, data, word string, lines int) {
	t.Helper()
	testenv.Await(t, fmt.Sprint(lines, " of ", word), func() bool {
		files, err := filepath.Glob(filepath.Join(data, "runs", "*.jsonl"))
		testenv.Must(t, err)
		told := 0
		for _, name := range files {
			b, err := os.ReadFile(name)
			testenv.Must(t, err)
			told += bytes.Count(b, []byte(word))
		}
		return told >= lines
	})
}
