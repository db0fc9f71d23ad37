package tune

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"pelt/internal/nic"
)

// The files that hold settings for the next boot, below the root. sysctl.d(5),
// systemd.link(5), udev(7).
const (
	sysctlFile = "etc/sysctl.d/90-pelt.conf"
	udevFile   = "etc/udev/rules.d/90-pelt.rules"
	linkPrefix = "etc/systemd/network/90-pelt-"
	linkSuffix = ".link"
)

const fileHead = "# Written by pelt tune apply --persist; pelt tune revert takes it back.\n"

// entry is one setting in a file.
type entry struct{ key, line string }

// persist makes the steps that have settings stand after the next boot.
func (t *Tuner) persist(changes []Change) ([]Step, error) {
	files := map[string][]entry{}
	for _, c := range changes {
		k, dev, err := find(c.Knob)
		if err != nil {
			return nil, err
		}
		switch k.Persist {
		case "":
			return nil, fmt.Errorf("%s cannot persist: %s", c.Knob, k.Touches)
		case persistSysctl:
			key := c.Knob
			if strings.Contains(key, "/") {
				key = sysctlPath(key)
			}
			files[sysctlFile] = append(files[sysctlFile], entry{key + " ", key + " = " + c.Value})
		case persistUdev:
			places, values, err := t.ground.places(c)
			if err != nil {
				return nil, err
			}
			for i, p := range places {
				match, attribute := t.udevMatch(p, dev)
				key := match + ", ATTR{" + attribute + "}"
				files[udevFile] = append(files[udevFile], entry{key, key + "=\"" + values[i] + "\""})
			}
		default:
			at := linkPrefix + dev + linkSuffix
			files[at] = append(files[at], entry{k.Persist + "=", k.Persist + "=" + linkValue(k.Persist, c.Value)})
		}
	}
	var steps []Step
	for at, entries := range files {
		s, err := t.fileStep(at, entries)
		if err != nil {
			return nil, err
		}
		if s.Absent || s.New != s.Old {
			steps = append(steps, s)
		}
	}
	slices.SortFunc(steps, func(a, b Step) int { return strings.Compare(a.Place.At, b.Place.At) })
	return steps, nil
}

// linkValue is a value as systemd.link(5) writes it.
func linkValue(key, value string) string {
	switch {
	case strings.HasSuffix(key, "Sec"):
		return value + "us"
	case value == "on":
		return "yes"
	case value == "off":
		return "no"
	}
	return value
}

// udevMatch is what tells a place's device in a rule, and the attribute's name there. A
// card is told by its address, which it keeps when it is renamed; what lies on it, as a
// VLAN, has the same address but no driver.
func (t *Tuner) udevMatch(p Place, dev string) (match, attribute string) {
	if dev == "" { // of a processor
		rest := strings.TrimPrefix(p.At, "devices/system/cpu/")
		cpu, attribute, _ := strings.Cut(rest, "/")
		return fmt.Sprintf(`ACTION=="add", SUBSYSTEM=="cpu", KERNEL=="%s"`, cpu), attribute
	}
	attribute = strings.TrimPrefix(p.At, "class/net/"+dev+"/")
	if _, err := os.Stat(filepath.Join(t.ground.root, "sys/class/net", dev, "device")); err == nil {
		if address := t.address(dev); address != "" {
			return fmt.Sprintf(`ACTION=="add|change", SUBSYSTEM=="net", ATTR{address}=="%s", DRIVERS=="?*"`, address), attribute
		}
	}
	return fmt.Sprintf(`ACTION=="add|change", SUBSYSTEM=="net", KERNEL=="%s"`, dev), attribute
}

// address is the link address of an interface: its own where a bond has given it that of
// another, which it will not have yet when rules are applied; "" if it is not known.
func (t *Tuner) address(dev string) string {
	for _, file := range []string{"bonding_slave/perm_hwaddr", "address"} {
		b, _ := os.ReadFile(filepath.Join(t.ground.root, "sys/class/net", dev, file)) // "" if it is not there
		if address := strings.TrimSpace(string(b)); address != "" {
			return address
		}
	}
	return ""
}

