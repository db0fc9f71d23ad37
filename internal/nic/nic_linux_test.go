package nic

import (
	"errors"
	"strconv"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pelt/internal/netns"
	"pelt/internal/testenv"
)

// A veth with two queues has channels and nothing else to set.
func TestSettings(t *testing.T) {
	testenv.Root(t)
	h, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.Do(func() error { inNamespace(t); return nil }); err != nil {
		t.Fatal(err)
	}
}

func inNamespace(t *testing.T) {
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.NumRxQueues, attributes.NumTxQueues = "v0", 2, 2
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: "v1"}); err != nil {
		t.Error(err)
		return
	}
	c, err := Open()
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	if name, err := c.Driver("v0"); name != "veth" || err != nil {
		t.Errorf("driver %q, %v", name, err)
	}
	for _, s := range c.Settings("v0") {
		if got, err := c.Get("v0", s.Name); got != s.Value || err != nil {
			t.Errorf("Get(%s) = %q, %v; Settings say %q", s.Name, got, err, s.Value)
		}
	}
	for _, n := range []int{1, 2} {
		if err := c.Set("v0", "channels_rx", strconv.Itoa(n)); err != nil {
			t.Error(err)
		}
		if got, err := c.Get("v0", "channels_rx"); got != strconv.Itoa(n) || err != nil {
			t.Errorf("set to %d, it is %q, %v", n, got, err)
		}
	}
	if err := c.Set("v0", "channels_rx", "99"); err == nil {
		t.Error("99 channels are taken")
	}
	for _, name := range []string{"rx_ring", "channels_combined"} {
		if _, err := c.Get("v0", name); !errors.Is(err, unix.EOPNOTSUPP) {
			t.Errorf("Get(%s): %v, want %v", name, err, unix.EOPNOTSUPP)
		}
	}
	if _, err := c.Get("none", "rx_ring"); !errors.Is(err, unix.ENODEV) {
		t.Errorf("of no interface: %v, want %v", err, unix.ENODEV)
	}
	for name, value := range map[string]string{"channels_rx": "-1", "other": "1"} {
		if err := c.Set("v0", name, value); err == nil {
			t.Errorf("%s=%s is taken", name, value)
		}
	}
}
