package stats

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"pelt/model"
	"pelt/record"
	"pelt/unit"
)

// Show writes what a record is: its header, a line for each flow of each trial, the
// first losses, and whether it is whole.
func Show(w io.Writer, d Document) error {
	p, h := &page{}, d.Header
	p.line("record of run %s, %s, %s, pelt %s", cmp.Or(h.Run, "(not kept)"), h.Target, h.Started.UTC().Format("2006-01-02 15:04 UTC"), h.Tool.Version)
	p.line("%s; times to %d ns", h.Format, h.ResolutionNS)
	if d.Whole {
		p.line("whole: %s", size(d.Bytes))
	} else {
		p.line("not whole: %s; %s before it can be read", d.Cut, size(d.Bytes))
	}
	p.line("")
	t := tabwriter.NewWriter(p, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "trial\tcell\tflow\tstreams\tpayload\tpackets\tleft out\tB/packet\tlost\tseconds\tstate\t")
	for _, x := range d.Trials {
		for i, g := range x.Of {
			f := x.Flows[i]
			fmt.Fprintf(t, "%d\t%s #%d\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t\n", x.Trial.Trial, x.Cell.Key(), x.Repeat+1, f.Name, f.Streams, f.PayloadBytes,
				unit.FormatCount(g.Packets), unit.FormatCount(g.Dropped), perPacket(g), lost(g), moment(g, g.Last), state(x))
		}
	}
	_ = t.Flush() // memory takes it all
	for _, x := range d.Trials {
		for _, g := range x.Of {
			if len(g.Losses) == 0 {
				continue
			}
			p.line("")
			p.line("trial %d, %s: %s lost in %s%s", x.Trial.Trial, g.Name, lost(g), runs(g), first(g))
			for _, r := range g.Losses {
				p.line("  stream %d: %d from sequence %d", r.Stream, r.Count, r.From)
			}
		}
	}
	_, err := io.WriteString(w, p.String())
	return err
}

// Text writes the figures of every flow.
func Text(w io.Writer, d Document) error {
	p := &page{}
	if !d.Whole {
		p.line("The record is not whole: %s. The figures are of what is before.", d.Cut)
		p.line("")
	}
	for _, x := range d.Trials {
		for i, g := range x.Of {
			f := x.Flows[i]
			p.line("trial %d, %s #%d, %s: %s to %s, %d B, %s", x.Trial.Trial, x.Cell.Key(), x.Repeat+1, g.Name, f.From, f.To, f.PayloadBytes, state(x))
			p.figures(f, g)
			p.line("")
		}
	}
	if len(d.Trials) == 0 {
		p.line("No trial is recorded.")
	}
	_, err := io.WriteString(w, p.String())
	return err
}

func (p *page) figures(f record.Flow, g Figures) {
	t := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(t, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	row("recorded", "%s packets, %s B each; %s left out", unit.FormatCount(g.Packets), perPacket(g), unit.FormatCount(g.Dropped))
	said := ""
	if !g.AttemptedKnown {
		said = ", as far as sequences came"
	}
	row("received", "%s of %s attempted%s, at %s", unit.FormatCount(g.Received), unit.FormatCount(g.Attempted), said, unit.FormatPPS(g.ReceivePPS))
	row("lost", "%s, %s, in %s", unit.FormatCount(g.Lost), unit.FormatRatio(g.LossRatio), runs(g))
	if len(g.Runs) > 0 {
		var list []string
		low := uint64(1)
		for _, r := range g.Runs {
			name := fmt.Sprint(r.UpTo)
			if low < r.UpTo {
				name = fmt.Sprintf("%d to %d", r.UpTo/2+1, r.UpTo)
			}
			list, low = append(list, fmt.Sprintf("%s of %s", unit.FormatCount(r.Runs), name)), r.UpTo+1
		}
		row("loss runs", "%s", strings.Join(list, ", "))
	}
	row("duplicates", "%s", unit.FormatCount(g.Duplicates))
	row("late", "%s", unit.FormatCount(g.Late))
	row("reordered", "%s, %s (RFC 4737)", unit.FormatCount(g.Reordered), unit.FormatRatio(g.ReorderedRatio))
	if g.Extent != nil {
		row("extent", "p50 %.0f, p99 %.0f, max %.0f packets; late by p50 %s, max %s", g.Extent.P50, g.Extent.P99, g.Extent.Max, unit.FormatNanos(g.Offset.P50), unit.FormatNanos(g.Offset.Max))
	}
	if g.TooFar > 0 {
		row("too far", "%s", unit.FormatCount(g.TooFar))
	}
	noDelay := "none"
	if !f.OneClock {
		noDelay = "the clocks are two"
	}
	row("delay", "%s", spread(g.Delay, noDelay))
	row("jitter", "%s (RFC 3550)", unit.FormatNanos(g.JitterNS))
	row("send gap", "%s", spread(g.SendGap, "none"))
	row("receive gap", "%s", spread(g.ReceiveGap, "none"))
	switch {
	case g.Own == nil:
		row("the trial's own", "are missing: it was cut")
	case len(g.Differs) > 0:
		row("the trial's own", "differ in %s", strings.Join(g.Differs, ", "))
	default:
		row("the trial's own", "are the same")
	}
	_ = t.Flush() // memory takes it all
}

func spread(p *model.Percentiles, none string) string {
	if p == nil || p.Count+p.Out == 0 {
		return "– (" + none + ")"
	}
	var parts []string
	if n := unit.FormatNanos; p.Count > 0 {
		parts = append(parts, fmt.Sprintf("min %s, p50 %s, p90 %s, p99 %s, p99.9 %s, max %s", n(p.Min), n(p.P50), n(p.P90), n(p.P99), n(p.P999), n(p.Max)))
	}
	if p.Out > 0 {
		parts = append(parts, unit.FormatCount(p.Out)+" below 0 or above 60 s")
	}
	return strings.Join(parts, "; ")
}

func perPacket(g Figures) string {
	if g.Packets == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", float64(g.Bytes)/float64(g.Packets))
}

func lost(g Figures) string {
	if !g.AttemptedKnown {
		return "≥ " + unit.FormatCount(g.Lost)
	}
	return unit.FormatCount(g.Lost)
}

// runs tells the number of runs of losses, and that it is not all of them.
func runs(g Figures) string {
	text := unit.FormatCount(g.LossRuns) + " runs"
	if g.Unlisted > 0 {
		text += fmt.Sprintf(" and more, of %s packets, for which there was no room", unit.FormatCount(g.Unlisted))
	}
	return text
}

func first(g Figures) string {
	if g.LossRuns > uint64(len(g.Losses)) {
		return fmt.Sprintf("; the first %d of them", len(g.Losses))
	}
	return ""
}

// moment is when a packet came, after the first of its flow.
func moment(g Figures, m *Moment) string {
	if m == nil {
		return "–"
	}
	return fmt.Sprintf("%.3f", time.Duration(m.ReceiveNanos-g.First.ReceiveNanos).Seconds())
}

func state(t Trial) string {
	switch {
	case t.Void != "":
		return "not kept"
	case t.State == "":
		return "cut"
	}
	return string(t.State)
}

func size(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.2f MB", float64(n)/1e6)
	case n >= 1e4:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d B", n)
}

// page is a text that grows line by line.
type page struct{ strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }
