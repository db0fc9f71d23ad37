package nic

import (
	"fmt"
	"math"
	"strconv"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"
)

const errNone = unix.EOPNOTSUPP // the driver has no such setting

// Conn is a socket of the network namespace it was opened in. Its methods must
// not be called concurrently.
type Conn struct{ h *ethtool.Ethtool }

// Open opens a socket of the calling thread's namespace.
func Open() (*Conn, error) {
	h, err := ethtool.NewEthtool()
	if err != nil {
		return nil, fmt.Errorf("open a socket for drivers: %w", err)
	}
	return &Conn{h}, nil
}

// Close closes the socket.
func (c *Conn) Close() { c.h.Close() }

// Driver is the driver's name.
func (c *Conn) Driver(iface string) (string, error) { return c.h.DriverName(iface) }

// Speed is the link's, in bit/s, as the driver says it; 0 of a link that is down or has none.
func (c *Conn) Speed(iface string) uint64 {
	megabits, err := c.h.CmdGet(&ethtool.EthtoolCmd{}, iface)
	if err != nil || megabits == math.MaxUint32 { // SPEED_UNKNOWN
		return 0
	}
	return uint64(megabits) * 1e6
}

// Stats are the driver's own statistics. EOPNOTSUPP says that it has none.
func (c *Conn) Stats(iface string) (map[string]uint64, error) { return c.h.Stats(iface) }

// Settings are those that the driver has.
func (c *Conn) Settings(iface string) []Setting {
	var list []Setting
	for _, g := range groups() {
		values, err := g.read(c.h, iface)
		if err != nil {
			continue
		}
		for _, f := range g.fields {
			if s, has := f.setting(values); has {
				list = append(list, s)
			}
		}
	}
	return list
}

// Get reads one setting. Errors are the driver's; EOPNOTSUPP stands for one that
// it does not have.
func (c *Conn) Get(iface, name string) (string, error) {
	g, f, err := find(name)
	if err != nil {
		return "", err
	}
	values, err := g.read(c.h, iface)
	if err != nil {
		return "", err
	}
	s, has := f.setting(values)
	if !has {
		return "", errNone
	}
	return s.Value, nil
}

// Set changes one setting and leaves the others of its group as they are. The
// driver may round the value: Get tells.
func (c *Conn) Set(iface, name, value string) error {
	g, f, err := find(name)
	if err != nil {
		return err
	}
	n, err := f.parse(value)
	if err != nil {
		return err
	}
	values, err := g.read(c.h, iface)
	if err != nil {
		return err
	}
	if _, has := f.setting(values); !has {
		return errNone
	}
	*f.at(&values) = n
	return g.write(c.h, iface, values)
}

// values hold what one request of the kernel's reads or writes.
type values struct {
	ring     ethtool.Ring
	channels ethtool.Channels
	coalesce ethtool.Coalesce
}

type group struct {
	read   func(*ethtool.Ethtool, string) (values, error)
	write  func(*ethtool.Ethtool, string, values) error
	fields []field
}

type field struct {
	name  string
	at    func(*values) *uint32
	most  func(*values) uint32 // nil: not told
	onOff bool
	// bounded: 0 as the most says that the driver has none.
	bounded bool
}

func (f field) setting(v values) (Setting, bool) {
	s := Setting{Name: f.name, Value: strconv.FormatUint(uint64(*f.at(&v)), 10)}
	if f.onOff {
		s.Value = map[bool]string{true: "on", false: "off"}[*f.at(&v) != 0]
	}
	if f.most != nil {
		s.Max = f.most(&v)
	}
	return s, !f.bounded || s.Max > 0
}

func (f field) parse(text string) (uint32, error) {
	if f.onOff {
		switch text {
		case "on":
			return 1, nil
		case "off":
			return 0, nil
		}
		return 0, fmt.Errorf("%s: want on or off, not %q", f.name, text)
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%s: want a whole number, not %q", f.name, text)
	}
	return uint32(n), nil
}

func find(name string) (group, field, error) {
	for _, g := range groups() {
		for _, f := range g.fields {
			if f.name == name {
				return g, f, nil
			}
		}
	}
	return group{}, field{}, fmt.Errorf("drivers have no setting %q", name)
}

// groups is the one table of what a driver may let be set.
func groups() []group {
	return []group{
		{
			func(h *ethtool.Ethtool, i string) (v values, err error) { v.ring, err = h.GetRing(i); return v, err },
			func(h *ethtool.Ethtool, i string, v values) error { _, err := h.SetRing(i, v.ring); return err },
			[]field{
				{name: "rx_ring", at: func(v *values) *uint32 { return &v.ring.RxPending }, most: func(v *values) uint32 { return v.ring.RxMaxPending }},
				{name: "tx_ring", at: func(v *values) *uint32 { return &v.ring.TxPending }, most: func(v *values) uint32 { return v.ring.TxMaxPending }},
			},
		},
		{
			func(h *ethtool.Ethtool, i string) (v values, err error) {
				v.channels, err = h.GetChannels(i)
				return v, err
			},
			func(h *ethtool.Ethtool, i string, v values) error { _, err := h.SetChannels(i, v.channels); return err },
			[]field{
				{name: "channels_combined", bounded: true, at: func(v *values) *uint32 { return &v.channels.CombinedCount }, most: func(v *values) uint32 { return v.channels.MaxCombined }},
				{name: "channels_rx", bounded: true, at: func(v *values) *uint32 { return &v.channels.RxCount }, most: func(v *values) uint32 { return v.channels.MaxRx }},
				{name: "channels_tx", bounded: true, at: func(v *values) *uint32 { return &v.channels.TxCount }, most: func(v *values) uint32 { return v.channels.MaxTx }},
			},
		},
		{
			func(h *ethtool.Ethtool, i string) (v values, err error) {
				v.coalesce, err = h.GetCoalesce(i)
				return v, err
			},
			func(h *ethtool.Ethtool, i string, v values) error { _, err := h.SetCoalesce(i, v.coalesce); return err },
			[]field{
				{name: "coalesce_rx_usecs", at: func(v *values) *uint32 { return &v.coalesce.RxCoalesceUsecs }},
				{name: "coalesce_rx_frames", at: func(v *values) *uint32 { return &v.coalesce.RxMaxCoalescedFrames }},
				{name: "coalesce_tx_usecs", at: func(v *values) *uint32 { return &v.coalesce.TxCoalesceUsecs }},
				{name: "coalesce_tx_frames", at: func(v *values) *uint32 { return &v.coalesce.TxMaxCoalescedFrames }},
				{name: "coalesce_adaptive_rx", onOff: true, at: func(v *values) *uint32 { return &v.coalesce.UseAdaptiveRxCoalesce }},
			},
		},
	}
}
