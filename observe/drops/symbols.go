package drops

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// symbol is a place in the kernel's code.
type symbol struct {
	Function string
	Offset   uint64
}

// maxOffset bounds a function: beyond it an address is in no known one.
const maxOffset = 1 << 20

// parseSymbol reads what the kernel prints of an address that it knows, such as nft_do_chain+0x3e8/0x5a0 [nf_tables].
func parseSymbol(text string) (symbol, bool) {
	name, rest, _ := strings.Cut(text, "+0x")
	offset, _, whole := strings.Cut(rest, "/")
	at, err := strconv.ParseUint(offset, 16, 64)
	name, _, _ = strings.Cut(name, ".")
	return symbol{name, at}, whole && err == nil && name != ""
}

const kallsyms = "/proc/kallsyms"

// kernelFunctions finds the functions that addresses lie in. It takes 0.05 s on a fast machine and many times that on
// a slow one. hidden reports that the kernel shows no addresses.
func kernelFunctions(addresses []uint64) (found map[uint64]symbol, hidden bool, err error) {
	f, err := os.Open(kallsyms)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	return findFunctions(f, addresses)
}

// findFunctions reads the format of /proc/kallsyms. Of names of one address the first counts.
func findFunctions(r io.Reader, addresses []uint64) (found map[uint64]symbol, hidden bool, err error) {
	addresses = slices.Sorted(slices.Values(addresses))
	found, hidden = map[uint64]symbol{}, true
	err = functions(r, func(at uint64, name []byte) {
		hidden = false
		i, _ := slices.BinarySearch(addresses, at)
		for ; i < len(addresses) && addresses[i]-at < maxOffset; i++ {
			offset := addresses[i] - at
			if nearest, ok := found[addresses[i]]; !ok || offset < nearest.Offset {
				found[addresses[i]] = symbol{string(name), offset}
			}
		}
	})
	return found, hidden, err
}

// tap is a function's code, the end excluded.
type tap struct{ begin, end uint64 }

// findTaps tells where the functions of these names begin and end, by address. What
// nothing follows has no end.
func findTaps(r io.Reader, names []string) (taps []tap) {
	var starts, wanted []uint64
	_ = functions(r, func(at uint64, name []byte) {
		starts = append(starts, at)
		if slices.Contains(names, string(name)) {
			wanted = append(wanted, at)
		}
	})
	slices.Sort(starts)
	slices.Sort(wanted)
	for _, begin := range slices.Compact(wanted) {
		if i, _ := slices.BinarySearch(starts, begin+1); i < len(starts) {
			taps = append(taps, tap{begin, starts[i]})
		}
	}
	return taps
}

// functions calls each for every function symbol with an address, modules' too,
// in the file's order. Compilers split functions: foo.cold and foo.part.0 are
// told as foo.
func functions(r io.Reader, each func(at uint64, name []byte)) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		address, rest, _ := bytes.Cut(lines.Bytes(), []byte(" "))
		kind, name, ok := bytes.Cut(rest, []byte(" "))
		if !ok || len(kind) != 1 || !bytes.Contains([]byte("tTwW"), kind) {
			continue
		}
		at, err := strconv.ParseUint(string(address), 16, 64)
		if err != nil || at == 0 {
			continue
		}
		name, _, _ = bytes.Cut(name, []byte("\t"))
		name, _, _ = bytes.Cut(name, []byte("."))
		if len(name) > 0 {
			each(at, name)
		}
	}
	return lines.Err()
}
