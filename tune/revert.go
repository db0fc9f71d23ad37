package tune

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// RevertOptions say how much is taken back.
type RevertOptions struct {
	Last  bool // the latest change only; else all, the latest first
	Force bool // also what somebody else changed since
}

// Revert restores what stood there before Apply, text for text. What somebody else changed
// since is Kept, stays in the journal and is told, unless Force is set; so are the changes
// before it at the same place, whose old values would else be lost to a later Force. It may be called
// again at any time, also after a process that died in Apply or Revert. ErrNothing says
// that the journal holds nothing.
func (t *Tuner) Revert(o RevertOptions) ([]Done, error) {
	var done []Done
	var errs []error
	found := false
	held := map[Place]bool{} // where a later change stands still
	for n := len(t.journal.list) - 1; n >= 0; n-- {
		a := t.journal.list[n]
		had := false
		var stands []Place
		for i := len(a.Steps) - 1; i >= 0; i-- {
			if !a.stands(i) {
				continue
			}
			had = true
			s := a.Steps[i]
			if slices.ContainsFunc(s.places(), func(p Place) bool { return held[p] }) {
				done = append(done, Done{s.Knob, s.Place.String(), s.New, s.Old, Kept, s.Place.String() + ": a later change of it was not taken back, so this one was not either"})
				stands = append(stands, s.places()...)
				continue
			}
			d, err := t.undo(a, i, "", o.Force)
			if err != nil || d.State == Kept && !t.otherNamespace(a, s) {
				stands = append(stands, s.places()...)
			}
			if err != nil {
				errs = append(errs, err)
				continue
			}
			done = append(done, d)
		}
		for _, p := range stands {
			held[p] = true
		}
		if found = found || had; had && o.Last {
			break
		}
	}
	if err := errors.Join(append(errs, t.endJournal())...); err != nil {
		return done, err
	}
	if !found {
		return nil, ErrNothing
	}
	return done, nil
}

// places lists all places that undoing a step writes to.
func (s Step) places() []Place {
	list := []Place{s.Place}
	for _, b := range s.Queues {
		list = append(list, b.Place)
	}
	return list
}

// undo restores one step. expect is what pelt left there, "" for the step's new value.
func (t *Tuner) undo(a *Apply, i int, expect string, force bool) (Done, error) {
	s := a.Steps[i]
	d := Done{Knob: s.Knob, Place: s.Place.String(), From: s.New, To: s.Old}
	if expect == "" {
		expect = s.New
	}
	end := func(state, text string) (Done, error) {
		d.State, d.Text = state, d.Place+": "+text
		if state == Kept {
			return d, nil
		}
		return d, t.journal.add(record{Undone: &stepID{a.ID, i}})
	}
	if t.otherNamespace(a, s) {
		return end(Kept, fmt.Sprintf("was changed in another network namespace, net:[%d]; revert it there", a.Namespace))
	}
	if s.Place.Kind == atIRQ && t.restarted(a) {
		return end(Gone, "this host has started again since, and the interrupt of that number may be another's; it stays so")
	}
	if dev := s.device(); dev != "" {
		switch now, err := t.host.present(dev); {
		case err != nil:
			return d, fmt.Errorf("%s: %w", s.Place, err)
		case t.renamed(a, s) != "":
			return end(Kept, fmt.Sprintf("the interface is called %s now, with these settings; revert it when it is called %s again", t.renamed(a, s), dev))
		case now == 0:
			return end(Gone, "the interface is gone, and its settings with it")
		case s.Index != 0 && now != s.Index && a.Boot == t.boot:
			return end(Gone, "another interface of that name stands there now; it is left alone")
		}
	}
	now, err := t.host.read(s.Place)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return end(Gone, "it is gone")
	case err != nil:
		return d, fmt.Errorf("%s cannot be read: %w", s.Place, err)
	}
	d.From = now
	others := map[Place]string{} // what queues have that were there all the while
	if a.made && !force && s.Place.same(now, s.New) {
		for _, b := range s.Queues {
			if text, err := t.host.read(b.Place); err == nil {
				others[b.Place] = text
			}
		}
	}
	if now != s.Old && !s.Place.same(now, s.Old) {
		if !s.Place.same(now, expect) && t.restarted(a) {
			return end(Gone, fmt.Sprintf("this host has started again since, with %s; it stays so", words(now)))
		}
		if !s.Place.same(now, expect) && !force {
			return end(Kept, fmt.Sprintf("somebody changed it to %s since; it stays so (--force restores %s)", words(now), words(s.Old)))
		}
		if err := t.restore(s.Place, s.Old); err != nil {
			return d, err
		}
		d.State = Restored
	}
	stays := ""
	for _, b := range s.Queues {
		if other, was := others[b.Place]; was && !b.Place.same(other, b.Old) {
			stays += fmt.Sprintf("; somebody changed %s to %s since, which stays so", b.Place, words(other))
			b.Old = other // the drivers of some forget it with the change above
		}
		if err := t.restoreQueue(b); err != nil {
			return d, err
		}
	}
	if d.State == Restored {
		return end(Restored, fmt.Sprintf("%s -> %s%s", words(d.From), words(s.Old), stays))
	}
	return end(Already, words(s.Old)+" already")
}

