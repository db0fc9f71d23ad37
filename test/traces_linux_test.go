package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pelt/internal/testenv"
	"pelt/model"
	"pelt/test/kernels"
)

// traces is all that a killed pelt might leave on a machine.
type traces map[string][]string

// takeTraces reads the machine: namespaces that any process holds, links,
// qdiscs, nft rules, loaded BPF programs, network sysctls, and files in dirs.
func takeTraces(t *testing.T, dirs ...string) traces {
	t.Helper()
	tr := traces{
		"namespace":   namespaces(t),
		"link":        output(t, "ip", "-o", "link"),
		"address":     output(t, "ip", "-o", "address"),
		"qdisc":       output(t, "tc", "qdisc"),
		"nft rule":    output(t, "nft", "list", "ruleset"),
		"BPF program": bpfPrograms(),
		"sysctl":      sysctls(t),
		"mount":       mounts(t),
	}
	for _, d := range dirs {
		tr["file"] = append(tr["file"], files(t, d)...)
	}
	return tr
}

// added lists what is in now and was not before.
func added(before, now traces) (list []string) {
	for kind, lines := range now {
		for _, l := range lines {
			if !slices.Contains(before[kind], l) {
				list = append(list, kind+": "+l)
			}
		}
	}
	for kind, lines := range before {
		for _, l := range lines {
			if kind != "file" && !slices.Contains(now[kind], l) {
				list = append(list, kind+" gone: "+l)
			}
		}
	}
	slices.Sort(list)
	return list
}

