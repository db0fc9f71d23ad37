package counters

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"pelt/model"
)

type file struct {
	path  string // under /proc
	read  from
	parse func(s *Snapshot, text string) error
}

type from uint8

const (
	local     from = 1 << iota // on this host, from disk
	router                     // on a router, through a shell on it
	first                      // only the first namespace has it, for all together
	atMoments                  // on a router, at the moments of a trial only
	optional                   // absent where the kernel lacks the protocol or has not loaded the module
)

// files are all kernel files with counters. What netlink tells better on this host is read on routers only.
var files = []file{
	{"net/softnet_stat", local | router, addSoftnet},
	{"net/dev", router, addDev},
	{"net/snmp", local | router, func(s *Snapshot, text string) error { return parsePairs(text, s.addNamed) }},
	{"net/snmp6", local | router | optional, func(s *Snapshot, text string) error {
		return parseSNMP6(text,
			s.addNamed)
	}},
	{"net/netstat", local | router, func(s *Snapshot, text string) error { return parsePairs(text, s.addNamed) }},
	{"net/stat/nf_conntrack", local | router | optional, addConntrack},
	{"net/stat/arp_cache", local | first | router, addNeighbours("arp_cache")},
	{"net/stat/ndisc_cache", local | first | router | optional, addNeighbours("ndisc_cache")},
	{"sys/net/netfilter/nf_conntrack_count", local | router | optional, addLevel("net.netfilter.nf_conntrack_count")},
	{"sys/net/netfilter/nf_conntrack_max", local | router | optional, addLevel("net.netfilter.nf_conntrack_max")},
	{"sys/net/ipv6/conf/all/forwarding", local | atMoments | optional, addForwarding6},
	{"net/netfilter/nfnetlink_queue", local | atMoments | optional, addFilterQueues},
	{"sys/net/ipv4/neigh/default/gc_thresh3", atMoments, addLevel("net.ipv4.neigh.default.gc_thresh3")},
	{"sys/net/ipv6/neigh/default/gc_thresh3", atMoments, addLevel("net.ipv6.neigh.default.gc_thresh3")},
}

// what is the file's name in a line about it.
func (f file) what() string { return path.Base(f.path) }

// RouterFiles are the files that Parse reads, in their order.
func RouterFiles() []string { return pathsOf(router) }

// MomentFiles are those that Parse reads in RouterMoment.
func MomentFiles() []string { return pathsOf(atMoments) }

func pathsOf(read from) (list []string) {
	for _, f := range files {
		if f.read&read != 0 {
			list = append(list, "/proc/"+f.path)
		}
	}
	return list
}

// RouterMoment is the name of the text with the lines of MomentFiles, each after the file's name and a colon.
const RouterMoment = "moment files"

// addedErrors are counters that /proc/net/dev adds to one of damaged frames.
var addedErrors = []string{"rx_over_errors", "rx_length_errors"}

// RouterDevices are the files of RouterMoment about interfaces, as a shell names them: with these, and with kinds,
// which BusyBox's ip does not tell.
func RouterDevices() (paths []string) {
	for _, name := range addedErrors {
		paths = append(paths, "/sys/class/net/*/statistics/"+name)
	}
	return append(paths, "/sys/class/net/*/uevent")
}

// errorsOf tells the interface and the name of a counter by its file.
var errorsOf = regexp.MustCompile(`^/sys/class/net/([^/]+)/statistics/(` + strings.Join(addedErrors, "|") + `)$`)

// RouterQueues is the command whose output Parse reads beside the files, "" where it was not run.
const RouterQueues = "tc -s qdisc"

