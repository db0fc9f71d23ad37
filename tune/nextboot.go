package tune

import (
	"fmt"
	"strings"
)

// NextBoot is the text of a sysctl.d file that makes settings again when the host starts,
// sysctl.d(5). Of a setting that is no sysctl a comment says how.
func NextBoot(list []Change) (string, error) {
	var text strings.Builder
	text.WriteString("# /etc/sysctl.d/90-pelt.conf\n")
	for _, c := range list {
		k, _, err := find(c.Knob)
		if err != nil {
			return "", err
		}
		if k.at.Kind != atSysctl {
			fmt.Fprintf(&text, "# %s is no sysctl: run at each start: pelt tune apply --yes --set %s=%s\n", c.Knob, c.Knob, c.Value)
			continue
		}
		name := c.Knob
		if strings.Contains(name, "/") {
			name = sysctlPath(name)
		}
		fmt.Fprintf(&text, "%s = %s\n", name, c.Value)
	}
	return text.String(), nil
}
