//go:build amd64 || arm64

package drops

import (
	"fmt"
	"testing"

	"pelt/internal/testenv"
)

// The functions are read once, and again when modules came or went, or for an
// address that none holds.
func TestKernelFunctions(t *testing.T) {
	testenv.Root(t)
	const most = 5
	fault := ""
	for range most {
		before := modulesNow()
		if fault = readsOfFunctions(t); fault == "" {
			return
		}
		if modulesNow() == before {
			break // else others had the kernel load one meanwhile
		}
	}
	t.Fatal(fault)
}

// readsOfFunctions says what is wrong about what is found, and how often it was read; "" if nothing.
func readsOfFunctions(t *testing.T) string {
	var k kernelFunctions
	taps := k.named([]string{"ip_rcv", "udp_recvmsg"})
	if len(taps) < 2 {
		t.Fatalf("the kernel shows %d of two functions; needs root", len(taps))
	}
	names := map[string]bool{}
	look := func(addresses ...uint64) map[uint64]symbol {
		found, hidden, err := k.resolve(addresses)
		if hidden || err != nil {
			t.Fatalf("hidden %v, %v", hidden, err)
		}
		return found
	}
	for _, at := range taps {
		got := look(at.begin, at.end-1)
		if got[at.begin].Offset != 0 || got[at.end-1] != (symbol{got[at.begin].Function, at.end - 1 - at.begin}) {
			return fmt.Sprintf("from %x to %x: %v", at.begin, at.end, got)
		}
		names[got[at.begin].Function] = true
	}
	if len(names) != 2 || k.reads != 1 {
		return fmt.Sprintf("found %v in %d reads, want both functions in one", names, k.reads)
	}
	if got := look(64, 128); len(got) > 0 || k.reads != 2 {
		return fmt.Sprintf("where no function is: %v, %d reads in all; want nothing, and one read more", got, k.reads)
	}
	k.modules = "loaded:\nanother 0xffffffffc0000000\n"
	if got := look(taps[0].begin); len(got) != 1 || k.reads != 3 {
		return fmt.Sprintf("after a change of modules: %v, %d reads in all; want one read more", got, k.reads)
	}
	return ""
}
