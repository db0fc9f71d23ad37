package counters

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
)

// Two of a kernel's files, with a negative value and a value above 2^32.
const snmpNow = `Ip: Forwarding DefaultTTL InReceives InHdrErrors OutTransmits
Ip: 2 64 4294967300 5 9
Tcp: RtoAlgorithm RtoMin RtoMax MaxConn InSegs
Tcp: 1 200 120000 -1 7
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors
Udp: 1 2 3 4 5 6 7 8 9
`

// An old kernel's: names that came later are missing.
const snmpOld = `Ip: Forwarding DefaultTTL InReceives InHdrErrors
Ip: 1 64 12 0
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors
Udp: 1 2 3 4 5 6`

func TestParsePairs(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       map[string]uint64
		fault      string
	}{
		{"new", snmpNow, map[string]uint64{
			"Ip.Forwarding": 2, "Ip.DefaultTTL": 64, "Ip.InReceives": 4294967300, "Ip.InHdrErrors": 5, "Ip.OutTransmits": 9,
			"Tcp.RtoAlgorithm": 1, "Tcp.RtoMin": 200, "Tcp.RtoMax": 120000, "Tcp.MaxConn": 0, "Tcp.InSegs": 7,
			"Udp.InDatagrams": 1, "Udp.NoPorts": 2, "Udp.InErrors": 3, "Udp.OutDatagrams": 4, "Udp.RcvbufErrors": 5,
			"Udp.SndbufErrors": 6, "Udp.InCsumErrors": 7, "Udp.IgnoredMulti": 8, "Udp.MemErrors": 9,
		}, ""},
		{"old, without a last newline", snmpOld, map[string]uint64{
			"Ip.Forwarding": 1, "Ip.DefaultTTL": 64, "Ip.InReceives": 12, "Ip.InHdrErrors": 0,
			"Udp.InDatagrams": 1, "Udp.NoPorts": 2, "Udp.InErrors": 3, "Udp.OutDatagrams": 4, "Udp.RcvbufErrors": 5, "Udp.SndbufErrors": 6,
		}, ""},
		{"empty", "", map[string]uint64{}, ""},
		{"fewer values than names", "Ip: A B\nIp: 1\nUdp: C\nUdp: 2\n", map[string]uint64{"Ip.A": 1, "Udp.C": 2}, "not as many values"},
		{"more values than names", "Ip: A\nIp: 1 2\n", map[string]uint64{"Ip.A": 1}, "not as many values"},
		{"not a number", "Ip: A B\nIp: x 1\n", map[string]uint64{"Ip.B": 1}, `Ip.A is "x"`},
		{"beyond 64 bits", "Ip: A\nIp: 18446744073709551616\n", map[string]uint64{}, "not a number"},
		{"greatest", "Ip: A\nIp: 18446744073709551615\n", map[string]uint64{"Ip.A": 1<<64 - 1}, ""},
		{"a line alone, then a pair", "Ip: A\nUdp: B\nUdp: 3\n", map[string]uint64{"Udp.B": 3}, "not followed by its values"},
		{"cut after the names", "Ip: A B", map[string]uint64{}, "not followed"},
		{"no colon", "hello\nworld\n", map[string]uint64{}, "not followed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := map[string]uint64{}
			err := parsePairs(c.text, func(group, name string, _, v uint64) { got[group+"."+name] = v })
			check(t, c.text, got, c.want, err, c.fault)
		})
	}
}

func check(t *testing.T, text string, got, want any, err error, fault string) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q:\ngot  %v\nwant %v", text, got, want)
	}
	if (err == nil) != (fault == "") || err != nil && (!strings.Contains(err.Error(), fault) || strings.Contains(err.Error(), "\n")) {
		t.Errorf("%q: error %v, want one line with %q", text, err, fault)
	}
}

func TestParseSNMP6(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       map[string]uint64
		fault      string
	}{
		{"usual", "Ip6InReceives                   \t7640285\nUdp6RcvbufErrors \t3\nUdpLite6InErrors 1\nIcmp6InType133 9\n",
			map[string]uint64{"Ip6.InReceives": 7640285, "Udp6.RcvbufErrors": 3, "UdpLite6.InErrors": 1, "Icmp6.InType133": 9}, ""},
		{"without a value", "Ip6InReceives\nUdp6InErrors 2", map[string]uint64{"Udp6.InErrors": 2}, `"Ip6InReceives" is ""`},
		{"no group", "Hello 1\n", map[string]uint64{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := map[string]uint64{}
			err := parseSNMP6(c.text, func(group, name string, _, v uint64) { got[group+"."+name] = v })
			check(t, c.text, got, c.want, err, c.fault)
		})
	}
}

func softnetLine(columns ...uint32) string {
	words := make([]string, len(columns))
	for i, c := range columns {
		words[i] = fmt.Sprintf("%08x", c)
	}
	return strings.Join(words, " ") + "\n"
}

