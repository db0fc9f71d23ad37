package engine

import (
	"net/netip"
	"time"

	"pelt/model"
)

// A link is an interface that has the address of one of an end's streams.
type link struct {
	name       string
	index, mtu int
}

// disturbances are what a host may do to a measurement under way that no packet tells of.
type disturbances struct {
	asleep func() time.Duration // for which the host slept since its boot
	slept  time.Duration        // before the end began
	links  []link
	state  func(index int) (now link, there bool)
	free   func()
}

// Less sleep than this is the error of two clocks.
const dozing = 100 * time.Millisecond

// watchHost begins to watch the host; host is nil without its interfaces.
func watchHost(host Host, streams []Stream) *disturbances {
	d := &disturbances{asleep: asleep}
	if host == nil {
		return d
	}
	_ = host.Do(func() (err error) { // without them a trial can be no worse than before
		wanted := map[netip.Addr]bool{}
		for _, s := range streams {
			wanted[s.Local.Addr().Unmap().WithZone("")] = true
		}
		if d.state, d.free, err = linkStates(); err != nil {
			return err
		}
		for _, index := range holders(wanted) {
			if l, there := d.state(index); there {
				d.links = append(d.links, l)
			}
		}
		return nil
	})
	return d
}

// changed says which interface went away or has another MTU than it had.
func (d *disturbances) changed() (list model.Reasons) {
	for _, l := range d.links {
		switch now, there := d.state(l.index); {
		case !there:
			list = append(list, model.Reason{Code: model.InterfaceGone, Name: l.name})
		case now.mtu != l.mtu:
			list = append(list, model.Reason{Code: model.InterfaceMTU, Name: l.name,
				Numbers: map[string]float64{"before_bytes": float64(l.mtu), "after_bytes": float64(now.mtu)}})
		}
	}
	return list
}

// close frees the watch, if there is one.
func (d *disturbances) close() {
	if d != nil && d.free != nil {
		d.free()
	}
}

// all returns every disturbance since the end began: interfaces that changed, and sleep of the host.
func (d *disturbances) all() model.Reasons {
	list := d.changed()
	if slept := d.asleep() - d.slept; slept > dozing {
		list = append(list, model.Reason{Code: model.HostSlept,
			Numbers: map[string]float64{"slept_s": slept.Seconds()}})
	}
	return list
}
