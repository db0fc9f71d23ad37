package unit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"pelt/test/golden"
)

// TestTexts: each line of the file is a kind and a text. Below stands what is read, or what is wrong with it. What is
// printed is read as the same value.
func TestTexts(t *testing.T) {
	again := func(text string, same func(back string) bool) string {
		if !same(text) {
			t.Errorf("%q is read as another value", text)
		}
		return text
	}
	list := func(u Unit) func(string) (string, error) {
		return func(text string) (string, error) {
			values, err := ParseList(u, text)
			return fmt.Sprint(values), err
		}
	}
	read := map[string]func(string) (string, error){
		"rate": func(text string) (string, error) {
			r, err := ParseRate(text)
			if err != nil {
				return "", err
			}
			pps, _ := r.PPS(1000)
			return again(r.String(), func(s string) bool {
				back, err := ParseRate(s)
				return err == nil && back == r
			}) + fmt.Sprintf(", %.12g pps of 1000 B, in short %s", pps, r.Short()), nil
		},
		"bit-rate": func(text string) (string, error) {
			r, err := ParseBitRate(text)
			if err != nil {
				return "", err
			}
			return again(r.String(), func(s string) bool {
				back, err := ParseBitRate(s)
				return err == nil && back == r
			}), nil
		},
		"duration": func(text string) (string, error) {
			d, err := ParseDuration(text)
			if err != nil {
				return "", err
			}
			return again(Duration(d), func(s string) bool {
				back, err := ParseDuration(s)
				return err == nil && back == d
			}) + ", " + FormatDuration(d), nil
		},
		"bytes": func(text string) (string, error) {
			n, err := ParseBytes(text)
			return again(strconv.FormatInt(n, 10),
				func(s string) bool { back, err := ParseBytes(s); return err == nil && back == n }), err
		},
		"ratio": func(text string) (string, error) {
			v, err := ParseRatio(text)
			return fmt.Sprintf("%.12g", v), err
		},
		"sizes":     func(text string) (string, error) { v, err := ParseSizes(text); return fmt.Sprint(v), err },
		"rates":     func(text string) (string, error) { v, err := ParseRates(text); return fmt.Sprint(v), err },
		"addresses": func(text string) (string, error) { v, err := ParseAddresses(text); return fmt.Sprint(v), err },
		"shares":    list(Ratio), "bit-rates": list(BPS), "times": list(Seconds), "nanos": list(Nanos),
	}
	golden.Table(t, "testdata/texts.txt", func(question string) string {
		kind, text, _ := strings.Cut(question, " ")
		got, err := read[kind](strings.ReplaceAll(strings.Trim(text, `"`), "ONES", strings.Repeat("1", 60)))
		if err == nil {
			return got
		}
		if wrong := (*SyntaxError)(nil); !errors.As(err, &wrong) || strings.Contains(err.Error(), "\n") ||
			len(err.Error()) > 300 {
			t.Errorf("%s: an error of another form: %v", question, err)
		}
		return err.Error()
	})
}

// TestNumbers: each line of the file is a unit and numbers. Below stands how they are printed.
func TestNumbers(t *testing.T) {
	golden.Table(t, "testdata/numbers.txt", func(question string) string {
		words := strings.Fields(question)
		var v []float64
		for _, w := range words[1:] {
			f, err := strconv.ParseFloat(w, 64)
			if err != nil {
				t.Fatal(err)
			}
			v = append(v, f)
		}
		var out []string
		for _, f := range v {
			var text string
			switch words[0] {
			case "number":
				text = FormatCount(uint64(f))
			case "moment":
				text = FormatMoment(f)
			case "estimate":
				text = FormatEstimate(f)
			case "change":
				text = Change(f, false)
			case "points":
				text = Change(f, true)
			default:
				u := Unit(words[0])
				text = u.Format(f) + "; exactly " + u.Exact(f)
				if between := u.Between(f, 1.25*f); between != "" {
					text += "; from there " + between
				}
			}
			out = append(out, fmt.Sprintf("%v: %q", f, text))
		}
		return strings.Join(out, "\n")
	})
	if got := FormatCount(math.MaxUint64); len(strings.FieldsFunc(got,
		func(r rune) bool { return r < '0' || r > '9' })) != 7 {
		t.Errorf("the greatest count is %q", got)
	}
	if got := FormatNanos(90e9) + FormatSize(1472) + FormatDuration(126*time.Hour) +
		FormatPPS(math.NaN()); got != "90.0 s1472 B126 h–" {
		t.Error(got)
	}
}
