package tune

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"pelt/internal/nic"
)

// Place is where one value stands.
type Place struct {
	Kind string `json:"kind"` // sysctl, sysfs, irq, driver, file
	At   string `json:"at"`   // name of a sysctl; path below /sys, /proc/irq or /; "DEV SETTING" of a driver
}

// The kinds of places.
const (
	atSysctl = "sysctl"
	atSysfs  = "sysfs"
	atIRQ    = "irq"
	atDriver = "driver"
	atFile   = "file"
)

// String is the place in a user's words.
func (p Place) String() string {
	switch p.Kind {
	case atSysfs:
		return "/sys/" + p.At
	case atIRQ:
		return "/proc/irq/" + p.At
	case atDriver:
		dev, name, _ := strings.Cut(p.At, " ")
		return dev + "." + name
	case atFile:
		return "/" + p.At
	}
	return p.At
}

var sysfsPlaces = []*regexp.Regexp{
	regexp.MustCompile(`^class/net/[^/]+/(tx_queue_len|threaded|gro_flush_timeout|napi_defer_hard_irqs)$`),
	regexp.MustCompile(`^class/net/[^/]+/queues/rx-[0-9]{1,5}/(rps_cpus|rps_flow_cnt)$`),
	regexp.MustCompile(`^class/net/[^/]+/queues/tx-[0-9]{1,5}/(xps_cpus|xps_rxqs|tx_maxrate|byte_queue_limits/(hold_time|limit_max|limit_min))$`),
	regexp.MustCompile(`^devices/system/cpu/cpu[0-9]{1,5}/cpufreq/scaling_governor$`),
}

var irqPlace = regexp.MustCompile(`^[0-9]{1,9}/smp_affinity_list$`)

// check refuses a place that no knob leads to: a journal is not trusted to name any file.
func (p Place) check() error {
	ok := false
	switch p.Kind {
	case atSysctl:
		_, _, err := find(p.At)
		at := sysctlPath(p.At)
		ok = err == nil && path.Clean(at) == at && strings.HasPrefix(at, "net/")
	case atSysfs:
		ok = path.Clean(p.At) == p.At && slices.ContainsFunc(sysfsPlaces, func(r *regexp.Regexp) bool { return r.MatchString(p.At) })
		if dev, is := deviceOf(p); ok && is {
			ok = validDevice(dev)
		}
	case atIRQ:
		ok = irqPlace.MatchString(p.At)
	case atDriver:
		dev, name, _ := strings.Cut(p.At, " ")
		ok = validDevice(dev) && slices.Contains(nic.Settings(), name)
	case atFile:
		dev, is := strings.CutPrefix(p.At, linkPrefix)
		dev, is2 := strings.CutSuffix(dev, linkSuffix)
		ok = p.At == sysctlFile || p.At == udevFile || is && is2 && validDevice(dev)
	}
	if !ok {
		return fmt.Errorf("%s %q is no place that pelt tune writes to", p.Kind, p.At)
	}
	return nil
}

// deviceOf is the interface that a place belongs to, and goes with.
func deviceOf(p Place) (dev string, is bool) {
	switch p.Kind {
	case atSysctl:
		_, dev, err := find(p.At)
		return dev, err == nil && dev != ""
	case atSysfs:
		rest, is := strings.CutPrefix(p.At, "class/net/")
		dev, _, _ := strings.Cut(rest, "/")
		return dev, is
	case atDriver:
		dev, _, _ := strings.Cut(p.At, " ")
		return dev, true
	}
	return "", false
}

// sysctlPath is where a sysctl lies below /proc/sys: dots and slashes change places.
func sysctlPath(name string) string {
	return strings.NewReplacer(".", "/", "/", ".").Replace(name)
}

// form is how values at a place are written.
func (p Place) form() value {
	switch p.Kind {
	case atSysctl:
		if k, _, err := find(p.At); err == nil {
			return k.kind
		}
	case atSysfs:
		if name := path.Base(p.At); name == "rps_cpus" || name == "xps_cpus" || name == "xps_rxqs" {
			return mask
		}
		return value{"", nil, words}
	case atIRQ:
		return cpuLists
	case atFile:
		return value{"", nil, func(s string) string { return s }}
	}
	return value{"", nil, words}
}

// same reports whether two texts say the same at a place.
func (p Place) same(a, b string) bool {
	f := p.form()
	return f.norm(a) == f.norm(b)
}
