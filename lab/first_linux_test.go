package lab

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pelt/internal/testenv"
	"pelt/model"
)

// childProgram runs programs that give up their rights, and leave daemons, in both
// nodes of a lab and waits to be killed.
func childProgram() int {
	l, err := Open(context.Background(), "direct", nil)
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	var line string
	for _, n := range l.Nodes() {
		p, err := n.Start(context.Background(), shell(daemons+"exec setpriv --reuid 65534 --regid 65534 --clear-groups sleep 600"))
		if err != nil {
			fmt.Println("error", err)
			return 1
		}
		for !slices.Contains(p.Tail(), "ready") {
			time.Sleep(time.Millisecond)
		}
		inode, err := n.NamespaceInode()
		if err != nil {
			return 1
		}
		line += fmt.Sprint(inode, " ", pidSpace(p.first.Process.Pid), " ")
	}
	fmt.Println(line)
	time.Sleep(time.Hour) // without cgo, select {} alone is a deadlock to the runtime
	return 0
}

func TestKillLeavesNoProgram(t *testing.T) {
	testenv.Tool(t, "sh", "sleep")
	watchHost(t)
	cmd := child("program")
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	set := map[uint64]bool{}
	var spaces []uint64
	for rest := line; err == nil && strings.TrimSpace(rest) != ""; {
		var ns, pids uint64
		if _, err := fmt.Sscan(rest, &ns, &pids); err != nil {
			t.Fatalf("child said %q", line)
		}
		set[ns] = true
		spaces = append(spaces, pids)
		rest = strings.Join(strings.Fields(rest)[2:], " ")
	}
	if len(spaces) != 2 || err != nil {
		t.Errorf("child said %q, %v", line, err)
	}
	for _, space := range spaces {
		if n := len(members(space)); n < 4 {
			t.Errorf("%d processes before the kill, want 4", n)
		}
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	expectGone(t, set)
	for _, space := range spaces {
		testenv.Await(t, "no process of it runs", func() bool { return !slices.ContainsFunc(members(space), runs) })
	}
}

// childPrograms is root of a user namespace.
func childPrograms() int {
	if os.Geteuid() != 0 {
		code, err := RunInUserNamespace(nil, childEnviron("programs")...)
		if err != nil {
			fmt.Println(err)
		}
		return code
	}
	err := func() error {
		l, err := Open(context.Background(), "direct", []model.Link{})
		if err != nil {
			return err
		}
		defer l.Close()
		o := shell("(setsid sleep 600 &); ip route | grep -o -m1 reno; ls /sys/class/net | grep eth0")
		o.Control = "reno"
		p, err := l.Nodes()[0].Start(context.Background(), o)
		if err != nil {
			return err
		}
		space := pidSpace(p.first.Process.Pid)
		e, err := p.Wait()
		fmt.Println(e, p.Tail(), len(members(space)))
		return err
	}()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 7
}

func TestProgramInUserNamespace(t *testing.T) {
	testenv.Tool(t, "sh", "ip", "ls")
	watchHost(t)
	cmd := child("programs")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if want := "exit code 0 [reno eth0] 0\n"; cmd.ProcessState.ExitCode() != 7 || string(out) != want {
		t.Errorf("exit %d, %v\ngot  %q\nwant %q", cmd.ProcessState.ExitCode(), err, out, want)
	}
}
