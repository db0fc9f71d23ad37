package impair

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"pelt/internal/testenv"
)

func TestDistributions(t *testing.T) {
	// CRC-32 of the values as tc sends them, equal to that of the file of iproute2 6.1
	for name, sum := range map[string]uint32{
		"normal": 0x70565c65, "pareto": 0xeefaaa26, "paretonormal": 0x7bf1f4e1,
	} {
		d, err := Distribution(name)
		testenv.Must(t, err)
		var b bytes.Buffer
		testenv.Must(t, binary.Write(&b, binary.LittleEndian, d.Values))
		if got := crc32.ChecksumIEEE(b.Bytes()); got != sum || len(d.Values) != 4096 || d.Name != name {
			t.Errorf("%s: %d values named %s with checksum %#x, want 4096 with %#x", name, len(d.Values), d.Name, got,
				sum)
		}
	}
	if d, err := Distribution("uniform"); d != nil || err != nil {
		t.Errorf("uniform: %v, %v", d, err)
	}
	if _, err := Distribution("cauchy"); err == nil ||
		err.Error() != `unknown distribution "cauchy": there are uniform, normal, pareto, paretonormal` {
		t.Errorf("cauchy: %v", err)
	}
}
