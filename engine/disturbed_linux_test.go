package engine

import (
	"net/netip"
	"testing"
)

type here struct{}

func (here) Do(f func() error) error { return f() }

// The interface of a stream is found by its address; another index is none.
func TestLinkOfStream(t *testing.T) {
	d := watchHost(here{}, []Stream{{Local: netip.MustParseAddrPort("127.0.0.1:7")},
		{Local: netip.MustParseAddrPort("[::1]:7")}})
	defer d.close()
	if len(d.links) != 1 || d.links[0].name != "lo" || d.links[0].index != 1 || d.links[0].mtu == 0 {
		t.Errorf("links %+v, want lo", d.links)
	}
	if list := d.all(); list != nil {
		t.Errorf("nothing happened, yet %v", list)
	}
	d.links = append(d.links, link{"none", 1 << 30, 1500})
	if list := d.changed(); len(list) != 1 || list[0].Name != "none" {
		t.Errorf("an interface that is not there: %v", list)
	}
}