// Parse makes a Snapshot of another machine's files, which Diff and Moving take like those of a Reader of this one.
// texts has the content of each of RouterFiles; one that the machine has not is empty. What is broken in a file is
// in the Snapshot's Unread, and the rest of that file is read.
//
// Some counters of /proc/net/dev are sums there (net/core/net-procfs.c, dev_seq_printf_stats): rx_dropped holds
// rx_missed_errors too, and the columns of rx_frame_errors and tx_carrier_errors hold all errors of their kind. Among
// the first are frames for which a card had no room, as MediaTek's routers count them, and frames that are too long:
// without RouterDevices that column is called rx_frame_sum. On a switch both its ports and the trunk that joins it to
// the processor have a line, so a packet counts in each.
func (m Machine) Parse(taken time.Time, texts map[string]string) Snapshot {
	s := Snapshot{Taken: taken, machine: m, links: map[int]link{}, added: map[string]map[string]uint64{}}
	told := linesByFile(texts[RouterMoment])
	for path, text := range told {
		of := errorsOf.FindStringSubmatch(path)
		if n, ok := number(strings.TrimSpace(text)); ok && of != nil {
			if s.added[of[1]] == nil {
				s.added[of[1]] = map[string]uint64{}
			}
			s.added[of[1]][of[2]] = n
		}
	}
	for _, f := range files {
		text := texts["/proc/"+f.path]
		if f.read&atMoments != 0 {
			text = told["/proc/"+f.path]
		}
		if f.read&(router|atMoments) != 0 && text != "" {
			if err := f.parse(&s, text); err != nil {
				s.lacks(f.what(), err)
			}
		}
	}
	for path, text := range told {
		s.parseEvent(path, text)
	}
	s.parseLinks(texts[RouterLinks])
	s.parseQueues(texts[RouterQueues])
	s.parseActions(texts[RouterActions])
	s.parseRules(texts[RouterRules])
	s.routes = ParseRoutes(texts[RouterRoute])
	return s
}

// Surer is, of two readings of a route, the one that tells why packets get no further; else the later one, if it tells
// anything.
func Surer(earlier, later model.Route) model.Route {
	if later.Kind == "" || earlier.Fails() && !later.Fails() {
		if earlier.Interface == later.Interface {
			earlier.MTU = max(earlier.MTU, later.MTU)
		}
		return earlier
	}
	return later
}

// RouterRoute is the name of the text with the routes to addresses. Of each there is a line "to ADDRESS", and what ip
// route get says, even if it fails, of the address and then of the far end of the tunnel that the route leads into.
// Then come the lines of ip neigh that say FAILED or INCOMPLETE.
const RouterRoute = "route"

// ParseRoutes reads such a text; an unknown route has no Kind.
func ParseRoutes(text string) map[netip.Addr]model.Route {
	lines, silent := map[netip.Addr][]string{}, []string{}
	var to netip.Addr
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) == 2 && words[0] == "to":
			to, _ = netip.ParseAddr(words[1])
		case slices.ContainsFunc(words, unanswered):
			silent = append(silent, line)
		default:
			lines[to] = append(lines[to], line)
		}
	}
	routes := map[netip.Addr]model.Route{}
	for to, lines := range lines {
		routes[to] = parseRoute(append(lines, silent...))
	}
	return routes
}

// parseRoute reads the lines about one address, and those of neighbours.
func parseRoute(lines []string) (r model.Route) {
	hops := map[[2]string]bool{} // interface and address
	for _, line := range lines {
		words := append(strings.Fields(line), "", "", "")
		value := func(name string) string { return words[min(slices.Index(words, name)+1, len(words)-1)] }
		switch first, _ := netip.ParseAddr(words[0]); {
		case strings.Contains(line, "Invalid argument") || words[0] == "blackhole":
			r.Kind = cmp.Or(r.Kind, model.RouteBlackhole)
		case strings.Contains(line, "Permission denied") || words[0] == "prohibit":
			r.Kind = cmp.Or(r.Kind, model.RouteProhibit)
		case strings.Contains(line, "No route to host") || words[0] == "unreachable":
			r.Kind = cmp.Or(r.Kind, model.RouteUnreachable)
		case slices.ContainsFunc(words, unanswered):
			r.NoAnswer = r.NoAnswer || hops[[2]string{value("dev"), words[0]}]
		case first.IsValid() && slices.Contains(words, "dev"):
			r.Kind, r.Interface = cmp.Or(r.Kind, model.RouteUsable), cmp.Or(r.Interface, value("dev"))
			hop := words[0]
			if slices.Contains(words, "via") {
				hop = value("via")
			}
			hops[[2]string{value("dev"), hop}] = true
		}
	}
	return r
}

