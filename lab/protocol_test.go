package lab

import (
	"slices"
	"strings"
	"testing"
)

const unixTable = `Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0005 01 4711 @pelt/lab/0/home
0000000000000000: 00000002 00000000 00010000 0005 01 4712 @pelt/lab/1000/r1
0000000000000000: 00000003 00000000 00000000 0005 03 4713 @pelt/lab/0/home
0000000000000000: 00000002 00000000 00010000 0005 01 4714 @pelt/lab/0/Bad_Name
0000000000000000: 00000002 00000000 00010000 0005 01 4715 @pelt/lab/x
0000000000000000: 00000002 00000000 00010000 0001 01 4716 /run/dbus
short line
`

func TestParseSockets(t *testing.T) {
	for uid, want := range map[int][]string{0: {"@pelt/lab/0/home"}, 1000: {"@pelt/lab/1000/r1"}, 7: nil} {
		if got := parseSockets(unixTable, uid); !slices.Equal(got, want) {
			t.Errorf("parseSockets for uid %d: got %q, want %q", uid, got, want)
		}
	}
}

func FuzzParseSockets(f *testing.F) {
	f.Add(unixTable)
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range parseSockets(text, 0) {
			if !strings.HasPrefix(name, "@pelt/lab/0/") {
				t.Errorf("parseSockets(%q) found %q", text, name)
			}
		}
	})
}
