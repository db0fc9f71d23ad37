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
	for _, f := range fields {
		if v, err := c.read(iface, f); err == nil {
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

// Set changes one setting and leaves the others as they are. The driver may round the value: Get tells.
func (c *Conn) Set(iface, name, value string) error {
	f, _, v, err := c.find(iface, name)
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(value, 10, 32)
	if err != nil {
		return fmt.Errorf("%s: want a whole number, not %q", name, value)
	}
	*f.at(&v) = uint32(n)
	if f.rings {
		_, err = c.h.SetRing(iface, v.ring)
	} else {
		_, err = c.h.SetChannels(iface, v.channels)
	}
	return err
}

// find reads a setting, with the others that come with it.
func (c *Conn) find(iface, name string) (field, Setting, values, error) {
	i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
	if i < 0 {
		return field{}, Setting{}, values{}, fmt.Errorf("drivers have no setting %q", name)
	}
	v, err := c.read(iface, fields[i])
	s, has := fields[i].setting(v)
	if err == nil && !has {
		err = unix.EOPNOTSUPP
	}
	return fields[i], s, v, err
}

// Change turns features of an interface of the calling thread's namespace on or off. They have ethtool's names.
func Change(iface string, features map[string]bool) error {
	c, err := Open()
	if err != nil {
		return err
	}
	defer c.Close()
	return c.h.Change(iface, features)
}

type values struct {
	ring     ethtool.Ring
	channels ethtool.Channels
}

// read reads all settings that one request gives with a field.
func (c *Conn) read(iface string, f field) (v values, err error) {
	if f.rings {
		v.ring, err = c.h.GetRing(iface)
	} else {
		v.channels, err = c.h.GetChannels(iface)
	}
	return v, err
}

type field struct {
	name     string
	rings    bool // else it is one of channels
	at, most func(*values) *uint32
}

// setting is a field's value; has is false for channels of which the driver can have none.
func (f field) setting(v values) (s Setting, has bool) {
	s = Setting{f.name, strconv.FormatUint(uint64(*f.at(&v)), 10), *f.most(&v)}
	return s, f.rings || s.Max > 0
}

// fields is the one table of what a driver may let be set: what package advice proposes.
var fields = []field{
	{"rx_ring", true, func(v *values) *uint32 { return &v.ring.RxPending },
		func(v *values) *uint32 { return &v.ring.RxMaxPending }},
	{"channels_combined", false, func(v *values) *uint32 { return &v.channels.CombinedCount },
		func(v *values) *uint32 { return &v.channels.MaxCombined }},
	{"channels_rx", false, func(v *values) *uint32 { return &v.channels.RxCount },
		func(v *values) *uint32 { return &v.channels.MaxRx }},
}