func unanswered(state string) bool { return state == "FAILED" || state == "INCOMPLETE" }

// RouterLinks is the command whose output Parse reads beside the files, "" where it was not run.
const RouterLinks = "ip -d -s -s link"

// parseLinks adds to the interfaces of /proc/net/dev what ip tells of them in lines of the form
//
//	4: lan1@eth0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 xdpgeneric/id:7 qdisc noqueue ...
//	    bridge_slave state disabled priority 32 ... isolated on ...
//	    RX errors: length    crc   frame    fifo overrun otherhost
//	                    0      0       0       0       0       312
//
// A kind stands first in the line of its options, also where ip knows none of these.
func (s *Snapshot) parseLinks(text string) {
	var l link
	column := -1 // of otherhost in the next line
	known, fresh := false, false
	keep := func() {
		if known {
			s.links[l.index] = l
		}
	}
	for line := range strings.Lines(text) {
		words := append(strings.Fields(line), "", "", "")
		switch {
		case line[0] != ' ':
			keep()
			name, _, _ := strings.Cut(strings.TrimSuffix(words[1], ":"), "@")
			l, known = s.linkNamed(name)
			l.silent = strings.Contains(words[2], "NO-CARRIER")
			if words[3] == "mtu" {
				l.mtu, _ = strconv.Atoi(words[4]) // 0 stands for unknown
			}
			if i := slices.Index(words, "master"); i > 0 {
				of, _ := s.linkNamed(words[i+1])
				l.master = of.index
			}
			for _, w := range words {
				if mode, is := strings.CutPrefix(w, "xdp"); is {
					mode, _, _ = strings.Cut(mode, "/")
					l.xdp = cmp.Or(mode, "native")
				}
			}
		case words[0] == "bridge_slave":
			l.port = words[slices.Index(words, "state")+1]
			i := slices.Index(words, "isolated")
			l.isolated = i > 0 && words[i+1] == "on"
		case countsApart(words[0]):
			l.kind = words[0]
		case words[0] == "RX" && words[1] == "errors:":
			column, fresh = slices.Index(words, "otherhost")-2, true
		case fresh:
			fresh = false
			n, ok := uint64(0), true
			if column >= 0 {
				n, ok = number(words[min(column, len(words)-1)])
			}
			if known && ok {
				name := "dev." + l.name + ".rx_otherhost_dropped"
				s.add(series{name: name, scope: deviceScope, unit: skbUnit, bits: 64, role: loss, link: l.index}, 0, n)
			}
		}
	}
	keep()
}

// parseEvent reads the kind of an interface in the file uevent, in a line such as DEVTYPE=wireguard. Not all have one.
func (s *Snapshot) parseEvent(path, text string) {
	name, is := strings.CutSuffix(strings.TrimPrefix(path, "/sys/class/net/"), "/uevent")
	_, kind, _ := strings.Cut(text, "DEVTYPE=")
	kind, _, _ = strings.Cut(kind, "\n")
	if !is || !countsApart(kind) {
		return
	}
	if l, known := s.linkNamed(name); known {
		l.kind = kind
		s.links[l.index] = l
	}
}

// linkNamed returns the interface with a name.
func (s *Snapshot) linkNamed(name string) (l link, ok bool) {
	for one := range maps.Values(s.links) {
		if one.name == name {
			return one, true
		}
	}
	return l, false
}

// addDev adds the interfaces of /proc/net/dev. The file gives interfaces no number, so one is made of the
// name; a link that never carried a packet counts as down.
func addDev(s *Snapshot, text string) error {
	return parseDev(text, func(name string, values []uint64) {
		h := fnv.New32a()
		_, _ = h.Write([]byte(name))
		l := link{index: int(h.Sum32()>>1) + 1, name: name, kind: unknownKind, stats: values, columns: true}
		l.loopback = name == "lo"
		if s.machine.Hardware[name] {
			l.kind = "" // what has a device behind it
			l.added = s.added[name]
		}
		if other, taken := s.links[l.index]; taken && other.name != name {
			return // two names in 2^31 that look alike: better untold than mixed up
		}
		l.up = len(values) > 1 && values[1] > 0 || len(values) > 9 && values[9] > 0 // packets in or out
		s.addLink(l)
	})
}

