package unit

import (
	"errors"
	"math/big"
	"strings"
)

// ParseList reads a list of numbers of a unit: "0,5ms" or a range with a step as "0..9ms/1ms", or both. Order is
// kept; a repeated one is an error. Bit rates of 0 are without a limit.
func ParseList(u Unit, text string) ([]float64, error) {
	kind, example, read := "sizes", "bytes as 64,1460 or a range with a step as 256..1024/256", readSize
	switch u {
	case Count:
		kind, example, read = "numbers", "whole numbers as 1,4 or a range with a step as 4..16/4", readCount
	case Ratio:
		kind, example, read = "shares", "shares as 0,1% or a range with a step as 0..5%/1%", readRatio
	case BPS:
		kind, example, read = "bit rates", "bit rates as 1mbit,10mbit or a range with a step as "+
			"10mbit..50mbit/10mbit", readBitRate
	case Seconds, Nanos:
		kind, example, read = "durations", "durations as 0,5ms or a range with a step as 0..9ms/1ms", readNanos
	}
	values, err := spans(kind, text, "want "+example, read)
	if err != nil {
		return nil, err
	}
	list := make([]float64, len(values))
	for i, v := range values {
		if u == Seconds {
			v = new(big.Rat).Quo(v, big.NewRat(1e9, 1))
		}
		list[i], _ = v.Float64()
	}
	return list, nil
}

// ParseSizes reads a list of sizes in bytes: "64,1460" or "256..10240/256", or both.
func ParseSizes(text string) ([]int, error) {
	list, err := ParseList(Bytes, text)
	var sizes []int
	for _, n := range list {
		if n > 1<<30 { // an int of 32 bits holds it
			return nil, wrong("sizes", text, "names a size beyond 1 GiB")
		}
		sizes = append(sizes, int(n))
	}
	return sizes, err
}

func readSize(word string) (*big.Rat, error) {
	n, err := ParseBytes(word)
	return new(big.Rat).SetInt64(n), err
}

func readCount(word string) (*big.Rat, error) {
	n, err := ParseBytes(word)
	if err != nil {
		err = wrong("number", word, "want a whole number, as 64")
	}
	return new(big.Rat).SetInt64(n), err
}

func readNanos(word string) (*big.Rat, error) {
	d, err := ParseDuration(word)
	return new(big.Rat).SetInt64(int64(d)), err
}

func readBitRate(word string) (*big.Rat, error) {
	if strings.TrimSpace(word) == "0" {
		return new(big.Rat), nil
	}
	b, err := ParseBitRate(word)
	return new(big.Rat).SetInt64(int64(b)), err
}

func readRatio(text string) (*big.Rat, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, ok := decimal(strings.TrimSpace(number))
	if !ok {
		return nil, wrong("ratio", text, "want a share as 0.1%% or 0.001")
	}
	if percent {
		v.Quo(v, big.NewRat(100, 1))
	}
	if v.Cmp(big.NewRat(1, 1)) > 0 {
		return nil, wrong("ratio", text, "must lie between 0 and 100%%")
	}
	return v, nil
}

// spans reads a list of values and ranges with a step, exactly.
func spans(kind, text, want string, read func(string) (*big.Rat, error)) ([]*big.Rat, error) {
	var list []*big.Rat
	once := levels[string]{kind: kind, text: text}
	for _, word := range strings.Split(text, ",") {
		from, rest, isRange := strings.Cut(strings.TrimSpace(word), "..")
		low, err := read(from)
		if err != nil {
			return nil, err
		}
		high, step := low, big.NewRat(1, 1)
		if isRange {
			to, by, stepped := strings.Cut(rest, "/")
			var err2 error
			high, err = read(to)
			step, err2 = read(by)
			if err != nil || err2 != nil || !stepped || step.Sign() <= 0 || high.Cmp(low) < 0 {
				return nil, Wrong(kind, text, errors.New(want))
			}
		}
		for v := low; v.Cmp(high) <= 0; v = new(big.Rat).Add(v, step) {
			if err := once.add(v.RatString(), word); err != nil {
				return nil, err
			}
			list = append(list, v)
		}
	}
	return list, nil
}

// levels are the values of a list so far: at most MaxListLength, each once.
type levels[K comparable] struct {
	kind, text string // as in SyntaxError
	seen       map[K]bool
}

// add takes a value that a word of the list stands for, among others where it is a range.
func (l *levels[K]) add(value K, word string) error {
	switch {
	case l.seen[value]:
		return wrong(l.kind, l.text, "names a value of %q twice", strings.TrimSpace(word))
	case len(l.seen) >= MaxListLength:
		return wrong(l.kind, l.text, "has more than %d values", MaxListLength)
	case l.seen == nil:
		l.seen = map[K]bool{}
	}
	l.seen[value] = true
	return nil
}
