package finding

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"pelt/model"
	"pelt/table"
	"pelt/words"
)

// blocked are flows between two hosts with streams that carry nothing.
type blocked struct {
	rows  []table.Row
	asks  passage
	back  passage  // the answers
	whole bool     // no stream carries anything
	dead  []string // receivers of a star to which nothing came through, if all such streams are theirs
}

// passage is one way of their meetings.
type passage struct {
	attempted, received uint64
	line                *model.Line       // where most of the others ended; nil if nobody knows
	icmp                *model.ICMPErrors // that came back for them; nil if none did
	reset               bool              // by TCP
}

func (p passage) lost() uint64 { return p.attempted - min(p.attempted, p.received) }

// nothingRule tells of streams that carry nothing, and why, as far as that is known.
func nothingRule(rows []table.Row) (out []Finding) {
	all := blockedOf(rows)
	for _, b := range all[:min(len(all), mostPlaces)] {
		out = append(out, b.told(table.Usable(rows))...)
	}
	if more := len(all) - mostPlaces; more > 0 {
		out = append(out, say("nothing.more", Answer, "pairs_count", more))
	}
	usable, stuck := table.Usable(rows), stuckOf(rows)
	for _, g := range stuck[:min(len(stuck), mostPlaces)] {
		out = append(out, stuckTCP(g, len(usable) > len(table.RowsOf(stuck)))...)
	}
	return out
}

// NothingThrough reports whether no packet came through in any trial.
func NothingThrough(rows []table.Row) bool {
	usable := len(table.Usable(rows))
	return usable == 0 && Blocked(rows) || usable > 0 && usable == len(table.RowsOf(stuckOf(rows)))
}

// Blocked reports whether nothing came through for a whole flow, or to a receiver of a star.
func Blocked(rows []table.Row) bool {
	whole := func(b blocked) bool { return b.whole || len(b.dead) > 0 }
	return slices.ContainsFunc(blockedOf(rows), whole) || len(stuckOf(rows)) > 0
}

// stuckOf are the flows of TCP whose connections open and then carry nothing, as where segments are too long for the
// path and small packets are not: by settings, and with each congestion control of them.
func stuckOf(rows []table.Row) []table.Group {
	tcp := only(table.Usable(rows), func(r table.Row) bool {
		return r.Flow.TCP != nil && r.Flow.Connections == nil && len(r.Flow.Told) == 0
	})
	carriesNothing := func(r table.Row) bool { return r.Flow.TCP.ReceivedBytes == 0 && r.Flow.GoodputBPS == 0 }
	return only(table.By(tcp, append(table.Settings(tcp, "control"), table.KeyOf("flow"))...),
		func(g table.Group) bool {
			return len(only(g.Rows, carriesNothing)) == len(g.Rows)
		})
}

// stuckTCP tells of one of them, and of its setting if others carry data.
func stuckTCP(g table.Group, others bool) []Finding {
	r := g.Rows[0]
	b := blocked{rows: g.Rows}
	f := say("nothing.tcp", Answer, "to", b.name(r.Flow.To), "one", when(r.Flow.Streams == 1, "1"))
	if _, pair := r.Trial.Cell["pair"]; pair || r.Flow.From == model.Receiver {
		f = f.with("source", b.name(r.Flow.From))
	} else if others {
		f = f.with("where", b.where(nil))
	}
	places, unknown := placesOf(g.Rows)
	if places != "" && unknown <= 0.5 {
		return []Finding{f.with("places", places), nextOf("explain", r.Doc)}
	}
	if routerUnwatched(r.Doc) {
		return []Finding{f, say("nothing.mtu", Next, "target", r.Doc.Plan.Target)}
	}
	return []Finding{f}
}

// FirstStuck are the rows of flows of TCP that carry nothing, of each group the first.
func FirstStuck(rows []table.Row) (out []table.Row) {
	for _, g := range stuckOf(rows) {
		out = append(out, g.Rows[0])
	}
	return out
}

