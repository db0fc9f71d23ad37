package privilege

import (
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"

	"pelt/internal/testenv"
)

const dropper = "PELT_TEST_DROPS"

// cgo is true in a test that was built with it: Drop reaches all threads of other programs only.
var cgo bool

// TestDropWhileStacksMove: what the threads read of the capabilities stays where it is, while the collector moves stacks.
func TestDropWhileStacksMove(t *testing.T) {
	testenv.Root(t)
	if cgo {
		testenv.Lacks(t, "a test that was built with CGO_ENABLED=0")
	}
	if os.Getenv(dropper) == "" { // a process of its own loses its rights
		again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		again.Env = append(os.Environ(), dropper+"=1")
		if said, err := again.CombinedOutput(); err != nil {
			t.Errorf("%v\n%.3000s", err, said)
		}
		return
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(collect)
	}
	dropped := make(chan error)
	drop := func() {
		deep(200) // leaves a great stack, which the collector makes smaller
		dropped <- Drop()
	}
	for range 200 {
		all.Go(drop)
		if err := <-dropped; err != nil {
			t.Fatal(err)
		}
	}
}

// collect keeps the collector busy, and writes over stacks that were left.
func collect() {
	for {
		deep(200)
		runtime.GC()
	}
}

func deep(n int) byte {
	var room [512]byte
	if n > 0 {
		room[n] = deep(n - 1)
	}
	return room[n/2]
}
