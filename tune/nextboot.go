package tune

import (
	"fmt"
	"strings"
)

// NextBoot is the text of a sysctl.d file that makes settings again when the host starts. Of
// a setting that is no sysctl a comment says where it is set: sysctl.d(5), systemd.link(5), udev(7).
func NextBoot(list []Change) (string, error) {
	var text strings.Builder
	text.WriteString("# /etc/sysctl.d/90-pelt.conf\n")
	for _, c := range list {
		k, dev, err := find(c.Knob)
		if err != nil {
			return "", err
		}
		switch k.Persist {
		case persistSysctl:
			name := c.Knob
			if strings.Contains(name, "/") {
				name = sysctlPath(name)
			}
			fmt.Fprintf(&text, "%s = %s\n", name, c.Value)
		case persistUdev:
			fmt.Fprintf(&text, "# %s = %s: in a udev rule that writes it to /sys/%s\n", c.Knob, c.Value, k.place(dev).At)
		case "":
			fmt.Fprintf(&text, "# %s = %s: cannot be set for the next boot: numbers of interrupts change\n", c.Knob, c.Value)
		default:
			fmt.Fprintf(&text, "# %s = %s: %s=%s in the [Link] section of %s's .link file\n", c.Knob, c.Value, k.Persist, linkValue(k.Persist, c.Value), dev)
		}
	}
	return text.String(), nil
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
