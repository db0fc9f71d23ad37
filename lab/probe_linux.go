package lab

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"pelt/lab/fastpath"
	"pelt/model"
	"pelt/words"
)

// Probe tries what labs need, in a scratch namespace of its own that is gone
// when it returns. Reasons and remedies are in the language.
func Probe(l words.Language) []Capability {
	list := []Capability{userNamespaceCapability(l)}
	b := &builder{lab: &Lab{}, ipv6: kernelHasIPv6()}
	defer b.lab.Close()
	s, err := b.newSpace()
	list = append([]Capability{capability(l, "network-namespace", "CONFIG_NET_NS", err)}, list...)
	if err != nil {
		return list
	}
	defer s.rt.Close()
	for _, p := range []struct {
		name, config string
		try          func() error
	}{
		{"veth", "CONFIG_VETH", func() error {
			return b.veth(defaultMTU, vethEnd{s: s, name: "a"}, vethEnd{s: s, name: "b"})
		}},
		{"bridge", "CONFIG_BRIDGE", func() error { return b.prepareNode(s, nodeSpec{role: bridge}) }},
		{"relay", "CONFIG_NET_SCH_INGRESS, CONFIG_NET_ACT_MIRRED, CONFIG_NET_CLS_U32",
			func() error { return s.relay("a", "b") }},
		{"tbf", "CONFIG_NET_SCH_TBF", func() error {
			return s.setTBF("a", tbfOf(model.Link{Rate: 1e6}, defaultMTU), newTBF)
		}},
		{"masquerade", "CONFIG_NF_TABLES_INET, CONFIG_NFT_MASQ",
			func() error { return s.ns.Do(func() error { return addMasquerade("a") }) }},
		{"fast-path", fastConfig, func() error { return s.ns.Do(tryFast) }},
		{"tun", "CONFIG_TUN", func() error { return s.ns.Do(tryTUN) }},
	} {
		list = append(list, capability(l, p.name, p.config, p.try()))
	}
	return list
}

// tryFast loads the program of a fast path, which is nowhere yet.
func tryFast() error {
	path, err := fastpath.Load([2]fastpath.Port{}, fastpath.Timeouts{})
	if err != nil {
		return err
	}
	return path.Close()
}

// tryTUN makes a TUN device that goes with its descriptor.
func tryTUN() error {
	f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	request, err := unix.NewIfreq("probe")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(int(f.Fd()), unix.TUNSETIFF, request); err != nil {
		return fmt.Errorf("make a TUN device: %w", err)
	}
	return nil
}

func userNamespaceCapability(l words.Language) Capability {
	ok, why := InUserNamespace()
	c := Capability{Name: "user-namespace", OK: ok, Reason: l.Say(why)}
	if !ok {
		c.Remedy = l.Say("run labs as root instead")
	}
	return c
}

// capability judges one attempt.
func capability(l words.Language, name, config string, err error) Capability {
	c := Capability{Name: name, OK: err == nil}
	switch {
	case err == nil:
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES):
		c.Reason, c.Remedy = l.Error(err), l.Say("run it with sudo")
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP):
		c.Reason, c.Remedy = l.Sayf("this kernel has no %s", name), l.Sayf("use a kernel with %s", config)
	default:
		c.Reason, c.Remedy = l.Error(err), l.Sayf("use a kernel with %s", config)
	}
	return c
}
