package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pelt/internal/testenv"
)

// begin starts a program and sees to its end.
func begin(t *testing.T, n *Node, o ProgramOptions) *Program {
	t.Helper()
	p, err := n.Start(t.Context(), o)
	must(t, err)
	spaces.Store(p, pidSpace(p.first.Process.Pid))
	t.Cleanup(func() { _, _ = p.Stop() })
	return p
}

// shell is a script as a program.
func shell(script string) ProgramOptions { return ProgramOptions{Command: script} }

// playing is a part of childParts as a program.
func playing(name string, args ...string) ProgramOptions {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return shell("exec env '" + strings.Join(append(childEnviron(name, args...), self), "' '") + "'")
}

// await waits until the program has said a line.
func await(t *testing.T, p *Program, line string) {
	t.Helper()
	testenv.Await(t, fmt.Sprintf("it says %q", line), func() bool { return slices.Contains(p.Tail(), line) })
}

// spaces are the PID namespaces of programs that began.
var spaces sync.Map

// left are the processes that are in the program's PID namespace.
func left(p *Program) []int {
	space, _ := spaces.Load(p)
	return members(space.(uint64))
}

// pidSpace identifies the PID namespace that a process is in; 0 if it has ended.
func pidSpace(pid int) uint64 {
	info, err := os.Stat(fmt.Sprintf("/proc/%d/ns/pid", pid))
	if err != nil {
		return 0
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

// members are the processes in a PID namespace.
func members(space uint64) (list []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && space != 0 && pidSpace(pid) == space {
			list = append(list, pid)
		}
	}
	return list
}

// processorTime is what the processes of a program took, and those that they waited for, without pelt's first process.
func processorTime(p *Program) (sum time.Duration) {
	for _, pid := range left(p) {
		if pid == p.first.Process.Pid {
			continue
		}
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // from the third on, proc(5)
		for i := 11; i < min(15, len(fields)); i++ {
			ticks, _ := strconv.Atoi(fields[i])
			sum += time.Duration(ticks) * time.Second / 100
		}
	}
	return sum
}

// runs is false for one that has ended and whose parent has not looked yet.
func runs(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(b), ") Z ")
}

// daemons leaves two orphans in a session of their own, and says when they are there.
const daemons = `(setsid sh -c 'sleep 600 & echo ready; exec sleep 600' &); `

func TestProgramEnds(t *testing.T) {
	testenv.Tool(t, "sh", "sleep")
	l := openLab(t, "direct")
	here, err := os.Getwd()
	must(t, err)
	for _, c := range []struct {
		name, script string
		code         int
		signal       string
		tail         string
	}{
		{"well", "exit 0", 0, "", ""},
		{"with a code", "echo no such file >&2; exit 3", 3, "", "no such file"},
		{"that is not there", "no-such-program", 127, "", "not found"},
		{"of a child's signal", "sh -c 'kill -9 $$'; exit $?", 137, "", "Killed"},
		{"of a signal", "kill -9 $$", 137, "SIGKILL", ""},
		{"of a fault", "kill -SEGV $$", 139, "SIGSEGV", ""},
		{"with a PID namespace", "ls -d /proc/[0-9]*", 0, "", "/proc/1"},
		{"here", "pwd", 0, "", here},
		{"without input", "cat; echo over", 0, "", "over"},
		{"seeing its node's devices", "ls /sys/class/net | grep eth", 0, "", "eth0"},
		{"seeing itself in /proc", "test -e /proc/self/exe && cat /proc/self/comm", 0, "", "cat"},
		{"leaving daemons", daemons + "echo over", 0, "", "over"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := begin(t, node(t, l, "sender"), shell(c.script))
			e, err := p.Wait()
			if err != nil || e.ExitCode != c.code || e.Signal != c.signal || e.Stopped || !strings.Contains(strings.Join(p.Tail(), "\n"), c.tail) {
				t.Errorf("%s\ngot  %+v, %v, %q\nwant code %d, signal %q, %q", c.script, e, err, p.Tail(), c.code, c.signal, c.tail)
			}
			if e.Duration <= 0 || e.Duration > time.Minute {
				t.Errorf("it took %v", e.Duration)
			}
			if list := left(p); len(list) != 0 {
				t.Errorf("it left %d processes", len(list))
			}
		})
	}
}

