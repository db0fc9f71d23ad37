package ledger

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"pelt/model"
)

// maxSpans is how many runs of lost sequences a line shows.
const maxSpans = 64

// found is what is known by sequence of one errno or site.
type found struct {
	exact uint64 // sequences that are missing
	soft  uint64 // sequences that may have arrived, because the list of the missing ones ends before them
	spans []model.Span
	steps []uint64 // of the exact ones, by step
	// Sequences that have both an errno and a verdict: under the errno, by site.
	verdicts map[int]uint64
}

func (f *found) add(stream int, from, n uint64) {
	f.exact += n
	if last := len(f.spans) - 1; last >= 0 && f.spans[last].Stream == stream &&
		f.spans[last].From+f.spans[last].Count == from {
		f.spans[last].Count += n
	} else if len(f.spans) < maxSpans {
		f.spans = append(f.spans, model.Span{Stream: stream, From: from, Count: n})
	}
}

// join holds the verdicts against the missing sequences, stream by stream, as a
// merge of sorted stretches: its memory does not grow with their number.
type join struct {
	path    *path
	clock   clock
	steps   []uint64 // missing sequences by step
	errnos  []string
	byErrno []found
	bySite  []found
	// Sequences by errno that the lists hold, missing or not.
	listedErrno []uint64
	sites       []uint64 // verdict-only sequences by site: no errno told of them

	// Of each stream, the last sequences up to the newest one, if all of them are missing, that nobody saw lost.
	newest []found
	inTail bool // the stretch that is read is of these

	// Sequences by kind of ICMP error that nobody saw lost, of stretches in which such an error quoted a packet: hosts
	// answer a few packets a second only.
	byAnswer []found
	quotes   []quote // in order of streams and sequences
	answered int     // what the stretch that is read was answered with; -1: nothing

	missing        uint64 // sequences listed as missing
	unlisted       uint64 // further ones that the lists had no room for
	refusedArrived uint64
	trouble        checks // what is wrong with the lists
	missingBroken  bool
	refusedBroken  bool
}

// cursor walks one list of marks.
type cursor struct {
	next func() (model.Stretch, error, bool)
	stop func()
	at   model.Stretch // Count 0: at the end
	err  error
}

func newCursor(m model.Marks) *cursor {
	next, stop := iter.Pull2(m.Stretches())
	c := &cursor{next: next, stop: stop}
	c.step()
	return c
}

func (c *cursor) step() {
	var ok bool
	if c.at, c.err, ok = c.next(); !ok || c.err != nil {
		c.at = model.Stretch{}
		if c.err != nil {
			c.stop()
			c.next = func() (model.Stretch, error, bool) { return model.Stretch{}, nil, false }
		}
	}
}

// cut takes the first n sequences off.
func (c *cursor) cut(n uint64) {
	if c.at.Count == n {
		c.step()
		return
	}
	c.at.From, c.at.Count = c.at.From+n, c.at.Count-n
}

// source is one list beside the missing sequences: the refused ones, or a
// kernel's verdicts.
type source struct {
	cursor *cursor
	list   int // index of path.lists; -1: errnos
}

func (p *path) join(in Input) *join {
	j := &join{path: p, clock: newClock(in), errnos: in.Errnos, byErrno: make([]found, len(in.Errnos)),
		bySite:      make([]found, len(p.sites)),
		listedErrno: make([]uint64, len(in.Errnos)), sites: make([]uint64, len(p.sites)),
		byAnswer: make([]found, len(in.ICMP)), quotes: quotesOf(in.ICMP), answered: -1}
	streams := max(len(in.Missing), len(in.Refused), len(in.Streams))
	for _, l := range p.lists {
		if l.listed {
			streams = max(streams, len(l.flow.Streams))
		}
	}
	streams = min(streams, model.MaxStreams)
	if in.MissingKnown && len(in.Missing) != len(in.Streams) && len(in.Streams) > 0 ||
		len(in.Missing) > model.MaxStreams {
		j.missingBroken = true
		j.trouble.law(false, "lists.streams", uint64(len(in.Missing)), uint64(len(in.Streams)))
	}
	for s := range streams {
		j.stream(in, s)
	}
	return j
}

// quote is a packet that an ICMP error tells of.
type quote struct {
	stream   int
	sequence uint64
	kind     int // index of the errors
}

func quotesOf(errors []model.ICMPErrors) (all []quote) {
	for i, e := range errors {
		for _, x := range e.Of {
			if e.From != "" { // else of too many hosts to tell them apart
				all = append(all, quote{x.Stream, x.From, i})
			}
		}
	}
	slices.SortFunc(all, func(a, b quote) int {
		return cmp.Or(cmp.Compare(a.stream, b.stream), cmp.Compare(a.sequence, b.sequence))
	})
	return all
}

