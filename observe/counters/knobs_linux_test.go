package counters

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
)

// Settings are those of the namespace; what it lacks is the first one's. Those
// of the interface are its own, though the namespace outside has one of that name.
func TestKnobs(t *testing.T) {
	w := newBed(t, 2, false)
	w.b.do(t, "change settings", func() error {
		for path, value := range map[string]string{
			"/proc/sys/net/ipv4/conf/b0/rp_filter": "2", "/proc/sys/net/ipv4/neigh/b0/unres_qlen_bytes": "2304",
		} {
			if err := os.WriteFile(path, []byte(value), 0); err != nil {
				return err
			}
		}
		if err := netlink.LinkSetTxQLen(w.b.link, 77); err != nil {
			return err
		}
		return netlink.QdiscAdd(tbf(w.b, netlink.HANDLE_ROOT))
	})
	before := descriptors(t)
	got := map[string]string{}
	for _, k := range Knobs(w.b.Do, "b0") {
		if _, twice := got[k.Name]; twice || k.Value == "" || strings.ContainsAny(k.Value, "\t\n") {
			t.Errorf("odd knob %+v", k)
		}
		got[k.Name] = k.Value
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors open before, %d after", before, after)
	}
	for name, want := range map[string]string{
		"net.ipv4.conf.b0.rp_filter": "2", "net.ipv4.neigh.b0.unres_qlen_bytes": "2304", "b0.txqueuelen": "77", "b0.qdisc": "tbf",
		"b0.channels_rx": "2", "b0.channels_tx": "2", "page_size_bytes": strconv.Itoa(os.Getpagesize()),
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
		for _, k := range Knobs(w.b.Do, name) {
			if strings.HasPrefix(k.Name, name+".") {
				t.Errorf("interface %q has %+v", name, k)
			}
		}
	}
}

func BenchmarkRead(b *testing.B) {
	bench := func(b *testing.B, r *Reader) {
		b.ReportAllocs()
		for b.Loop() {
			r.Read()
		}
		b.ReportMetric(float64(len(r.Read().readings)), "counters")
	}
	b.Run("process", func(b *testing.B) {
		r, err := Open(here)
		if err != nil {
			b.Fatal(err)
		}
		bench(b, r)
	})
	b.Run("veth", func(b *testing.B) { bench(b, newBed(b, 1, false).a.reader) })
	b.Run("200 interfaces", func(b *testing.B) {
		w := newBed(b, 1, false)
		w.a.do(b, "add interfaces", func() error {
			for i := range 100 {
				attrs := netlink.NewLinkAttrs()
				attrs.Name = fmt.Sprintf("v%d", i)
				if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: fmt.Sprintf("p%d", i)}); err != nil {
					return err
				}
			}
			return nil
		})
		bench(b, w.a.reader)
	})
}

func BenchmarkDiff(b *testing.B) {
	w := newBed(b, 1, false)
	idle, start, measure, end := w.a.reader.Read(), w.a.reader.Read(), w.a.reader.Read(), w.a.reader.Read()
	for b.Loop() {
		Diff(idle, start, measure, end, 1)
	}
}