func TestProgramStops(t *testing.T) {
	testenv.Tool(t, "sh", "sleep")
	l := openLab(t, "direct")
	for _, c := range []struct {
		name, script string
		code         int
		signal       string
		slow         bool // takes all of the grace
	}{
		{"that does not handle SIGTERM", "echo ready; exec sleep 600", 143, "SIGTERM", false},
		{"that ignores it", "trap '' TERM; echo ready; exec sleep 600", 137, "SIGKILL", true},
		{"that handles it", "trap 'exit 7' TERM; echo ready; sleep 600 & wait", 7, "", false},
		{"that only handles it", "trap : TERM; echo ready; while :; do sleep 0.05; done", 137, "SIGKILL", true},
		{"with daemons", daemons + "exec sleep 600", 143, "SIGTERM", false},
		{"with a child that handles it", "sh -c 'trap \"echo bye; exit 3\" TERM; echo ready; sleep 600 & wait'; exit $?", 143, "SIGTERM", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := begin(t, node(t, l, "sender"), shell(c.script))
			await(t, p, "ready")
			if list := left(p); c.name == "with daemons" && len(list) < 4 {
				t.Errorf("%d processes before the stop, want 4", len(list))
			}
			began := time.Now()
			e, err := p.Stop()
			if err != nil || e.ExitCode != c.code || e.Signal != c.signal || !e.Stopped {
				t.Errorf("%s\ngot  %+v, %v\nwant code %d, signal %q", c.script, e, err, c.code, c.signal)
			}
			if took := time.Since(began); c.slow && took < childGrace {
				t.Errorf("it took %v", took)
			}
			if list := left(p); len(list) != 0 {
				t.Errorf("it left %d processes", len(list))
			}
			if again, err := p.Stop(); again != e || err != nil {
				t.Errorf("the second Stop: %+v, %v", again, err)
			}
		})
	}
}

func TestProgramEndsWithItsContext(t *testing.T) {
	testenv.Tool(t, "sh", "sleep")
	l := openLab(t, "direct")
	ctx, cancel := context.WithCancel(t.Context())
	p, err := node(t, l, "sender").Start(ctx, shell("exec sleep 600"))
	must(t, err)
	cancel()
	if e, err := p.Wait(); err != nil || !e.Stopped || e.Signal != "SIGTERM" {
		t.Errorf("got %+v, %v", e, err)
	}
	if _, err := node(t, l, "sender").Start(ctx, shell("sleep 600")); !errors.Is(err, context.Canceled) {
		t.Errorf("Start after the end of its context: %v", err)
	}
}

func TestProgramOutputIsBounded(t *testing.T) {
	testenv.Tool(t, "sh", "yes", "head")
	l := openLab(t, "direct")
	p := begin(t, node(t, l, "sender"), shell("yes aaaa | head -c 5000000; yes bbbb | head -c 1000000 >&2; echo last words >&2"))
	if e, err := p.Wait(); err != nil || e.ExitCode != 0 {
		t.Errorf("got %+v, %v", e, err)
	}
	if list := p.Tail(); len(list) != tailLines || list[tailLines-1] != "last words" {
		t.Errorf("Tail: %q", list)
	}
	for i := range p.out {
		if n := len(p.out[i].text); n != tailBytes {
			t.Errorf("output %d: kept %d B, want %d", i+1, n, tailBytes)
		}
	}
}

const busy = `i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; `

func TestProgramTimes(t *testing.T) {
	testenv.Tool(t, "sh", "sleep", "dd")
	l := openLab(t, "direct")
	t.Run("of nobody's child", func(t *testing.T) {
		p := begin(t, node(t, l, "sender"), shell("sh -c 'while :; do :; done' & exec sleep 600"))
		testenv.Await(t, "100 ms of processor time", func() bool { return processorTime(p) > 1e8 })
		if e, err := p.Stop(); err != nil || e.User+e.System < 1e8 || e.User+e.System > 2*e.Duration {
			t.Errorf("got %+v, %v", e, err)
		}
	})
	t.Run("of an orphan that ended", func(t *testing.T) {
		p := begin(t, node(t, l, "sender"), shell("(sh -c '"+busy+" echo over' &); exec sleep 600"))
		await(t, p, "over")
		testenv.Await(t, "the orphan is gone", func() bool { return len(left(p)) == 2 })
		if e, err := p.Stop(); err != nil || e.User+e.System < 10*time.Millisecond || e.User+e.System > e.Duration+20*time.Millisecond {
			t.Errorf("got %+v, %v", e, err)
		}
	})
	t.Run("memory", func(t *testing.T) {
		const block = 256 << 20
		e, err := begin(t, node(t, l, "sender"), shell("dd if=/dev/zero of=/dev/null bs=256M count=1")).Wait()
		if err != nil || e.MaxRSSBytes < block || e.MaxRSSBytes > 2*block {
			t.Errorf("got %+v, %v", e, err)
		}
	})
}

func TestProgramsBesideEachOther(t *testing.T) {
	testenv.Tool(t, "sh")
	l := openLab(t, "router")
	var list []*Program
	for i := range 4 {
		for _, n := range l.Nodes() {
			list = append(list, begin(t, n, shell(fmt.Sprintf("ls /sys/class/net | grep -v lo; sleep 0.1; exit %d", i))))
		}
	}
	for i, p := range list {
		e, err := p.Wait()
		want := l.Nodes()[i%3].Interface().Name
		if err != nil || e.ExitCode != i/3 || !slices.Contains(p.Tail(), want) {
			t.Errorf("program %d: %+v, %v, %q; want code %d, %q", i, e, err, p.Tail(), i/3, want)
		}
	}
}
