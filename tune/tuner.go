package tune

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"pelt/internal/outfile"
)

// Options say which host.
type Options struct {
	Root string           // "" or "/": this host; else a tree that stands for one
	Now  func() time.Time // nil: time.Now
}

// Tuner holds the lock over a host's journal. Its methods must not be called concurrently.
type Tuner struct {
	host    host
	journal *journal
	lock    *os.File
	now     func() time.Time
	boot    string
	space   uint64
}

// stateDir is where the journal lies: $PELT_STATE, else var/lib/pelt/tune below root, also for
// a user that is not root, who may look for it but not apply anything.
func stateDir(root string) (string, error) {
	if d := os.Getenv("PELT_STATE"); d != "" {
		return filepath.Abs(d)
	}
	return filepath.Abs(filepath.Join(root, "var/lib/pelt/tune"))
}

// Open takes the lock and reads the journal; Close gives the lock back. ErrBusy says that
// another process has it, ErrRights that this user may not change the host.
func Open(o Options) (*Tuner, error) {
	if !supported {
		return nil, ErrLinux
	}
	t, err := newTuner(o)
	if err != nil {
		return nil, err
	}
	if t.host.real {
		if err := rights(); err != nil {
			return nil, err
		}
	}
	dir := filepath.Dir(t.journal.path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make %s for the journal: %w", dir, outfile.Cause(err))
	}
	if t.lock, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, outfile.Cause(err))
	}
	if err := lockFile(t.lock); err != nil {
		return nil, errors.Join(err, t.lock.Close())
	}
	if err := t.read(dir); err != nil {
		return nil, errors.Join(err, t.lock.Close())
	}
	return t, nil
}

// read reads the journal, and finds out that it is this host's.
func (t *Tuner) read(dir string) (err error) {
	if t.journal, err = openJournal(dir); err != nil {
		return err
	}
	for _, a := range t.journal.list {
		if a.left() && a.Root != t.tree() {
			return fmt.Errorf("the journal in %s is of %s, not of %s; set PELT_STATE to another directory", dir, hostName(a.Root), hostName(t.tree()))
		}
	}
	return nil
}

// tree is the root of a tree that stands for a host, "" for this host.
func (t *Tuner) tree() string {
	if t.host.real {
		return ""
	}
	return t.host.root
}

func hostName(root string) string {
	if root == "" {
		return "this host"
	}
	return "the tree " + root
}

// Look reads the journal for Show without the lock and without rights.
func Look(o Options) (*Tuner, error) {
	t, err := newTuner(o)
	if err != nil {
		return nil, err
	}
	return t, t.read(filepath.Dir(t.journal.path))
}

func newTuner(o Options) (*Tuner, error) {
	if o.Root == "" {
		o.Root = "/"
	}
	var err error
	if o.Root, err = filepath.Abs(o.Root); err != nil {
		return nil, err
	}
	state, err := stateDir(o.Root)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(o.Root); err != nil || !info.IsDir() {
		return nil, &UsageError{fmt.Sprintf("--root %s: want a directory", o.Root)}
	}
	t := &Tuner{host: newHost(o.Root), journal: &journal{path: filepath.Join(state, journalName)}, now: o.Now, boot: boot(), space: namespace()}
	if t.now == nil {
		t.now = time.Now
	}
	return t, nil
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
	Text  string `json:"text"` // one line for people
}

// What became of a value.
const (
	Changed  = "changed"
	Already  = "already-so" // nothing was to do
	Restored = "restored"
	Gone     = "gone" // the interface is, and its settings with it
	Kept     = "kept" // somebody else changed it since
)

// Request is one change of settings.
type Request struct {
	Changes []Change
	Run     string // that it follows from
	Tried   bool   // by a trial, which takes it back
}

