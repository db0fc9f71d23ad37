package tune

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pelt/internal/nic"
	"pelt/internal/testenv"
)

// hostFiles is a small host: two receive queues, one of them steered.
var hostFiles = map[string]string{
	"proc/sys/net/core/rmem_max":                           "212992\n",
	"proc/sys/net/core/netdev_max_backlog":                 "1000\n",
	"proc/sys/net/ipv4/udp_mem":                            "47034\t62714\t94068\n",
	"proc/sys/net/ipv4/ipfrag_high_thresh":                 "65536\n",
	"proc/sys/net/ipv4/conf/eth0.100/rp_filter":            "1\n",
	"sys/class/net/eth0/ifindex":                           "2\n",
	"sys/class/net/eth0/address":                           "02:00:00:00:00:01\n",
	"sys/class/net/eth0/tx_queue_len":                      "1000\n",
	"sys/class/net/eth0/threaded":                          "0\n",
	"sys/class/net/eth0/queues/rx-0/rps_cpus":              "00000000,00000003\n",
	"sys/class/net/eth0/queues/rx-1/rps_cpus":              "00000000,00000000\n",
	"sys/class/net/eth0.100/ifindex":                       "3\n",
	"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
}

// newTree writes a host's files below a new directory.
func newTree(t testing.TB) string {
	t.Helper()
	root := newDir(t)
	plantTree(t, root)
	return root
}

// newDir is a new directory in memory where there is one: a journal waits for its disk at
// each step.
func newDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "pelt-tune-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fataler is a test, or a check of one.
type fataler interface {
	Helper()
	Fatal(...any)
}

func plantTree(t fataler, root string) {
	t.Helper()
	for name, text := range hostFiles {
		path := filepath.Join(root, name)
		testenv.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		testenv.Must(t, os.WriteFile(path, []byte(text), 0o644))
	}
}

// snapshot is every file of a tree but the journal's.
func snapshot(t fataler, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(root, path)
		if strings.HasPrefix(name, "var/") {
			return nil
		}
		b, err := os.ReadFile(path)
		all[name] = string(b)
		return err
	})
	testenv.Must(t, err)
	return all
}

// differences are the names of files that differ, sorted.
func differences(a, b map[string]string) (list []string) {
	for name := range a {
		if text, has := b[name]; !has || text != a[name] {
			list = append(list, name)
		}
	}
	for name := range b {
		if _, has := a[name]; !has {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// treeTuner is of a host that is a tree of files, whose interfaces are those that its /sys shows.
func treeTuner(root string) *Tuner {
	u := newTuner(root)
	u.host.own, u.now = u.host.index, func() time.Time { return time.Unix(1e9, 0) }
	u.host.drivers = func() (*nic.Conn, error) { return nil, errors.New("a tree of files has no drivers") }
	return u
}

// with runs f on an opened tuner.
func with(t testing.TB, root string, f func(*Tuner)) {
	t.Helper()
	u := treeTuner(root)
	testenv.Must(t, u.take())
	defer func() {
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	}()
	f(u)
}

func changes(t testing.TB, texts ...string) (list []Change) {
	t.Helper()
	for _, text := range texts {
		c, err := ParseChange(text)
		testenv.Must(t, err)
		list = append(list, c)
	}
	return list
}

func set(t fataler, root, name, text string) {
	t.Helper()
	testenv.Must(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
}