// linkHead begins a .link file. Only the first one that matches a device counts, so this
// one must also say what 99-default.link says on this host.
func (t *Tuner) linkHead(dev string) (string, error) {
	match := ""
	if c, err := t.ground.drivers(); err == nil {
		match = permanent(c, dev)
		c.Close()
	}
	if match == "" {
		address := t.address(dev)
		if address == "" {
			return "", fmt.Errorf("%s has no link address by which it could be told at the next boot", dev)
		}
		match = "MACAddress=" + address
	}
	policy, err := t.linkPolicy()
	return fileHead + "[Match]\n" + match + "\n\n[Link]\n" + policy, err
}

// linkPolicy is what 99-default.link says of names and addresses: the first of its kind
// counts, and one that is empty or leads to /dev/null, as of a host whose interfaces keep
// the kernel's names, says nothing (systemd.link(5)).
func (t *Tuner) linkPolicy() (string, error) {
	for _, dir := range []string{"etc", "run", "usr/local/lib", "usr/lib", "lib"} {
		at := filepath.Join(t.ground.root, dir, "systemd/network/99-default.link")
		if to, err := os.Readlink(at); err == nil && to == os.DevNull {
			return "", nil
		}
		b, err := os.ReadFile(at)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("%s cannot be read: %w", at, cause(err))
		}
		policy := ""
		for line := range strings.Lines(string(b)) {
			key, _, _ := strings.Cut(line, "=")
			if slices.Contains([]string{"NamePolicy", "AlternativeNamesPolicy", "MACAddressPolicy"}, strings.TrimSpace(key)) {
				policy += strings.TrimSpace(line) + "\n"
			}
		}
		return policy, nil
	}
	return "NamePolicy=keep kernel database onboard slot path\n" +
		"AlternativeNamesPolicy=database onboard slot path mac\nMACAddressPolicy=persistent\n", nil // as of systemd 257
}

func permanent(c *nic.Conn, dev string) string {
	if address := c.PermanentAddress(dev); address != "" {
		return "PermanentMACAddress=" + address
	}
	return ""
}

// fileStep sets entries in a file, and leaves its other lines as they are.
func (t *Tuner) fileStep(at string, entries []entry) (Step, error) {
	p := Place{atFile, at}
	full := t.ground.path(p)
	if info, err := os.Stat(filepath.Dir(full)); err != nil || !info.IsDir() {
		return Step{}, fmt.Errorf("/%s is not there: this host does not keep settings that way; apply without --persist", path.Dir(at))
	}
	s := Step{Knob: "persist", Place: p, Mode: 0o644}
	old, err := t.ground.read(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.Absent = true
		old = fileHead
		if dev, is := strings.CutPrefix(at, linkPrefix); is {
			if old, err = t.linkHead(strings.TrimSuffix(dev, linkSuffix)); err != nil {
				return Step{}, err
			}
		}
	case err != nil:
		return Step{}, fmt.Errorf("/%s cannot be read: %w", at, err)
	default:
		info, err := os.Lstat(full)
		if err != nil || !info.Mode().IsRegular() {
			return Step{}, fmt.Errorf("/%s is no plain file; it is not pelt's", at)
		}
		s.Old, s.Mode = old, info.Mode().Perm()
		if strings.HasSuffix(at, linkSuffix) && !strings.Contains(old, "[Link]\n") {
			return Step{}, fmt.Errorf("/%s has no [Link] section; it is not pelt's", at)
		}
	}
	lines := strings.Split(strings.TrimSuffix(old, "\n"), "\n")
	for _, e := range entries {
		i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, e.key) })
		if i < 0 {
			lines = append(lines, e.line)
		} else {
			lines[i] = e.line
		}
	}
	s.New = strings.Join(lines, "\n") + "\n"
	return s, nil
}
