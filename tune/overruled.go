package tune

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// sysctlDirs hold the files of settings, the first one that has a name counts: sysctl.d(5).
var sysctlDirs = []string{"etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d", "lib/sysctl.d"}

// overruled tells which of the changes another file will undo at the next boot.
func (t *Tuner) overruled(changes []Change) (list []Done) {
	want := map[string]Change{}
	for _, c := range changes {
		if k, _, err := find(c.Knob); err == nil && k.Persist == persistSysctl {
			want[sysctlPath(c.Knob)] = c
		}
	}
	last := map[string]Done{}
	for _, at := range t.laterFiles() {
		text, err := os.ReadFile(filepath.Join(t.ground.root, at))
		if err != nil {
			continue // what cannot be read now says nothing that could be told
		}
		for line := range strings.Lines(string(text)) {
			key, value := sysctlLine(line)
			c, ours := want[key]
			if !ours {
				continue
			}
			delete(last, key)
			if strings.Join(strings.Fields(c.Value), " ") != value {
				last[key] = Done{c.Knob, "/" + at, c.Value, value, Overruled,
					fmt.Sprintf("/%s sets %s to %s after /%s does: so it will be at the next boot; change it there", at, c.Knob, value, sysctlFile)}
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(last)) {
		list = append(list, last[key])
	}
	return list
}

// laterFiles are those whose settings are made after pelt's, in that order.
func (t *Tuner) laterFiles() (files []string) {
	first := map[string]string{}
	for _, dir := range sysctlDirs {
		entries, _ := os.ReadDir(filepath.Join(t.ground.root, dir)) // most are not there
		for _, e := range entries {
			if _, has := first[e.Name()]; !has && strings.HasSuffix(e.Name(), ".conf") && e.Name() > path.Base(sysctlFile) {
				first[e.Name()] = path.Join(dir, e.Name())
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(first)) {
		files = append(files, first[name])
	}
	// systemd leaves it out, unless a link among the others leads there.
	if _, err := os.Stat(filepath.Join(t.ground.root, "run/systemd/system")); err != nil {
		files = append(files, "etc/sysctl.conf")
	}
	return files
}

// sysctlLine reads a line of such a file: the path below /proc/sys, "" if it sets none by
// its name, and the value, its words one blank apart.
func sysctlLine(line string) (key, value string) {
	key, value, is := strings.Cut(strings.TrimSpace(line), "=")
	key = strings.TrimSpace(strings.TrimPrefix(key, "-"))
	if !is || strings.HasPrefix(key, "#") || strings.HasPrefix(key, ";") {
		return "", ""
	}
	if at := strings.IndexAny(key, "./"); at >= 0 && key[at] == '.' {
		key = sysctlPath(key)
	}
	return key, strings.Join(strings.Fields(value), " ")
}
