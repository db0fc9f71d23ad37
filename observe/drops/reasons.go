package drops

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// reasons are this kernel's names of drop reasons.
type reasons struct {
	names      map[uint32]string // whole value, subsystem included
	subsystems map[uint32]string // value >> 16
}

const reasonPrefix = "SKB_DROP_REASON_"

// name returns what the kernel calls a reason.
func (r reasons) name(value uint32) string {
	if n, ok := r.names[value]; ok {
		return n
	}
	if s := r.subsystems[value>>16]; s != "" && value>>16 != 0 {
		return fmt.Sprintf("%s:%d", s, value&0xffff)
	}
	return strconv.FormatUint(uint64(value), 10)
}

// value is the reverse of name for the core reasons; 0 if there is none.
func (r reasons) value(name string) uint32 {
	for v, n := range r.names {
		if n == name && v>>16 == 0 {
			return v
		}
	}
	return 0
}

// { 6, "SOCKET_RCVBUFF" } in the print format of the tracepoint.
var formatReason = regexp.MustCompile(`\{\s*(\d{1,10}|0x[0-9a-fA-F]{1,8})\s*,\s*"([A-Za-z0-9_]{1,64})"\s*\}`)

// parseFormat reads the names from the tracepoint's own description,
// events/skb/kfree_skb/format in tracefs.
func parseFormat(text string) reasons {
	r := reasons{names: map[uint32]string{}}
	for _, m := range formatReason.FindAllStringSubmatch(text, -1) {
		v, err := strconv.ParseUint(m[1], 0, 32)
		if err != nil {
			continue
		}
		r.names[uint32(v)] = strings.TrimPrefix(m[2], reasonPrefix)
	}
	return r
}

// symbol is a place in the kernel's code.
type symbol struct {
	Function string
	Offset   uint64
}

// maxOffset bounds a function: beyond it an address is in no known one.
const maxOffset = 1 << 20

// resolve finds the functions that the addresses lie in, in the format of
// /proc/kallsyms. hidden reports that the kernel shows no addresses.
func resolve(r io.Reader, addresses []uint64) (found map[uint64]symbol, hidden bool, err error) {
	type start struct {
		at   uint64
		name string
	}
	wanted := slices.Clone(addresses)
	slices.Sort(wanted)
	best := make([]start, len(wanted))
	hidden = true
	err = functions(r, func(at uint64, name []byte) {
		hidden = false
		i, _ := slices.BinarySearch(wanted, at)
		if i < len(best) && at > best[i].at {
			best[i] = start{at, string(name)}
		}
	})
	found = map[uint64]symbol{}
	for i, a := range wanted {
		if i > 0 && best[i-1].at > best[i].at {
			best[i] = best[i-1]
		}
		if b := best[i]; b.name != "" && a-b.at < maxOffset {
			found[a] = symbol{b.name, a - b.at}
		}
	}
	return found, hidden, err
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
		at, ok := parseHex(address)
		if !ok || at == 0 {
			continue
		}
		name, _, _ = bytes.Cut(name, []byte("\t")) // module
		name, _, _ = bytes.Cut(name, []byte("."))
		if len(name) > 0 {
			each(at, name)
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
