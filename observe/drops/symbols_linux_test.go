//go:build amd64 || arm64

package drops

import (
	"os"
	"testing"

	"pelt/internal/testenv"
)

// somewhere are addresses in functions of the kernel and of its modules.
func somewhere(t testing.TB) (addresses []uint64) {
	t.Helper()
	f, err := os.Open(kallsyms)
	testenv.Must(t, err)
	defer f.Close()
	n := 0
	err = functions(f, func(at uint64, _ []byte) {
		if n++; n%5000 == 1 {
			addresses = append(addresses, at+1)
		}
	})
	if err != nil || len(addresses) == 0 {
		t.Fatalf("%d functions, %v", n, err)
	}
	return addresses
}

// What the kernel says of an address is what its list of symbols does.
func TestFunctionOf(t *testing.T) {
	m := machineOf(t, 1024)
	if m.kernel.old {
		t.Skip("a program that names functions: needs Linux 5.17")
	}
	addresses := somewhere(t)
	listed, _, err := kernelFunctions(addresses)
	testenv.Must(t, err)
	for _, at := range addresses {
		if got, ok := m.names.namer.name(&m.kernel, at); !ok || got != listed[at] {
			t.Errorf("%#x: %v, %v; want %v", at, got, ok, listed[at])
		}
	}
	if got, ok := m.names.namer.name(&m.kernel, 1); ok {
		t.Errorf("an address in no function is in %v", got)
	}
}
