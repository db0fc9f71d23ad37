package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pelt/internal/netns"
)

// Exec runs any program in a node of the held lab with this process's stdio,
// passes signals on and returns its exit code (128 plus the signal if one ended
// it). The program sees the node's /sys/class/net where the kernel lets a mount
// be made, else the host's. It is stopped when the lab goes down or this process
// dies; what it started itself is not, and keeps the node's namespace alive.
func Exec(name, node string, argv []string) (exitCode int, err error) {
	if len(argv) == 0 {
		return 0, usagef("lab exec: no program named; as in: lab exec %s %s -- ip address", name, node)
	}
	l, err := Attach(name)
	if err != nil {
		return 0, err
	}
	defer l.Close()
	n, err := l.Node(node)
	if err != nil {
		return 0, err
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return 0, fmt.Errorf("lab exec: %w", err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, l.holder.conn) // ends when the lab is closed, or with the Close above
	}()
	cmd := &exec.Cmd{Path: path, Args: argv}
	netns.OnOwnThread(func() {
		if err = enterForGood(n.ns); err != nil {
			err = explain("enter node "+node+" of lab "+name, err)
			return
		}
		exitCode, err = runChild(cmd, gone)
	})
	if err != nil {
		return 0, fmt.Errorf("lab exec: %w", err)
	}
	return exitCode, nil
}

// Shell runs a command by sh -c in the node and returns what it said. What it leaves running keeps the node's namespace
// alive.
func (n *Node) Shell(ctx context.Context, command string) (said []byte, err error) {
	netns.OnOwnThread(func() {
		if err = enterForGood(n.ns); err != nil {
			err = explain("enter node "+n.Name(), err)
			return
		}
		c := exec.CommandContext(ctx, "sh", "-c", command)
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
		c.WaitDelay = time.Second // what it started may hold its output open
		said, err = c.CombinedOutput()
	})
	return said, err
}

// enterForGood moves the calling thread into the node, with a mount namespace
// whose /sys shows the node's devices, as ip netns exec does.
func enterForGood(ns *netns.Handle) error {
	if err := ns.Enter(); err != nil {
		return err
	}
	err := netns.OwnSys()
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENODEV) ||
		errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EBUSY) {
		return nil // the program still runs, with the host's /sys
	}
	return err
}
