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
	maskText    = regexp.MustCompile(`^[0-9a-f]{1,8}(,[0-9a-f]{1,8})*$`)
	coresText   = regexp.MustCompile(`^[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?)*$`)
)

var (
	aNumber = value{"a whole number", decimalText.MatchString}
	aWord   = value{"a word", wordText.MatchString}
	onOff   = value{"on or off", func(s string) bool { return s == "on" || s == "off" }}
	triple  = value{"three whole numbers that do not fall", func(s string) bool {
		f := strings.Fields(s)
		wrong := func(x string) bool { return !decimalText.MatchString(x) }
		return len(f) == 3 && !slices.ContainsFunc(f, wrong) && parsed(f[0]) <= parsed(f[1]) && parsed(f[1]) <= parsed(f[2])
	}}
	aMask     = value{"a mask of cores in hexadecimal, as 3 or ffff0000,00000000", maskText.MatchString}
	coreLists = value{"a list of cores, as 0-3, or one for each interrupt in turn, as 0/1/2/3", func(s string) bool {
		return !slices.ContainsFunc(strings.Split(s, "/"), func(x string) bool { return !coresText.MatchString(x) })
	}}
)

func parsed(s string) uint64 { n, _ := strconv.ParseUint(s, 10, 64); return n }

func words(s string) string { return strings.Join(strings.Fields(s), " ") }

// mask writes a mask of cores without commas and leading zeros.
func mask(s string) string {
	var all string
	for part := range strings.SplitSeq(words(s), ",") {
		all += strings.Repeat("0", max(0, 8-len(part))) + part
	}
	return strings.TrimLeft(all, "0")
}

// cores writes a list of cores one by one, so that 0-1 is 0,1.
func cores(s string) string {
	set := map[int]bool{}
	for part := range strings.SplitSeq(words(s), ",") {
		low, high, span := strings.Cut(part, "-")
		from, err := strconv.Atoi(low)
		to := from
		if span && err == nil {
			to, err = strconv.Atoi(high)
		}
		if err != nil || to-from > 1<<16 {
			return words(s)
		}
		for c := from; c <= to; c++ {
			set[c] = true
		}
	}
	var list []string
	for c := range set {
		list = append(list, strconv.Itoa(c))
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}
