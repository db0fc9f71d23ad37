package counters

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"pelt/internal/nic"
)

// drivers asks the drivers of one namespace.
type drivers struct {
	handle *nic.Conn
	names  map[linkKey]string
}

// openDrivers opens a socket of the calling thread's namespace.
func openDrivers() (*drivers, error) {
	h, err := nic.Open()
	if err != nil {
		return nil, err
	}
	return &drivers{h, map[linkKey]string{}}, nil
}

func (d *drivers) close() { d.handle.Close() }

// name returns the driver's name, "" if it does not tell.
func (d *drivers) name(key linkKey) string {
	name, known := d.names[key]
	if !known {
		if len(d.names) > maxCached {
			clear(d.names)
		}
		name, _ = d.handle.Driver(key.name) // "" stands for unknown
		d.names[key] = name
	}
	return name
}

// readDriver adds the statistics of an interface's own driver, where it may have any.
func (r *Reader) readDriver(s *Snapshot, l link) {
	if r.drivers == nil || l.loopback || !slices.Contains([]string{"", "veth", "dsa", "netdevsim"}, l.kind) {
		return
	}
	if r.options.Drivers != nil && !slices.Contains(r.options.Drivers, l.name) {
		return
	}
	all, err := r.drivers.handle.Stats(l.name)
	switch {
	case err == nil:
		r.cache.readDriver(s, l, all)
	case errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENODEV):
	default:
		s.lacks("driver statistics of "+l.name, err)
	}
}