func output(t *testing.T, name string, args ...string) []string {
	t.Helper()
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// namespaces lists network namespaces by inode: of every thread, of every open
// descriptor and of every mount.
func namespaces(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	for _, pattern := range []string{"/proc/[0-9]*/task/*/ns/net", "/proc/[0-9]*/fd/*"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paths {
			if to, err := os.Readlink(p); err == nil && strings.HasPrefix(to, "net:[") {
				found[to] = true
			}
		}
	}
	var list []string
	for n := range found {
		list = append(list, n)
	}
	return list
}

func mounts(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

func bpfPrograms() (list []string) {
	for _, id := range kernels.BPFPrograms() {
		list = append(list, fmt.Sprint(id))
	}
	return list
}

func sysctls(t *testing.T) (list []string) {
	t.Helper()
	err := filepath.WalkDir("/proc/sys/net", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		// Counters and states that live on by themselves are no settings.
		if strings.Contains(path, "nf_conntrack_count") || strings.Contains(path, "/neigh/") {
			return nil
		}
		if b, err := os.ReadFile(path); err == nil {
			list = append(list, path+"="+string(bytes.TrimSpace(b)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
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
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestClockKilledAnywhereLeavesNothing ends pelt with kill -9 at moments spread over
// its whole life: building the lab, shaking hands, warming up, measuring,
// draining, storing, reporting.
//
//	sender ── wire ── router ── receiver
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
	data := filepath.Join(work, "data")
	before := takeTraces(t, work, "/run", "/dev/shm")
	for _, flags := range [][]string{{"--engine", "udp", "--link", "rate=100mbit", "--payload", "64,1472"}, {"--engine", "xdp", "--payload", "64"}} {
		killedAnywhere(t, work, data, before, flags)
	}
}

func killedAnywhere(t *testing.T, work, data string, before traces, flags []string) {
	args := append([]string{"curve", "lab:router", "--time", "250ms", "--warmup", "100ms",
		"--repeats", "1", "--json", filepath.Join(work, "out.json"), "--html", filepath.Join(work, "out.html")}, flags...)
	whole := lifeOf(t, work, data, args)
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"out.json", "out.html"} {
		if err := os.Remove(filepath.Join(work, f)); err != nil {
			t.Fatal(err)
		}
	}
	const moments = 6
	for i := range moments {
		at := whole * time.Duration(2*i+1) / (2 * moments)
		killAt(t, work, data, args, at)
		left := slices.DeleteFunc(waitFor(before, func() traces { return takeTraces(t, work, "/run", "/dev/shm") }), func(s string) bool {
			// What was asked for may be there, but then it must be whole.
			return strings.HasPrefix(s, "file: "+data) || wholeFile(t, s, work)
		})
		if len(left) > 0 {
			t.Fatalf("killed after %v of %v, this was left:\n%s", at, whole, strings.Join(left, "\n"))
		}
		readable(t, work, data)
	}
}

// alone reports whether this process has a process, mount and network namespace
// to itself. If not, it runs the test again in one that has, and takes over its verdict.
func alone(t *testing.T) bool {
	t.Helper()
	const inside = "PELT_TEST_ALONE"
	if os.Getenv(inside) != "" {
		// Files of others that come and go in memory are no traces of the killed.
		for _, m := range []struct{ kind, at string }{{"proc", "/proc"}, {"sysfs", "/sys"}, {"tmpfs", "/run"}, {"tmpfs", "/dev/shm"}} {
			if err := unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil {
				t.Fatalf("mount %s: %v", m.at, err)
			}
		}
		output(t, "ip", "link", "set", "lo", "up")
		return true
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "-test.run", "^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), inside+"=1", binaryEnv+"="+binary)
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
func waitFor(before traces, take func() traces) (left []string) {
	for range 40 {
		if left = added(before, take()); !slices.ContainsFunc(left, func(s string) bool { return !strings.HasPrefix(s, "file: ") }) {
			return left
		}
		time.Sleep(50 * time.Millisecond)
	}
	return left
}

func command(ctx context.Context, work, data string, args []string) *exec.Cmd {
	c := exec.CommandContext(ctx, binary, args...)
	c.Dir = work
	c.Env = append(os.Environ(), "PELT_DATA="+data)
	return c
}

func lifeOf(t *testing.T, work, data string, args []string) time.Duration {
	t.Helper()
	start := time.Now()
	if out, err := measured(command(t.Context(), work, data, args)); err != nil {
		t.Fatalf("pelt %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return time.Since(start)
}

func killAt(t *testing.T, work, data string, args []string, after time.Duration) {
	t.Helper()
	c := command(t.Context(), work, data, args)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	if err := c.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	_ = c.Wait()
}

func wholeFile(t *testing.T, trace, work string) bool {
	t.Helper()
	path, isFile := strings.CutPrefix(trace, "file: ")
	if !isFile || filepath.Dir(path) != work {
		return false
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	switch filepath.Base(path) {
	case "out.json":
		_, err := readDocument(path, "")
		return err == nil
	case "out.html":
		return bytes.Contains(b, []byte("</html>"))
	}
	return false
}

// readable checks that whatever the killed process stored can be read.
func readable(t *testing.T, work, data string) {
	t.Helper()
	c := command(t.Context(), work, data, []string{"list"})
	if out, err := measured(c); err != nil {
		t.Fatalf("pelt list after a kill: %v\n%s", err, out)
	}
}

// TestKilledRunGoesOn cuts a run with kill -9 in its middle and resumes it.
func TestKilledRunGoesOn(t *testing.T) {
	work := t.TempDir()
	data := filepath.Join(work, "data")
	args := []string{"curve", "lab:loopback", "--payload", "64,128,256,512", "--rate", "2kpps", "--burst", "1000", "--time", "300ms", "--warmup", "50ms", "--repeats", "2"}
	c := command(t.Context(), work, data, args)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	stored(t, data, `{"result"`, 2)
	if err := c.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	_ = c.Wait()
	kept, err := readStored(t, work, data)
	if err != nil {
		t.Fatalf("the cut run cannot be read: %v", err)
	}
	if n := len(kept.Results); n == 0 || n >= 8 {
		t.Fatalf("the cut run holds %d of 8 trials; want some and not all", n)
	}
	if out, err := measured(command(t.Context(), work, data, []string{"run", "--resume", "last"})); err != nil {
		t.Fatalf("resume: %v\n%s", err, out)
	}
	whole, err := readStored(t, work, data)
	if err != nil {
		t.Fatal(err)
	}
	if len(whole.Results) != 8 || whole.ID != kept.ID {
		t.Errorf("after resume run %s holds %d trials, want run %s with 8", whole.ID, len(whole.Results), kept.ID)
	}
	for i, r := range kept.Results {
		if whole.Results[i].Flows[0].Attempted != r.Flows[0].Attempted {
			t.Errorf("trial %d changed by the resume", i)
		}
	}
}

// stored waits until the runs that are kept hold so many lines with a word.
func stored(t *testing.T, data, word string, lines int) {
	t.Helper()
	for limit := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		files, err := filepath.Glob(filepath.Join(data, "runs", "*.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		told := 0
		for _, name := range files {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			told += bytes.Count(b, []byte(word))
		}
		if told >= lines {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("%d of %s in 30 s, want %d", told, word, lines)
		}
	}
}

func readStored(t *testing.T, work, data string) (model.Document, error) {
	t.Helper()
	var d model.Document
	out, err := command(t.Context(), work, data, []string{"report", "last", "--json", "-"}).Output()
	if err == nil {
		err = json.Unmarshal(out, &d)
	}
	return d, err
}
