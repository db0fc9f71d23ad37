package kernels

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// kernel is an unpacked Debian kernel package.
type kernel struct {
	image   string // the file to boot
	modules string // directory lib/modules/RELEASE
}

// findKernel gives the newest cloud kernel of a series such as 6.1: a cached
// one, or else one downloaded with apt's own verification.
func findKernel(series string) (kernel, error) {
	dir := os.Getenv("PELT_KERNEL_DIR")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return kernel{}, err
		}
		dir = filepath.Join(cache, "pelt-kernels")
	}
	cached, err := filepath.Glob(filepath.Join(dir, "linux-image-*"))
	if err != nil {
		return kernel{}, err
	}
	for i, path := range cached {
		cached[i] = filepath.Base(path)
	}
	name := newest(series, cached)
	if name == "" {
		if name, err = download(series, dir); err != nil {
			return kernel{}, fmt.Errorf("get a Linux %s kernel from Debian: %w", series, err)
		}
	}
	release := strings.TrimPrefix(name, "linux-image-")
	k := kernel{
		image:   filepath.Join(dir, name, "boot", "vmlinuz-"+release),
		modules: filepath.Join(dir, name, "lib", "modules", release),
	}
	for _, path := range []string{k.image, k.modules} {
		if _, err := os.Stat(path); err != nil {
			return k, fmt.Errorf("%w (remove %s to have it made anew)", err, filepath.Join(dir, name))
		}
	}
	return k, nil
}

// pastReleases are those of Debian that kept a series which its present ones have not.
var pastReleases = map[string]string{"5.10": "bullseye"}

// newest picks the package with the highest version of a series; "" if none is.
func newest(series string, names []string) string {
	// linux-image-6.1.0-56-cloud-amd64, linux-image-6.12.117+deb12-cloud-amd64; not linux-image-6.12-cloud-amd64, a
	// pointer to one.
	of := regexp.MustCompile(`^linux-image-` + regexp.QuoteMeta(series) + `\.([0-9]+)([-+.~a-z0-9]*)-cloud-amd64$`)
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !of.MatchString(n) })
	if len(names) == 0 {
		return ""
	}
	number := regexp.MustCompile(`[0-9]+`)
	version := func(name string) (v []int) {
		for _, digits := range number.FindAllString(name, -1) {
			n, _ := strconv.Atoi(digits) // as many digits as overflow are no version
			v = append(v, n)
		}
		return v
	}
	return slices.MaxFunc(names, func(a, b string) int {
		return cmp.Or(slices.Compare(version(a), version(b)), strings.Compare(a, b))
	})
}

// download brings the newest package of a series into dir, unpacked. It uses
// the system's package sources with lists of its own, so that it needs no
// rights and is not fooled by old ones.
func download(series, dir string) (name string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(dir, "download-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	own := []string{
		"-qq", "-o", "APT::Sandbox::User=",
		"-o", "Dir::State::lists=" + filepath.Join(work, "lists"), "-o", "Dir::Cache=" + filepath.Join(work, "cache"),
	}
	for _, d := range []string{"lists/partial", "cache/archives/partial", "root"} {
		if err := os.MkdirAll(filepath.Join(work, d), 0o755); err != nil {
			return "", err
		}
	}
	if _, err := command(work, "apt-get", append(own, "update")...); err != nil {
		return "", err
	}
	if release := pastReleases[series]; release != "" {
		if own, err = pastSources(work, own, release); err != nil {
			return "", err
		}
	}
	list, err := command(work, "apt-cache", append(own, "search", "--names-only", `^linux-image-.*-cloud-amd64$`)...)
	if err != nil {
		return "", err
	}
	var names []string
	for line := range strings.Lines(string(list)) {
		n, _, _ := strings.Cut(line, " ")
		names = append(names, n)
	}
	if name = newest(series, names); name == "" {
		return "", fmt.Errorf("its package sources have no linux-image-%s.*-cloud-amd64; those of Debian 12 do", series)
	}
	if _, err := command(work, "apt-get", append(own, "download", name)...); err != nil {
		return "", err
	}
	debs, err := filepath.Glob(filepath.Join(work, name+"_*.deb"))
	if err != nil || len(debs) != 1 {
		return "", fmt.Errorf("apt-get download %s left %d packages, want one", name, len(debs))
	}
	if _, err := command(work, "dpkg-deb", "-x", debs[0], "root"); err != nil {
		return "", err
	}
	// All at once: a package that is there is whole.
	err = os.Rename(filepath.Join(work, "root"), filepath.Join(dir, name))
	if errors.Is(err, os.ErrExist) {
		err = nil // another process was faster
	}
	return name, err
}

// pastSources has apt take packages of a past release from where the system's own come from.
func pastSources(work string, own []string, release string) ([]string, error) {
	targets, err := command(work, "apt-get", append(own, "indextargets", "--format", "$(LABEL) $(REPO_URI) $(CODENAME)",
		"Created-By: Packages")...)
	if err != nil {
		return nil, err
	}
	var lines strings.Builder
	for target := range strings.Lines(string(targets)) {
		f := strings.Fields(target)
		if len(f) != 3 || f[0] != "Debian" && f[0] != "Debian-Security" {
			continue
		}
		if _, part, _ := strings.Cut(f[2], "-"); part == "" {
			fmt.Fprintf(&lines, "deb %s %s main\n", f[1], release)
		} else if part == "security" {
			fmt.Fprintf(&lines, "deb %s %s-security main\n", f[1], release)
		}
	}
	file := filepath.Join(work, "sources.list")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		return nil, err
	}
	own = append(own, "-o", "Dir::Etc::sourcelist="+file, "-o", "Dir::Etc::sourceparts=-")
	_, err = command(work, "apt-get", append(own, "update")...)
	return own, err
}

// command runs a program to its end and gives its stdout.
func command(dir, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, lastLine(stderr.String()))
	}
	return out, nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
