package tune

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Options say which host, and where its journal lies.
type Options struct {
	Root  string           // "" or "/": this host; else a tree that stands for one
	State string           // directory of the journal; "" for StateDir
	Now   func() time.Time // nil: time.Now
}

// Tuner holds the lock over a host's journal. Its methods must not be called concurrently.
type Tuner struct {
	ground  ground
	journal *journal
	lock    *os.File
	now     func() time.Time
	boot    string
	space   uint64
}

// StateDir is where the journal lies: $PELT_STATE, else var/lib/pelt/tune below root, also for
// a user that is not root, who may look for it but not apply anything.
func StateDir(root string) (string, error) {
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
	if t.ground.real {
		if err := rights(); err != nil {
			return nil, err
		}
	}
	dir := filepath.Dir(t.journal.path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make %s for the journal: %w", dir, cause(err))
	}
	if t.lock, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, cause(err))
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
		if !a.closed && a.Root != t.tree() {
			return fmt.Errorf("the journal in %s is of %s, not of %s; set PELT_STATE to another directory", dir, hostName(a.Root), hostName(t.tree()))
		}
	}
	return nil
}

// tree is the root of a tree that stands for a host, "" for this host.
func (t *Tuner) tree() string {
	if t.ground.real {
		return ""
	}
	return t.ground.root
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
	if o.State == "" {
		if o.State, err = StateDir(o.Root); err != nil {
			return nil, err
		}
	}
	if info, err := os.Stat(o.Root); err != nil || !info.IsDir() {
		return nil, &UsageError{fmt.Sprintf("--root %s: want a directory", o.Root)}
	}
	t := &Tuner{ground: newGround(o.Root), journal: &journal{path: filepath.Join(o.State, journalName)}, now: o.Now, boot: boot(), space: namespace()}
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
	Gone     = "gone" // the interface or file is, and its settings with it
	Kept     = "kept" // somebody else changed it since
	// Overruled is a value that was persisted and will not be so at the next boot: another
	// file sets it later, to what To says.
	Overruled = "overruled"
)

// Request is one change of settings.
type Request struct {
	Changes []Change
	Persist bool   // also for the next boot
	Run     string // that it follows from
}

// Apply makes all changes of a request, or none: if one cannot be made, those before it are
// taken back, and the error says which and why in one line. What has its value already is
// left alone and not in the journal.
func (t *Tuner) Apply(r Request) ([]Done, error) {
	a, done, err := t.plan(r)
	if err != nil {
		return nil, err
	}
	var overruled []Done
	if r.Persist {
		overruled = t.overruled(r.Changes)
	}
	if len(a.Steps) == 0 {
		return append(done, overruled...), nil
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
	return append(done, overruled...), nil
}

// plan reads every old value, and finds out what cannot be.
func (t *Tuner) plan(r Request) (*Apply, []Done, error) {
	if err := checkChanges(r.Changes); err != nil {
		return nil, nil, err
	}
	a := &Apply{ID: len(t.journal.list) + 1, Time: t.now().UTC(), Run: r.Run, Root: t.tree(), Boot: t.boot, Namespace: t.space}
	var done []Done
	for _, c := range r.Changes {
		k, dev, _ := find(c.Knob) // checkChanges found it
		index := 0
		if dev != "" {
			var err error
			if index, err = t.ground.device(dev); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", c.Knob, err)
			}
		}
		places, values, err := t.ground.places(c)
		if err != nil {
			return nil, nil, err
		}
		for i, p := range places {
			old, err := t.ground.read(p)
			if err != nil {
				return nil, nil, fmt.Errorf("%s cannot be read: %w", c.Knob, missing(k, err))
			}
			if p.same(old, values[i]) {
				done = append(done, Done{c.Knob, p.String(), old, values[i], Already, fmt.Sprintf("%s is %s already", p, words(old))})
				continue
			}
			s := Step{Knob: c.Knob, Place: p, Old: old, New: values[i], Index: index}
			if s.Beside, err = t.beside(k, dev); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", c.Knob, err)
			}
			a.Steps = append(a.Steps, s)
		}
	}
	if r.Persist {
		steps, err := t.persist(r.Changes)
		if err != nil {
			return nil, nil, err
		}
		a.Steps = append(a.Steps, steps...)
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
	if k.Scope == ScopeHost && k.Persist == persistSysctl {
		return errors.New("it is not there; a network namespace other than the first lacks it, and so does a kernel that was built without")
	}
	return errors.New("this kernel, driver or interface has none")
}

// beside are the values that a change of queues takes away.
func (t *Tuner) beside(k Knob, dev string) (list []Saved, err error) {
	switch k.Name {
	case "DEV.channels_combined", "DEV.channels_rx", "DEV.channels_tx":
	default:
		return nil, nil
	}
	for _, p := range t.ground.queueFiles(dev) {
		old, err := t.ground.read(p)
		if err != nil {
			continue // a driver that does not show it cannot lose it
		}
		list = append(list, Saved{p, old})
	}
	return list, nil
}

// step makes one step that is in the journal. expect is what stands there after an error.
func (t *Tuner) step(a *Apply, i int) (d Done, expect string, err error) {
	s := a.Steps[i]
	if err := t.journal.add(record{Touch: &stepID{a.ID, i}}); err != nil {
		return d, s.Old, err
	}
	mode := s.Mode
	if mode == 0 {
		mode = 0o644
	}
	if err := t.ground.write(s.Place, s.New, mode); err != nil {
		now, unread := t.ground.read(s.Place) // part of it may be taken, as the first of three numbers
		if unread != nil {
			now = s.Old
		}
		return d, now, fmt.Errorf("%s: the kernel refuses %s: %w; nothing is changed", s.Place, words(s.New), err)
	}
	now, err := t.ground.read(s.Place)
	switch {
	case err != nil:
		return d, s.New, fmt.Errorf("%s cannot be read back: %w; nothing is changed", s.Place, err)
	case !s.Place.same(now, s.New):
		return d, now, fmt.Errorf("%s: asked for %s, the kernel made it %s; nothing is changed", s.Place, words(s.New), words(now))
	}
	d = Done{s.Knob, s.Place.String(), s.Old, s.New, Changed, fmt.Sprintf("%s: %s -> %s", s.Place, words(s.Old), words(s.New))}
	if s.Place.Kind == atFile {
		d.Text = "wrote " + s.Place.String()
	}
	return d, "", nil
}

// rollBack takes back a request of which step i failed, when expect stood in its place.
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
	return errors.Join(append(errs, t.settle())...)
}
