package dut

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// diesWithThread makes the kernel kill a child when the thread that starts it
// ends; the process's end ends all its threads.
func diesWithThread(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
}

// terminal reports whether a person is there.
func terminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
