package report

import (
	"fmt"
	"io"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/unit"
)

// AdviceText writes what the counters of a run call for, for a terminal of width
// characters. colour adds ANSI styles.
func AdviceText(w io.Writer, doc model.Document, l model.AdviceList, width int, colour bool) error {
	s := newScreen(width, colour)
	s.wrap(styleBold, "", words.Headline(doc))
	s.wrap(styleDim, "", words.Run(doc))
	s.line("", "")
	if len(l.Advice) == 0 {
		s.wrap(styleVerdict, "", "Nothing is advised: no counter of a loss moved that a setting addresses.")
	}
	here, there := false, false
	for i, a := range l.Advice {
		if i > 0 {
			s.line("", "")
		}
		s.advised(a)
		here, there = here || a.Apply, there || !a.Here && !a.Limit
	}
	if here {
		s.line("", "")
		s.wrap("", "", "On this host: pelt tune apply "+words.RunRef(l.Run)+"; pelt tune revert takes it back.")
	}
	if there {
		s.line("", "")
		s.wrap("", "", "pelt changes no other host: the commands for others are to be run there.")
	}
	if err := s.flush(w); err != nil {
		return fmt.Errorf("writing the advice: %w", err)
	}
	return nil
}

// advised is one setting: where, from what to what, why and how.
func (s *screen) advised(a model.Advised) {
	where := words.Name(a.Host)
	if a.Here {
		where += " (this host)"
	}
	s.wrap(styleBold, "", fmt.Sprintf("%s: %s of %s packets were lost at %s, %s", where, unit.FormatCount(a.Packets), unit.FormatCount(a.Attempted), words.Name(a.Layer), words.Name(a.Cause)))
	if a.Limit {
		s.wrap("", "  ", fmt.Sprintf("%s is %s: not the limit", words.Name(a.Knob), words.Plain(a.Present)))
	} else {
		s.wrap("", "  ", fmt.Sprintf("%s: %s -> %s", words.Name(a.Knob), words.Plain(a.Present), words.Plain(a.Value)))
	}
	s.wrap("", "    why   ", words.Plain(a.Why))
	for _, x := range []struct{ head, text string }{{"    run   ", a.Command}, {"    undo  ", a.Undo}} {
		if x.text != "" {
			s.line("", x.head+words.Plain(x.text)) // whole, to be copied
		}
	}
	s.wrap("", "    note  ", words.Plain(a.Note))
}

// TuneTrialText writes what was tried, what it changed, and what remains.
func TuneTrialText(w io.Writer, t model.TuneTrial, width int, colour bool) error {
	s := newScreen(width, colour)
	s.wrap(styleBold, "", "pelt tune trial "+words.Plain(t.Target))
	s.line("", "")
	s.wrap(styleVerdict, "", words.Plain(t.Verdict))
	s.line("", "")
	s.wrap("", "", "At first: "+tuneLoss(t.First))
	for _, step := range t.Steps {
		mark := "- "
		if step.Kept {
			mark = "+ "
		}
		s.wrap("", mark, fmt.Sprintf("%s of the %s: %s -> %s", words.Name(step.Knob), words.Name(step.Host), words.Plain(step.Present), words.Plain(step.Value)))
		s.wrap(styleDim, "    why   ", words.Plain(step.Why))
		if step.Without.Trials+step.With.Trials > 0 {
			s.wrap("", "    ", fmt.Sprintf("without: %s; with: %s", tuneLoss(step.Without), tuneLoss(step.With)))
		}
		s.wrap("", "    ", words.Plain(step.Text))
	}
	s.wrap("", "", "At last: "+tuneLoss(t.Last))
	listOf(s, "", "What still loses packets", t.Limits, words.Plain)
	if t.Flags != "" {
		s.line("", "")
		s.wrap("", "", "Of pelt's own sockets, other commands take what was kept as "+words.Plain(t.Flags))
	}
	if t.Undo != "" {
		s.line("", "")
		s.wrap("", "", "What was kept stands on this host now; take it back with: "+words.Plain(t.Undo))
	}
	if err := s.flush(w); err != nil {
		return fmt.Errorf("writing the trial: %w", err)
	}
	return nil
}

func tuneLoss(l model.TuneLoss) string {
	text := fmt.Sprintf("%s of %s packets lost (%s) in %d trials", unit.FormatCount(l.Lost), unit.FormatCount(l.Attempted), unit.FormatRatio(l.Ratio), l.Trials)
	if l.Run != "" {
		text += ", run " + words.Name(l.Run)
	}
	return text
}
