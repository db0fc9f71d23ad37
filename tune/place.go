package tune

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Place is where one value stands.
type Place struct {
	Kind string `json:"kind"` // sysctl, sysfs, driver
	At   string `json:"at"`   // name of a sysctl; path below /sys; "DEV SETTING" of a driver
}

// The kinds of places.
const (
	atSysctl = "sysctl"
	atSysfs  = "sysfs"
	atDriver = "driver"
)

func (p Place) String() string {
	switch p.Kind {
	case atSysfs:
		return "/sys/" + p.At
	case atDriver:
		dev, name, _ := strings.Cut(p.At, " ")
		return dev + "." + name
	}
	return p.At
}

// queueFiles are the settings that go with a queue of an interface.
var queueFiles = []string{
	"rx-*/rps_cpus", "rx-*/rps_flow_cnt", "tx-*/xps_cpus", "tx-*/xps_rxqs", "tx-*/tx_maxrate",
	"tx-*/byte_queue_limits/hold_time", "tx-*/byte_queue_limits/limit_max", "tx-*/byte_queue_limits/limit_min",
}

// queuePlaces are where those of one interface stand, with a * for each of several.
func queuePlaces(dev string) (list []Place) {
	for _, file := range queueFiles {
		list = append(list, Place{atSysfs, "class/net/" + dev + "/queues/" + file})
	}
	return list
}

// within reports whether a pattern matches a place.
func (p Place) within(pattern Place) bool {
	ok, err := path.Match(pattern.At, p.At)
	return ok && err == nil && p.Kind == pattern.Kind && !strings.Contains(p.At, "..")
}

// check refuses a place that the step's knob does not lead to: a journal is not trusted to name any file.
func (s Step) check() error {
	k, dev, err := find(s.Knob)
	if err != nil {
		return fmt.Errorf("changes %.40q, which this pelt does not: revert with the version of pelt that applied it",
			s.Knob)
	}
	if !s.Place.within(k.place(dev)) {
		return fmt.Errorf("%s %q is no place of %s", s.Place.Kind, s.Place.At, s.Knob)
	}
	for _, b := range s.Queues {
		if !slices.ContainsFunc(queuePlaces(dev), b.Place.within) {
			return fmt.Errorf("%s %q is no place that goes with %s", b.Place.Kind, b.Place.At, s.Knob)
		}
	}
	return nil
}

// device is the interface that a step's place belongs to, and goes with; "" if none.
func (s Step) device() string {
	_, dev, _ := find(s.Knob) // check found it
	return dev
}

// sysctlPath is where a sysctl lies below /proc/sys: dots and slashes change places.
func sysctlPath(name string) string {
	return strings.NewReplacer(".", "/", "/", ".").Replace(name)
}

// same reports whether two texts mean the same value at a place.
func (p Place) same(a, b string) bool {
	norm := oneSpaced
	if name := path.Base(p.At); name == "rps_cpus" || name == "xps_cpus" || name == "xps_rxqs" {
		norm = mask
	}
	return norm(a) == norm(b)
}
