package tune

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/internal/testenv"
)

// died is the end of a process that a test plays.
type died struct{}

// dies runs f on an opened tuner as a process that is killed at the nth moment, 0 for never.
func dies(t *rapid.T, root string, nth int, f func(*Tuner) error) {
	u := treeTuner(root)
	testenv.Must(t, u.take())
	defer func() {
		if r := recover(); r != nil && r != (died{}) {
			panic(r)
		}
		_ = u.Close() // the kernel does as much
	}()
	u.host.onWrite = func(Place, bool) error {
		if nth--; nth == 0 {
			panic(died{})
		}
		return nil
	}
	if err := f(u); err != nil && !errors.Is(err, ErrNothing) {
		t.Fatal(err)
	}
}

// Whatever is applied, killed, reverted and changed by others in turn: at last Revert with force leaves each value as
// it was when no change of pelt's stood there, or as others left it before pelt changed it again; without others a
// plain Revert does.
func TestAnyHistoryCanBeUndone(t *testing.T) {
	values := map[string][]string{ // a file, its knob, and values
		"proc/sys/net/core/rmem_max":                {"net.core.rmem_max", "1", "2", "3"},
		"proc/sys/net/ipv4/conf/eth0.100/rp_filter": {"net.ipv4.conf.eth0/100.rp_filter", "0", "1", "2"},
		"sys/class/net/eth0/tx_queue_len":           {"eth0.txqueuelen", "10", "20", "30"},
		"sys/class/net/eth0/threaded":               {"eth0.threaded", "0", "1", "2"},
	}
	names := slices.Sorted(maps.Keys(values))
	trees := newDir(t)
	rapid.Check(t, func(t *rapid.T) {
		root := filepath.Join(trees, fmt.Sprint(rand.Uint64()))
		plantTree(t, root)
		base, others := snapshot(t, root), map[string]string{}
		for range rapid.IntRange(1, 8).Draw(t, "operations") {
			nth := rapid.IntRange(0, 12).Draw(t, "dies at")
			switch op := rapid.SampledFrom([]string{"apply", "apply", "revert", "others"}).Draw(t, "operation"); op {
			case "apply":
				var list []Change
				for _, n := range names {
					if rapid.Bool().Draw(t, n) {
						list = append(list, Change{values[n][0], rapid.SampledFrom(values[n][1:]).Draw(t, "value")})
					}
				}
				dies(t, root, nth, func(u *Tuner) error { _, err := u.Apply(list, ""); return err })
				for n, text := range others {
					if old, stands := journaled(t, root, n); stands && old+"\n" == text {
						base[n] = text
					}
				}
			case "revert":
				force := rapid.Bool().Draw(t, "force")
				dies(t, root, nth, func(u *Tuner) error { _, err := u.Revert(force); return err })
			case "others":
				n := rapid.SampledFrom(names).Draw(t, "file")
				text := rapid.SampledFrom([]string{"7\n", "2\n"}).Draw(t, "text")
				others[n] = text
				if _, stands := journaled(t, root, n); !stands {
					base[n] = text
				}
				set(t, root, n, text)
			}
		}
		dies(t, root, 0, func(u *Tuner) error { _, err := u.Revert(len(others) > 0); return err })
		if d := differences(base, snapshot(t, root)); len(d) > 0 {
			t.Fatalf("these differ: %q\nnow %q", d, snapshot(t, root)[d[0]])
		}
	})
}

// journaled returns the old value that the journal has of a file, and whether it has one.
func journaled(t fataler, root, name string) (old string, stands bool) {
	u := treeTuner(root)
	j, err := openJournal(u.state)
	testenv.Must(t, err)
	for _, s := range j.steps {
		if u.host.path(s.Place) == filepath.Join(root, name) {
			return s.Old, true
		}
	}
	return "", false
}

// A journal that was cut anywhere can still be read, says no more than was written, and takes more lines.
func TestCutJournal(t *testing.T) {
	root := newTree(t)
	with(t, root, func(u *Tuner) {
		if _, err := u.Apply(changes(t, everything...), ""); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(u.journal.path)
		testenv.Must(t, err)
		for n := range len(text) {
			list, _, err := readJournal(bytes.NewReader(text[:n]))
			if err != nil || len(list) > len(everything) {
				t.Fatalf("cut after %d of %d B: %d values, %v", n, len(text), len(list), err)
			}
			cut := &journal{path: filepath.Join(root, "cut"), steps: list}
			testenv.Must(t, os.WriteFile(cut.path, text[:n], 0o600))
			testenv.Must(t, errors.Join(cut.add(u.journal.steps[0]), cut.close()))
			all, err := os.ReadFile(cut.path)
			testenv.Must(t, err)
			if list, _, err := readJournal(bytes.NewReader(all)); err != nil ||
				!slices.EqualFunc(list, cut.steps, func(a, b Step) bool { return a.Place == b.Place }) {
				t.Fatalf("cut after %d B, and a line more: %+v, %v", n, list, err)
			}
		}
	})
}

func FuzzJournal(f *testing.F) {
	head := `{"format":"` + JournalFormat + `"}` + "\n"
	one := `{"knob":"net.core.rmem_max","place":{"kind":"sysctl","at":"net.core.rmem_max"},"old":"1","before":"1","new":"2"}` + "\n"
	f.Add([]byte(head + one + strings.Replace(one, `"new"`, `"undone":true,"new"`, 1)))
	f.Add([]byte(head + strings.Replace(one, `"kind":"sysctl","at":"net.core.rmem_max"`,
		`"kind":"file","at":"etc/shadow"`, 1)))
	f.Add([]byte(head +
		`{"knob":"v0.channels_rx","place":{"kind":"driver","at":"v0 channels_rx"},"queues":[{"place":{"kind":"sysfs","at":"../etc"}}]}` + "\n"))
	f.Add([]byte(`{"format":"pelt/tune/9"}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, _, err := readJournal(strings.NewReader(string(b)))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has more than one line: %q", err)
			}
			return
		}
		h := newHost("/nowhere")
		for _, s := range list {
			if p := h.path(s.Place); s.Place.Kind != atDriver &&
				(!strings.HasPrefix(p, "/nowhere/") || strings.Contains(p, "..") &&
					!strings.Contains(s.Place.At, "..")) {
				t.Errorf("the journal leads to %s", p)
			}
		}
	})
}

func FuzzParseChange(f *testing.F) {
	for _, s := range append(everything, "x=y", "=", "net.ipv4.conf.a/b.rp_filter=1", "net.ipv4.udp_mem=1\n2 3") {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseChange(s)
		if err != nil {
			return
		}
		if strings.ContainsAny(c.Knob+c.Value, "\n\x00\"'`$;") {
			t.Errorf("%q is taken with value %q", s, c.Value)
		}
		k, dev, _ := find(c.Knob)
		places, err := newHost("/nowhere").places(k, dev)
		if err != nil {
			return
		}
		for _, p := range places {
			if err := (Step{Knob: c.Knob, Place: p}).check(); err != nil || !p.same(c.Value, c.Value) {
				t.Errorf("%q leads to %v: %v", s, p, err)
			}
		}
	})
}
