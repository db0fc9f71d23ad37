package live

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"pelt/model"
	"pelt/render/plain"
	"pelt/unit"
	"pelt/words"
)

// Plain writes a run as lines: one for each trial that ended, and on a terminal one that is drawn again and again.
type Plain struct {
	W      io.Writer
	Redraw bool            // W is a terminal
	Width  int             // of the terminal, in columns
	Resize func() int      // the width now, asked before the line is drawn again; nil: it stays
	Every  time.Duration   // between lines of progress elsewhere; 0: none
	Brief  bool            // no lines of trials that ended; the one drawn again has setting and time left only
	Told   map[string]bool // lines that runs of the same command told before; nil: it has one run

	Now   Now // what was shown elsewhere before
	told  time.Time
	drawn string
	quiet map[string]time.Time // since when ends of the trial are not heard, by what was told of them
}

// mostLine is how many columns a line of progress has at most.
const mostLine = 200

// redraw is how often progress is looked at.
const redraw = time.Second / 4

// Read shows what a reader gets, until its last event.
func (p *Plain) Read(past []Event, r *Reader) {
	for _, e := range past {
		p.Take(e)
	}
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	for {
		select {
		case e, more := <-r.C:
			if more {
				p.Take(e)
				continue
			}
			p.draw("")
			if r.Slow() {
				p.line("", p.Now.Language.Say(
					"this terminal fell behind; the run goes on, and nothing more of it is shown here until it ends"))
			}
			return
		case at := <-tick.C:
			p.status(at)
		}
	}
}

// GoOn tells what a full screen showed in passing, and how it ended if it failed.
func (p *Plain) GoOn(failed error) {
	p.told = p.Now.Time
	p.line("", p.Now.Started.Text)
	for _, note := range p.Now.Notes {
		p.line("", note)
	}
	if failed != nil {
		p.line("", p.Now.Language.Error(failed))
	}
}

func (p *Plain) Take(e Event) {
	p.Now.Take(e)
	switch {
	case e.Note != "":
		p.once(e.Note)
	case e.Started != nil:
		p.told = e.Time
		p.once(e.Started.Text)
	case e.Next != nil && !p.Brief:
		p.told = e.Time
	case e.Trial != nil:
		p.quiet = nil
		if p.Brief {
			return
		}
		head, text := e.Trial.Name()+"  ", e.Trial.Text
		most := mostLine
		if p.Redraw {
			most = min(most, p.Width)
		}
		p.line(head, shortened(p.Now.Language, plain.Text(text), most-len(head), e.Trial.State))
	}
}

// once prints a line that no run of the same command told before.
func (p *Plain) once(text string) {
	if p.Told[text] {
		return
	}
	if p.Told != nil {
		p.Told[text] = true
	}
	p.line("", text)
}

// shortened cuts what a trial showed between two of its figures, and still says that it is no valid one.
func shortened(in words.Language, text string, columns int, state model.State) string {
	if plain.Width(text) <= columns {
		return text
	}
	end, closed := " …", ""
	if state != model.Valid && state != "" {
		end += in.Sayf(" (%s)", in.Say(string(state)))
	}
	short := plain.Cut(text, columns-plain.Width(end)+1)
	short = strings.TrimSuffix(short, "…")
	at := strings.LastIndexAny(short, ",;(，；（")
	if at < columns/2 {
		at = strings.LastIndexByte(short, ' ')
	}
	short = short[:max(at, 0)]
	if said := strings.TrimRight(strings.TrimPrefix(end, " …"), ")）"); said != "" && strings.Contains(short, said) {
		end, closed = " …", strings.TrimPrefix(strings.TrimPrefix(end, " …"), said) // its reason is what is cut
	}
	return strings.TrimRight(short, " ,;:(，；：（") + end + closed
}

// of is the number of a trial, of how many if that is known.
func of(number, total int) string {
	if total == 0 {
		return fmt.Sprint(number)
	}
	return fmt.Sprintf("%d/%d", number, total)
}

// Name is the number of the trial: "3", or "3/12" where it is known how many there are.
func (n *Next) Name() string { return of(n.Number, n.Trials) }

// Name is the number of the trial, as wide as that of the last one.
func (t *Trial) Name() string {
	return fmt.Sprintf("%*s", len(of(t.Trials, t.Trials)), of(t.Number, t.Trials))
}

// status draws the line of a terminal, or writes one where it is time for it.
func (p *Plain) status(at time.Time) {
	p.tellQuiet(at)
	switch {
	case p.Now.Next == nil:
		p.draw("")
	case p.Redraw:
		if p.Resize != nil {
			p.Width = p.Resize()
		}
		p.draw(fitting(p.fields(at), min(p.Width-1, mostLine)))
	case p.Every > 0 && at.Sub(p.told) >= p.Every && at.Sub(p.Now.Began) <= p.Now.Next.Whole():
		p.told = p.told.Add(at.Sub(p.told).Truncate(p.Every))
		p.line("", fitting(p.fields(at), mostLine))
	}
}

