package awake

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"pelt/internal/testenv"
)

// TestHold looks at how long processors were in any state but the one that polls,
// while nothing else asks for it.
func TestHold(t *testing.T) {
	testenv.Root(t)
	if _, err := os.Stat("/dev/cpu_dma_latency"); err != nil {
		testenv.Lacks(t, "/dev/cpu_dma_latency, which containers may not have")
	}
	release, err := Hold()
	if err != nil {
		t.Fatal(err)
	}
	// What all programs together allow (kernel/power/qos.c); one that only reads adds no wish.
	f, err := os.Open("/dev/cpu_dma_latency")
	if err != nil {
		t.Fatal(err)
	}
	var most [4]byte // µs
	_, err = io.ReadFull(f, most[:])
	if err := errors.Join(err, f.Close()); err != nil || most != [4]byte{} {
		t.Errorf("processors may take %d µs to wake, %v", binary.NativeEndian.Uint32(most[:]), err)
	}
	states, err := filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*/cpuidle/state[1-9]*/usage")
	if err != nil {
		t.Fatal(err)
	}
	entered := func() (n uint64) {
		for _, s := range states {
			text, err := os.ReadFile(s)
			if err != nil {
				t.Fatal(err)
			}
			u, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			n += u
		}
		return n
	}
	time.Sleep(10 * time.Millisecond) // what slept wakes first
	before := entered()
	time.Sleep(100 * time.Millisecond)
	if after := entered(); after != before {
		t.Errorf("processors went to sleep %d times in 100 ms", after-before)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	if len(states) == 0 {
		t.Log("this machine's processors have no states of sleep that the kernel knows")
	}
}
