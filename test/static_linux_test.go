package test

import (
	"debug/elf"
	"slices"
	"strings"
	"testing"

	"pelt/internal/peltproc"
	"pelt/internal/testenv"
)

// TestStatic holds the binary to what README says: it runs on a host of any C library, and of none.
func TestStatic(t *testing.T) {
	f, err := elf.Open(peltproc.Binary)
	testenv.Must(t, err)
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

// TestNoTemplates: a template finds methods by their names, so that the linker can leave out none: 3.8 MB.
func TestNoTemplates(t *testing.T) {
	f, err := elf.Open(peltproc.Binary)
	testenv.Must(t, err)
	defer f.Close()
	symbols, err := f.Symbols()
	testenv.Must(t, err)
	if i := slices.IndexFunc(symbols, func(s elf.Symbol) bool { return strings.HasPrefix(s.Name, "text/template.(*Template)") }); i >= 0 {
		t.Errorf("the binary has %s", symbols[i].Name)
	}
}
