package web

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the kernel end a child with the thread that starts it. Keys typed at the terminal do not reach
// it: the server stops it in its own time.
func endWithParent(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
