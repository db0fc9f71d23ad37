package dut

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"pelt/model"
	"pelt/observe/counters"
)

// routerOSError says that what was taken for a shell is the console of MikroTik's
// RouterOS, which console starts.
type routerOSError struct {
	error
	console Start
}

func (e *routerOSError) Unwrap() error { return e.error }

// routerOSWords are how RouterOS takes a command of a shell.
var routerOSWords = regexp.MustCompile(`bad command name \w+ \(line \d+ column \d+\)|` +
	`expected end of command \(line|syntax error \(line \d+ column|RouterOS|MikroTik`)

func isRouterOS(err error) bool { return routerOSWords.MatchString(err.Error()) }

// routerOS is the dialect of RouterOS's console. It only prints. Field names are those
// of MikroTik's documents and were not seen on a router here, so everything is looked
// for and nothing is relied on but the load.
type routerOS struct {
	last    *sample
	uptimeS float64   // as the router wrote it then
	zero    time.Time // when its clock, as this host continues it, was 0
}

func (*routerOS) system() string { return "RouterOS" }

// hello begins a line of its own, because a prompt may precede the answer.
func (*routerOS) hello(m marker) string {
	return fmt.Sprintf(":put \"\"; :put (\"%s \" . (%d + %d) . \" RouterOS\")\n", m, helloLeft, helloRight)
}

func (*routerOS) setup(marker) string { return "" }

var routerOSSample = []question{
	{name: "resource", command: "/system resource print"},
	{name: "cpu", command: "/system resource cpu print without-paging"},
	{name: "tracking", command: "/ip firewall connection tracking print"},
	{name: "health", command: "/system health print without-paging"},
}

// routerOSQuestions are asked before the first trial and after the last one.
var routerOSQuestions = []question{
	{name: "/system resource print", shown: true, needed: true},
	{name: "/system routerboard print", shown: true},
	{name: "/ip settings print", shown: true, needed: true},
	{name: "/interface bridge port print without-paging", shown: true},
	{name: "/interface ethernet print stats without-paging", shown: true},
	{name: "/ip firewall filter print stats without-paging", shown: true},
	{name: "/queue simple print stats without-paging", shown: true},
	{name: "/tool profile cpu=all duration=5s", shown: true},
}

// request sends a line for each command, so that one the router does not know spoils
// no other.
func (*routerOS) request(m marker, number, what string) string {
	asked := routerOSSample
	if what != askSample {
		asked = routerOSQuestions
	}
	var b strings.Builder
	put := func(kind, rest string) { fmt.Fprintf(&b, ":put \"\"; :put \"%s %s %s\"\n", m, kind, rest) }
	put("B", number)
	for _, q := range asked {
		put("S", q.name)
		b.WriteString(cmp.Or(q.command, q.name) + "\n")
	}
	put("E", number)
	return b.String()
}

// sample makes of RouterOS's percentages, which tell of the last moment, ticks that go
// on: each holds for the time since the sample before.
func (o *routerOS) sample(m marker, r reply) (sample, error) {
	s := sample{clockHz: math.NaN(), temperatureC: math.NaN()}
	told := m.sections(r.body)
	all := fields(told["resource"])
	load, ok := percent(all["cpu-load"])
	if !ok {
		return s, fmt.Errorf("its cpu-load is %.40q, not a percentage", all["cpu-load"])
	}
	uptime, ok := routerOSTime(all["uptime"])
	if !ok {
		return s, fmt.Errorf("its uptime is %.40q, not a time", all["uptime"])
	}
	middle := r.sent.Add(r.came.Sub(r.sent) / 2)
	restarted := o.last != nil && uptime < o.uptimeS-1 // it has whole seconds
	if o.last == nil || restarted {
		o.zero = middle.Add(-time.Duration(uptime * float64(time.Second)))
		o.last = nil
	}
	s.up, o.uptimeS = middle.Sub(o.zero).Seconds(), uptime
	past := 0.0
	if o.last != nil {
		past = max(0, s.up-o.last.up)
		s.all = o.last.all
	}
	irqs := 0.0
	rows := routerOSCores.FindAllStringSubmatch(told["cpu"], -1)
	for _, row := range rows {
		n, _ := strconv.Atoi(row[1])
		busy, _ := percent(row[2])
		irq, _ := percent(row[3])
		irqs += irq
		c := core{number: n}
		if o.last != nil {
			if before, ok := o.last.core(n); ok {
				c.ticks = before.ticks
			}
		}
		pass(&c.ticks, past, busy, irq)
		if n < counters.MaxCores && (len(s.cores) == 0 || s.cores[len(s.cores)-1].number < n) {
			s.cores = append(s.cores, c)
		}
	}
	pass(&s.all, past, load, irqs/float64(max(1, len(rows))))
	tracking := fields(told["tracking"])
	s.connections, s.connectionsMax = whole(tracking["total-entries"]), whole(tracking["max-entries"])
	if mhz, ok := leading(all["cpu-frequency"]); ok && mhz > 0 {
		s.clockHz = mhz * 1e6
	}
	for _, row := range routerOSHeat.FindAllStringSubmatch(told["health"], -1) {
		if c, err := strconv.ParseFloat(row[1], 64); err == nil && !(s.temperatureC >= c) {
			s.temperatureC = c
		}
	}
	kept := s
	o.last = &kept
	return s, nil
}

