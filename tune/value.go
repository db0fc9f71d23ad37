package tune

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// value is a form of values.
type value struct {
	want  string
	valid func(string) bool
}

var (
	decimalText = regexp.MustCompile(`^(0|[1-9][0-9]{0,17})$`) // a leading 0 would be octal to the kernel
	wordText    = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,30}$`)
)

var (
	aNumber = value{"a whole number", decimalText.MatchString}
	aWord   = value{"a word", wordText.MatchString}
	triple  = value{"three whole numbers, none below the one before", func(s string) bool {
		f := strings.Fields(s)
		wrong := func(x string) bool { return !decimalText.MatchString(x) }
		return len(f) == 3 && !slices.ContainsFunc(f, wrong) && parsed(f[0]) <= parsed(f[1]) &&
			parsed(f[1]) <= parsed(f[2])
	}}
)

func parsed(s string) uint64 { n, _ := strconv.ParseUint(s, 10, 64); return n }

func oneSpaced(s string) string { return strings.Join(strings.Fields(s), " ") }

// mask writes a mask of cores without commas and leading zeros.
func mask(s string) string {
	var all string
	for part := range strings.SplitSeq(oneSpaced(s), ",") {
		all += strings.Repeat("0", max(0, 8-len(part))) + part
	}
	return strings.TrimLeft(all, "0")
}
