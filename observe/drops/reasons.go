package drops

import (
	"fmt"
	"strconv"
)

// reasons are this kernel's names of drop reasons.
type reasons struct {
	names      map[uint32]string // whole value, subsystem included
	subsystems map[uint32]string // value >> 16
}

const (
	reasonPrefix = "SKB_DROP_REASON_"
	notSpecified = "NOT_SPECIFIED" // what the kernel calls none
)

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
