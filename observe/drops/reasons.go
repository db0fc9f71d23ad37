package drops

import (
	"fmt"
	"regexp"
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
