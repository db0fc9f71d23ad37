package tune

import (
	"errors"
	"strings"
	"testing"
)

// A write that fails may have changed something all the same; that is taken back, too.
func TestRefusedInPart(t *testing.T) {
	root := newTree(t)
	before := snapshot(t, root)
	with(t, root, func(u *Tuner) {
		u.host.onWrite = func(Place, bool) error {
			u.host.onWrite = nil
			set(t, root, "proc/sys/net/ipv4/udp_mem", "1\t62714\t94068\n")
			return errors.New("invalid argument")
		}
		_, err := u.Apply(changes(t, "net.ipv4.udp_mem=1 2 99999999999"), "")
		if err == nil || !strings.Contains(err.Error(), "the kernel refuses") ||
			strings.Contains(err.Error(), "somebody") {
			t.Errorf("apply says %v", err)
		}
		if left := u.Show(); len(left) > 0 {
			t.Errorf("the journal still holds %+v", left)
		}
	})
	if d := differences(before, snapshot(t, root)); len(d) > 0 {
		t.Errorf("these differ after it: %q", d)
	}
}

// A change that cannot be told to be whole is none.
func TestNoRoomForTheLastLine(t *testing.T) {
	root := newTree(t)
	before := snapshot(t, root)
	with(t, root, func(u *Tuner) {
		u.host.onWrite = func(_ Place, after bool) error {
			if !after {
				return nil
			}
			u.host.onWrite = nil
			return u.journal.file.Close()
		}
		done, err := u.Apply(changes(t, "net.core.rmem_max=1"), "")
		if err == nil || done != nil {
			t.Errorf("apply says %+v, %v", done, err)
		}
		u.journal.file = nil // it is closed
	})
	if d := differences(before, snapshot(t, root)); len(d) > 0 {
		t.Errorf("these differ after it: %q", d)
	}
	with(t, root, func(u *Tuner) {
		if done, err := u.Revert(false); err != nil || len(done) != 1 || done[0].State != Already {
			t.Errorf("revert says %+v, %v", done, err)
		}
	})
}

// A journal that takes no more changes stays one that can be read.
func TestFullJournal(t *testing.T) {
	root := newTree(t)
	before := snapshot(t, root)
	with(t, root, func(u *Tuner) {
		u.journal.lines = maxJournalLines - 1
		if _, err := u.Apply(changes(t, "net.core.rmem_max=1"), ""); err == nil ||
			!strings.Contains(err.Error(), "pelt tune revert") {
			t.Errorf("apply says %v", err)
		}
	})
	if d := differences(before, snapshot(t, root)); len(d) > 0 {
		t.Errorf("these differ after it: %q", d)
	}
	with(t, root, func(*Tuner) {})
}
