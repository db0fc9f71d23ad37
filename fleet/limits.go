package fleet

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"pelt/engine"
	"pelt/finding"
	"pelt/model"
	"pelt/unit"
	"pelt/words"
)

// Bounds that hold whatever the limits say.
const (
	maxSessions = 256
	maxWatchers = 4         // sessions of an agent that only watches
	maxMemory   = 512 << 20 // bytes that all sessions of an agent may take, where nothing else is said
	maxProbes   = 1000      // packets a second of all probes of a client's host, where its rate is limited
)

// refuse makes an *engine.Refusal, in words.
func refuse(code string, named ...any) error {
	fault := finding.NewFault(code, named...)
	return fault.From(&engine.Refusal{Why: fault.Reason})
}

// allows finds out whether this host has what an order needs, and lets strangers ask it.
func (a *Agent) allows(p makeOrder) error {
	switch {
	case a.cfg.Router != nil && len(p.Ends) > 0:
		return errOnlyWatches
	case a.cfg.Router == nil && len(p.Ends) == 0:
		return engine.WrongField("ends", "value", 0, "least", 1, "most", maxEnds)
	}
	for i, e := range p.Ends {
		switch {
		case e.Peer == a.cfg.ID:
			return engine.WrongField(fmt.Sprintf("ends[%d].peer", i))
		case a.cfg.Engines[e.Engine] == nil:
			return refuse(model.EngineNotThere, "name", model.Clip(e.Engine),
				"engines", strings.Join(a.engineNames(), ", "))
		case e.Order.Record != nil && a.cfg.Recording == nil:
			return refuse(model.RecordsNothing)
		case a.cfg.clientOf != nil && !e.Order.Listen:
			if err := a.mayCall(e.Order.Peer); err != nil {
				return err
			}
		}
	}
	return nil
}

// mayCall checks a stranger's order to dial against what this host allows. Without it, a stranger would learn which
// hosts and ports this host reaches, and could send hellos to anybody; a flood is kept away by consent.
func (a *Agent) mayCall(peer netip.Addr) error {
	to := peer.Unmap()
	if slices.ContainsFunc(a.cfg.Calls, func(p netip.Prefix) bool { return p.Contains(to) }) {
		return nil
	}
	to = to.WithZone("") // which may be any text
	if len(a.cfg.Calls) == 0 && a.alone {
		hub := a.client("")
		if to.IsGlobalUnicast() || to.IsLoopback() && hub.IsLoopback() ||
			to.IsLinkLocalUnicast() && hub.IsLinkLocalUnicast() {
			return nil
		}
		return refuse(model.CallsNoOwn, "address", to)
	}
	if len(a.cfg.Calls) == 0 {
		return refuse(model.CallsNobody, "address", to)
	}
	return refuse(model.CallsOthers, "networks", listPrefixes(a.cfg.Calls), "address", to)
}

// A host makes so many calls without an answer, for all its clients. Each sends at most a dozen packets.
const (
	vainCalls = 300
	vainAgain = 100 * time.Millisecond // until it may make one more
)

// call does a stranger's call, unless too many of them got no answer. A call that is answered does not count.
func (a *Agent) call(e *sessionEnd, connect func() (answered bool, err error)) error {
	if a.cfg.clientOf == nil || e.order.Order.Listen {
		_, err := connect()
		return err
	}
	a.mu.Lock()
	may := a.calls.available(vainCalls, vainAgain, time.Now())
	if may {
		a.calls.used++
	}
	a.mu.Unlock()
	if !may {
		return refuse(model.CalledInVain)
	}
	answered, err := connect()
	if answered {
		a.mu.Lock()
		a.calls.used = max(0, a.calls.used-1)
		a.mu.Unlock()
	}
	return err
}

func listPrefixes(all []netip.Prefix) string {
	var words []string
	for _, p := range all {
		if p.IsSingleIP() {
			words = append(words, p.Addr().String())
		} else {
			words = append(words, p.String())
		}
	}
	return strings.Join(words, ", ")
}

