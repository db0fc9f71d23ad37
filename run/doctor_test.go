package run

import (
	"errors"
	"strings"
	"testing"

	"pelt/engine/xdp"
	"pelt/words"
)

func TestInterfaceChecks(t *testing.T) {
	list := func() ([]xdp.Interface, error) {
		return []xdp.Interface{
			{Name: "old"},
			{Name: "taken", Known: true, Native: true, Sends: true, Taken: true},
			{Name: "card", Known: true, Native: true, Sends: true},
			{Name: "cable", Known: true, Native: true, Cable: true},
			{Name: "wifi", Known: true},
			{Name: "virtio", Known: true, Native: true},
		}, nil
	}
	got := interfaceChecks(words.English, list)
	for i, want := range []struct {
		ok   bool
		says string
	}{
		{true, "does not say"}, {false, "another XDP program"}, {true,
			"sends XDP frames, receives XDP frames in its driver"},
		{true, "at the cable's other end"}, {false, "ndo_xdp_xmit"}, {true, "once a program is attached"},
	} {
		c := got[i]
		if text := c.Detail + c.Reason; c.OK != want.ok || !strings.Contains(text, want.says) || !c.OK &&
			(c.Reason == "" || c.Remedy == "") {
			t.Errorf("%+v, want %+v", c, want)
		}
	}
	none := interfaceChecks(words.English, func() ([]xdp.Interface, error) {
		return nil, errors.New("list the interfaces: no netlink")
	})
	if len(none) != 1 || none[0].OK || !strings.Contains(none[0].Reason, "no netlink") {
		t.Errorf("%+v", none)
	}
}