// restarted reports whether the host has started again since a change.
func (t *Tuner) restarted(a *Apply) bool { return a.Boot != t.boot && a.Boot != "" && t.boot != "" }

// restoreQueue restores a setting of a queue that is there.
func (t *Tuner) restoreQueue(b Saved) error {
	if now, err := t.host.read(b.Place); err != nil || b.Place.same(now, b.Old) {
		return nil
	}
	return t.restore(b.Place, b.Old)
}

// restore writes an old value, and finds out that it stands there.
func (t *Tuner) restore(p Place, old string) error {
	if err := t.host.write(p, old); err != nil {
		return fmt.Errorf("%s cannot be set back to %s: %w", p, words(old), err)
	}
	now, err := t.host.read(p)
	switch {
	case err != nil:
		return fmt.Errorf("%s cannot be read back: %w", p, err)
	case !p.same(now, old):
		return fmt.Errorf("%s: was set back to %s, the kernel made it %s", p, words(old), words(now))
	}
	return nil
}

// otherNamespace reports whether a step is of a network namespace that is not this one.
func (t *Tuner) otherNamespace(a *Apply, s Step) bool {
	k, _, err := find(s.Knob)
	return t.host.real && err == nil && k.Scope != ScopeHost &&
		a.Boot == t.boot && a.Namespace != t.space && a.Namespace != 0 && t.space != 0
}

// renamed is what the interface of a step is called now, "" if it is called as it was or is gone.
func (t *Tuner) renamed(a *Apply, s Step) string {
	if s.device() == "" || s.Index == 0 || a.Boot != t.boot || t.host.index(s.device()) == s.Index {
		return ""
	}
	return t.host.named(s.Index)
}

// stands reports whether a step was made, or begun, and not taken back.
func (a *Apply) stands(i int) bool { return a.touched[i] && !a.undone[i] }

// left reports whether something of a change is still to be taken back.
func (a *Apply) left() bool {
	for i := range a.Steps {
		if a.stands(i) {
			return true
		}
	}
	return false
}

// Killed says what a trial that was killed left in place, and the command that takes it back; "" for nothing.
// The lock must be this process's: else the trial may still run.
func (t *Tuner) Killed() (what, remedy string) {
	remedy = "pelt tune revert --last"
	for _, a := range slices.Backward(t.journal.list) {
		switch {
		case !a.left() || t.restarted(a):
			continue
		case a.Tried:
			return "pelt tune trial was killed while it tried " + a.Steps[0].Knob + ", which is still set", remedy
		}
		remedy = "pelt tune revert" // of later changes, too
	}
	return "", ""
}

// Killed is [Tuner.Killed] for this host, without a Tuner. It says nothing if this user may not read the journal, or
// while another process has the lock.
func Killed() (what, remedy string) {
	t, err := Look(Options{})
	if err == nil {
		what, remedy = t.Killed()
		err = t.Close()
	}
	if err != nil || what == "" {
		return "", ""
	}
	if t, err = Open(Options{}); err == nil {
		what, remedy = t.Killed()
		err = t.Close()
	}
	if err != nil {
		return "", ""
	}
	return what, remedy
}

// endJournal removes a journal of which nothing is left to take back.
func (t *Tuner) endJournal() error {
	if slices.ContainsFunc(t.journal.list, (*Apply).left) {
		return nil
	}
	return t.journal.end()
}

// Setting is one value of the journal, and what stands there now.
type Setting struct {
	Change int    `json:"change"` // 1 is the oldest
	Time   string `json:"time"`   // RFC 3339
	Run    string `json:"run,omitempty"`
	Knob   string `json:"knob"`
	Place  string `json:"place"`
	Old    string `json:"old"`
	New    string `json:"new"`
	Now    string `json:"now"`
	State  string `json:"state"` // as set, as before, differs, gone, renamed, elsewhere
	Whole  bool   `json:"whole"` // all steps of the change were made
}

// States of what stands in a place.
const (
	AsSet    = "as-set"
	AsBefore = "as-before"
	Differs  = "differs" // somebody else changed it, or a later change did
	NotThere = "gone"
	Renamed  = "renamed"   // the interface has another name now
	Away     = "elsewhere" // in another network namespace
)

// Show tells what the journal holds and what stands there now, the oldest first.
func (t *Tuner) Show() []Setting {
	var list []Setting
	for _, a := range t.journal.list {
		for i, s := range a.Steps {
			if !a.stands(i) {
				continue
			}
			x := Setting{Change: a.ID, Time: a.Time.Format("2006-01-02T15:04:05Z07:00"), Run: a.Run, Knob: s.Knob, Place: s.Place.String(), Old: s.Old, New: s.New, Whole: a.made}
			x.Now, x.State = t.state(a, s)
			list = append(list, x)
		}
	}
	return list
}

func (t *Tuner) state(a *Apply, s Step) (now, state string) {
	if t.otherNamespace(a, s) {
		return "", Away
	}
	if t.renamed(a, s) != "" {
		return "", Renamed
	}
	now, err := t.host.read(s.Place)
	switch {
	case err != nil:
		return "", NotThere
	case s.Place.same(now, s.New):
		return now, AsSet
	case s.Place.same(now, s.Old):
		return now, AsBefore
	}
	return now, Differs
}
