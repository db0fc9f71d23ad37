package lab

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestParseRequest(t *testing.T) {
	for _, c := range []struct{ name, text, wrong string }{
		{"describe", `{"format":"pelt/lab/4","do":"describe"}`, ""},
		{"namespaces", `{"format":"pelt/lab/4","do":"namespaces","from":64}`, ""},
		{"down", `{"format":"pelt/lab/4","do":"down"}`, ""},
		{"empty", ``, "malformed"},
		{"no JSON", `GET / HTTP/1.1`, "malformed"},
		{"two values", `{"format":"pelt/lab/4","do":"down"}{}`, "more than one"},
		{"unknown field", `{"format":"pelt/lab/4","do":"down","now":true}`, "unknown field"},
		{"other format", `{"format":"pelt/lab/9","do":"down"}`, "same version"},
		{"unknown verb", `{"format":"pelt/lab/4","do":"burn"}`, "unknown request"},
		{"negative from", `{"format":"pelt/lab/4","do":"namespaces","from":-1}`, "out of range"},
		{"set", `{"format":"pelt/lab/4","do":"set","changes":[{"node":"receiver","settings":[{"key":"loss","value":"1%"}]}],"lent":true}`, ""},
		{"watch", `{"format":"pelt/lab/4","do":"watch","trial":7}`, ""},
		{"collect", `{"format":"pelt/lab/4","do":"collect"}`, ""},
		{"links", `{"format":"pelt/lab/4","do":"links"}`, ""},
		{"an older pelt", `{"format":"pelt/lab/2","do":"describe"}`, "same version"},
		{"set nothing", `{"format":"pelt/lab/4","do":"set"}`, "belongs to another"},
		{"set nonsense", `{"format":"pelt/lab/4","do":"set","changes":[{"settings":[{"key":"loss","value":"200%"}]}]}`, "between 0 and 100"},
		{"changes with down", `{"format":"pelt/lab/4","do":"down","changes":[{"settings":[{"key":"loss","value":"1%"}]}]}`, "belongs to another"},
		{"trial with collect", `{"format":"pelt/lab/4","do":"collect","trial":3}`, "belongs to another"},
		{"from with down", `{"format":"pelt/lab/4","do":"down","from":1}`, "out of range"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parseRequest([]byte(c.text))
			if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("parseRequest(%q) = %v, want %q", c.text, err, c.wrong)
			}
		})
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add([]byte(`{"format":"pelt/lab/4","do":"namespaces","from":3}`))
	f.Add([]byte(`[[[[`))
	f.Fuzz(func(t *testing.T, packet []byte) {
		r, err := parseRequest(packet)
		if err != nil {
			if !reflect.DeepEqual(r, request{}) {
				t.Errorf("parseRequest(%q) = %+v beside %v", packet, r, err)
			}
			return
		}
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := parseRequest(b); err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%q reads as %+v, which reads as %+v, %v", packet, r, again, err)
		}
	})
}

func FuzzParseReply(f *testing.F) {
	f.Add([]byte(`{"format":"pelt/lab/4","held":{"name":"r1","nodes":[{"name":"sender","interfaces":[{"addr4":"198.18.0.1/16"}]}]},"count":2}`))
	f.Fuzz(func(t *testing.T, packet []byte) {
		if r, err := parseReply(packet); err == nil && (r.Format != holderFormat || r.Error != "") {
			t.Errorf("parseReply(%q) = %+v without an error", packet, r)
		}
	})
}

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
	for uid, want := range map[int][]string{-1: {"@pelt/lab/0/home", "@pelt/lab/1000/r1"}, 1000: {"@pelt/lab/1000/r1"}, 7: nil} {
		if got := parseSockets(unixTable, uid); !slices.Equal(got, want) {
			t.Errorf("parseSockets for uid %d: got %q, want %q", uid, got, want)
		}
	}
}

func FuzzParseSockets(f *testing.F) {
	f.Add(unixTable)
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range parseSockets(text, -1) {
			if !strings.HasPrefix(name, "@pelt/lab/") {
				t.Errorf("parseSockets(%q) found %q", text, name)
			}
		}
	})
}

func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{
		"r1": true, "a": true, strings.Repeat("x", 32): true, "my-lab": true,
		"": false, strings.Repeat("x", 33): false, "R1": false, "a/b": false, "a b": false, "nat": false, "router": false, "é": false, "a\n": false,
	} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("CheckName(%q) = %v, want ok %v", name, err, ok)
		}
	}
}