// blockedOf groups the flows with such streams by their hosts: flows of both directions open their way from one host.
func blockedOf(rows []table.Row) (list []blocked) {
	var lines []map[string]*model.Line
	for _, r := range rows {
		m := r.Flow.Meeting
		if m == nil || len(r.Flow.DeadStreams) == 0 {
			continue
		}
		whole, dead := !table.Measured(r.Flow), deadReceivers(r)
		i := slices.IndexFunc(list, func(b blocked) bool {
			first := b.rows[0]
			return b.whole == whole && slices.Equal(b.dead, dead) && first.Flow.Meeting.From == m.From &&
				first.Flow.Meeting.To == m.To && first.Flow.Protocol == r.Flow.Protocol &&
				first.Trial.Cell["pair"] == r.Trial.Cell["pair"] && (whole || first.Flow.Name == r.Flow.Name)
		})
		if i < 0 {
			i = len(list)
			list = append(list, blocked{whole: whole, dead: dead})
			lines = append(lines, map[string]*model.Line{}, map[string]*model.Line{})
		}
		b := &list[i]
		b.rows = append(b.rows, r)
		var asked, askedHeard, answered, answersHeard uint64
		for _, s := range r.Flow.DeadStreams {
			asked, askedHeard = asked+s.Asked, askedHeard+s.AsksHeard
			answered, answersHeard = answered+s.Answered, answersHeard+s.AnswersHeard
		}
		b.asks.add(m.Asks, asked, askedHeard, lines[2*i])
		b.back.add(m.Answers, answered, answersHeard, lines[2*i+1])
	}
	return list
}

// deadReceivers are those of a star none of whose streams carries anything, unless other streams carry nothing, too.
func deadReceivers(r table.Row) (dead []string) {
	streams := map[int]int{}
	for _, s := range r.Flow.DeadStreams {
		streams[s.Stream/max(r.Flow.Streams, 1)]++
	}
	for i, to := range r.Flow.Receivers {
		switch {
		case streams[i] == 0:
		case streams[i] < r.Flow.Streams:
			return nil
		default:
			dead = append(dead, table.HostName(r, to.Node))
		}
	}
	return dead
}

// add takes a way of a flow's meeting: of its dead streams so many packets were sent and received.
func (p *passage) add(m model.Passage, sent, received uint64, lines map[string]*model.Line) {
	p.attempted, p.received = p.attempted+sent, p.received+received
	for _, l := range m.Ledger.Lines {
		key := l.Layer + l.Host + l.Cause
		if sum := lines[key]; sum != nil {
			l.Packets += sum.Packets
		}
		lines[key] = &l
	}
	if p.icmp == nil && len(m.ICMP) > 0 {
		p.icmp = &m.ICMP[0]
	}
	p.reset = p.reset || m.Resets > 0
	p.line = nil
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		if l := lines[key]; 2*l.Packets >= p.lost() && (p.line == nil || l.Packets > p.line.Packets) {
			p.line = l
		}
	}
}

// unreached are the answers of ICMP by which a router tells that it cannot reach a host.
var unreached = []string{"host unreachable", "network unreachable"}

// told says it in a sentence, and what to do.
func (b blocked) told(usable []table.Row) []Finding {
	m := b.rows[0].Flow.Meeting
	from, to := b.name(m.From), b.name(m.To)
	p, way := b.asks, "nothing."
	if b.asks.received > 0 && b.back.received == 0 {
		p, way = b.back, "nothing.back-"
	}
	f := say("", Answer, "from", from, "to", to, "port", b.port(), "packets_count:heard", b.asks.received,
		"packets_count", p.attempted)
	if p.lost() == p.attempted {
		f = f.with("packets_count:all", p.lost())
	} else {
		f = f.with("packets_count:lost", p.lost())
	}
	next := say("nothing.between", Next)
	kind := "unknown"
	switch l := p.line; {
	case p.attempted == 0:
		kind = "unseen"
	case p.received > 0:
		kind = "few"
		f = f.with("packets_count:back", b.back.received, "packets_count:answers", b.back.attempted)
	case l == nil:
	case l.Cause == model.CauseElimination:
		kind = "vanished"
	case l.Cause == model.CauseReset:
		kind = "refused-tcp"
	case strings.HasPrefix(l.Cause, model.CauseICMP) && l.Cause != model.CauseICMP+"time to live exceeded":
		answer := strings.TrimPrefix(l.Cause, model.CauseICMP)
		switch kind = "refused"; {
		case answer == "port unreachable" || strings.HasSuffix(answer, "prohibited"):
			next.Code = "nothing.let" // else no rule forbade it
		case way == "nothing." && slices.Contains(unreached, answer):
			next.Code, kind = "nothing.reach", "unreachable"
			f = f.with("beyond", when(b.name(l.Host) != to, to))
		}
		f = f.with("who", l.Host, "answer", b.language().Say(answer))
	case l.Cause == "NETFILTER_DROP" && (!strings.HasPrefix(l.Host, model.AnotherNamespace) || p.icmp != nil):
		next.Code, kind = "nothing.let", "filter"
		host := l.Host
		if strings.HasPrefix(host, model.AnotherNamespace) {
			host = p.icmp.From
		}
		f = f.with("whose", b.whose(host), "who", b.name(host))
		if p.icmp != nil {
			f = f.with("answer", b.language().Say(p.icmp.What))
		} else if p.reset {
			f = f.with("answer", b.language().Say("TCP reset"))
		}
		if rule := ruleOf(l); rule != nil {
			f = f.with("tool", rule[0], "family", rule[1], "table", rule[2], "chain", rule[3])
			if ports := b.ports(); len(ports) == 1 && way == "nothing." {
				f = f.with("number", ports[0], "protocol", string(b.rows[0].Flow.Protocol))
			}
		}
	default:
		kind = "place"
		firewall := []string{model.CauseIPGap, "EPERM", "NETFILTER_HOOK"} // each may be one
		if slices.Contains(firewall, l.Cause) && !strings.HasPrefix(l.Host, model.AnotherNamespace) {
			next.Code = "nothing.let"
		}
		f = f.with("place", phrase(b.language(), l.Layer, l.Cause, b.name(l.Host)), "who", b.name(l.Host))
	}
	switch {
	case next.Code == "nothing.let" && way == "nothing.back-":
		next.Code = "nothing.let-back"
	case next.Code == "nothing.between" && routerUnwatched(b.rows[0].Doc):
		f = f.with("target", b.rows[0].Doc.Plan.Target)
	}
	f.Code = way + kind
	switch {
	case !b.whole && len(b.dead) == 0:
		f = b.streams(f)
		f.Code = way + "streams"
	case kind == "few" || kind == "unseen" || kind == "refused-tcp":
		f.Code = "nothing." + kind
	}
	if _, pair := b.rows[0].Trial.Cell["pair"]; pair {
		f = f.with("source", from)
	} else if len(usable) > 0 && b.whole {
		f = f.with("where", b.where(usable))
	}
	next.Words, next.Numbers = f.Words, f.Numbers
	if left := len(b.rows[0].Flow.Receivers) - len(b.dead); !b.whole && len(b.dead) > 0 {
		return []Finding{f, say("nothing.rest", Answer, "receivers_count", left), next,
			nextOf("explain", b.rows[0].Doc)}
	}
	if kind == "place" && next.Code == "nothing.between" {
		return []Finding{f, nextOf("explain", b.rows[0].Doc)}
	}
	return []Finding{f, next, nextOf("explain", b.rows[0].Doc)}
}

