package plan

import (
	"slices"
	"strings"

	"pelt/model"
)

// Mesh measures every pair of a fleet's hosts, both ways at the same time.
var Mesh = Preset{
	Command: "mesh",
	Knobs:   "payload rate interval time warmup max-loss family dscp df drops engine seed",
	Defaults: map[string]string{"payload": "200", "rate": "1kpps", "direction": "both", "time": "10s",
		"warmup": "200ms", "repeats": "1"},
	Pairs: true,
	build: (*draft).buildMesh,
}

// What one host sends and receives at most, in packets and bits a second, where all pairs are measured at once: far
// below the 100 kpps that sockets of a busy host carry, so that pairs hardly disturb each other, and below the 100
// Mbit/s that hosts allow to other networks unless their owners say more.
const atOncePPS, atOnceBPS = 10e3, 50e6

// atOncePairs is the most pairs of such a mesh: each trial has heartbeats of its own.
const atOncePairs = 300

func (d *draft) buildMesh() error {
	hosts, err := d.meshHosts()
	switch {
	case err != nil:
		return err
	case len(d.values["payload"]) > 1:
		return flagError("payload", "want one size: a mesh compares pairs of hosts")
	case d.word("rate") == "max":
		return flagError("rate", "a mesh has a rate that every host can send and receive at once, as 1kpps")
	}
	if err := d.start(); err != nil {
		return err
	}
	p := &d.plan
	p.Hosts, p.Design.Ordered = hosts, true
	p.Factors = []model.Factor{{Knob: "pair", Levels: Pairs(hosts)}}
	if err := d.fill(); err != nil {
		return err
	}
	p.AtOnce = d.Again && d.atOnce()
	if !d.Again { // else the next run measures a pair that failed
		p.Design.Redo = 1
	}
	return nil
}

// meshHosts are the hosts that the target names, "fleet:" for all that are there.
func (d *draft) meshHosts() ([]string, error) {
	if !strings.HasPrefix(d.Target, model.FleetTarget) {
		return nil, targetError("want fleet: for all hosts of a hub, or fleet:HOST,HOST,..., not %q", d.Target)
	}
	hosts, _, err := model.FleetHosts(d.Target)
	if err != nil {
		return nil, err
	}
	if len(hosts) == 0 {
		hosts = slices.Clone(d.Settings.Hosts)
	}
	for _, name := range hosts {
		if !slices.Contains(d.Settings.Hosts, name) {
			return nil, targetError("the fleet has no host %s; it has %s", name, strings.Join(d.Settings.Hosts, ", "))
		}
	}
	if len(hosts) < 2 {
		return nil, targetError("a mesh has two hosts at least; %d of the fleet take part", len(hosts))
	}
	return hosts, nil
}

// targetError returns an error about the target: what is wanted instead.
func targetError(format string, args ...any) error {
	return model.NewFieldError("TARGET", format, args...)
}

// Pairs are all pairs of hosts in rounds by the circle method of tournaments: so many in a row as half of the
// hosts share no host. Of an odd number of hosts one rests in each round.
func Pairs(hosts []string) (pairs []model.Value) {
	n := len(hosts) + len(hosts)%2
	for round := range n - 1 {
		for i := range n / 2 {
			a, b := (round+i)%(n-1), (round-i+n-1)%(n-1) // places on the circle, the last host in its middle
			if i == 0 {
				b = n - 1
			}
			if max(a, b) < len(hosts) {
				pairs = append(pairs, model.Word(hosts[min(a, b)]+model.PairSeparator+hosts[max(a, b)]))
			}
		}
	}
	return pairs
}

// atOnce reports whether all pairs may be measured beside each other.
func (d *draft) atOnce() bool {
	f, hosts := d.plan.Flows[0], len(d.plan.Hosts)
	pps, _ := f.Rate.PPS(f.PayloadBytes)
	pps *= float64(2 * (hosts - 1))
	return pps <= atOncePPS && pps*float64(8*f.PayloadBytes) <= atOnceBPS &&
		len(d.plan.Factors[0].Levels) <= atOncePairs
}