// ParseCalls reads what [AgentConfig].Calls may be: addresses and networks, with
// commas between, as 192.0.2.7,10.0.0.0/8. "" is none.
func ParseCalls(text string) ([]netip.Prefix, error) {
	if text == "" {
		return nil, nil
	}
	var all []netip.Prefix
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		if a, err := netip.ParseAddr(word); err == nil && a.Zone() == "" {
			a = a.Unmap()
			all = append(all, netip.PrefixFrom(a, a.BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(word)
		if err != nil || p.Addr().Is4In6() {
			return nil, words.Errorf("%q is no address and no network; want such as 192.0.2.7 or 10.0.0.0/8", word)
		}
		all = append(all, p.Masked())
	}
	return all, nil
}

// hasRoom checks that an order stays within what this host's memory and limits allow for all sessions, and for those
// of the host that asks. The caller holds the lock.
func (a *Agent) hasRoom(p makeOrder, from netip.Prefix) error {
	switch n, most := len(a.sessions), a.cfg.Limits.MaxSessions; {
	case a.cfg.Router != nil && n >= maxWatchers:
		return refuse(model.WatchersFull, "runs", float64(n))
	case most > 0 && n >= most:
		return refuse(model.SessionsFull, "sessions", float64(n))
	case n >= maxSessions:
		return refuse(model.SessionsMost, "sessions", float64(n))
	}
	theirs, bytes, count := slices.Clone(p.Ends), memory(p.Ends), streams(p.Ends)
	for _, other := range a.sessions {
		ends := other.orders()
		bytes += memory(ends)
		count += streams(ends)
		if other.from == from {
			theirs = append(theirs, ends...)
		}
	}
	if err := a.cfg.Limits.AdmitBytes(bytes); err != nil {
		return err
	}
	if most := a.cfg.Limits.MaxStreams; most > 0 && count > most {
		return refuse(model.StreamsFull, "streams", float64(count), "most", float64(most))
	}
	return a.allowsTogether(p.Session, theirs)
}

// AdmitBytes says whether a host with these limits has the memory that all clients' tests would take; see MemoryOf.
func (l Limits) AdmitBytes(bytes float64) error {
	if allowed := l.memory(); bytes > allowed {
		of, most := apart(bytes, allowed, megabytes,
			func(v float64) string { return unit.FormatCount(uint64(v)) + " B" })
		return refuse(model.MemoryFull, "memory", of, "allowed", most)
	}
	return nil
}

// MemoryOf is about how many bytes an end may take.
func MemoryOf(o engine.Order) float64 { return memory([]endOrder{{Order: o}}) }

func streams(ends []endOrder) (n int) {
	for _, e := range ends {
		n += e.Order.Flow.Streams
	}
	return n
}

// allowsTogether checks all ends of one client's host against the limits: many sessions get no more than one.
func (a *Agent) allowsTogether(session string, ends []endOrder, callers ...netip.Addr) error {
	with := append(callers, a.client(session))
	for _, e := range ends {
		if !e.Order.Listen {
			with = append(with, e.Order.Peer)
		}
	}
	return a.cfg.Limits.Toward(with...).check(ends)
}

// allowsCallers holds a session to the limits again once its listening ends know who called: a client
// in an own network may command a host in another.
func (a *Agent) allowsCallers(s *session, met engine.Meeting) error {
	var callers []netip.Addr
	for _, one := range met.Streams {
		if one.Met {
			callers = append(callers, one.Remote.Addr())
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var theirs []endOrder
	for _, other := range a.sessions {
		if other.from == s.from {
			theirs = append(theirs, other.orders()...)
		}
	}
	return a.allowsTogether(s.id, theirs, callers...)
}

// Toward returns the limits for a client and the hosts that it has exchange traffic with this one. OwnFree lifts the
// limit of the rate if all of them are in this host's own networks; OthersPPS and OthersBPS then keep it for the
// text.
func (l Limits) Toward(hosts ...netip.Addr) Limits {
	if l.OwnFree && !slices.ContainsFunc(hosts, func(a netip.Addr) bool { return !OwnNetwork(a) }) {
		l.OthersPPS, l.OthersBPS, l.MaxRatePPS, l.MaxRateBPS = l.MaxRatePPS, l.MaxRateBPS, 0, 0
	}
	return l
}

// What ends take beside the buffers of their sockets, in bytes.
const (
	histogramBytes = 222e3     // of a stream: its gaps, its lateness, or its delay
	listsBytes     = 64 << 20  // lists of packets, of all ends of an order
	windowBytes    = 2 << 20   // a UDP receiver's map of what came ...
	streamWindow   = 128 << 10 // ... or so much for each stream
)

// memory is about how many bytes a session of these ends may take: socket buffers, histograms and lists of packets, the
// text of a TCP sender, series with a value a second, TCP_INFO that is kept over time, and the buffers of its record.
// All buffers of UDP sockets together are bounded by the kernel (net.ipv4.udp_mem).
func memory(ends []endOrder) (bytes float64) {
	if slices.ContainsFunc(ends, func(e endOrder) bool { return e.Order.Record != nil }) {
		bytes = 30 << 20
	}
	for _, e := range ends {
		f, streams := e.Order.Flow, float64(e.Order.Flow.Streams)
		switch udp := f.Protocol == model.UDP; {
		case udp && e.Order.Role == engine.Send:
			histograms := 1.
			if _, paced := f.PeakPPS(); paced {
				histograms = 2
			}
			bytes += histograms*histogramBytes*streams + float64(e.Order.ListBytes())
		case udp && e.Order.Role == engine.Receive:
			bytes += max(windowBytes, streamWindow*streams) + float64(e.Order.ListBytes())
			if e.Order.OneClock {
				bytes += histogramBytes * streams
			}
		case e.Order.Role == engine.Send:
			bytes += float64(f.PayloadBytes)
		}
		bytes += streams*max(256<<10, float64(f.ReceiveBuffer)+float64(f.SendBuffer)+4*float64(f.Window)) +
			e.Order.Timing.MeasureSeconds*16
		if e.Order.Role == engine.Send && e.Order.Flow.InfoSeconds > 0 {
			bytes += 20 << 20
		}
	}
	return bytes
}

// check compares all ends of a session with what this host grants.
func (l Limits) check(ends []endOrder) error {
	if len(ends) == 0 {
		return nil
	}
	var flows []model.Flow
	var probes float64
	for _, e := range ends {
		if e.Order.Traffic() {
			flows = append(flows, e.Order.Flow)
		} else {
			pps, _ := e.Order.Flow.Rate.PPS(e.Order.Flow.PayloadBytes)
			probes += pps
		}
	}
	if probes > maxProbes && l.MaxRatePPS+l.MaxRateBPS > 0 {
		return refuse(model.ProbesFast, "asked_pps", probes, "allowed_pps", float64(maxProbes))
	}
	return l.Admit(flows, ends[0].Order.Timing)
}

// rounding makes up for the last bits, in which a rate may differ from a limit that it equals.
const rounding = 1 + 1e-9

// Admit says whether a host with these limits takes a trial. The error is an
// *engine.Refusal that names the limit and what was asked.
func (l Limits) Admit(flows []model.Flow, t model.Timing) error {
	if s := t.LeadSeconds + t.WarmupSeconds + t.MeasureSeconds; l.MaxTimeSeconds > 0 && s > l.MaxTimeSeconds {
		of, most := apart(s, l.MaxTimeSeconds, timeText, func(s float64) string { return fmt.Sprintf("%.3f s", s) })
		return refuse(model.TrialLong, "trial", of, "allowed", most)
	}
	limited := l.MaxRatePPS > 0 || l.MaxRateBPS > 0
	named := []any{"allowed", l.rateText(), "rate", l.rateEach(max(len(flows), 1))}
	if l.OwnFree {
		named = append(named, "others", "true")
	}
	var pps, bps float64
	for _, f := range flows {
		if f.Profile != nil {
			named = append(named, "rate", "") // its peaks are of its own
		}
		p, paced := f.PeakPPS()
		if !paced && limited {
			return refuse(model.RateMaxRefused, append(named, "flow", f.Name)...)
		}
		pps += p
		bps += p * float64(f.PayloadBytes) * 8
	}
	asked, allowed, in, name := pps, l.MaxRatePPS, unit.PPS, "pps"
	if allowed == 0 {
		asked, allowed, in, name = bps, l.MaxRateBPS, unit.BPS, "bit/s"
	}
	if !limited || asked <= allowed*rounding {
		return nil
	}
	of, most := apart(asked, allowed, in.Exact, func(v float64) string {
		return unit.FormatCount(uint64(math.Ceil(v/rounding))) + " " + name
	})
	return refuse(model.RateRefused, append(named, "asked", of, "allowed", most)...)
}

// apart prints what was asked and what is allowed, exactly where both would read alike.
func apart(asked, allowed float64, brief, exact func(float64) string) (of, most string) {
	if of, most = brief(asked), brief(allowed); of == most {
		return exact(asked), exact(allowed)
	}
	return of, most
}

func megabytes(bytes float64) string { return fmt.Sprintf("%.0f MB", bytes/1e6) }

func timeText(seconds float64) string {
	if seconds < 600 {
		return unit.FormatNanos(seconds * 1e9)
	}
	return unit.FormatMoment(seconds)
}

// Trials tells in one line which trials a host allows.
func (l Limits) Trials(in words.Language) string {
	rate, trial := in.Say("any rate"), in.Say("of any length")
	l.MaxRatePPS, l.MaxRateBPS = l.MaxRatePPS+l.OthersPPS, l.MaxRateBPS+l.OthersBPS
	if limited := l.MaxRatePPS > 0 || l.MaxRateBPS > 0; limited {
		rate = l.rateText()
		if l.OwnFree {
			rate += in.Say(" (any rate to private addresses and this host's subnets)")
		}
	}
	if l.MaxTimeSeconds > 0 {
		trial = in.Sayf("of %s", timeText(l.MaxTimeSeconds))
	}
	return in.Sayf("trials %s, %s", trial, rate)
}

// In tells a host's owner the limits in one line.
func (l Limits) In(in words.Language) string {
	memory := megabytes(l.memory()) // little on a router
	if l.memory() >= 1e9 {
		memory = fmt.Sprintf("%.1f GB", l.memory()/1e9)
	}
	text := in.Sayf("%s of memory, %s", memory, l.Trials(in))
	if l.MaxSessions > 0 {
		text = in.Sayf("%d clients, %s", l.MaxSessions, text)
	}
	return text
}

func (l Limits) memory() float64 { return cmp.Or(l.MemoryBytes, maxMemory) }

// rateText is the limit of the rate: of packets, or of bits.
func (l Limits) rateText() string {
	if l.MaxRatePPS > 0 {
		return unit.PPS.Exact(l.MaxRatePPS)
	}
	return unit.BPS.Exact(l.MaxRateBPS)
}

// RateFlag is what a client's command needs beside an address of this host that it calls, "" for nothing. Who calls a
// private address is taken to be near.
func (l Limits) RateFlag(called netip.Addr) string {
	if l.MaxRatePPS+l.MaxRateBPS == 0 || l.OwnFree && Private(called) {
		return ""
	}
	return " --rate " + l.rateEach(1)
}

// rateEach returns the highest --rate that each of a number of flows may have.
func (l Limits) rateEach(flows int) string {
	if l.MaxRatePPS > 0 {
		return unit.PacketRate(max(uint64(l.MaxRatePPS*rounding)/uint64(flows), 1)).String()
	}
	return unit.BitRate(max(uint64(l.MaxRateBPS)/uint64(flows), 1)).String()
}
