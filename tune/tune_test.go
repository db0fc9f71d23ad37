package tune

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var everything = []string{
	"net.core.rmem_max=4194304", "net.ipv4.udp_mem=81920 81920 94068", "net.ipv4.conf.eth0/100.rp_filter=2",
	"eth0.txqueuelen=5000", "eth0.rps_cpus=2", "eth0.irq_affinity=0/1", "cpu.governor=performance",
}

// What is applied stands there, and revert restores every file, byte for byte.
func TestApplyAndRevert(t *testing.T) {
	root := newTree(t)
	before := snapshot(t, root)
	with(t, root, func(u *Tuner) {
		if _, err := u.Apply(Request{Changes: changes(t, everything...)}); err != nil {
			t.Fatal(err)
		}
	})
	for name, want := range map[string]string{
		"proc/sys/net/core/rmem_max": "4194304\n", "proc/sys/net/ipv4/udp_mem": "81920 81920 94068\n",
		"proc/sys/net/ipv4/conf/eth0.100/rp_filter": "2\n", "sys/class/net/eth0/tx_queue_len": "5000\n",
		"sys/class/net/eth0/queues/rx-0/rps_cpus": "2\n", "sys/class/net/eth0/queues/rx-1/rps_cpus": "2\n",
		"proc/irq/31/smp_affinity_list": "0\n", "proc/irq/32/smp_affinity_list": "1\n",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
	} {
		if got := snapshot(t, root)[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	with(t, root, func(u *Tuner) {
		for _, s := range u.Show() {
			if s.State != AsSet || !s.Whole {
				t.Errorf("%s is shown as %s, whole %v", s.Place, s.State, s.Whole)
			}
		}
		done, err := u.Revert(RevertOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := states(done); len(got) != 9 || slices.ContainsFunc(got, func(s string) bool { return s != Restored }) {
			t.Errorf("revert says %q", got)
		}
		if _, err := u.Revert(RevertOptions{}); !errors.Is(err, ErrNothing) {
			t.Errorf("second revert: %v, want %v", err, ErrNothing)
		}
	})
	if d := differences(before, snapshot(t, root)); len(d) > 0 {
		t.Errorf("these differ after revert: %q", d)
	}
	if _, err := os.Stat(filepath.Join(root, "var/lib/pelt/tune", journalName)); !os.IsNotExist(err) {
		t.Errorf("the journal is still there: %v", err)
	}
}

func TestAlreadySo(t *testing.T) {
	root := newTree(t)
	with(t, root, func(u *Tuner) {
		done, err := u.Apply(Request{Changes: changes(t, "net.core.rmem_max=212992", "net.ipv4.udp_mem=47034 62714 94068", "eth0.rps_cpus=3")})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(states(done), " "); got != "already-so already-so already-so changed" {
			t.Errorf("apply says %s", got)
		}
	})
}

func TestTwoAppliesStack(t *testing.T) {
	root := newTree(t)
	before := snapshot(t, root)
	apply := func(texts ...string) map[string]string {
		with(t, root, func(u *Tuner) {
			if _, err := u.Apply(Request{Changes: changes(t, texts...)}); err != nil {
				t.Fatal(err)
			}
		})
		return snapshot(t, root)
	}
	first := apply("net.core.rmem_max=1000000", "eth0.threaded=1")
	apply("net.core.rmem_max=2000000")
	with(t, root, func(u *Tuner) {
		if _, err := u.Revert(RevertOptions{Last: true}); err != nil {
			t.Fatal(err)
		}
	})
	if d := differences(first, snapshot(t, root)); len(d) > 0 {
		t.Errorf("after the last is taken back these differ: %q", d)
	}
	apply("net.core.rmem_max=3000000")
	with(t, root, func(u *Tuner) {
		if _, err := u.Revert(RevertOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	if d := differences(before, snapshot(t, root)); len(d) > 0 {
		t.Errorf("after all is taken back these differ: %q", d)
	}
}

// What somebody else wrote meanwhile stays until --force, and is told each time.
func TestSomebodyElse(t *testing.T) {
	root := newTree(t)
	before := snapshot(t, root)
	with(t, root, func(u *Tuner) {
		if _, err := u.Apply(Request{Changes: changes(t, "net.core.rmem_max=1000000", "eth0.threaded=1")}); err != nil {
			t.Fatal(err)
		}
	})
	set(t, root, "proc/sys/net/core/rmem_max", "777\n")
	for range 2 {
		with(t, root, func(u *Tuner) {
			done, err := u.Revert(RevertOptions{})
			if err != nil {
				t.Fatal(err)
			}
			kept := slices.DeleteFunc(done, func(d Done) bool { return d.State != Kept })
			if len(kept) != 1 || !strings.Contains(kept[0].Text, "net.core.rmem_max: somebody changed it to 777 since") {
				t.Errorf("revert says %+v", done)
			}
		})
	}
	if d := differences(before, snapshot(t, root)); !slices.Equal(d, []string{"proc/sys/net/core/rmem_max"}) {
		t.Errorf("these differ: %q", d)
	}
	with(t, root, func(u *Tuner) {
		if _, err := u.Revert(RevertOptions{Force: true}); err != nil {
			t.Fatal(err)
		}
	})
	if d := differences(before, snapshot(t, root)); len(d) > 0 {
		t.Errorf("after --force these differ: %q", d)
	}
}

// One that cannot be made takes back those before it, and leaves no journal.
func TestFailedApplyIsRolledBack(t *testing.T) {
	for name, c := range map[string]struct {
		changes []string
		spoil   func(t *testing.T, root string, u *Tuner)
		want    string
	}{
		"no such interface":  {[]string{"net.core.rmem_max=1", "eth7.threaded=1"}, nil, "eth7.threaded: no interface eth7 here"},
		"no such file":       {[]string{"net.core.rmem_max=1", "net.core.dev_weight=1"}, nil, "net.core.dev_weight cannot be read: it is not there; a network namespace other than the first lacks it, and so does a kernel that was built without"},
		"a driver of a tree": {[]string{"eth0.threaded=1", "eth0.rx_ring=1"}, nil, "eth0.rx_ring cannot be read: a tree under --root has no drivers"},
		"no queues":          {[]string{"eth0/100.threaded=1"}, nil, ""},
		"clamped": {[]string{"net.core.rmem_max=1000", "eth0.txqueuelen=5000"}, func(t *testing.T, root string, u *Tuner) {
			u.host.onWrite = func(p Place, after bool) error {
				if p.Kind == atSysfs && after {
					set(t, root, "sys/class/net/eth0/tx_queue_len", "4096\n")
					u.host.onWrite = nil
				}
				return nil
			}
		}, "/sys/class/net/eth0/tx_queue_len: asked for 5000, the kernel made it 4096; nothing is changed"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.want == "" {
				if _, err := ParseChange(c.changes[0]); err == nil {
					t.Errorf("%q is taken", c.changes)
				}
				return
			}
			root := newTree(t)
			with(t, root, func(u *Tuner) {
				if c.spoil != nil {
					c.spoil(t, root, u)
				}
				before := snapshot(t, root)
				_, err := u.Apply(Request{Changes: changes(t, c.changes...)})
				if err == nil || err.Error() != c.want {
					t.Errorf("got  %v\nwant %s", err, c.want)
				}
				if d := differences(before, snapshot(t, root)); len(d) > 0 {
					t.Errorf("these differ after it: %q", d)
				}
				if len(u.Show()) != 0 {
					t.Errorf("the journal still holds %+v", u.Show())
				}
			})
		})
	}
}

func TestWrongChanges(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "want KNOB=VALUE",
		"net.core.rmem_max":               "want KNOB=VALUE",
		"net.core.rmem_max=":              "want KNOB=VALUE",
		"net.core.rmem_max=010":           "want a whole number",
		"net.core.rmem_max=1;reboot":      "want a whole number",
		"net.ipv4.udp_mem=3 2 1":          "want three whole numbers that do not fall",
		"kernel.core_pattern=x":           "no knob",
		"net.ipv4.ip_forward=1":           "no knob",
		"../../x.threaded=1":              "no name of an interface",
		"net.ipv4.conf.a//b.rp_filter=1":  "no name of an interface",
		"net.ipv4.conf.all.x.rp_filter=1": "no knob",
		"eth0.rps_cpus=xyz":               "want a mask",
		"eth0.irq_affinity=0-":            "want a list of cores",
		"eth0.coalesce_adaptive_rx=1":     "want on or off",
	} {
		_, err := ParseChange(text)
		var usage *UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseChange(%q): %v, want %s", text, err, want)
		}
	}
	for _, list := range [][]Change{{{"eth0.threaded", "1"}, {"eth0.threaded", "0"}}, {{"eth0.channels_rx", "1"}, {"eth0.rps_cpus", "1"}}} {
		if err := checkChanges(list); err == nil {
			t.Errorf("%v is taken", list)
		}
	}
}

func TestOneAtATime(t *testing.T) {
	root := newTree(t)
	with(t, root, func(*Tuner) {
		if _, err := Open(Options{Root: root}); !errors.Is(err, ErrBusy) {
			t.Errorf("second Open: %v, want %v", err, ErrBusy)
		}
		if _, err := Look(Options{Root: root}); err != nil {
			t.Errorf("Look beside it: %v", err)
		}
	})
}

// An interface that is gone took its settings with it; another of its name is left alone.
func TestInterfaceGone(t *testing.T) {
	for name, spoil := range map[string]func(root string) error{
		"gone": func(root string) error { return os.RemoveAll(filepath.Join(root, "sys/class/net/eth0")) },
		"another": func(root string) error {
			return os.WriteFile(filepath.Join(root, "sys/class/net/eth0/ifindex"), []byte("9\n"), 0o644)
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := newTree(t)
			with(t, root, func(u *Tuner) {
				if _, err := u.Apply(Request{Changes: changes(t, "eth0.threaded=1")}); err != nil {
					t.Fatal(err)
				}
				if err := spoil(root); err != nil {
					t.Fatal(err)
				}
				done, err := u.Revert(RevertOptions{})
				if err != nil || len(done) != 1 || done[0].State != Gone {
					t.Errorf("revert says %+v, %v", done, err)
				}
			})
		})
	}
}

// After the host has started again, what was not persistent is gone with its old value,
// and what was is taken back. An interrupt's number may be of another device then.
func TestAfterRestart(t *testing.T) {
	root := newTree(t)
	with(t, root, func(u *Tuner) {
		u.boot = "before"
		if _, err := u.Apply(Request{Changes: changes(t, "net.core.rmem_max=1000000", "net.core.netdev_max_backlog=2000", "eth0.txqueuelen=2000", "eth0.irq_affinity=0")}); err != nil {
			t.Fatal(err)
		}
	})
	set(t, root, "proc/sys/net/core/rmem_max", "7\n")
	set(t, root, "proc/sys/net/core/netdev_max_backlog", "1000\n")
	set(t, root, "sys/class/net/eth0/ifindex", "5\n")
	with(t, root, func(u *Tuner) {
		u.boot = "after"
		done, err := u.Revert(RevertOptions{})
		if got := strings.Join(states(done), " "); err != nil || got != "gone gone restored already-so gone" {
			t.Errorf("revert says %s, %v", got, err)
		}
		if now := snapshot(t, root)["proc/irq/31/smp_affinity_list"]; now != "0" && now != "0\n" {
			t.Errorf("the interrupt of another device now serves %q", now)
		}
	})
}

// A journal that cannot be written stops everything before anything is touched.
func TestNoRoomForTheJournal(t *testing.T) {
	root := newTree(t)
	before := snapshot(t, root)
	with(t, root, func(u *Tuner) {
		u.journal.path = filepath.Join(root, "none/such", journalName)
		if _, err := u.Apply(Request{Changes: changes(t, "net.core.rmem_max=1")}); err == nil {
			t.Error("applied without a journal")
		}
	})
	if d := differences(before, snapshot(t, root)); len(d) > 0 {
		t.Errorf("these differ: %q", d)
	}
}

// What makes settings at the next boot is a sysctl.d file; comments tell how to make the others.
func TestNextBoot(t *testing.T) {
	got, err := NextBoot(changes(t, "net.core.rmem_max=4194304", "net.ipv4.conf.eth0/100.rp_filter=2", "eth0.rx_ring=512"))
	const want = `# /etc/sysctl.d/90-pelt.conf
net.core.rmem_max = 4194304
net/ipv4/conf/eth0.100/rp_filter = 2
# eth0.rx_ring is no sysctl: run at each start: pelt tune apply --yes --set eth0.rx_ring=512
`
	if got != want || err != nil {
		t.Errorf("got\n%s\nwant\n%s\n%v", got, want, err)
	}
}

// A journal that names a file, as one of pelt 0.1 with --persist does, is refused in one line.
func TestJournalOfAnOlderPelt(t *testing.T) {
	const journal = `{"format":"` + JournalFormat + `"}` + "\n" + `{"apply":{"id":1,"time":"2026-01-01T00:00:00Z","steps":[` +
		`{"knob":"persist","place":{"kind":"file","at":"etc/sysctl.d/90-pelt.conf"},"old":"","new":"x","absent":true}]}}` + "\n"
	if _, err := readJournal(strings.NewReader(journal)); err == nil || !strings.Contains(err.Error(), "revert with the version of pelt that applied it") {
		t.Errorf("it is read with %v", err)
	}
}
