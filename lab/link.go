package lab

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pelt/internal/netns"
	"pelt/lab/impair"
	"pelt/lab/userlink"
	"pelt/model"
)

// Link is one link of an open lab.
type Link struct {
	Ends   [2]string // nodes, in travel order
	number int       // in the topology
	made   linkPlan  // what it was made by: what a link is made of cannot change while it is there
	by     choice    // who emulates it; the zero value: nobody does

	kernel []kernelWay   // both directions, of a link that the kernel emulates
	relay  *netns.Handle // which these lead through

	// Of a link whose frames this process moves.
	cable *userlink.Cable
	nodes [2]*Node
	names [2]string // of its interfaces

	// Of what changes, under the lab's lock.
	plan     linkPlan
	settings [2]impair.Settings
	seeds    [2]uint64 // as asked or drawn for the lab; those of settings are parts of it
	times    [2]uint64 // that the settings changed
}

// Emulated lists the links that are emulated, in travel order.
func (l *Lab) Emulated() (list []*Link) {
	for _, k := range l.links {
		if k.by.backend != "" {
			list = append(list, k)
		}
	}
	return list
}

// Kernel reports whether the kernel emulates the link, in a namespace of its own.
func (k *Link) Kernel() bool { return k.by.backend == model.BackendKernel }

// Moved reports whether any link is emulated in user space, by this process or by
// the lab's holder.
func (l *Lab) Moved() bool {
	return slices.ContainsFunc(l.links, func(k *Link) bool { return k.by.backend == model.BackendUser })
}

// Own reports whether this process has made the link.
func (k *Link) Own() bool { return k.plan.mtu > 0 }

// plans are what the links were made by and what they are now.
func (l *Lab) plans() (made, now []linkPlan) {
	for _, k := range l.links {
		made, now = append(made, k.made), append(now, k.plan)
	}
	return made, now
}

// say is what one direction of the link does, for the report; "" if nothing.
func (k *Link) say(t topologySpec, direction int, seed uint64) string {
	s := k.plan.toward[direction]
	switch home := t.homes(k.number, k.made)[direction]; {
	case k.Kernel():
		return k.kernel[direction].text
	case k.by.backend != "":
		set := s.settings()
		return told(set, inUserSpace(cmp.Or(set.Seed, seed)))
	case home != nowhere:
		return t.sentence(k.number, direction, s, s.tbf(k.plan.mtu), home)
	}
	return ""
}

// sentences say what each direction of each link is now. Receivers of a star whose links do
// the same have one.
func (l *Lab) sentences() []string {
	list, more, first := []string{}, map[string]int{}, map[string]int{}
	for _, k := range l.links {
		for direction := range 2 {
			text := k.say(l.spec, direction, l.seed)
			same := fmt.Sprint(direction, text)
			if _, told := first[same]; told && l.spec.many() && k.number > 0 {
				more[same]++
				continue
			}
			if text != "" {
				if k.number > 0 {
					first[same] = len(list)
				}
				list = append(list, l.spec.wayName(k.number, direction)+": "+text)
			}
		}
	}
	for same, n := range more {
		way, text, _ := strings.Cut(list[first[same]], ": ")
		list[first[same]] = fmt.Sprintf("%s and %d more: %s", way, n, text)
	}
	return list
}