func addSoftnet(s *Snapshot, text string) error {
	rows, err := parseSoftnet(text)
	for _, column := range softnetColumns {
		for _, row := range rows {
			if column.index < row.given {
				s.addNamed("softnet", column.name, row.cpu, uint64(row.values[column.index]))
			}
		}
	}
	return err
}

func addNeighbours(group string) func(*Snapshot, string) error {
	return func(s *Snapshot, text string) error {
		return parseStat(text, func(column string, row, value uint64) {
			s.addNamed(group, column, row, value)
			if column == "entries" { // each processor's row has the same
				s.setLevel(group+".entries", value)
			}
		})
	}
}

// addLevel reads a file with one number.
func addLevel(name string) func(*Snapshot, string) error {
	return func(s *Snapshot, text string) error {
		n, ok := number(strings.TrimSpace(text))
		if !ok {
			return fmt.Errorf("%.40q is not a number", text)
		}
		s.setLevel(name, n)
		return nil
	}
}

// addForwarding6 reads whether IPv6 packets are forwarded. The level is the opposite: of all moments the highest is told.
func addForwarding6(s *Snapshot, text string) error {
	n, ok := number(strings.TrimSpace(text))
	if !ok {
		return fmt.Errorf("%.40q is not a number", text)
	}
	s.setLevel(model.Forwarding6Off, 1-min(n, 1))
	return nil
}

func (s *Snapshot) setLevel(name string, n uint64) {
	if s.levels == nil {
		s.levels = map[string]uint64{}
	}
	s.levels[name] = n
}

// addFilterQueues reads the queues of packets that programs judge: number, program, length, two settings, dropped for
// want of room, and dropped as the program's socket was full (net/netfilter/nfnetlink_queue.c, seq_show).
func addFilterQueues(s *Snapshot, text string) (fault error) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		var numbers [7]uint64
		ok := len(words) >= len(numbers)
		for i := 0; i < len(numbers) && ok; i++ {
			numbers[i], ok = number(words[i])
		}
		if !ok {
			fault = cmp.Or(fault, fmt.Errorf("line %.60q does not tell of a queue", line))
			continue
		}
		s.heard = append(s.heard, numbers[0])
		for i, name := range []string{"queue_dropped", "user_dropped"} {
			s.add(series{name: fmt.Sprintf("nfqueue.%d.%s", numbers[0], name), scope: namespaceScope, unit: skbUnit,
				bits: 32, fresh: true, role: loss}, numbers[1], numbers[5+i])
		}
	}
	return fault
}

// linesByFile tells files apart whose lines each stand after the file's name and a colon.
func linesByFile(text string) map[string]string {
	told := map[string]string{}
	for line := range strings.Lines(text) {
		path, rest, _ := strings.Cut(line, ":")
		told[path] += rest
	}
	return told
}

func addConntrack(s *Snapshot, text string) error {
	return parseStat(text, func(column string, row, value uint64) {
		for _, c := range conntrackCounters {
			if c.column == column {
				s.addNamed("conntrack", c.name, row, value)
			}
		}
	})
}

// Backlog is what /proc/net/softnet_stat tells of one processor. The counts wrap.
type Backlog struct {
	Core     int
	Dropped  uint32 // packets beyond the backlog
	Squeezed uint32 // times that work was left in net_rx_action
}

// ParseBacklog reads /proc/net/softnet_stat; lines that are broken are left out.
func ParseBacklog(softnet string) (out []Backlog) {
	rows, _ := parseSoftnet(softnet) // Parse tells of the fault
	for _, r := range rows {
		if r.given > 2 && r.cpu <= 1<<16 {
			out = append(out, Backlog{int(r.cpu), r.values[1], r.values[2]})
		}
	}
	return out
}
