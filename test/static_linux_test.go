package test

import (
	"debug/elf"
	"testing"

	"pelt/internal/peltproc"
)

// TestStatic holds the binary to what README says: it runs on a host of any C library, and of none.
func TestStatic(t *testing.T) {
	f, err := elf.Open(peltproc.Binary)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the binary asks for a dynamic loader (PT_INTERP)")
		}
	}
	if needed, err := f.DynString(elf.DT_NEEDED); err == nil && len(needed) > 0 {
		t.Errorf("the binary needs libraries: %v", needed)
	}
}