var (
	routerOSCores = regexp.MustCompile(`(?m)^\s*\d+\s+(?:\w\s+)?cpu(\d{1,5})\s+(\d{1,3}%)\s+(\d{1,3}%)`)
	routerOSHeat  = regexp.MustCompile(`(?m)temperature\d?:?\s+(-?\d{1,3}(?:\.\d+)?)`)
)

// pass adds a time in seconds at a load, of which irq is one part; RouterOS does not
// name the others.
func pass(t *counters.Ticks, past, load, irq float64) {
	const perSecond = 1e4 // finer than a percent of a tenth of a second
	irq = min(irq, load)
	t[2] += uint64(past * (load - irq) * perSecond)
	t[3] += uint64(past * (1 - load) * perSecond)
	t[5] += uint64(past * irq * perSecond)
}

// fields are the "name: value" lines of a print. Only a name's last word counts: a
// prompt may precede the first of them.
func fields(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			words := strings.Fields(name)
			if len(words) > 0 {
				out[words[len(words)-1]] = oneLine(value)
			}
		}
	}
	return out
}

func percent(text string) (ratio float64, ok bool) {
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil || !(n >= 0 && n <= 100) {
		return 0, false
	}
	return n / 100, true
}

// leading is the number that a value with a unit begins with.
func leading(text string) (float64, bool) {
	end := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end < 0 {
		end = len(text)
	}
	n, err := strconv.ParseFloat(text[:end], 64)
	return n, err == nil
}

var (
	routerOSClock  = regexp.MustCompile(`(\d+):(\d+):(\d+)$`)
	routerOSUptime = regexp.MustCompile(`^(?:(\d{1,6})w)?(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?$`)
)

// routerOSTime reads 1w2d3h4m5s, and 2d03:04:05 of older versions.
func routerOSTime(text string) (seconds float64, ok bool) {
	m := routerOSUptime.FindStringSubmatch(routerOSClock.ReplaceAllString(text, "${1}h${2}m${3}s"))
	if m == nil || text == "" {
		return 0, false
	}
	for i, unit := range []float64{7 * 86400, 86400, 3600, 60, 1} {
		n, _ := strconv.ParseFloat(m[i+1], 64) // 0 if it is not there
		seconds += n * unit
	}
	return seconds, true
}

func (*routerOS) learn(told map[string]string, first sample) learned {
	all, board := fields(told["/system resource print"]), fields(told["/system routerboard print"])
	f := model.RouterFacts{
		System: "routeros", Model: strings.TrimSpace(board["model"] + " " + all["board-name"]),
		Firmware: strings.TrimSpace("RouterOS " + all["version"]), CPU: all["cpu"], Cores: len(first.cores),
		Before: texts(routerOSQuestions, told), Offload: routerOSOffload(told),
		Untold: []string{
			"RouterOS tells a core's load and the part of it in interrupts; all else of the load stands as system " +
				"time, and softirqs have no line of their own",
			"RouterOS has no kernel files: neither its counters nor its backlog's drops nor what the watch costs " +
				"are told",
		},
	}
	if n, err := strconv.Atoi(all["cpu-count"]); err == nil && n > 0 && n < counters.MaxCores {
		f.Cores = n
	}
	if mib, ok := leading(all["total-memory"]); ok && strings.HasSuffix(all["total-memory"], "MiB") && mib < 1e9 {
		f.MemoryBytes = uint64(mib * (1 << 20))
	}
	f.Untold = append(f.Untold, untold(routerOSQuestions, told)...)
	return learned{facts: f, machine: all["architecture-name"]}
}

func (*routerOS) finish(f *model.RouterFacts, told map[string]string) {
	f.After = texts(routerOSQuestions, told)
	f.Offload = also(f.Offload, routerOSOffload(told))
}

// routerOSOffload says what of a connection's packets may pass by the rules.
func routerOSOffload(told map[string]string) (out []string) {
	settings := fields(told["/ip settings print"])
	for _, k := range []struct{ key, sentence string }{
		{"allow-fast-path", "configured: fast path is allowed: %s (allow-fast-path)"},
		{"ipv4-fast-path-active", "real: fast path is active: %s (ipv4-fast-path-active)"},
		{"ipv4-fasttrack-active", "real: fasttrack is active: %s (ipv4-fasttrack-active)"},
	} {
		if v := settings[k.key]; v != "" {
			out = append(out, fmt.Sprintf(k.sentence, v))
		}
	}
	// Flags precede the name; H is a port that the switch chip bridges by itself.
	var ports []string
	switched := regexp.MustCompile(`(?m)^\s*\d+\s+[A-Z ]*H[A-Z ]*\s(\S+)\s`)
	for _, p := range switched.FindAllStringSubmatch(told["/interface bridge port print without-paging"], -1) {
		ports = append(ports, p[1])
	}
	if slices.Sort(ports); len(ports) > 0 {
		out = append(out, "real: the switch chip bridges "+oneLine(strings.Join(ports, ", "))+" by itself")
	}
	return out
}
