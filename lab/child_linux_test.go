package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pelt/finding"
	"pelt/internal/netns"
	"pelt/internal/peltproc"
	"pelt/internal/testenv"
	"pelt/model"
)

const argsEnv = "LAB_TEST_ARGS" // JSON list

func childArgs() (args []string) {
	if err := json.Unmarshal([]byte(os.Getenv(argsEnv)), &args); err != nil {
		panic(err)
	}
	return args
}

func childEnviron(part string, args ...string) []string {
	b, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return []string{childEnv + "=" + part, argsEnv + "=" + string(b)}
}

func child(part string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnviron(part, args...)...)
	return cmd
}

// childParts are what the test binary does when a test starts it again.
func childParts() map[string]func() int {
	return map[string]func() int{
		"open":         childOpen,
		"hold":         childHold,
		"exec":         childExec,
		"unprivileged": childUnprivileged,
		"inside":       childInside,
		"mute":         func() int { return 1 },
	}
}

// setUpRouter makes a router, if a lab has one, all that it can be.
func setUpRouter(l *Lab) error {
	if _, ok := l.Router(); !ok {
		return nil
	}
	words := "rules=10+log"
	if CheckRouter(l.Facts().Topology, words+"+fast") == nil {
		words += "+fast"
	}
	return l.SetRouter(words)
}

// childOpen opens a lab, sets its router up as all that it can be, prints
// its namespaces and waits to be killed.
func childOpen() int {
	l, err := Open(context.Background(), childArgs()[0], []model.Link{{Rate: 1e8}})
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	defer l.Close() // a lab that nothing uses any more is garbage: its namespaces would be closed while this waits
	if err := setUpRouter(l); err != nil {
		fmt.Println("error", err)
		return 1
	}
	for _, h := range l.held {
		n, err := h.Inode()
		fmt.Print(n, " ")
		if err != nil {
			return 1
		}
	}
	fmt.Println()
	time.Sleep(time.Hour) // without cgo, select {} alone is a deadlock to the runtime
	return 0
}

func childHold() int {
	args := childArgs()
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	var links []model.Link
	for _, text := range args[2:] {
		l, _, err := model.ParseLink("", text)
		if err != nil {
			panic(err)
		}
		links = append(links, l)
	}
	if Hold(ctx, args[0], args[1], links, identifyProbe) != nil {
		return 1
	}
	return 0
}

func childExec() int {
	args := childArgs()
	code, err := Exec(args[0], args[1], args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	return code
}

func childUnprivileged() int {
	_, err := Open(context.Background(), "direct", nil)
	if !errors.Is(err, unix.EPERM) || Privileged() {
		fmt.Printf("Open without rights: %v, privileged %v\n", err, Privileged())
		return 1
	}
	fmt.Println(err)
	if ok, why := InUserNamespace(); !ok {
		fmt.Println("no user namespace:", why)
		return 1
	}
	code, err := RunInUserNamespace(nil, childEnviron("inside")...)
	if err != nil {
		fmt.Println(err)
	}
	return code
}

func childInside() int {
	if !Privileged() {
		fmt.Println("no rights inside the user namespace")
		return 1
	}
	for _, top := range chains() {
		l, err := Open(context.Background(), top, []model.Link{{Rate: 1e8}})
		if top == "fast" && err != nil && strings.HasSuffix(err.Error(), "run it with sudo") {
			continue // BPF is not for user namespaces
		}
		if err == nil {
			err = setUpRouter(l)
		}
		if err != nil {
			fmt.Println(err)
			return 1
		}
		if err := l.Close(); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	fmt.Println("labs made inside")
	return 7
}

func TestKillLeavesNothing(t *testing.T) {
	for _, top := range chains() {
		t.Run(top, func(t *testing.T) {
			testenv.Root(t)
			p := peltproc.Host{T: t}.Launch(child("open", top))
			set := map[uint64]bool{}
			for word := range strings.FieldsSeq(p.Match(regexp.MustCompile(`(.*)\n`))) {
				n, err := strconv.ParseUint(word, 10, 64)
				must(t, err)
				set[n] = true
			}
			if len(holders(set)) == 0 {
				state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Cmd.Process.Pid))
				t.Errorf("nobody holds the namespaces %v of a living lab: %.60s, %v\n%s", set, state, err, p)
			}
			p.Kill()
			expectGone(t, set)
		})
	}
}

// hold starts a holder and takes it down at the test's end unless it is gone.
func hold(t *testing.T, name, topology string, links ...string) (pid int, set map[uint64]bool) {
	t.Helper()
	testenv.Root(t)
	pid, err := StartHolder(t.Context(), nil, childEnviron("hold", append([]string{name, topology}, links...)...)...)
	if err != nil || pid <= 1 {
		t.Fatalf("StartHolder: process %d, %v", pid, err)
	}
	l, err := Attach(name)
	must(t, err)
	set = inodes(t, l)
	must(t, l.Close())
	t.Cleanup(func() {
		if err := Down(context.Background(), name); err != nil && !refused(err, "") {
			t.Error(err)
		}
		// The holder is this process's child: whoever reaps it, it must have ended.
		var status syscall.WaitStatus
		_, _ = syscall.Wait4(pid, &status, 0, nil)
		expectGone(t, set)
		if list, err := List(); err != nil || list == nil || len(list) != 0 {
			t.Errorf("List at the end: %+v, %v", list, err)
		}
	})
	return pid, set
}

