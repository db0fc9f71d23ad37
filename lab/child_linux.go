package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pelt/internal/netns"
)

// childGrace is how long a program may take to end after a polite SIGTERM.
const childGrace = 2 * time.Second

// runChild starts cmd with this process's stdio from the calling thread,
// passes signals on and waits. It stops the child when stop is closed, and the
// kernel kills the child if this process dies. The exit code is the shell's:
// 128 plus the signal for a child killed by one. The calling goroutine must be
// locked to its thread, because the child's life hangs on that thread.
func runChild(cmd *exec.Cmd, stop <-chan struct{}) (exitCode int, err error) {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = unix.SIGKILL
	signals := make(chan os.Signal, 16)
	if !signal.Ignored(unix.SIGHUP) { // else nohup's child ignores it, too
		signal.Notify(signals, unix.SIGHUP)
	}
	signal.Notify(signals, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	done := make(chan struct{})
	go passSignals(cmd.Process, signals, stop, done)
	err = cmd.Wait()
	close(done)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return status.ExitStatus(), nil
}

// passSignals forwards until done. On a terminal the keyboard's signals already
// reach the child, which is in the same foreground group.
func passSignals(p *os.Process, signals <-chan os.Signal, stop <-chan struct{}, done <-chan struct{}) {
	var kill <-chan time.Time
	_, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	terminal := err == nil
	for {
		select {
		case s := <-signals:
			if !terminal || s != unix.SIGINT && s != unix.SIGQUIT {
				_ = p.Signal(s) // it may just have ended
			}
		case <-stop:
			stop = nil
			_ = p.Signal(unix.SIGTERM)
			kill = time.After(childGrace)
		case <-kill:
			_ = p.Kill()
		case <-done:
			return
		}
	}
}

// RunInUserNamespace runs this very program again with args in a new user and
// network namespace, where it is root over its own network, with this process's
// stdio; env is added to the environment. It returns the program's exit code.
// Files are still read and written with the caller's own rights. Use it only
// where InUserNamespace is ok, and not from inside itself.
func RunInUserNamespace(args []string, env ...string) (exitCode int, err error) {
	netns.OnOwnThread(func() { exitCode, err = runChild(userNamespaceCommand(args, env), nil) })
	if err != nil {
		return 0, explain("start in an unprivileged user namespace", err)
	}
	return exitCode, nil
}

func userNamespaceCommand(args, env []string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	return cmd
}

// InUserNamespace reports whether RunInUserNamespace would work here, and if
// not, why and what to change. It tries, with a program that does nothing.
func InUserNamespace() (ok bool, why string) {
	for _, s := range []struct{ path, bad, why string }{
		{"user/max_user_namespaces", "0",
			"user namespaces are off; sysctl -w user.max_user_namespaces=10000 allows them"},
		{"kernel/unprivileged_userns_clone", "0",
			"unprivileged user namespaces are off; sysctl -w kernel.unprivileged_userns_clone=1 allows them"},
	} {
		if readSetting(s.path) == s.bad && os.Geteuid() != 0 {
			return false, s.why
		}
	}
	restricted := readSetting("kernel/apparmor_restrict_unprivileged_userns") == "1" && os.Geteuid() != 0
	if err := tryUserNamespace(); err != nil {
		if restricted {
			return false, "AppArmor forbids unprivileged user namespaces; " +
				"sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 allows them"
		}
		return false, fmt.Sprintf("the kernel refuses an unprivileged user namespace: %v", err)
	}
	return true, ""
}

// tryUserNamespace starts a child that takes the steps of RunInUserNamespace
// and then has nothing to execute, so ENOENT is success. The network namespace
// comes second because AppArmor may grant a user namespace without rights in it.
func tryUserNamespace() error {
	attr := userNamespaceCommand(nil, nil).SysProcAttr
	attr.Cloneflags, attr.Unshareflags = unix.CLONE_NEWUSER, unix.CLONE_NEWNET
	const nothing = "/proc/self/no-such-program"
	_, err := syscall.ForkExec(nothing, []string{nothing}, &syscall.ProcAttr{Sys: attr})
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
