package tune

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pelt/test/golden"
)

var everything = []string{
	"net.core.rmem_max=4194304", "net.ipv4.udp_mem=81920 81920 94068", "net.ipv4.conf.eth0/100.rp_filter=2",
	"eth0.txqueuelen=5000", "cpu.governor=performance",
}

// befalls are mishaps of the step that follows.
var befalls = map[string]func(t *testing.T, u *Tuner, root string){
	// A write that fails may have changed something all the same.
	"refused": func(t *testing.T, u *Tuner, root string) {
		u.host.onWrite = func(Place, bool) error {
			u.host.onWrite = nil
			set(t, root, "proc/sys/net/ipv4/udp_mem", "1\t62714\t94068\n")
			return errors.New("invalid argument")
		}
	},
	"clamped": func(t *testing.T, u *Tuner, root string) {
		u.host.onWrite = func(p Place, after bool) error {
			if p.Kind == atSysfs && after {
				u.host.onWrite = nil
				set(t, root, "sys/class/net/eth0/tx_queue_len", "4096\n")
			}
			return nil
		}
	},
	"stuck": func(t *testing.T, u *Tuner, root string) { // it takes one value, clamped, and then no other
		taken := false
		u.host.onWrite = func(p Place, after bool) error {
			switch {
			case taken && !after:
				return errors.New("input/output error")
			case after && p.Kind == atSysfs:
				set(t, root, "sys/class/net/eth0/tx_queue_len", "4096\n")
				taken = true
			}
			return nil
		}
	},
	"no-room-for-the-last-line": func(_ *testing.T, u *Tuner, _ string) {
		u.host.onWrite = func(_ Place, after bool) error {
			if !after {
				return nil
			}
			u.host.onWrite = nil
			return u.journal.file.Close()
		}
	},
	"no-room-for-the-journal": func(_ *testing.T, u *Tuner, root string) {
		u.journal.path = filepath.Join(root, "none/such", journalName)
	},
	"full-journal": func(_ *testing.T, u *Tuner, _ string) { u.journal.lines = maxJournalLines - 1 },
}

// TestHistories: each line of the file is a history of a small host, step by step. Below stands what each step says,
// and what stands there at the end: settings that the journal still holds, and files that differ from the beginning. A
// ~ stands for a blank.
func TestHistories(t *testing.T) {
	golden.Table(t, "testdata/histories.txt", func(question string) string {
		root, boot, space, mishap := newTree(t), "before", uint64(1), ""
		before := snapshot(t, root)
		var out strings.Builder
		for _, step := range strings.Split(question, "; ") {
			words := strings.Fields(step)
			for i, w := range words {
				words[i] = strings.ReplaceAll(w, "~", " ")
			}
			at := func(i int) string { return filepath.Join(root, words[i]) }
			with(t, root, func(u *Tuner) { // each in a process of its own
				u.boot, u.space = boot, space
				if befalls[mishap] != nil {
					befalls[mishap](t, u, root)
				}
				mishap = ""
				var done []Done
				var err error
				switch words[0] {
				case "apply":
					var list []Change
					for _, text := range words[1:] {
						var c Change
						if c, err = ParseChange(text); err != nil {
							break
						}
						list = append(list, c)
					}
					if err == nil {
						done, err = u.Apply(list, "")
					}
				case "revert":
					done, err = u.Revert(slices.Contains(words, "force"))
				case "others":
					err = os.WriteFile(at(1), []byte(words[2]+"\n"), 0o644)
				case "gone":
					err = os.RemoveAll(at(1))
				case "moved":
					err = os.Rename(at(1), at(2))
				case "restart":
					boot = "after"
				case "enter": // another network namespace
					_, err = fmt.Sscan(words[1], &space)
				case "mishap":
					mishap = words[1]
				default:
					t.Fatalf("%s: unknown step", step)
				}
				closed := errors.Is(err, os.ErrClosed)
				if closed {
					u.journal.file = nil
				}
				for _, d := range done {
					fmt.Fprintf(&out, "%s: %s: %s\n", words[0], d.State, d.In(""))
				}
				if err != nil {
					text := strings.ReplaceAll(err.Error(), "\n", "; ") // as it is printed
					if len(text) > 400 {
						t.Errorf("%s: an error of another form: %s", question, text)
					}
					fmt.Fprintf(&out, "%s: error: %s\n", words[0], strings.ReplaceAll(text, root, ""))
				}
			})
		}
		with(t, root, func(u *Tuner) {
			u.boot, u.space = boot, space
			for _, s := range u.Show() {
				fmt.Fprintf(&out, "held: %s %s: %q, was %q, now %q: %s\n", s.Knob, s.Place, s.New, s.Old, s.Now,
					s.State)
			}
		})
		now := snapshot(t, root)
		for _, name := range differences(before, now) {
			fmt.Fprintf(&out, "differs: %s is %q\n", name, now[name])
		}
		if _, err := os.Stat(filepath.Join(root, "var/lib/pelt/tune", journalName)); err == nil {
			out.WriteString("the journal is there\n")
		}
		return out.String()
	})
}

func TestOneAtATime(t *testing.T) {
	root := newTree(t)
	with(t, root, func(*Tuner) {
		if err := newTuner(root).take(); !errors.Is(err, ErrBusy) {
			t.Errorf("a second one: %v, want %v", err, ErrBusy)
		}
	})
}

// What another pelt wrote, and what leads elsewhere, is refused in one line.
func TestForeignJournal(t *testing.T) {
	head := `{"format":"` + JournalFormat + `"}` + "\n"
	for journal, want := range map[string]string{
		`{"format":"pelt/tune-journal/1"}` + "\n" + `{"made":1}` +
			"\n": "revert with the version of pelt that wrote it",
		head + `{"knob":"persist","place":{"kind":"file","at":"etc/passwd"}}` +
			"\n": "revert with the version of pelt that applied it",
		head + `{"knob":"net.core.rmem_max","place":{"kind":"sysctl","at":"kernel.core_pattern"}}` +
			"\n": "is no place of net.core.rmem_max",
		head + `{"knob":"cpu.governor","place":{"kind":"sysfs","at":"devices/system/cpu/cpu0/../scaling_governor"}}` +
			"\n": "is no place of cpu.governor",
	} {
		if _, _, err := readJournal(strings.NewReader(journal)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is read with %v", journal, err)
		}
	}
}
