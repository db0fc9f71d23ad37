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
	"time"

	"pgregory.net/rapid"
)

// died is the end of a process that a test plays.
type died struct{}

// dies runs f on an opened tuner as a process that is killed at the nth moment, 0 for never.
func dies(t *rapid.T, root string, nth int, f func(*Tuner) error) {
	u, err := Open(Options{Root: root, Now: func() time.Time { return time.Unix(1e9, 0) }})
	if err != nil {
		t.Fatal(err)
	}
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

// Whatever is applied, killed, reverted and changed by others in turn: at last Revert with
// Force leaves each value as it was when no change of pelt's stood there, and without
// others a plain Revert does.
func TestAnyHistoryCanBeUndone(t *testing.T) {
	values := map[string][]string{ // a file, its knob, and values
		"proc/sys/net/core/rmem_max":                {"net.core.rmem_max", "1", "2", "3"},
		"proc/sys/net/ipv4/conf/eth0.100/rp_filter": {"net.ipv4.conf.eth0/100.rp_filter", "0", "1", "2"},
		"sys/class/net/eth0/tx_queue_len":           {"eth0.txqueuelen", "10", "20", "30"},
		"sys/class/net/eth0/queues/rx-0/rps_cpus":   {"eth0.rps_cpus", "0", "1", "2"},
	}
	names := slices.Sorted(maps.Keys(values))
	trees := newDir(t)
	rapid.Check(t, func(t *rapid.T) {
		root := filepath.Join(trees, fmt.Sprint(rand.Uint64()))
		plantTree(t, root)
		base, others := snapshot(t, root), false
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
				dies(t, root, nth, func(u *Tuner) error { _, err := u.Apply(Request{Changes: list}); return err })
			case "revert":
				o := RevertOptions{Last: rapid.Bool().Draw(t, "last"), Force: rapid.Bool().Draw(t, "force")}
				dies(t, root, nth, func(u *Tuner) error { _, err := u.Revert(o); return err })
			case "others":
				n := rapid.SampledFrom(names).Draw(t, "file")
				text := rapid.SampledFrom([]string{"7\n", "2\n"}).Draw(t, "text")
				others = true
				if !stands(t, root, n) {
					base[n] = text
				}
				set(t, root, n, text)
			}
		}
		dies(t, root, 0, func(u *Tuner) error { _, err := u.Revert(RevertOptions{Force: others}); return err })
		if d := differences(base, snapshot(t, root)); len(d) > 0 {
			t.Fatalf("these differ: %q\nnow %q", d, snapshot(t, root)[d[0]])
		}
	})
}

// stands reports whether the journal has a step of pelt's at a file.
func stands(t fataler, root, name string) bool {
	u, err := Look(Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(u.Show(), func(s Setting) bool {
		for _, a := range u.journal.list {
			for _, step := range a.Steps {
				if step.Place.String() == s.Place && u.host.path(step.Place) == filepath.Join(root, name) {
					return true
				}
			}
		}
		return false
	})
}

// A journal that was cut anywhere can still be read, and says no more than was written.
func TestCutJournal(t *testing.T) {
	root := newTree(t)
	with(t, root, func(u *Tuner) {
		if _, err := u.Apply(Request{Changes: changes(t, everything...)}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(u.journal.path)
		if err != nil {
			t.Fatal(err)
		}
		for n := range len(text) {
			list, err := readJournal(bytes.NewReader(text[:n]))
			if err != nil || len(list) > 1 {
				t.Fatalf("cut after %d of %d B: %d changes, %v", n, len(text), len(list), err)
			}
		}
	})
}

func FuzzJournal(f *testing.F) {
	head := `{"format":"` + JournalFormat + `"}` + "\n"
	one := `{"apply":{"id":1,"time":"2026-01-01T00:00:00Z","steps":[{"knob":"net.core.rmem_max","place":{"kind":"sysctl","at":"net.core.rmem_max"},"old":"1","new":"2"}]}}` + "\n"
	f.Add([]byte(head + one + `{"touch":{"apply":1,"step":0}}` + "\n" + `{"made":1}` + "\n" + `{"undone":{"apply":1,"step":0}}` + "\n"))
	f.Add([]byte(head + strings.Replace(one, `"kind":"sysctl","at":"net.core.rmem_max"`, `"kind":"file","at":"etc/shadow"`, 1)))
	f.Add([]byte(head + `{"touch":{"apply":1,"step":-1}}` + "\n"))
	f.Add([]byte(`{"format":"pelt/tune/9"}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := readJournal(strings.NewReader(string(b)))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has more than one line: %q", err)
			}
			return
		}
		g := newHost("/nowhere")
		for _, a := range list {
			for _, s := range a.Steps {
				if p := g.path(s.Place); s.Place.Kind != atDriver && (!strings.HasPrefix(p, "/nowhere/") || strings.Contains(p, "..") && !strings.Contains(s.Place.At, "..")) {
					t.Errorf("the journal leads to %s", p)
				}
				if len(a.touched) != len(a.Steps) || len(a.undone) != len(a.Steps) {
					t.Errorf("change %d has %d steps and %d, %d marks", a.ID, len(a.Steps), len(a.touched), len(a.undone))
				}
			}
		}
	})
}

func FuzzParseChange(f *testing.F) {
	for _, s := range append(everything, "x=y", "=", "eth0.rps_cpus=ffffffff,00000000", "net.ipv4.conf.a/b.rp_filter=1", "net.ipv4.udp_mem=1\n2 3") {
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
		places, values, err := newHost("/nowhere").places(c)
		if err != nil {
			return
		}
		for i, p := range places {
			if err := (Step{Knob: c.Knob, Place: p}).check(); err != nil || !p.same(values[i], values[i]) {
				t.Errorf("%q leads to %v: %v", s, p, err)
			}
		}
	})
}
