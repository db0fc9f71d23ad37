package engine

import (
	"net"
	"net/netip"
	"slices"
	"time"

	"pelt/model"
)

// disturbances are what a host may do to a measurement under way that no packet tells of. The host is looked at before
// and after.
type disturbances struct {
	host   Host            // whose interfaces are watched; nil: of none
	before []net.Interface // that have the address of one of the end's streams
	slept  time.Duration   // since the host's boot, before the end began
}

// Less sleep than this is the error of two clocks.
const dozing = 100 * time.Millisecond

// watchHost begins to watch the host; host is nil without its interfaces.
func watchHost(host Host, streams []Stream) *disturbances {
	d := &disturbances{host: host}
	if host == nil {
		return d
	}
	wanted := map[netip.Addr]bool{}
	for _, s := range streams {
		wanted[s.Local.Addr().Unmap().WithZone("")] = true
	}
	holds := func(a net.Addr) bool {
		held, err := netip.ParsePrefix(a.String())
		return err == nil && wanted[held.Addr()]
	}
	_ = host.Do(func() error { // without them a trial can be no worse than before
		all, err := net.Interfaces()
		d.before = slices.DeleteFunc(all, func(i net.Interface) bool {
			addresses, _ := i.Addrs()
			return !slices.ContainsFunc(addresses, holds)
		})
		return err
	})
	return d
}

// all returns every disturbance since the end began.
func (d *disturbances) all() model.Reasons {
	now := d.before
	if len(d.before) > 0 {
		_ = d.host.Do(func() error {
			all, err := net.Interfaces()
			if err == nil {
				now = all
			}
			return err
		})
	}
	return disturbed(d.before, now, asleep()-d.slept)
}

// disturbed says which interface went away or has another MTU than it had, and that the host slept.
func disturbed(before, now []net.Interface, slept time.Duration) (list model.Reasons) {
	for _, l := range before {
		switch i := slices.IndexFunc(now, func(n net.Interface) bool { return n.Index == l.Index }); {
		case i < 0:
			list = append(list, model.Reason{Code: model.InterfaceGone, Name: l.Name})
		case now[i].MTU != l.MTU:
			list = append(list, model.Reason{Code: model.InterfaceMTU, Name: l.Name,
				Numbers: map[string]float64{"before_bytes": float64(l.MTU), "after_bytes": float64(now[i].MTU)}})
		}
	}
	if slept > dozing {
		list = append(list, model.NewReason(model.HostSlept, "slept_s", slept.Seconds()))
	}
	return list
}
