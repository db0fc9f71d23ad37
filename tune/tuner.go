package tune

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pelt/internal/outfile"
	"pelt/words"
)

// Tuner holds the lock over a host's journal. Its methods must not be called concurrently.
type Tuner struct {
	host    host
	state   string // the directory of the journal
	journal *journal
	lock    *os.File
	now     func() time.Time
	boot    string
	space   uint64
}

func newTuner(root string) *Tuner {
	return &Tuner{host: newHost(root), state: cmp.Or(os.Getenv("PELT_STATE"), filepath.Join(root, "var/lib/pelt/tune")),
		now: time.Now, boot: boot(), space: namespace()}
}

// Open takes the lock and reads the journal; Close gives the lock back. ErrBusy says that
// another process has it, ErrRights that this user may not change the host.
func Open() (*Tuner, error) {
	if err := rights(); err != nil {
		return nil, err
	}
	t := newTuner("/")
	return t, t.take()
}

func (t *Tuner) take() (err error) {
	if err := os.MkdirAll(t.state, 0o755); err != nil {
		return words.Errorf("make %s for the journal: %w", t.state, outfile.Cause(err))
	}
	if t.lock, err = os.OpenFile(filepath.Join(t.state, "lock"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return words.Errorf("lock %s: %w", t.state, outfile.Cause(err))
	}
	if err = lockFile(t.lock); err == nil {
		t.journal, err = openJournal(t.state)
	}
	if err != nil {
		return errors.Join(err, t.lock.Close())
	}
	return nil
}

// Look reads the journal for Show without the lock and without rights.
func Look() (t *Tuner, err error) {
	t = newTuner("/")
	t.journal, err = openJournal(t.state)
	return t, err
}

// Close gives the lock back. What is applied stays.
func (t *Tuner) Close() error {
	err := t.journal.close()
	if t.lock != nil {
		err = errors.Join(err, t.lock.Close())
	}
	return err
}

// Done is what became of one value.
type Done struct {
	Knob  string `json:"knob"`
	Place string `json:"place"`
	From  string `json:"from"`
	To    string `json:"to"`
	State string `json:"state"`
	Why   string `json:"why,omitempty"` // of what is Gone or Kept

	Interface string  `json:"interface,omitempty"` // that is called Now
	Now       string  `json:"now,omitempty"`
	Namespace uint64  `json:"namespace,omitempty"` // of the network, in which it was changed
	Others    []Other `json:"others,omitempty"`
}

// Other is a setting of a queue that somebody else changed since. It stays so.
type Other struct {
	Place string `json:"place"`
	Value string `json:"value"`
}

// In says in a language, in one line, what became of the value.
func (d Done) In(l words.Language) string {
	from, to := oneSpaced(d.From), oneSpaced(d.To)
	switch d.Why {
	case OtherNamespace:
		return l.Sayf("%s: was changed in another network namespace, net:[%d]; revert it there", d.Place, d.Namespace)
	case OtherName:
		return l.Sayf("%s: the interface is called %s now, with these settings; revert it when it is called %s again",
			d.Place, d.Now, d.Interface)
	case InterfaceGone:
		return l.Sayf("%s: the interface is gone, and its settings with it", d.Place)
	case OtherInterface:
		return l.Sayf("%s: another interface of that name stands there now; it is left alone", d.Place)
	case SettingGone:
		return l.Sayf("%s: it is gone", d.Place)
	case Restarted:
		return l.Sayf("%s: this host has started again since, with %s; it stays so", d.Place, from)
	case ChangedSince:
		return l.Sayf("%s: somebody changed it to %s since; it stays so (--force restores %s)", d.Place, from, to)
	}
	if d.State == Already {
		return l.Sayf("%s is %s already", d.Place, to)
	}
	text := l.Sayf("%s: %s -> %s", d.Place, from, to)
	for _, o := range d.Others {
		text += l.Say("; ") + l.Sayf("somebody changed %s to %s since, which stays so", o.Place, oneSpaced(o.Value))
	}
	return text
}

// What became of a value.
const (
	Changed  = "changed"
	Already  = "already-so" // nothing was to do
	Restored = "restored"
	Gone     = "gone" // the interface is, and its settings with it
	Kept     = "kept" // somebody else changed it since
)

// Why a value is Gone or Kept.
const (
	OtherNamespace = "other-namespace"
	OtherName      = "other-name" // of its interface
	InterfaceGone  = "interface-gone"
	OtherInterface = "other-interface"
	SettingGone    = "setting-gone"
	Restarted      = "restarted"
	ChangedSince   = "changed-since"
)

// Apply makes all changes that follow from a run ("" for none), or none of them: if one cannot be made, those before
// it are taken back, and the error says which and why. What has its value already is left alone and not in
// the journal.
func (t *Tuner) Apply(changes []Change, run string) ([]Done, error) {
	steps, done, err := t.plan(changes, run)
	if err != nil || len(steps) == 0 {
		return done, err
	}
	former := slices.Clone(t.journal.steps)
	if err := t.journal.add(steps...); err != nil {
		return nil, err
	}
	for i, s := range steps {
		if err := t.make(s); err != nil {
			return nil, t.takeBack(err, steps, former)
		}
		steps[i].Made = true
		done = append(done, Done{Knob: s.Knob, Place: s.Place.String(), From: s.Before, To: s.New, State: Changed})
	}
	if err := t.journal.add(steps...); err != nil {
		return nil, t.takeBack(err, steps, former)
	}
	return done, nil
}

// plan reads every old value, and refuses what is not possible.
func (t *Tuner) plan(changes []Change, run string) (steps []Step, done []Done, err error) {
	if err := checkChanges(changes); err != nil {
		return nil, nil, err
	}
	for _, c := range changes {
		k, dev, _ := find(c.Knob) // checkChanges found it
		index, space := 0, uint64(0)
		if dev != "" {
			if index, err = t.host.device(dev); err != nil {
				return nil, nil, words.Errorf("%s: %w", c.Knob, err)
			}
		}
		if k.Scope != ScopeHost {
			space = t.space
		}
		places, err := t.host.places(k, dev)
		if err != nil {
			return nil, nil, err
		}
		for _, p := range places {
			now, err := t.host.read(p)
			if err != nil {
				return nil, nil, words.Errorf("%s cannot be read: %w", c.Knob, missing(k, err))
			}
			if p.same(now, c.Value) {
				done = append(done, Done{Knob: c.Knob, Place: p.String(), From: now, To: c.Value, State: Already})
				continue
			}
			s := Step{Knob: c.Knob, Place: p, Old: now, Before: now, New: c.Value, Index: index,
				Queues: t.queueSettings(k, dev),
				Time:   t.now().UTC(), Run: run, Boot: t.boot, Namespace: space}
			for _, o := range t.journal.steps { // what stood before the first change is to come back
				if o.Place == p && o.Namespace == space && o.Boot == t.boot && o.Index == index && o.leaves(now) {
					s.Old, s.Queues = o.Old, o.Queues
				}
			}
			steps = append(steps, s)
		}
	}
	return steps, done, nil
}

// missing says why a knob cannot be read.
func missing(k Knob, err error) error {
	if noSetting(err) {
		return words.Errorf("the interface's driver has no such setting")
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if k.Scope == ScopeHost && k.at.Kind == atSysctl {
		return words.Errorf("it is not there; a network namespace other than the first lacks it, and so does a " +
			"kernel that was built without")
	}
	return words.Errorf("this kernel, driver or interface has none")
}

// queueSettings are the values that a change of queues takes away.
func (t *Tuner) queueSettings(k Knob, dev string) (list []Saved) {
	if !strings.HasPrefix(k.Name, "DEV.channels_") {
		return nil
	}
	for _, pattern := range queuePlaces(dev) {
		for _, p := range t.host.found(pattern) {
			if old, err := t.host.read(p); err == nil { // a driver that does not show it cannot lose it
				list = append(list, Saved{p, old})
			}
		}
	}
	return list
}

// make makes one step that is in the journal.
func (t *Tuner) make(s Step) error {
	if err := t.host.write(s.Place, s.New); err != nil {
		return words.Errorf("%s: the kernel refuses %s: %w", s.Place, oneSpaced(s.New), err)
	}
	now, err := t.host.read(s.Place)
	switch {
	case err != nil:
		return words.Errorf("%s cannot be read back: %w", s.Place, err)
	case !s.Place.same(now, s.New):
		return words.Errorf("%s: asked for %s, the kernel made it %s", s.Place, oneSpaced(s.New), oneSpaced(now))
	}
	for _, b := range s.Queues { // some drivers forget those of queues that stay; what differs later is somebody else's
		if err := t.restoreQueue(b); err != nil {
			return err
		}
	}
	return nil
}

// takeBack takes back what was made of steps, and returns why that had to be, with what became of it.
func (t *Tuner) takeBack(why error, steps, former []Step) error {
	if err := t.rollBack(steps, former); err != nil {
		return words.Errorf("%w; and of what was changed before, not all could be restored (pelt tune show lists "+
			"it): %w", why, err)
	}
	return words.Errorf("%w; nothing is changed", why)
}

// rollBack takes back what was made of steps, one of them perhaps in part, and makes the journal what it was.
func (t *Tuner) rollBack(steps, former []Step) error {
	var errs []error
	for _, s := range slices.Backward(steps) {
		now, err := t.host.read(s.Place)
		if err != nil || !s.Place.same(now, s.Before) {
			err = t.restore(s.Place, s.Before)
		}
		for _, b := range s.Queues {
			err = errors.Join(err, t.restoreQueue(b))
		}
		if err == nil {
			back := s
			back.Undone = true
			for _, o := range former {
				if o.Place == s.Place && o.Namespace == s.Namespace {
					back = o
				}
			}
			err = t.journal.add(back)
		}
		errs = append(errs, err)
	}
	return errors.Join(append(errs, t.journal.endIfEmpty())...)
}
