package counters

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"pelt/internal/testenv"
)

// Settings are those of the namespace; what it lacks is the first one's. Those
// of the interface are its own, though the namespace outside has one of that name.
func TestKnobs(t *testing.T) {
	w := newWire(t, 2)
	w.Receiver.Sysctl("net/ipv4/conf/vb/rp_filter", "2")
	w.Receiver.Sysctl("net/ipv4/neigh/vb/unres_qlen_bytes", "2304")
	w.Receiver.Sysctl("net/ipv4/ipfrag_high_thresh", "5000000")
	w.Receiver.Link("vb", func(l netlink.Link) error { return netlink.LinkSetTxQLen(l, 77) })
	w.Receiver.TBF("vb", netlink.HANDLE_ROOT, 100_000, 3000)
	testenv.LeakCheck(t)
	got := map[string]string{}
	for _, k := range Knobs(w.Receiver.Do, "vb") {
		if _, twice := got[k.Name]; twice || k.Value == "" || strings.ContainsAny(k.Value, "\t\n") {
			t.Errorf("odd knob %+v", k)
		}
		got[k.Name] = k.Value
	}
	for name, want := range map[string]string{
		"net.ipv4.conf.vb.rp_filter": "2", "net.ipv4.neigh.vb.unres_qlen_bytes": "2304", "vb.txqueuelen": "77", "vb.qdisc": "tbf",
		"vb.channels_rx": "2", "net.ipv4.ipfrag_high_thresh": "5000000",
		"page_size_bytes": strconv.Itoa(os.Getpagesize()),
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	for _, name := range []string{ // that a new namespace lacks, or shows of the first one
		"net.core.netdev_max_backlog", "net.core.netdev_budget", "net.ipv4.udp_mem", "net.core.rmem_max",
	} {
		b, err := os.ReadFile(sysctlPath(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // then this test runs in no first namespace, either
		}
		if got[name] != oneLine(b) {
			t.Errorf("%s is %q, the file says %q", name, got[name], b)
		}
	}
	for _, name := range []string{"", "nonesuch"} {
		for _, k := range Knobs(w.Receiver.Do, name) {
			if strings.HasPrefix(k.Name, name+".") {
				t.Errorf("interface %q has %+v", name, k)
			}
		}
	}
}
