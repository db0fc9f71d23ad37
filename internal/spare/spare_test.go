package spare

import (
	"os"
	"path/filepath"
	"testing"
)

const (
	leastMemory, mostMemory   = 16 << 20, 4 << 30
	leastThreads, mostThreads = 8, 2048
)

func TestMemory(t *testing.T) {
	const meminfo = "MemTotal:        8000000 kB\nMemAvailable:    4000000 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  float64
	}{
		"nothing known": {nil, 0},
		"a quarter":     {map[string]string{"proc/meminfo": meminfo}, 1024e6},
		"little":        {map[string]string{"proc/meminfo": "MemAvailable: 40000 kB\n"}, leastMemory},
		"much":          {map[string]string{"proc/meminfo": "MemAvailable: 400000000 kB\n"}, mostMemory},
		"its group": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "900000000\n", "sys/fs/cgroup/a/b/memory.current": "100000000\n"}, 200e6},
		"a group around": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "800000000\n"}, 200e6},
		"a larger group": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "80000000000\n"}, 1024e6},
		"cgroup v1": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "5:cpu:/\n3:memory:/x\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "800000000\n"}, 200e6},
		"a full group": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "100000000\n", "sys/fs/cgroup/memory.current": "100000001\n"}, leastMemory},
	} {
		if got := memory(rootOf(t, c.files), leastMemory, mostMemory); got != c.want {
			t.Errorf("%s: %.0f, want %.0f", name, got, c.want)
		}
	}
}

func TestThreads(t *testing.T) {
	const limits = "Limit                     Soft Limit           Hard Limit           Units\n" +
		"Max processes             600                  7000                 processes\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  int
	}{
		"nothing known": {nil, mostThreads},
		"of the user":   {map[string]string{"proc/self/limits": limits}, 300},
		"no limit":      {map[string]string{"proc/self/limits": "Max processes   unlimited   unlimited   processes\n"}, mostThreads},
		"of the kernel": {map[string]string{"proc/sys/kernel/threads-max": "900\n"}, 450},
		"its group": {map[string]string{"proc/self/limits": limits, "proc/self/cgroup": "0::/a\n",
			"sys/fs/cgroup/a/pids.max": "220\n", "sys/fs/cgroup/a/pids.current": "20\n"}, 100},
		"cgroup v1": {map[string]string{"proc/self/cgroup": "3:pids:/x\n",
			"sys/fs/cgroup/pids/x/pids.max": "100\n", "sys/fs/cgroup/pids/x/pids.current": "99\n"}, leastThreads},
	} {
		if got := threads(rootOf(t, c.files), leastThreads, mostThreads); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestSocketMemory(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		group string
		bytes uint64
	}{
		"nothing known": {nil, "", 0},
		"no limit":      {map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, "", 0},
		"a group around": {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "900\n",
			"sys/fs/cgroup/a/memory.max": "800\n"}, "/a", 800},
		"a container": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "700\n"}, "/", 700},
		"cgroup v1": {map[string]string{"proc/self/cgroup": "3:memory:/x\n0::/\n",
			"sys/fs/cgroup/memory/x/memory.kmem.tcp.limit_in_bytes": "600\n",
			"sys/fs/cgroup/memory/memory.kmem.tcp.limit_in_bytes":   "9223372036854771712\n"}, "/x", 600},
	} {
		if group, bytes := socketMemory(rootOf(t, c.files)); group != c.group || bytes != c.bytes {
			t.Errorf("%s: %q %d, want %q %d", name, group, bytes, c.group, c.bytes)
		}
	}
}

// rootOf makes a directory with the files of a system.
func rootOf(t *testing.T, files map[string]string) string {
	root := t.TempDir()
	for path, text := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}