// Apply makes all changes of a request, or none: if one cannot be made, those before it are
// taken back, and the error says which and why in one line. What has its value already is
// left alone and not in the journal.
func (t *Tuner) Apply(r Request) ([]Done, error) {
	a, done, err := t.plan(r)
	if err != nil {
		return nil, err
	}
	if len(a.Steps) == 0 {
		return done, nil
	}
	if err := t.journal.add(record{Apply: a}); err != nil {
		return nil, err
	}
	for i := range a.Steps {
		d, expect, err := t.step(a, i)
		if err != nil {
			return nil, errors.Join(err, t.rollBack(a, i, expect))
		}
		done = append(done, d)
	}
	if err := t.journal.add(record{Made: a.ID}); err != nil {
		return nil, errors.Join(err, t.rollBack(a, len(a.Steps)-1, ""))
	}
	return done, nil
}

// plan reads every old value, and refuses what is not possible.
func (t *Tuner) plan(r Request) (*Apply, []Done, error) {
	if err := checkChanges(r.Changes); err != nil {
		return nil, nil, err
	}
	a := &Apply{ID: len(t.journal.list) + 1, Time: t.now().UTC(), Run: r.Run, Root: t.tree(), Boot: t.boot, Namespace: t.space,
		Tried: r.Tried}
	var done []Done
	for _, c := range r.Changes {
		k, dev, _ := find(c.Knob) // checkChanges found it
		index := 0
		if dev != "" {
			var err error
			if index, err = t.host.device(dev); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", c.Knob, err)
			}
		}
		places, values, err := t.host.places(c)
		if err != nil {
			return nil, nil, err
		}
		for i, p := range places {
			old, err := t.host.read(p)
			if err != nil {
				return nil, nil, fmt.Errorf("%s cannot be read: %w", c.Knob, missing(k, err))
			}
			if p.same(old, values[i]) {
				done = append(done, Done{c.Knob, p.String(), old, values[i], Already, fmt.Sprintf("%s is %s already", p, words(old))})
				continue
			}
			s := Step{Knob: c.Knob, Place: p, Old: old, New: values[i], Index: index}
			s.Queues = t.queueSettings(k, dev)
			a.Steps = append(a.Steps, s)
		}
	}
	return a, done, nil
}

// missing says why a knob cannot be read.
func missing(k Knob, err error) error {
	if noSetting(err) {
		return errors.New("the interface's driver has no such setting")
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if k.Scope == ScopeHost && k.at.Kind == atSysctl {
		return errors.New("it is not there; a network namespace other than the first lacks it, and so does a kernel that was built without")
	}
	return errors.New("this kernel, driver or interface has none")
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

// step makes one step that is in the journal. expect is what stands there after an error.
func (t *Tuner) step(a *Apply, i int) (d Done, expect string, err error) {
	s := a.Steps[i]
	if err := t.journal.add(record{Touch: &stepID{a.ID, i}}); err != nil {
		return d, s.Old, err
	}
	if err := t.host.write(s.Place, s.New); err != nil {
		now, unread := t.host.read(s.Place) // part of it may be taken, as the first of three numbers
		if unread != nil {
			now = s.Old
		}
		return d, now, fmt.Errorf("%s: the kernel refuses %s: %w; nothing is changed", s.Place, words(s.New), err)
	}
	now, err := t.host.read(s.Place)
	switch {
	case err != nil:
		return d, s.New, fmt.Errorf("%s cannot be read back: %w; nothing is changed", s.Place, err)
	case !s.Place.same(now, s.New):
		return d, now, fmt.Errorf("%s: asked for %s, the kernel made it %s; nothing is changed", s.Place, words(s.New), words(now))
	}
	for _, b := range s.Queues { // some drivers forget those of queues that stay; what differs later is somebody else's
		if err := t.restoreQueue(b); err != nil {
			return d, s.New, fmt.Errorf("%w; nothing is changed", err)
		}
	}
	d = Done{s.Knob, s.Place.String(), s.Old, s.New, Changed, fmt.Sprintf("%s: %s -> %s", s.Place, words(s.Old), words(s.New))}
	return d, "", nil
}

// rollBack takes back a request whose step i failed; expect is what its place holds now.
func (t *Tuner) rollBack(a *Apply, i int, expect string) error {
	var errs []error
	for ; i >= 0; i-- {
		d, err := t.undo(a, i, expect, false)
		errs = append(errs, err)
		if d.State == Kept {
			errs = append(errs, errors.New(d.Text))
		}
		expect = ""
	}
	return errors.Join(append(errs, t.endJournal())...)
}
