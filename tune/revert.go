package tune

import (
	"errors"
	"io/fs"
	"slices"

	"pelt/words"
)

// Revert restores what stood there before Apply, text for text, the latest change first. What somebody else changed
// since is Kept, stays in the journal and is told, unless force is set. It may be called again at any time, also after
// a process that died in Apply or Revert. ErrNothing says that the journal holds nothing.
func (t *Tuner) Revert(force bool) (done []Done, err error) {
	if len(t.journal.steps) == 0 {
		return nil, errors.Join(ErrNothing, t.journal.endIfEmpty())
	}
	var errs []error
	for _, s := range slices.Backward(slices.Clone(t.journal.steps)) {
		d, err := t.undo(s, force)
		if err == nil {
			done = append(done, d)
			if d.State != Kept {
				s.Undone = true
				err = t.journal.add(s)
			}
		}
		errs = append(errs, err)
	}
	return done, errors.Join(append(errs, t.journal.endIfEmpty())...)
}

func (t *Tuner) undo(s Step, force bool) (Done, error) {
	d := Done{Knob: s.Knob, Place: s.Place.String(), From: s.New, To: s.Old}
	end := func(state, why string) (Done, error) {
		d.State, d.Why = state, why
		return d, nil
	}
	if t.elsewhere(s) {
		d.Namespace = s.Namespace
		return end(Kept, OtherNamespace)
	}
	if dev := s.device(); dev != "" {
		switch now, err := t.host.present(dev); {
		case err != nil:
			return d, words.Errorf("%s: %w", s.Place, err)
		case t.renamed(s) != "":
			d.Interface, d.Now = dev, t.renamed(s)
			return end(Kept, OtherName)
		case now == 0:
			return end(Gone, InterfaceGone)
		case now != s.Index && !t.restarted(s):
			return end(Gone, OtherInterface)
		}
	}
	now, err := t.host.read(s.Place)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return end(Gone, SettingGone)
	case err != nil:
		return d, words.Errorf("%s cannot be read: %w", s.Place, err)
	}
	d.From = now
	others := map[Place]string{} // what queues have that were there all the while
	if s.Made && !force && s.leaves(now) {
		for _, b := range s.Queues {
			if text, err := t.host.read(b.Place); err == nil {
				others[b.Place] = text
			}
		}
	}
	d.State = Already
	if !s.Place.same(now, s.Old) {
		if !s.leaves(now) && t.restarted(s) {
			return end(Gone, Restarted)
		}
		if !s.leaves(now) && !force {
			return end(Kept, ChangedSince)
		}
		if err := t.restore(s.Place, s.Old); err != nil {
			return d, err
		}
		d.State = Restored
	}
	for _, b := range s.Queues {
		if other, was := others[b.Place]; was && !b.Place.same(other, b.Old) {
			d.Others = append(d.Others, Other{b.Place.String(), other})
			b.Old = other // the drivers of some forget it with the change above
		}
		if err := t.restoreQueue(b); err != nil {
			return d, err
		}
	}
	return d, nil
}

// leaves reports whether pelt may have left a value: it is the new one, or the change was cut before that was written.
func (s Step) leaves(now string) bool {
	return s.Place.same(now, s.New) || !s.Made && s.Place.same(now, s.Before)
}

// restarted reports whether the host has started again since a change.
func (t *Tuner) restarted(s Step) bool { return s.Boot != t.boot && s.Boot != "" && t.boot != "" }

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
		return words.Errorf("%s cannot be set back to %s: %w", p, oneSpaced(old), err)
	}
	now, err := t.host.read(p)
	switch {
	case err != nil:
		return words.Errorf("%s cannot be read back: %w", p, err)
	case !p.same(now, old):
		return words.Errorf("%s: was set back to %s, the kernel made it %s", p, oneSpaced(old), oneSpaced(now))
	}
	return nil
}

// elsewhere reports whether a step is of a network namespace that is not this one.
func (t *Tuner) elsewhere(s Step) bool {
	return s.Boot == t.boot && s.Namespace != t.space && s.Namespace != 0 && t.space != 0
}

// renamed is what the interface of a step is called now, "" if it is called as it was or is gone.
func (t *Tuner) renamed(s Step) string {
	if s.Index == 0 || t.restarted(s) || t.host.index(s.device()) == s.Index {
		return ""
	}
	return t.host.named(s.Index)
}

// Setting is one value of the journal, and what stands there now.
type Setting struct {
	Time  string `json:"time"` // RFC 3339
	Run   string `json:"run,omitempty"`
	Knob  string `json:"knob"`
	Place string `json:"place"`
	Old   string `json:"old"`
	New   string `json:"new"`
	Now   string `json:"now"`
	State string `json:"state"`
}

// States of what stands in a place.
const (
	AsSet    = "as-set"
	AsBefore = "as-before"
	Differs  = "differs" // somebody else changed it
	NotThere = "gone"
	Renamed  = "renamed"   // the interface has another name now
	Away     = "elsewhere" // in another network namespace
)

// Show tells what the journal holds and what stands there now, the oldest first.
func (t *Tuner) Show() (list []Setting) {
	for _, s := range t.journal.steps {
		x := Setting{Time: s.Time.Format("2006-01-02T15:04:05Z07:00"), Run: s.Run, Knob: s.Knob,
			Place: s.Place.String(), Old: s.Old, New: s.New}
		x.Now, x.State = t.stateOf(s)
		list = append(list, x)
	}
	return list
}

func (t *Tuner) stateOf(s Step) (now, state string) {
	if t.elsewhere(s) {
		return "", Away
	}
	if t.renamed(s) != "" {
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