// fields are those of the status that are shown.
func (p *Plain) fields(at time.Time) []Field {
	all := p.Now.Status(at)
	if p.Brief {
		all = slices.DeleteFunc(all, func(f Field) bool { return f.Rank != timeLeft && f.Rank != setting })
	}
	return all
}

// tellQuiet tells once of each end that is not heard any more, and once when it is heard again.
func (p *Plain) tellQuiet(at time.Time) {
	if p.Now.Next == nil {
		return
	}
	silent := p.Now.quiet(at)
	for who, since := range silent {
		if _, known := p.quiet[who]; !known {
			p.line(p.Now.Next.Name()+"  ", p.Now.Language.Sayf("%s not heard for %.0f s", who, whole(since)))
			if p.quiet == nil {
				p.quiet = map[string]time.Time{}
			}
			p.quiet[who] = at.Add(-since)
		}
	}
	for who, since := range p.quiet {
		if _, still := silent[who]; !still {
			p.line(p.Now.Next.Name()+"  ", p.Now.Language.Sayf("%s heard again after %.0f s", who,
				whole(at.Sub(since))))
			delete(p.quiet, who)
		}
	}
}

// draw replaces the line that is drawn again, "" by none.
func (p *Plain) draw(line string) {
	if p.Redraw && line != p.drawn {
		fmt.Fprint(p.W, "\r\x1b[K"+line)
		p.drawn = line
	}
}

// Field is a part of a status.
type Field struct {
	Text string
	Rank int // 0 for the parts that matter most
}

// fitting leaves out the fields that do not fit, those that matter least first. The first one is always there.
func fitting(all []Field, room int) string {
	keep := make([]bool, len(all))
	for rank := range setting + 1 {
		for i, f := range all {
			if n := plain.Width(f.Text); f.Rank == rank && (n <= room || i == 0) {
				keep[i], room = true, room-n-2
			}
		}
	}
	var out []string
	for i, f := range all {
		if keep[i] {
			out = append(out, f.Text)
		}
	}
	return strings.Join(out, "  ")
}

// line prints a lasting line above the one that is drawn again. Of a terminal it is broken between words.
func (p *Plain) line(head, text string) {
	p.draw("")
	lines := []string{head + text}
	if p.Redraw {
		lines = plain.WrapWhole(text, head, strings.Repeat(" ", len(head)), p.Width)
	}
	fmt.Fprintln(p.W, strings.Join(lines, "\n"))
}

// Ranks of the fields of a status.
const (
	rates = iota
	timeLeft
	elapsed
	losses
	setting
)

// Status tells of the trial that runs.
func (n *Now) Status(at time.Time) []Field {
	all := []Field{{n.Next.Name(), rates}, {n.Elapsed(at), elapsed}}
	if left, ok := n.Left(at); ok {
		text := n.Language.Say(unit.FormatEstimate(left.Seconds()))
		all = append(all, Field{n.Language.Sayf("about %s left", text), timeLeft})
	}
	for _, f := range n.flows {
		for i, text := range n.status(f, at) {
			all = append(all, Field{text, []int{rates, losses}[min(i, 1)]})
		}
	}
	for _, text := range n.losses() {
		all = append(all, Field{text, losses})
	}
	if n.Next.Setting != "" {
		all = append(all, Field{plain.Text(n.Next.Setting), setting})
	}
	return all
}

// Elapsed is how much of the trial that runs is over.
func (n *Now) Elapsed(at time.Time) string {
	whole := n.Next.Whole()
	if n.Next.UntilSent {
		return fmt.Sprintf("%.0f s", at.Sub(n.Began).Seconds())
	}
	if whole < time.Second {
		return n.Language.Sayf("0 of %.2g s", whole.Seconds())
	}
	return n.Language.Sayf("%.0f of %.0f s", min(at.Sub(n.Began), whole).Seconds(), whole.Seconds())
}

// Whole is how long the trial's packets take.
func (n *Next) Whole() time.Duration {
	return time.Duration((n.WarmupSeconds + n.MeasuredSeconds) * float64(time.Second))
}

// mostCauses is how many causes of losses a line of progress names, the largest first.
const mostCauses = 3

// Losses tell where the packets of the trial that runs, or ran last, were lost by now; "" if nobody knows yet.
func (n *Now) Losses() string { return strings.Join(n.losses(), n.Language.Say("; ")) }

func (n *Now) losses() (all []string) {
	for _, p := range n.Paths() {
		in := n.Language
		text := in.Sayf("%s sent", unit.FormatCount(p.Sent))
		if p.Flow != "" {
			text = in.Sayf("%s: %s", in.Say(plain.Text(p.Flow)), text)
		}
		if len(p.Losses) == 0 {
			text += in.Say(", none lost")
		}
		for i, l := range p.Losses[:min(len(p.Losses), mostCauses)] {
			text += in.Say([2]string{", lost: ", ", "}[min(i, 1)]) + in.Sayf("%[1]s %[2]s", unit.FormatCount(l.Packets),
				l.Text)
		}
		if more := len(p.Losses) - mostCauses; more > 0 {
			text += in.Sayf(" and %d more causes", more)
		}
		all = append(all, text)
	}
	return all
}
