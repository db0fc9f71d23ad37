package counters

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"pelt/test/golden"
)

// TestParse: each line of the file is a parser and a text. Below stand the values that it told of, and its fault.
func TestParse(t *testing.T) {
	golden.Texts(t, "testdata/parsed.txt", func(parser, text string) string {
		var err error
		var out strings.Builder
		tell := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
		pair := func(group, name string, _, v uint64) { tell("%s.%s %d", group, name, v) }
		switch parser {
		case "pairs":
			err = parsePairs(text, pair)
		case "snmp6":
			err = parseSNMP6(text, pair)
		case "softnet":
			var rows []softnetRow
			rows, err = parseSoftnet(text)
			for _, r := range rows {
				tell("processor %d: %x in %d columns", r.cpu, r.values, r.given)
			}
		case "stat":
			err = parseStat(text, func(column string, row, v uint64) { tell("%s of row %d %d", column, row, v) })
		case "dev":
			err = parseDev(text, func(name string, values []uint64) { tell("%s %d", name, values) })
		case "processors":
			var p Processors
			if p, err = ParseProcessors(text); err == nil {
				tell("all %d, cores %v", p.All, p.Cores)
			}
		case "since": // the ticks of a core, and later ones
			var ticks [2]Ticks
			for i, list := range strings.Split(text, "; ") {
				for j, word := range strings.Fields(list) {
					ticks[i][j], _ = strconv.ParseUint(word, 10, 64)
				}
			}
			s, ok := ticks[1].Since(ticks[0], 2)
			tell("core %d: %.4f, told %v", s.Core,
				[]float64{s.User, s.Nice, s.System, s.Idle, s.IOWait, s.IRQ, s.Softirq, s.Steal}, ok)
		case "conntrack":
			var s Snapshot
			err = addConntrack(&s, text)
			for _, r := range s.readings {
				tell("%s %d", r.name, r.value)
			}
		case "route": // and, behind a line that says so, its links
			route, links, _ := strings.Cut(text, "links:\n")
			to := netip.MustParseAddr("192.0.2.1")
			texts := map[string]string{RouterRoute: "to 192.0.2.1\n" + route, RouterLinks: links, "/proc/net/dev": devRouter}
			tell("%+v", mips.Parse(time.Unix(1, 0), texts).Route(to))
		case "driver": // names of counters
			tell("%q", driverLosses(strings.Split(text, ", ")))
		case "rule": // family, table, chain, hook
			words := append(strings.Fields(text), "")
			tell(ruleName(chainKey{words[0], words[1], words[2]}, words[3], "5"))
		case "cpuinfo":
			model, part, virtual := ParseCPUInfo(text)
			tell("%q, part %q, virtual %v", model, part, virtual)
		case "memory":
			tell("%d", ParseMemory(text))
		default:
			t.Fatalf("no parser %q", parser)
		}
		if err != nil {
			if tell("fault: %v", err); strings.Contains(err.Error(), "\n") {
				t.Errorf("%s %q: a fault of several lines: %v", parser, text, err)
			}
		}
		return out.String()
	})
}

// Files of kernels: with a negative value and a value above 2^32, and without names that came later.
const snmpNow = `Ip: Forwarding DefaultTTL InReceives InHdrErrors OutTransmits
Ip: 2 64 4294967300 5 9
Tcp: RtoAlgorithm RtoMin RtoMax MaxConn InSegs
Tcp: 1 200 120000 -1 7
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors
Udp: 1 2 3 4 5 6 7 8 9
`

const snmpOld = `Ip: Forwarding DefaultTTL InReceives InHdrErrors
Ip: 1 64 12 0
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors
Udp: 1 2 3 4 5 6`

const conntrackStat = `entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error  expect_new expect_create expect_delete search_restart
00000005  00000000 00000000 00000000 00000001 00000000 00000000 00000000 00000000 00000002 00000003 00000004 00000005  00000000 00000000 00000000 00000000
00000005  00000000 00000000 00000000 00000010 00000000 00000000 00000000 00000000 00000020 00000030 00000040 000000ff  00000000 00000000 00000000 00000000
`

const udpFile = `   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops            
  270: 00000000:1451 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 12345 2 00000000abcdef01 196          
  271: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 12346 2 00000000abcdef02 0            
`

const udp6File = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  271: 00000000000000000000000000000000:270F 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 23456 2 00000000abcdef03 7
`

func softnetLine(columns ...uint32) string {
	words := make([]string, len(columns))
	for i, c := range columns {
		words[i] = fmt.Sprintf("%08x", c)
	}
	return strings.Join(words, " ") + "\n"
}
