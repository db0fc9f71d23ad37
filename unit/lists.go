package unit

import (
	"math/big"
	"strconv"
	"strings"
)

// ParseRatios reads a list of shares: "0,1%,0.05" or a range with a step as
// "0..5%/1%", or both. Order is kept; a repeated one is an error.
func ParseRatios(text string) ([]float64, error) {
	list, err := spans("shares", text, "want shares as 0,1% or a range with a step as 0..5%/1%", func(word string) (*big.Rat, error) {
		if _, err := ParseRatio(word); err != nil {
			return nil, err
		}
		number, percent := strings.CutSuffix(strings.TrimSpace(word), "%")
		v, _ := decimal(strings.TrimSpace(number)) // as ParseRatio found
		if percent {
			v.Quo(v, big.NewRat(100, 1))
		}
		return v, nil
	})
	if err != nil {
		return nil, err
	}
	var ratios []float64
	for _, v := range list {
		f, _ := v.Float64()
		ratios = append(ratios, f)
	}
	return ratios, nil
}

// ParseBitRates reads a list of bit rates: "1mbit,10mbit" or a range with a step as
// "10mbit..50mbit/10mbit", or both; 0 is without a limit. Order is kept; a
// repeated one is an error.
func ParseBitRates(text string) ([]BitRate, error) {
	list, err := spans("bit rates", text, "want bit rates as 1mbit,10mbit or a range with a step as 10mbit..50mbit/10mbit", func(word string) (*big.Rat, error) {
		if strings.TrimSpace(word) == "0" {
			return new(big.Rat), nil
		}
		b, err := ParseBitRate(word)
		return new(big.Rat).SetInt64(int64(b)), err
	})
	if err != nil {
		return nil, err
	}
	var rates []BitRate
	for _, v := range list {
		rates = append(rates, BitRate(v.Num().Uint64()))
	}
	return rates, nil
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
				return nil, &SyntaxError{kind, text, want}
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
		return &SyntaxError{l.kind, l.text, "names a value of " + strconv.Quote(strings.TrimSpace(word)) + " twice"}
	case len(l.seen) >= MaxListLength:
		return &SyntaxError{l.kind, l.text, "has more than " + strconv.Itoa(MaxListLength) + " values"}
	case l.seen == nil:
		l.seen = map[K]bool{}
	}
	l.seen[value] = true
	return nil
}
