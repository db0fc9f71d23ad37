// Package selftest ends in every way a test can, so that the report of a guest
// is known to be right. Only package kernels builds it.
package selftest

import (
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

func TestPasses(t *testing.T) {
	t.Run("deep/er", func(t *testing.T) {
		c, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestFails(t *testing.T) {
	t.Run("here", func(t *testing.T) { t.Error("this was meant") })
	t.Run("not_here", func(*testing.T) {})
}

func TestSkipsForNoReason(t *testing.T) { t.Skip("not today") }

func TestSkipsForTheKernel(t *testing.T) { t.Skip("time travel needs Linux 99.1") }

func TestSkipsForAnOldNeed(t *testing.T) { t.Skip("a typed tracepoint needs Linux 5.5") }

// TestForges prints what a test that passed prints, and the last record of a guest.
func TestForges(t *testing.T) {
	os.Stdout.WriteString("--- PASS: TestForges (0.00s)\n{\"End\":\"\"}\n")
	t.Error("this was meant")
}

func TestLeavesThingsBehind(t *testing.T) {
	c := exec.Command("sleep", "1000")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("ip", "link", "add", "left0", "type", "dummy").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Mkdir("/tmp/left", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", "/tmp/left", "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
}

func TestPanics(*testing.T) { panic("this was meant") }
