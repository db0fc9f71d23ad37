package observe

import (
	"os"
	"path/filepath"
	"strings"
)

// mostSetting is more than any of those settings has, in bytes.
const mostSetting = 4096

// TCPSettings are the net.ipv4.tcp_* of the calling thread's network namespace, by the
// words after tcp_; what it may not read is left out.
func TCPSettings() map[string]string { return hostRoot.tcpSettings() }

func (root files) tcpSettings() map[string]string {
	const prefix = "tcp_"
	dir := filepath.Join(string(root), "proc/sys/net/ipv4")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	settings := map[string]string{}
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), prefix)
		if !ok || strings.Contains(name, "fastopen_key") { // a secret
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil || len(text) > mostSetting {
			continue
		}
		settings[name] = strings.Join(strings.Fields(string(text)), " ")
	}
	return settings
}