func TestParseSoftnet(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []softnetRow
		fault      string
	}{
		{"15 columns, processor 1 offline", softnetLine(1, 2, 3, 0, 0, 0, 0, 0, 0, 10, 11, 12, 0, 14, 15) + softnetLine(0xffffffff, 5, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0),
			[]softnetRow{{0, [11]uint32{1, 2, 3, 0, 0, 0, 0, 0, 0, 10, 11}, 15}, {2, [11]uint32{0xffffffff, 5, 6}, 15}}, ""},
		{"13 columns", softnetLine(1, 2, 3, 0, 0, 0, 0, 0, 0, 10, 11, 12, 7), []softnetRow{{7, [11]uint32{1, 2, 3, 0, 0, 0, 0, 0, 0, 10, 11}, 13}}, ""},
		{"11 columns", softnetLine(1, 2, 3, 0, 0, 0, 0, 0, 9, 10, 11) + softnetLine(4, 5),
			[]softnetRow{{0, [11]uint32{1, 2, 3, 0, 0, 0, 0, 0, 9, 10, 11}, 11}, {1, [11]uint32{4, 5}, 2}}, ""},
		{"processor 2000", softnetLine(1, 2, 3, 0, 0, 0, 0, 0, 0, 10, 11, 12, 2000), []softnetRow{{2000, [11]uint32{1, 2, 3, 0, 0, 0, 0, 0, 0, 10, 11}, 13}}, ""},
		{"9 columns", softnetLine(1, 2, 3, 0, 0, 0, 0, 0, 9), []softnetRow{{0, [11]uint32{1, 2, 3, 0, 0, 0, 0, 0, 9}, 9}}, ""},
		{"4 columns", softnetLine(1, 2, 3, 4), []softnetRow{{0, [11]uint32{1, 2, 3, 4}, 4}}, ""},
		{"1 column", softnetLine(1), nil, "one column"},
		{"empty", "", nil, "no processor"},
		{"33 bits", "100000000 00000000\n", nil, "not a 32-bit"},
		{"one row broken", softnetLine(1, 2) + "00000001 xyz\n" + softnetLine(3, 4), []softnetRow{{0, [11]uint32{1, 2}, 2}, {1, [11]uint32{3, 4}, 2}}, `row 2, column 2 is "xyz"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseSoftnet(c.text)
			check(t, c.text, got, c.want, err, c.fault)
		})
	}
}

const conntrackStat = `entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error  expect_new expect_create expect_delete search_restart
00000005  00000000 00000000 00000000 00000001 00000000 00000000 00000000 00000000 00000002 00000003 00000004 00000005  00000000 00000000 00000000 00000000
00000005  00000000 00000000 00000000 00000010 00000000 00000000 00000000 00000000 00000020 00000030 00000040 000000ff  00000000 00000000 00000000 00000000
`

func TestParseStat(t *testing.T) {
	type at struct {
		column string
		row    uint64
	}
	for _, c := range []struct {
		name, text string
		some       map[at]uint64
		count      int
		fault      string
	}{
		{"conntrack", conntrackStat, map[at]uint64{{"invalid", 0}: 1, {"drop", 1}: 0x30, {"icmp_error", 1}: 0xff}, 34, ""},
		{"tabs, as in synproxy", "entries\t\tsyn_received\n00000001\t0000000a\n", map[at]uint64{{"syn_received", 0}: 10}, 2, ""},
		{"fewer values", "a b c\n1 2\n", map[at]uint64{{"a", 0}: 1, {"b", 0}: 2}, 2, ""},
		{"no rows", "a b\n", nil, 0, ""},
		{"empty", "", nil, 0, ""},
		{"not hexadecimal", "a b\nxy 2\n", map[at]uint64{{"b", 0}: 2}, 1, `row 1, a is "xy"`},
		{"17 digits", "a\n11111111111111111\n", nil, 0, "not a hexadecimal"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := map[at]uint64{}
			err := parseStat(c.text, func(column string, row, v uint64) { got[at{column, row}] = v })
			if len(got) != c.count {
				t.Errorf("%d values, want %d: %v", len(got), c.count, got)
			}
			for k, v := range c.some {
				if n, ok := got[k]; n != v || !ok {
					t.Errorf("%v is %d (%v), want %d", k, n, ok, v)
				}
			}
			check(t, c.text, nil, nil, err, c.fault)
		})
	}
}

// The columns of the file have names of their own for some counters.
func TestConntrackColumns(t *testing.T) {
	const text = `entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error  expect_new expect_create expect_delete search_restart
00000005  0000000d 00000000 00000000 00000001 00000000 00000000 00000006 00000000 00000002 00000003 00000004 00000005  00000000 00000000 00000000 00000000
`
	var s Snapshot
	if err := addConntrack(&s, text); err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{}
	for _, r := range s.readings {
		got[r.name] += r.value
	}
	want := map[string]uint64{"conntrack.invalid": 1, "conntrack.insert_failed": 2, "conntrack.drop": 3, "conntrack.early_drop": 4, "conntrack.error": 5, "conntrack.chaintoolong": 6}
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

const udpFile = `   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops            
  270: 00000000:1451 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 12345 2 00000000abcdef01 196          
  271: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 12346 2 00000000abcdef02 0            
`

const udp6File = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  271: 00000000000000000000000000000000:270F 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 23456 2 00000000abcdef03 7
`

func TestParseSockets(t *testing.T) {
	type socket struct {
		port         uint16
		inode, drops uint64
	}
	for _, c := range []struct {
		name, text string
		want       []socket
		fault      string
	}{
		{"udp", udpFile, []socket{{5201, 12345, 196}}, ""},
		{"udp6", udp6File, []socket{{9999, 23456, 7}}, ""},
		{"no socket", "  sl  local_address\n", nil, ""},
		{"before there were drops", "head\n 1: 00000000:1451 0:0 07 0:0 00:0 0 0 0 12345 2 ffff\n", nil, ""},
		{"cut short", "head\n  1: 0000", nil, "does not name a socket"},
		{"odd drops", strings.Replace(udpFile, "196", "-", 1), nil, "does not name a socket"},
		{"odd port", strings.Replace(udpFile, ":1451", ":11451", 1), nil, "does not name a socket"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []socket
			err := parseSockets(c.text, func(port uint16, inode, drops uint64) { got = append(got, socket{port, inode, drops}) })
			check(t, c.text, got, c.want, err, c.fault)
		})
	}
}
