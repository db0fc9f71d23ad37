package impair

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
)

func TestDistributions(t *testing.T) {
	for name, sum := range map[string]uint32{ // CRC-32 of the values as tc sends them, equal to that of the file of iproute2 6.1
		"normal": 0x70565c65, "pareto": 0xeefaaa26, "paretonormal": 0x7bf1f4e1,
	} {
		d, err := Distribution(name)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := binary.Write(&b, binary.LittleEndian, d.Values); err != nil {
			t.Fatal(err)
		}
		if got := crc32.ChecksumIEEE(b.Bytes()); got != sum || len(d.Values) != 4096 || d.Name != name {
			t.Errorf("%s: %d values named %s with checksum %#x, want 4096 with %#x", name, len(d.Values), d.Name, got, sum)
		}
	}
	if d, err := Distribution("uniform"); d != nil || err != nil {
		t.Errorf("uniform: %v, %v", d, err)
	}
	if _, err := Distribution("cauchy"); err == nil || err.Error() != `unknown distribution "cauchy": there are uniform, normal, pareto, paretonormal` {
		t.Errorf("cauchy: %v", err)
	}
}

func TestReadTable(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []int16
		err        string
	}{
		{"plain", "# a comment\n -8192 0\t8192 # and one\n\n 32767 -32768\r\n", []int16{-8192, 0, 8192, 32767, -32768}, ""},
		{"no end of line", "1 2", []int16{1, 2}, ""},
		{"as many as the kernel has room for", strings.Repeat("5\n", 16384), slices.Repeat([]int16{5}, 16384), ""},
		{"empty", "", nil, "read distribution x: no numbers"},
		{"comments only", "# 1 2 3\n", nil, "read distribution x: no numbers"},
		{"word", "1\n2 three\n", nil, `read distribution x: line 2: "three": want whole numbers from -32768 to 32767`},
		{"fraction", "0.5\n", nil, `read distribution x: line 1: "0.5": want whole numbers from -32768 to 32767`},
		{"too large", "# one\n\n 32768\n", nil, `read distribution x: line 3: "32768": want whole numbers from -32768 to 32767`},
		{"too many", strings.Repeat("5\n", 16385), nil, "read distribution x: line 16385: more than 16384 numbers"},
		{"long line", "1\n" + strings.Repeat("5 ", 40_000), nil, "read distribution x: line 2: longer than 65536 bytes"},
	} {
		got, err := ReadTable("x", strings.NewReader(c.text))
		if c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: error %v, want %s", c.name, err, c.err)
			}
			continue
		}
		if err != nil || !slices.Equal(got.Values, c.want) || got.Name != "x" {
			t.Errorf("%s: got %+v, %v; want %v", c.name, got, err, c.want)
		}
	}
	broken := fmt.Errorf("pulled out")
	if _, err := ReadTable("x", failing{broken}); err == nil || err.Error() != "read distribution x: pulled out" {
		t.Errorf("a failing reader gave %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func FuzzReadTable(f *testing.F) {
	for _, text := range []string{"", "1 2 3", "# c\n-8192\n\t0 8192", "99999", "1\x00", "1 #\n#", "\xff", "+5 -0", strings.Repeat("\U00100015", 50)} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := ReadTable("x", bytes.NewReader(text))
		if err != nil {
			if got != nil || strings.ContainsAny(err.Error(), "\r\n") || len(err.Error()) > 500 { // 40 runes, escaped
				t.Fatalf("%q gave %v and the error %q, want one of them, and one line", text, got, err)
			}
			return
		}
		if len(got.Values) == 0 || len(got.Values) > 16384 {
			t.Fatalf("%q gave %d values", text, len(got.Values))
		}
		again, err := ReadTable("x", strings.NewReader(strings.Trim(strings.ReplaceAll(fmt.Sprint(got.Values), " ", "\n"), "[]")))
		if err != nil || !slices.Equal(again.Values, got.Values) {
			t.Fatalf("%q: written and read again gave %v, %v", text, again, err)
		}
		s := Settings{Delay: 1e9, Jitter: 1e9, Shape: got, Correlation: 0.5}
		New(s).Offer(0, 60)
	})
}