// routerUnwatched reports whether a soak between the same hosts may watch a router as well.
func routerUnwatched(d *model.Document) bool {
	return d.Router == nil && d.Lab == nil && d.Plan.Near == "" && !strings.HasPrefix(d.Plan.Target, model.FleetTarget)
}

// ruleOf reads tool, family, table and chain of the rule that counted packets of a line:
// nft.inet.filter.input.5.packets, nft.inet.filter.mine.input.5.packets of a chain that is not named as its hook, or
// iptables.filter.FORWARD.forward.5.packets, which has no family. If none counted them, the rule stands in the only
// chain whose rules count nothing: nft.inet.filter.mine.input.uncounted. Hosts may name anything so, and a user may run
// what is printed: nil of names that are no plain words.
func ruleOf(l *model.Line) []string {
	for _, e := range l.Evidence {
		parts := strings.Split(e.Counter, ".")
		fact := e.Role == model.RoleFact && strings.HasSuffix(e.Counter, model.UncountedRules) && len(parts) > 4
		switch {
		case !fact && (e.Delta < l.Packets || len(parts) < 6):
			continue
		case parts[0] == "nft":
		case !fact && (parts[0] == "iptables" || parts[0] == "ip6tables"):
			parts = slices.Insert(parts, 1, "")
		default:
			continue
		}
		rule := []string{parts[0], parts[1], chosenName(parts[2]), chosenName(parts[3])}
		if !slices.ContainsFunc(rule, func(word string) bool { return word != "" && !ruleWord.MatchString(word) }) {
			return rule
		}
	}
	return nil
}

