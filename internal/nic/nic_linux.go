package nic

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"
)

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
	for _, f := range fields() {
		if v, err := c.read(iface, f.group); err == nil {
			if s, has := f.setting(v); has {
				list = append(list, s)
			}
		}
	}
	return list
}

// Get reads one setting. Errors are the driver's; EOPNOTSUPP stands for one that
// it does not have.
func (c *Conn) Get(iface, name string) (string, error) {
	_, s, _, err := c.find(iface, name)
	return s.Value, err
}

// Set changes one setting and leaves the others of its group as they are. The
// driver may round the value: Get tells.
func (c *Conn) Set(iface, name, value string) error {
	f, _, v, err := c.find(iface, name)
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(value, 10, 32)
	at := slices.Index([]string{"off", "on"}, value)
	switch {
	case f.onOff && at < 0:
		return fmt.Errorf("%s: want on or off, not %q", name, value)
	case f.onOff:
		n = uint64(at)
	case err != nil:
		return fmt.Errorf("%s: want a whole number, not %q", name, value)
	}
	*f.at(&v) = uint32(n)
	return c.write(iface, f.group, v)
}

// find reads a setting, with the others of its group.
func (c *Conn) find(iface, name string) (field, Setting, values, error) {
	all := fields()
	i := slices.IndexFunc(all, func(f field) bool { return f.name == name })
	if i < 0 {
		return field{}, Setting{}, values{}, fmt.Errorf("drivers have no setting %q", name)
	}
	v, err := c.read(iface, all[i].group)
	s, has := all[i].setting(v)
	if err == nil && !has {
		err = unix.EOPNOTSUPP
	}
	return all[i], s, v, err
}

// group is what one request of the kernel's reads or writes.
type group int

const (
	rings group = iota
	channels
	coalescing
)

type values struct {
	ring     ethtool.Ring
	channels ethtool.Channels
	coalesce ethtool.Coalesce
}

func (c *Conn) read(iface string, g group) (v values, err error) {
	switch g {
	case rings:
		v.ring, err = c.h.GetRing(iface)
	case channels:
		v.channels, err = c.h.GetChannels(iface)
	default:
		v.coalesce, err = c.h.GetCoalesce(iface)
	}
	return v, err
}

func (c *Conn) write(iface string, g group, v values) (err error) {
	switch g {
	case rings:
		_, err = c.h.SetRing(iface, v.ring)
	case channels:
		_, err = c.h.SetChannels(iface, v.channels)
	default:
		_, err = c.h.SetCoalesce(iface, v.coalesce)
	}
	return err
}

type field struct {
	name  string
	group group
	at    func(*values) *uint32
	most  func(*values) *uint32 // nil: not told
	onOff bool
}

// setting is a field's value; has is false for channels of which the driver can have none.
func (f field) setting(v values) (s Setting, has bool) {
	s = Setting{Name: f.name, Value: strconv.FormatUint(uint64(*f.at(&v)), 10)}
	if f.onOff {
		s.Value = map[bool]string{true: "on", false: "off"}[*f.at(&v) != 0]
	}
	if f.most != nil {
		s.Max = *f.most(&v)
	}
	return s, f.group != channels || s.Max > 0
}

// fields is the one table of what a driver may let be set.
func fields() []field {
	type v = *values
	return []field{
		{"rx_ring", rings, func(v v) *uint32 { return &v.ring.RxPending }, func(v v) *uint32 { return &v.ring.RxMaxPending }, false},
		{"tx_ring", rings, func(v v) *uint32 { return &v.ring.TxPending }, func(v v) *uint32 { return &v.ring.TxMaxPending }, false},
		{"channels_combined", channels, func(v v) *uint32 { return &v.channels.CombinedCount },
			func(v v) *uint32 { return &v.channels.MaxCombined }, false},
		{"channels_rx", channels, func(v v) *uint32 { return &v.channels.RxCount }, func(v v) *uint32 { return &v.channels.MaxRx }, false},
		{"channels_tx", channels, func(v v) *uint32 { return &v.channels.TxCount }, func(v v) *uint32 { return &v.channels.MaxTx }, false},
		{"coalesce_rx_usecs", coalescing, func(v v) *uint32 { return &v.coalesce.RxCoalesceUsecs }, nil, false},
		{"coalesce_rx_frames", coalescing, func(v v) *uint32 { return &v.coalesce.RxMaxCoalescedFrames }, nil, false},
		{"coalesce_tx_usecs", coalescing, func(v v) *uint32 { return &v.coalesce.TxCoalesceUsecs }, nil, false},
		{"coalesce_tx_frames", coalescing, func(v v) *uint32 { return &v.coalesce.TxMaxCoalescedFrames }, nil, false},
		{"coalesce_adaptive_rx", coalescing, func(v v) *uint32 { return &v.coalesce.UseAdaptiveRxCoalesce }, nil, true},
	}
}
