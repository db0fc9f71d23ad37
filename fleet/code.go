package fleet

import (
	"crypto/rand"
	_ "embed"
	"fmt"
	"math/big"
	"strings"

	"pelt/finding"
	"pelt/model"
)

const maxCode = 64 // bytes

// codeWords are the animals and the colours of codes: short, unlike each other when spoken, none
// offensive. Each list has at least 256; adding some is fine, taking some is not.
//
//go:embed words.txt
var codeWords string

// NewCode makes a random code such as tiger-42-amber: about 22.8 bits.
func NewCode() (string, error) {
	first, second, _ := strings.Cut(codeWords, "\n\n")
	a, c := strings.Fields(first), strings.Fields(second)
	var pick [3]int
	for i, n := range []int{len(a), 90, len(c)} {
		v, err := rand.Int(rand.Reader, big.NewInt(int64(n)))
		if err != nil {
			return "", fmt.Errorf("making a code: %w", err)
		}
		pick[i] = int(v.Int64())
	}
	return fmt.Sprintf("%s-%d-%s", a[pick[0]], 10+pick[1], c[pick[2]]), nil
}

// tidyCode is a code as both sides take it. Case and spaces do not matter, because codes are read aloud.
func tidyCode(code string) ([]byte, error) {
	between := func(r rune) bool { return r == ' ' || r == '-' || r == '\t' }
	text := strings.Join(strings.FieldsFunc(strings.ToLower(code), between), "-")
	if text == "" || len(text) > maxCode {
		return nil, finding.NewFault(model.CodeUnfit)
	}
	return []byte(text), nil
}