// ruleWord is a name that nft and iptables take as it is: nft reads its arguments as one text, whatever a shell quotes.
var ruleWord = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./-]*$`)

// chosenName undoes what package observe/counters does to the name of a table or chain.
func chosenName(component string) string {
	return strings.ReplaceAll(strings.TrimPrefix(component, ":"), ":", ".")
}

// language is what a report of the flows is to be written in.
func (b blocked) language() words.Language { return b.rows[0].Language() }

// name is what a reader calls a node.
func (b blocked) name(node string) string {
	r := b.rows[0]
	d := r.Doc
	if len(b.dead) > 0 && node == model.ManyReceivers {
		return fewNames(b.language(), b.dead)
	}
	if host := table.HostName(r, node); host != node {
		return host
	}
	for _, h := range d.Host {
		switch {
		case h.Node != node || d.Lab != nil:
		case node == model.Sender && d.Plan.Near == "" && !strings.HasPrefix(d.Plan.Target, model.FleetTarget):
			return b.language().Say(nearHost)
		case h.Address != "" || h.Name != "":
			return cmp.Or(h.Address, h.Name)
		}
	}
	return nodeName(b.language(), node)
}

func (b blocked) whose(node string) string {
	l := b.language()
	switch name := b.name(node); {
	case node == b.rows[0].Flow.Meeting.To && len(b.dead) > 1:
		return l.Say("their")
	case node == b.rows[0].Flow.Meeting.To:
		return l.Say("its")
	case name == l.Say(nearHost):
		return l.Say("this host's own")
	default:
		return l.Sayf("%s's", name)
	}
}

// ports lists those that are asked, which are one where pelt serve listens.
func (b blocked) ports() (ports []string) {
	for _, r := range b.rows {
		for _, s := range r.Flow.DeadStreams {
			if port := fmt.Sprint(s.ToPort); s.ToPort > 0 && !slices.Contains(ports, port) {
				ports = append(ports, port)
			}
		}
	}
	return ports
}

// port names these ports.
func (b blocked) port() string {
	protocol := strings.ToUpper(string(b.rows[0].Flow.Protocol))
	switch ports := b.ports(); len(ports) {
	case 0:
		return protocol
	case 1:
		return b.language().Sayf("%s port %s", protocol, ports[0])
	default:
		return b.language().Sayf("%s ports %s", protocol, fewNames(b.language(), ports))
	}
}

// where names the setting of the trials, or the trials themselves if others of that setting are usable.
func (b blocked) where(usable []table.Row) string {
	all := slices.Concat(b.rows, usable)
	g := table.By(all, table.Settings(all)...)[0]
	if len(usable) > 0 && len(table.Usable(g.Rows)) > 0 {
		return Capital(fewNames(b.language(), namesOf(table.By(b.rows, table.KeyOf("trial")))))
	}
	return g.Name()
}

// streamsOf is how many streams a flow has, to all receivers.
func streamsOf(r table.Row) int { return r.Flow.Streams * max(len(r.Flow.Receivers), 1) }

// streams tells of a flow some of whose streams carry packets.
func (b blocked) streams(why Finding) Finding {
	r := slices.MaxFunc(b.rows, func(x, y table.Row) int {
		return cmp.Compare(len(x.Flow.DeadStreams), len(y.Flow.DeadStreams))
	})
	all := streamsOf(r)
	var from, to []string
	for _, s := range r.Flow.DeadStreams {
		from, to = append(from, fmt.Sprint(s.FromPort)), append(to, fmt.Sprint(s.ToPort))
	}
	f := why.with("streams_count:dead", len(from), "streams_count", float64(all),
		"streams_count:others", float64(all-len(from)))
	switch {
	case len(from) == 1:
		f = f.with("asking", from[0], "one", "1")
	case len(slices.Compact(slices.Sorted(slices.Values(from)))) == 1: // of a star: each receiver has a port
		f = f.with("listening", fewNames(b.language(), to))
	default:
		f = f.with("asking", fewNames(b.language(), from))
	}
	if len(r.Trial.Flows) > 1 {
		f = f.with("flow", r.Say(r.Flow.Name))
	}
	return f
}

// Meeting returns two rows in place of one whose flow has streams that carry nothing: their flows are the packets that
// open the way, and the answers to them.
func Meeting(r table.Row) (ways []table.Row) {
	m := r.Flow.Meeting
	if m == nil || len(r.Flow.DeadStreams) == 0 {
		return nil
	}
	for _, way := range []struct {
		name, from, to string
		model.Passage
	}{{"first packets", m.From, m.To, m.Asks}, {"answers to first packets", m.To, m.From, m.Answers}} {
		if way.Attempted == 0 {
			continue
		}
		// which counts packets, as is done here of TCP, too
		f := model.FlowResult{Name: r.Sayf("%s: %s", r.Say(r.Flow.Name), r.Say(way.name)), Protocol: model.UDP,
			From: way.from, To: way.to, Streams: r.Flow.Streams, Attempted: way.Attempted,
			Received: min(way.Received, way.Attempted), SendErrors: way.SendErrors, Ledger: way.Ledger}
		f.Lost = f.Attempted - f.Received
		one := r
		one.Flow = &f
		ways = append(ways, AsValid([]table.Row{one})...)
	}
	if len(ways) > 1 && ways[0].Flow.Lost == 0 { // the one that lost packets is read first
		slices.Reverse(ways)
	}
	return ways
}

// FirstBlocked are the rows of flows with streams that carry nothing, of each group the first.
func FirstBlocked(rows []table.Row) (out []table.Row) {
	for _, b := range blockedOf(rows) {
		out = append(out, b.rows[0])
	}
	return out
}