// killHolder goes through os.Process, which never takes a number for a group
// or for everybody.
func killHolder(t *testing.T, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err != nil || pid <= 1 {
		t.Fatalf("holder %d: %v", pid, err)
	}
	must(t, p.Kill())
}

func TestHolderThatSaysNothing(t *testing.T) {
	testenv.Root(t)
	var fault *finding.Fault
	_, err := StartHolder(t.Context(), nil, childEnviron("mute")...)
	if !errors.As(err, &fault) || fault.Code != model.LabUnstarted {
		t.Errorf("StartHolder: %v", err)
	}
	if _, err := StartHolder(t.Context(), nil, childEnviron("hold", "Bad", "router")...); !errors.As(err,
		new(*UsageError)) {
		t.Errorf("StartHolder with a bad name: %v", err)
	}
}

func TestGarbageDoesNotHurtTheHolder(t *testing.T) {
	hold(t, "tough", "direct")
	socket := socketName(os.Geteuid(), "tough")
	for _, text := range []string{"\x00", "GET / HTTP/1.1\r\n\r\n", strings.Repeat("[", 100<<10)} {
		c, err := connect(socket)
		must(t, err)
		must(t, c.conn.SetDeadline(time.Now().Add(testenv.Patience)))
		_, _ = c.conn.Write([]byte(text)) // the holder may be gone before it is all out
		if n, err := c.conn.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%.20q was answered, or waited for: %v", text, err)
		}
		_ = c.conn.Close()
	}
	c, err := connect(socket)
	must(t, err)
	defer c.conn.Close()
	nonsense := []model.Link{{LossRatio: 2}}
	for _, r := range []request{{Do: "burn"}, {Do: collect}, {Do: set, Changes: nonsense}} {
		if err := c.ask(r, nil); err == nil {
			t.Errorf("%+v was taken", r)
		}
	}
	must(t, c.out.Encode(request{Format: "pelt/lab/1", Do: down}))
	var r reply
	if err := c.in.Decode(&r); err != nil || r.Fault == nil || r.Fault.Code != model.LabVersion {
		t.Errorf("another version: %+v, %v", r, err)
	}
	if list, err := List(); err != nil || len(list) != 1 || list[0].Error != "" {
		t.Errorf("List after garbage: %+v, %v", list, err)
	}
}

// startExec starts a shell in a node that prints ready and then waits.
func startExec(t *testing.T, name, script string) *peltproc.Process {
	t.Helper()
	p := peltproc.Host{T: t}.Launch(child("exec", name, "sender", "sh", "-c", script))
	p.Await("ready\n")
	return p
}

func TestExecPassesSignals(t *testing.T) {
	testenv.Tool(t, "sh", "sleep")
	hold(t, "r1", "direct")
	p := startExec(t, "r1", "trap 'exit 42' USR1; echo ready; while :; do :; done")
	must(t, p.Cmd.Process.Signal(unix.SIGUSR1))
	if code := p.Code(); code != 42 {
		t.Errorf("exit code %d, want 42", code)
	}
	signal.Ignore(unix.SIGHUP) // as nohup does
	defer signal.Reset(unix.SIGHUP)
	if code := (peltproc.Host{T: t}).Launch(child("exec", "r1", "receiver", "sh", "-c",
		"kill -HUP $$; exit 5")).Code(); code != 5 {
		t.Errorf("exit code %d under nohup, want 5", code)
	}
}

func TestExecEndsWithItsLab(t *testing.T) {
	testenv.Tool(t, "sh", "sleep")
	for name, end := range map[string]func(holder int, p *peltproc.Process){
		"down":          func(int, *peltproc.Process) { must(t, Down(t.Context(), "r1")) },
		"holder killed": func(holder int, _ *peltproc.Process) { killHolder(t, holder) },
		"exec killed":   func(_ int, p *peltproc.Process) { p.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			pid, _ := hold(t, "r1", "direct")
			p := startExec(t, "r1", "echo ready; exec sleep 600")
			end(pid, p)
			_ = p.Wait() // its output ends when the program does
		})
	}
}

// asStranger calls f on a thread of another user.
func asStranger(t *testing.T, f func()) {
	netns.OnOwnThread(func() {
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, 65534, 65534, 65534); errno != 0 {
			t.Errorf("setresuid: %v", errno)
			return
		}
		f()
	})
}

// Nobody gets an answer from another user's holder, or plays the holder of another user's lab.
func TestStrangersAtSocket(t *testing.T) {
	hold(t, "mine", "direct")
	asStranger(t, func() {
		c, err := connect(socketName(0, "mine"))
		if err != nil {
			t.Errorf("%v", err)
			return
		}
		defer c.conn.Close()
		var told heldLab
		if err := c.ask(request{Do: describe}, &told); err == nil || told.Nodes != nil {
			t.Errorf("a stranger is told %+v, %v", told, err)
		}
	})
	asStranger(t, func() {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socketName(0, "squat"), Net: "unix"})
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { l.Close() })
	})
	const want = "lab squat: user 65534 answers for it, not user 0"
	if l, err := Attach("squat"); l != nil || !refused(err, want) {
		t.Errorf("%v, %v; want %q", l, err, want)
	}
}

func TestUnprivileged(t *testing.T) {
	testenv.Root(t)
	cmd := child("unprivileged")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 7 || !strings.Contains(string(out), "labs made inside") ||
		!strings.Contains(string(out), "CAP_SYS_ADMIN") {
		t.Errorf("unprivileged: %v, exit %d, want 7\n%s", err, cmd.ProcessState.ExitCode(), out)
	}
}