// answerOf returns what the first packet of a stretch that an error quotes was answered with; -1: there is none. It is
// asked for each stretch in its order.
func (j *join) answerOf(s int, m model.Stretch) (kind int) {
	kind = -1
	for ; len(j.quotes) > 0; j.quotes = j.quotes[1:] {
		q := j.quotes[0]
		if q.stream > s || q.stream == s && q.sequence >= m.From+m.Count {
			break
		}
		if kind < 0 && q.stream == s && q.sequence >= m.From {
			kind = q.kind
		}
	}
	return kind
}

// stream joins the lists of one stream.
func (j *join) stream(in Input, s int) {
	sources := j.open(in, s)
	j.newest = append(j.newest, found{})
	defer func() {
		for _, o := range sources {
			o.cursor.stop()
		}
	}()
	attempted := uint64(math.MaxUint64)
	if s < len(in.Streams) {
		attempted = in.Streams[s]
	}
	var end, rest uint64 // missing sequences are known below end; rest more lie behind it
	switch {
	case !in.MissingKnown:
		rest = attempted
	case s < len(in.Missing):
		m := in.Missing[s]
		seen := uint64(0)
		for stretch, err := range m.Stretches() {
			if err != nil {
				j.missingBroken = true
				j.trouble.law(false, "lists.missing", uint64(s+1), err.Error())
				rest = minus(m.Packets, seen)
				break
			}
			if stretch.From >= attempted || stretch.Count > attempted-stretch.From {
				if !j.missingBroken {
					j.trouble.law(false, "lists.beyond", uint64(s+1), stretch.From+stretch.Count-1, attempted)
				}
				j.missingBroken = true
				if stretch.From >= attempted {
					break
				}
				stretch.Count = attempted - stretch.From
			}
			seen += stretch.Count
			end = stretch.From + stretch.Count
			j.steps = j.clock.count(j.steps, s, stretch.From, stretch.Count)
			j.inTail, j.answered = end == attempted, j.answerOf(s, stretch)
			j.sweep(s, stretch, sources)
			j.inTail, j.answered = false, -1
		}
		j.missing = plus(j.missing, seen)
		j.unlisted = plus(j.unlisted, m.Unlisted)
		rest = plus(rest, m.Unlisted)
	}
	j.tail(s, min(rest, minus(attempted, end)), sources)
	for _, o := range sources {
		if o.cursor.err == nil {
			continue
		}
		if o.list < 0 {
			j.refusedBroken = true
			j.trouble.law(false, "lists.refused", uint64(s+1), o.cursor.err.Error())
		} else {
			l := j.path.lists[o.list]
			l.broken = o.cursor.err.Error()
			j.trouble.law(false, "lists.verdicts", uint64(s+1), l.from, l.broken)
		}
	}
}

func (j *join) open(in Input, s int) []source {
	var all []source
	if s < len(in.Refused) {
		all = append(all, source{newCursor(in.Refused[s]), -1})
	}
	for i, l := range j.path.lists {
		if l.listed && s < len(l.flow.Streams) {
			all = append(all, source{newCursor(l.flow.Streams[s]), i})
		}
	}
	return all
}

// sweep accounts one run of missing sequences; the sources have been read up to
// its begin at most.
func (j *join) sweep(s int, m model.Stretch, sources []source) {
	end := m.From + m.Count
	for _, o := range sources {
		j.pass(o, m.From)
	}
	for at := m.From; at < end; {
		until, errno, verdict := j.look(at, end, sources)
		j.name(s, at, until-at, errno, verdict)
		at = until
	}
}

// look finds what the sources say about the sequence at, and up to where they
// say it; it takes that much off them.
func (j *join) look(at, end uint64, sources []source) (until uint64, errno, verdict int) {
	until, errno, verdict = end, -1, -1
	for _, o := range sources {
		if c := &o.cursor.at; c.Count > 0 {
			if c.From > at {
				until = min(until, c.From)
			} else {
				until = min(until, c.From+c.Count)
			}
		}
	}
	n := until - at
	for _, o := range sources {
		c := o.cursor
		if c.at.Count == 0 || c.at.From > at {
			continue
		}
		if mark := int(c.at.Mark); o.list < 0 {
			if mark < len(j.byErrno) {
				errno = mark
				j.listedErrno[mark] += n
			} else {
				j.refusedBroken = true
			}
		} else if site, ok := j.siteOf(o.list, mark, n); ok {
			j.path.sites[site].told[o.list].missing += n
			if verdict < 0 || j.later(site, verdict) {
				verdict = site
			}
		}
		c.cut(n)
	}
	return until, errno, verdict
}

// siteOf maps a mark of one list; ok is false if it names no site, or one where
// nothing is lost.
func (j *join) siteOf(list, mark int, n uint64) (site int, ok bool) {
	l := j.path.lists[list]
	if mark >= len(l.sites) {
		l.bogus = plus(l.bogus, n)
		return 0, false
	}
	return l.sites[mark], j.path.sites[l.sites[mark]].layer != ""
}

