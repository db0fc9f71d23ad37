package drops

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"slices"
	"sort"
)

// symbol is a place in the kernel's code.
type symbol struct {
	Function string
	Offset   uint64
}

// maxOffset bounds a function: beyond it an address is in no known one.
const maxOffset = 1 << 20

// index holds the kernel's functions by address. It does not change once made.
type index struct {
	starts []start // by address, those of one address as in the file
	names  []byte
}

type start struct {
	at       uint64
	from, to uint32 // its name within the index's
	fleeting bool   // of code that comes and goes without a module: BPF programs, trampolines
}

// newIndex reads functions in the format of /proc/kallsyms. Without any the kernel
// hides its addresses. Of names of one address the file's first counts.
func newIndex(r io.Reader) (*index, error) {
	x := &index{}
	err := functions(r, func(at uint64, name []byte, fleeting bool) {
		from := uint32(len(x.names))
		x.names = append(x.names, name...)
		x.starts = append(x.starts, start{at, from, uint32(len(x.names)), fleeting})
	})
	slices.SortStableFunc(x.starts, func(a, b start) int { return cmp.Compare(a.at, b.at) })
	x.starts = slices.Clip(x.starts)
	return x, err
}

// find tells the function that an address lies in.
func (x *index) find(address uint64) (found symbol, fleeting, ok bool) {
	i := x.after(address) - 1
	if i < 0 || address-x.starts[i].at >= maxOffset {
		return symbol{}, false, false
	}
	for i > 0 && x.starts[i-1].at == x.starts[i].at {
		i--
	}
	s := x.starts[i]
	return symbol{string(x.name(s)), address - s.at}, s.fleeting, true
}

// after is the place of the first function that begins beyond the address.
func (x *index) after(address uint64) int {
	return sort.Search(len(x.starts), func(i int) bool { return x.starts[i].at > address })
}

func (x *index) name(s start) []byte { return x.names[s.from:s.to] }

// named tells where the functions of these names begin and end, by address. What
// nothing follows has no end.
func (x *index) named(names []string) (taps []tap) {
	for _, s := range x.starts {
		if !slices.Contains(names, string(x.name(s))) {
			continue
		}
		if i := x.after(s.at); i < len(x.starts) {
			taps = append(taps, tap{begin: s.at, end: x.starts[i].at})
		}
	}
	return taps
}

// tap is a function's code, the end excluded.
type tap struct{ begin, end uint64 }

// functions calls each for every function symbol with an address, modules' too,
// in the file's order. Compilers split functions: foo.cold and foo.part.0 are
// told as foo.
func functions(r io.Reader, each func(at uint64, name []byte, fleeting bool)) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		address, rest, _ := bytes.Cut(lines.Bytes(), []byte(" "))
		kind, name, ok := bytes.Cut(rest, []byte(" "))
		if !ok || len(kind) != 1 || !bytes.Contains([]byte("tTwW"), kind) {
			continue
		}
		at, ok := parseHex(address)
		if !ok || at == 0 {
			continue
		}
		name, module, _ := bytes.Cut(name, []byte("\t"))
		name, _, _ = bytes.Cut(name, []byte("."))
		if len(name) > 0 {
			each(at, name, bytes.Equal(module, []byte("[bpf]")) || bytes.HasPrefix(module, []byte("[__builtin__")))
		}
	}
	return lines.Err()
}

func parseHex(b []byte) (v uint64, ok bool) {
	if len(b) == 0 || len(b) > 16 {
		return 0, false
	}
	for _, c := range b {
		switch {
		case '0' <= c && c <= '9':
			v = v<<4 | uint64(c-'0')
		case 'a' <= c && c <= 'f':
			v = v<<4 | uint64(c-'a'+10)
		default:
			return 0, false
		}
	}
	return v, true
}
