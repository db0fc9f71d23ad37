package live

import (
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"pelt/unit"
)

// Plain writes a run as lines: one that is drawn again and again on a terminal, one every so often elsewhere, and
// one for each trial that ended.
type Plain struct {
	W      io.Writer
	Redraw bool          // W is a terminal
	Width  int           // of the terminal, in columns
	Every  time.Duration // between lines elsewhere

	Now  Now // what was shown elsewhere before
	told time.Time
	news map[string]bool // that were told
}

// Read shows what a reader gets, until its last event.
func (p *Plain) Read(past []Event, r *Reader) {
	for _, e := range past {
		p.Take(e)
	}
	for e := range r.C {
		p.Take(e)
	}
	if r.Slow() {
		p.line("this terminal fell behind; the run goes on, and nothing more of it is shown here until it ends")
	}
}

// GoOn tells what a full screen showed in passing, and how it ended if it failed.
func (p *Plain) GoOn(failed error) {
	p.told = p.Now.Time
	p.line(p.Now.Started.Text)
	for _, note := range p.Now.Notes {
		p.line(note)
	}
	if failed != nil {
		p.line(failed.Error())
	}
}

// Take shows an event.
func (p *Plain) Take(e Event) {
	p.Now.Take(e)
	switch {
	case e.Note != "":
		p.line(e.Note)
	case e.Started != nil:
		p.line(e.Started.Text)
	case e.Next != nil:
		p.told = e.Time
		p.status()
	case e.Sample != nil:
		p.status()
	case e.Trial != nil:
		p.line(e.Trial.Name() + "  " + e.Trial.Text)
	case e.Findings != nil:
		p.tellNews()
	case e.Done != nil && p.Redraw:
		fmt.Fprint(p.W, "\r\x1b[K")
	}
}

// tellNews tells what began at some moment of the run, once: a run of days is watched for that. Its figures and its
// reason may change with each trial.
func (p *Plain) tellNews() {
	for _, f := range p.Now.Findings {
		words := maps.Clone(f.Words)
		delete(words, "why")
		what := fmt.Sprint(f.Code, words)
		if f.Words["since"] == "" || p.news[what] {
			continue
		}
		if p.news == nil {
			p.news = map[string]bool{}
		}
		p.news[what] = true
		p.line(f.Text)
	}
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

// status redraws the line of a terminal, or writes one where it is time for it.
func (p *Plain) status() {
	next, now := p.Now.Next, p.Now.Time
	if next == nil {
		return
	}
	if p.Redraw {
		fmt.Fprintf(p.W, "\r\x1b[K%s", strings.Join(p.fitting(p.Now.Status()), "  "))
		return
	}
	if now.Sub(p.told) < p.Every || now.Sub(p.Now.Began) > next.Whole() {
		return
	}
	p.told = p.told.Add(now.Sub(p.told).Truncate(p.Every))
	p.line(strings.Join(p.Now.Status(), "  "))
}

// fitting leaves out the parts of a status that do not fit on the terminal.
func (p *Plain) fitting(all []string) (out []string) {
	room := p.Width - 1
	for _, field := range all {
		if n := len([]rune(field)) + 2; n <= room+2 {
			out, room = append(out, field), room-n
		}
	}
	return out
}

// line prints a lasting line above the one that is drawn again.
func (p *Plain) line(text string) {
	if p.Redraw {
		fmt.Fprint(p.W, "\r\x1b[K")
	}
	fmt.Fprintln(p.W, text)
}

// Status tells of the trial that runs, in parts of which the first matter most.
func (n *Now) Status() []string {
	all := []string{n.Next.Name(), n.Elapsed(n.Time)}
	for _, sent := range n.Series {
		for _, got := range n.Series {
			if sent.Metric == "send_pps" && got.Metric == "receive_pps" && sent.Flow == got.Flow &&
				sent.Trial == n.Next.Number && got.Trial == n.Next.Number {
				all = append(all, fmt.Sprintf("%s: %s sent, %s received", sent.Flow, unit.FormatPPS(sent.Value), unit.FormatPPS(got.Value)))
			}
		}
	}
	if n.Next.Setting != "" {
		all = append(all, n.Next.Setting)
	}
	if losses := n.Losses(); losses != "" {
		all = append(all, losses)
	}
	return all
}

// Elapsed is how much of the trial that runs is over.
func (n *Now) Elapsed(at time.Time) string {
	whole := n.Next.Whole()
	return fmt.Sprintf("%.0f of %.0f s", min(at.Sub(n.Began), whole).Seconds(), whole.Seconds())
}

// Whole is how long the trial's packets take.
func (n *Next) Whole() time.Duration {
	return time.Duration((n.WarmupSeconds + n.MeasuredSeconds) * float64(time.Second))
}

// Losses tell where the packets of the trial that runs, or ran last, were lost by now; "" if nobody knows yet.
func (n *Now) Losses() string {
	var parts []string
	for _, p := range n.Paths() {
		text := fmt.Sprintf("%s sent", unit.FormatCount(p.Sent))
		if p.Flow != "" {
			text = p.Flow + ": " + text
		}
		if len(p.Losses) == 0 {
			text += ", none lost"
		}
		for i, l := range p.Losses {
			text += [2]string{", lost: ", ", "}[min(i, 1)] + unit.FormatCount(l.Packets) + " " + l.Text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}