// later reports whether a was passed after b. That a datagram could not be put
// together follows from a fragment that was dropped elsewhere.
func (j *join) later(a, b int) bool {
	x, y := j.path.sites[a], j.path.sites[b]
	if waited(x) != waited(y) {
		return waited(y)
	}
	return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(b, a)) > 0
}

// waited reports whether a verdict only says that fragments did not come.
func waited(s *site) bool {
	return s.cause == "FRAG_REASM_TIMEOUT" || s.cause == "reassembly"
}

// name assigns missing sequences to the errno or site that lost them.
func (j *join) name(s int, from, n uint64, errno, verdict int) {
	switch {
	case errno >= 0 && (verdict < 0 || j.errnos[errno] != "ENOBUFS"):
		f := &j.byErrno[errno]
		f.add(s, from, n)
		f.steps = j.clock.count(f.steps, s, from, n)
		if verdict >= 0 {
			if f.verdicts == nil {
				f.verdicts = map[int]uint64{}
			}
			f.verdicts[verdict] += n
		}
	case verdict >= 0:
		f := &j.bySite[verdict]
		f.add(s, from, n)
		f.steps = j.clock.count(f.steps, s, from, n)
		if errno < 0 {
			j.sites[verdict] += n
		}
	case j.answered >= 0:
		f := &j.byAnswer[j.answered]
		f.add(s, from, n)
		f.steps = j.clock.count(f.steps, s, from, n)
	case j.inTail:
		f := &j.newest[s]
		f.add(s, from, n)
		f.steps = j.clock.count(f.steps, s, from, n)
	}
}

// waiting adds up what is missing of the newest packets of all streams. Streams take turns, so a queue holds as many of
// each: more of one stream is lost.
func (j *join) waiting() (sum found) {
	least := uint64(math.MaxUint64)
	for _, f := range j.newest {
		least = min(least, f.exact)
	}
	for _, f := range j.newest {
		sum.exact += min(f.exact, least+least/4)
		if f.exact > least+least/4 {
			return found{exact: least * uint64(len(j.newest))} // which ones is not known
		}
		sum.spans = spansOf(sum.spans, f.spans)
		for i, n := range f.steps {
			if sum.steps == nil {
				sum.steps = make([]uint64, len(f.steps))
			}
			sum.steps[i] += n
		}
	}
	return sum
}

// pass skips what a source says of sequences below to: they arrived.
func (j *join) pass(o source, to uint64) {
	for c := o.cursor; c.at.Count > 0 && c.at.From < to; {
		n := min(c.at.Count, to-c.at.From)
		j.arrived(o, int(c.at.Mark), n)
		c.cut(n)
	}
}

func (j *join) arrived(o source, mark int, n uint64) {
	if o.list < 0 {
		if mark < len(j.listedErrno) {
			j.listedErrno[mark] += n
		}
		j.refusedArrived += n
		return
	}
	if site, ok := j.siteOf(o.list, mark, n); ok {
		j.path.sites[site].told[o.list].copies += n
	}
}

// tail reads what lies behind the known missing sequences, of which rest are
// missing too, but which is not known. What was refused cannot have arrived.
func (j *join) tail(s int, rest uint64, sources []source) {
	for {
		at := uint64(math.MaxUint64)
		for _, o := range sources {
			if c := o.cursor.at; c.Count > 0 {
				at = min(at, c.From)
			}
		}
		if at == math.MaxUint64 {
			return
		}
		if rest == 0 {
			for _, o := range sources {
				j.pass(o, math.MaxUint64)
			}
			return
		}
		until, errno, verdict := j.look(at, math.MaxUint64, sources)
		n := min(until-at, rest)
		rest -= n
		switch {
		case errno >= 0:
			j.name(s, at, n, errno, verdict)
		case verdict >= 0:
			j.bySite[verdict].soft += n
			j.sites[verdict] += n
		}
	}
}

// close sums what the lists hold of each site.
func (j *join) close() {
	for _, s := range j.path.sites {
		for _, t := range s.told {
			s.seen = max(s.seen, t.missing+t.copies)
		}
	}
}

// broken reports whether a list that named this site cannot be trusted.
func (j *join) broken(s *site) bool {
	for i, l := range j.path.lists {
		if (l.broken != "" || l.bogus > 0) && i < len(s.told) && s.told[i].missing > 0 {
			return true
		}
	}
	return false
}

// spansOf merges the runs of several places, the lowest sequences first.
func spansOf(parts ...[]model.Span) []model.Span {
	all := slices.Concat(parts...)
	slices.SortFunc(all, func(a, b model.Span) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.From, b.From))
	})
	var out []model.Span
	for _, s := range all {
		if last := len(out) - 1; last >= 0 && out[last].Stream == s.Stream && out[last].From+out[last].Count == s.From {
			out[last].Count += s.Count
			continue
		}
		if len(out) == maxSpans {
			break
		}
		out = append(out, s)
	}
	return out
}
