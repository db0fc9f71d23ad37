package tune

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"pelt/words"
)

// Scope says what a knob holds for.
type Scope string

// The scopes.
const (
	ScopeHost      Scope = "host"      // all namespaces
	ScopeNamespace Scope = "namespace" // one network namespace
	ScopeDevice    Scope = "device"    // one interface
)

// Knob is a setting that can be changed and taken back.
type Knob struct {
	// DEV stands for an interface; in a sysctl's name its dots are slashes, as for sysctl(8)
	Name    string `json:"name"`
	Scope   Scope  `json:"scope"`
	Want    string `json:"want"`              // what a value looks like
	Touches string `json:"touches,omitempty"` // what else it touches

	kind value
	at   Place // DEV stands for an interface, a * for each of several
}

// place is where the knob's values stand for one interface, with a * for each of several.
func (k Knob) place(dev string) Place {
	if k.at.Kind == atSysctl {
		dev = strings.ReplaceAll(dev, ".", "/")
	}
	return Place{k.at.Kind, strings.ReplaceAll(k.at.At, "DEV", dev)}
}

// Knobs is the one table of what can be changed: what package advice proposes, in the order it is told.
func Knobs() []Knob {
	sysctl := func(name string, scope Scope, kind value, touches string) Knob {
		return Knob{name, scope, kind.want, touches, kind, Place{atSysctl, name}}
	}
	driver := func(name string, kind value, touches string) Knob {
		return Knob{"DEV." + name, ScopeDevice, kind.want, touches, kind, Place{atDriver, "DEV " + name}}
	}
	file := func(name string, kind value, path, touches string) Knob {
		return Knob{"DEV." + name, ScopeDevice, kind.want, touches, kind, Place{atSysfs, "class/net/DEV/" + path}}
	}
	const (
		linkDown = "the link may go down for a moment"
		queues   = linkDown + "; with fewer queues their steering is lost, which revert restores"
	)
	return []Knob{
		sysctl("net.core.rmem_max", ScopeHost, aNumber, "every program of this host may ask for as much"),
		sysctl("net.core.wmem_max", ScopeHost, aNumber, "every program of this host may ask for as much"),
		sysctl("net.ipv4.udp_mem", ScopeHost, triple, "all UDP sockets of this host together"),
		sysctl("net.core.netdev_max_backlog", ScopeHost, aNumber,
			"all namespaces and cores; a fuller backlog delays packets"),
		sysctl("net.core.netdev_budget", ScopeHost, aNumber, "takes time from programs on the cores that receive"),
		sysctl("net.netfilter.nf_conntrack_max", ScopeHost, aNumber, "kernel memory for each connection"),
		sysctl("net.ipv4.ipfrag_high_thresh", ScopeNamespace, aNumber, "kernel memory for unfinished fragments"),
		sysctl("net.ipv6.ip6frag_high_thresh", ScopeNamespace, aNumber, "kernel memory for unfinished fragments"),
		sysctl("net.ipv4.conf.DEV.rp_filter", ScopeDevice, aNumber, "accepts more forged source addresses"),
		sysctl("net.ipv4.neigh.DEV.unres_qlen_bytes", ScopeDevice, aNumber, "unres_qlen, which is the same in packets"),
		sysctl("net.ipv6.neigh.DEV.unres_qlen_bytes", ScopeDevice, aNumber, "unres_qlen, which is the same in packets"),

		driver("rx_ring", aNumber, linkDown+"; a larger ring costs cache and delay"),
		driver("channels_combined", aNumber, queues),
		driver("channels_rx", aNumber, queues),

		file("txqueuelen", aNumber, "tx_queue_len", "a longer queue delays"),
		file("threaded", aNumber, "threaded", "packets are received by threads in place of softirqs"),
		{"cpu.governor", ScopeHost, aWord.want, "power and heat", aWord,
			Place{atSysfs, "devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"}},
	}
}

// plainDevice is what an interface's name may hold here.
var plainDevice = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@:-]{0,14}$`)

func validDevice(name string) bool {
	return plainDevice.MatchString(name) && !strings.Contains(name, "..")
}

// find finds a knob by its name with an interface's in place of DEV.
func find(name string) (k Knob, dev string, err error) {
	for _, k := range Knobs() {
		before, after, has := strings.Cut(k.Name, "DEV")
		if !has {
			if name == k.Name {
				return k, "", nil
			}
			continue
		}
		rest, ok := strings.CutPrefix(name, before)
		dev, ok2 := strings.CutSuffix(rest, after)
		if !ok || !ok2 {
			continue
		}
		if before != "" { // a sysctl, in whose name a dot is a slash
			if strings.Contains(dev, ".") || dev == "all" || dev == "default" {
				continue
			}
			dev = strings.ReplaceAll(dev, "/", ".")
		}
		if !validDevice(dev) {
			return Knob{}, "", &UsageError{words.Errorf("%s: %q is no name of an interface", name, dev)}
		}
		return k, dev, nil
	}
	return Knob{}, "", &UsageError{words.Errorf("no setting %q; pelt tune show --knobs lists them", name)}
}

// Known reports whether a knob of that name can be changed here.
func Known(name string) bool {
	_, _, err := find(name)
	return err == nil
}

// Change is a knob and the value it is to have.
type Change struct {
	Knob  string `json:"knob"`
	Value string `json:"value"`
}

// ParseChange reads net.core.rmem_max=4194304. An error is a *UsageError.
func ParseChange(text string) (Change, error) {
	name, value, ok := strings.Cut(text, "=")
	c := Change{strings.TrimSpace(name), oneSpaced(value)} // a value is one line of the file that keeps it
	if !ok || c.Knob == "" || c.Value == "" {
		return Change{}, &UsageError{words.Errorf("want SETTING=VALUE as net.core.rmem_max=4194304, not %q", text)}
	}
	return c, checkChanges([]Change{c})
}

// checkChanges refuses a knob that stands twice, and wrong values.
func checkChanges(list []Change) error {
	for i, c := range list {
		if slices.ContainsFunc(list[:i], func(o Change) bool { return o.Knob == c.Knob }) {
			return &UsageError{words.Errorf("%s stands twice", c.Knob)}
		}
		k, _, err := find(c.Knob)
		if err != nil {
			return err
		}
		if !k.kind.valid(c.Value) {
			return &UsageError{words.Errorf("%s: want %w, not %q", c.Knob, errors.New(k.Want), c.Value)}
		}
	}
	return nil
}

// HostWide reports whether a knob holds for all namespaces of this host.
func HostWide(name string) bool {
	k, _, err := find(name)
	return err == nil && k.Scope == ScopeHost
}
