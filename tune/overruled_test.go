package tune

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What other files will make of a value at the next boot is told, and no more than that.
func TestOverruled(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string // what the value will be, from which file; "" if it stands
	}{
		{"nothing else", nil, ""},
		{"an earlier file", map[string]string{"etc/sysctl.d/10-local.conf": "net.core.rmem_max=1\n"}, ""},
		{"a later file", map[string]string{"etc/sysctl.d/99-local.conf": "# mine\nnet.core.rmem_max = 212992\n"}, "212992 /etc/sysctl.d/99-local.conf"},
		{"of a package", map[string]string{"usr/lib/sysctl.d/99-vendor.conf": "net/core/rmem_max=212992"}, "212992 /usr/lib/sysctl.d/99-vendor.conf"},
		{"of a package, masked", map[string]string{"usr/lib/sysctl.d/99-vendor.conf": "net/core/rmem_max=212992", "etc/sysctl.d/99-vendor.conf": ""}, ""},
		{"the same value", map[string]string{"etc/sysctl.d/99-local.conf": "net.core.rmem_max=4194304\n"}, ""},
		{"another, then the same", map[string]string{"etc/sysctl.d/98-a.conf": "net.core.rmem_max=1\n", "etc/sysctl.d/99-a.conf": "net.core.rmem_max=4194304\n"}, ""},
		{"two others", map[string]string{"etc/sysctl.d/98-a.conf": "net.core.rmem_max=1\n", "run/sysctl.d/99-a.conf": "-net.core.rmem_max=2\n"}, "2 /run/sysctl.d/99-a.conf"},
		{"said in a comment, of a pattern, of another", map[string]string{"etc/sysctl.d/99-a.conf": "#net.core.rmem_max=1\n;net.core.rmem_max=1\nnet.core.rmem_*=1\n-net.core.rmem_max\nnet.core.wmem_max=1\n"}, ""},
		{"no such file's name", map[string]string{"etc/sysctl.d/99-a.conf.bak": "net.core.rmem_max=1\n"}, ""},
		{"the old file", map[string]string{"etc/sysctl.conf": "net.core.rmem_max=7\n"}, "7 /etc/sysctl.conf"},
		{"the old file under systemd", map[string]string{"etc/sysctl.conf": "net.core.rmem_max=7\n", "run/systemd/system/.keep": ""}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := newTree(t)
			if err := os.MkdirAll(filepath.Join(root, filepath.Dir(sysctlFile)), 0o755); err != nil {
				t.Fatal(err)
			}
			for at, text := range c.files {
				if err := os.MkdirAll(filepath.Join(root, filepath.Dir(at)), 0o755); err != nil {
					t.Fatal(err)
				}
				set(t, root, at, text)
			}
			with(t, root, func(u *Tuner) {
				for _, persist := range []bool{false, true, true} { // the second time nothing is to be done
					done, err := u.Apply(Request{Persist: persist, Changes: changes(t, "net.core.rmem_max=4194304")})
					if err != nil {
						t.Fatal(err)
					}
					got := ""
					for _, d := range done {
						if d.State == Overruled {
							got += d.To + " " + d.Place
							if !strings.Contains(d.Text, d.Place+" sets net.core.rmem_max to "+d.To+" ") {
								t.Errorf("it says: %s", d.Text)
							}
						}
					}
					if want := c.want; persist && got != want || !persist && got != "" {
						t.Errorf("persist %v: %q, want %q", persist, got, want)
					}
				}
			})
		})
	}
}
