package lab

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pelt/lab/impair"
	"pelt/lab/userlink"
	"pelt/model"
)

// Link is one link of an open lab.
type Link struct {
	Ends     [2]string // nodes, in travel order
	number   int       // in the topology
	made     linkPlan  // what it was made as: this limits what it can become
	emulated bool      // in user space, by the process that made the lab
	cable    *userlink.Cable
	ways     [2]way // from the first end to the second, and back

	plan linkPlan // what it is now, under the lab's lock
}

// way is one direction of a link.
type way struct {
	node   *Node  // that frames come from
	iface  string // its interface
	shaper shaper

	// Of an emulated link, under the lab's lock.
	settings impair.Settings
	seed     uint64 // as asked or drawn for the lab; that of settings is a part of it
	changes  uint64 // of the settings, since they had that seed
}

// shaper is the interface whose tbf keeps the rate of a direction.
type shaper struct {
	Space int    `json:"space"` // in Lab.held
	Iface string `json:"interface,omitempty"`
}

// What makes a direction of a link do what it does, beside model.BackendUser.
const (
	ByCable = "cable" // a virtual Ethernet pair, which leaves packets alone
	ByTBF   = "tbf"   // the kernel's token bucket filter
)

// Emulated lists the links that are emulated in user space, in travel order.
func (l *Lab) Emulated() (list []*Link) {
	for _, k := range l.links {
		if k.emulated {
			list = append(list, k)
		}
	}
	return list
}

// Own reports whether this process moves the frames of the link.
func (k *Link) Own() bool { return k.cable != nil }

// backend names what makes a direction do what it does.
func (k *Link) backend(direction int) string {
	switch {
	case k.emulated:
		return model.BackendUser
	case k.ways[direction].shaper.Iface != "":
		return ByTBF
	}
	return ByCable
}

// shapes lists what the directions of the lab's links are now, but for plain cables.
func (l *Lab) shapes() (list []model.LabLink) {
	for _, k := range l.links {
		for d := range k.ways {
			one := model.LabLink{From: k.Ends[d], To: k.Ends[1-d], Backend: k.backend(d), Settings: k.plan.Toward[d]}
			set := &one.Settings
			switch one.Backend {
			case ByCable:
				continue
			case ByTBF:
				p := tbfOf(*set, k.plan.MTU)
				set.QueuePackets, set.QueueBytes = int(p.limitPackets), int(p.limitBytes)
				one.At = l.spec.shaperPlace(k.number, d)
			default:
				if set.Seed = k.ways[d].seed; set.Rate > 0 && set.QueueBytes == 0 {
					set.QueuePackets = cmp.Or(set.QueuePackets, usualQueue)
				}
			}
			same := func(o model.LabLink) bool { // with another receiver of a star
				beyond := [2]string{o.To, o.From}[d]
				o.From, o.To, o.More = one.From, one.To, 0
				return strings.HasPrefix(beyond, oneOfMany) && o == one
			}
			if i := slices.IndexFunc(list, same); i >= 0 {
				list[i].More++
			} else {
				list = append(list, one)
			}
		}
	}
	return list
}

// settingsOf translates a direction's settings for the model of links.
func settingsOf(l model.Link) impair.Settings {
	table, _ := impair.Distribution(l.Distribution) // model.Link's check knows the names; nil is uniform
	set := impair.Settings{
		Rate:  l.Rate,
		Delay: seconds(l.DelaySeconds), Jitter: seconds(l.JitterSeconds), Correlation: l.Correlation, Shape: table,
		Loss:      impair.Loss{Ratio: l.LossRatio},
		Duplicate: l.DuplicateRatio, Corrupt: l.CorruptRatio, Reorder: l.ReorderRatio, Seed: l.Seed,
	}
	if v := l.LossStates; l.LossModel == model.GilbertElliott {
		set.Loss = impair.Loss{P: v[0], R: v[1], Bad: v[2], Good: v[3]}
	}
	if l.Rate > 0 {
		set.Overhead, set.MinFrame, set.QueuePackets = l.OverheadBytes, etherLeast, l.QueuePackets
		switch {
		case l.QueuePackets > 0:
		case l.QueueBytes > 0:
			set.QueueBytes = l.QueueBytes
		default:
			set.QueuePackets = usualQueue
		}
	}
	return set
}

// usualQueue is the limit of tc's netem, tc-netem(8), in packets: users know links from there.
const usualQueue = 1000

func seconds(s float64) time.Duration { return time.Duration(s*1e9 + 0.5) }

// seedOf parts one seed among the directions of a lab's links, so that no two
// lose the same frames.
func seedOf(seed uint64, link, direction int) uint64 {
	return split(seed, uint64(2*link+direction+1))
}

// split makes of one seed the n-th of many: splitmix64, Steele, Lea and Flood,
// "Fast splittable pseudorandom number generators", 2014.
func split(seed, n uint64) uint64 {
	z := seed + n*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// LinkWay is one direction of a link of an open lab, as it is now.
type LinkWay struct {
	From     string            `json:"from"` // neighbouring nodes
	To       string            `json:"to"`
	Backend  string            `json:"backend"`        // ByCable, ByTBF or model.BackendUser
	Seed     uint64            `json:"seed,omitempty"` // of an emulated link: that was given, or drawn
	Settings model.Link        `json:"settings"`
	Done     *model.LinkResult `json:"done,omitempty"` // since the lab was made; nil where nobody counts
}

// Links lists the directions of the lab's links as they are now, in travel order. Frames
// of ByTBF are the kernel's, which may hold several segments.
func (l *Lab) Links() (list []LinkWay, err error) {
	if l.holder != nil {
		err = l.holder.ask(request{Do: links}, &list)
		return list, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	list = []LinkWay{}
	for _, k := range l.links {
		counts, err := k.read()
		if err != nil {
			return nil, err
		}
		for d := range k.ways {
			one := LinkWay{From: k.Ends[d], To: k.Ends[1-d], Backend: k.backend(d), Settings: k.plan.Toward[d]}
			if k.plan.MTU != defaultMTU {
				one.Settings.MTU = k.plan.MTU
			}
			switch one.Backend {
			case model.BackendUser:
				did := counts[d].since(reading{}, k.result(d))
				one.Seed, one.Done = k.ways[d].seed, &did
			case ByTBF:
				if one.Done, err = l.readTBF(k, d); err != nil {
					return nil, err
				}
			}
			list = append(list, one)
		}
	}
	return list, nil
}

// reading is what a direction of an emulated link had done at some time.
type reading struct {
	userlink.Counts
	overrun uint64 // frames that this process was too slow to take
}

// read returns what both directions did since the lab was made; nothing for a link that is
// not emulated here.
func (k *Link) read() (r [2]reading, err error) {
	if k.cable == nil {
		return r, nil
	}
	for d, w := range k.ways {
		overrun, readErr := w.overrun()
		if readErr != nil {
			err = errors.Join(err, fmt.Errorf("read the counters of %s of %s: %w", w.iface, k.Ends[d], readErr))
		}
		r[d] = reading{k.cable.Counts(d), overrun}
	}
	return r, err
}

// result is the account of a direction that did nothing yet, under the lab's lock.
func (k *Link) result(d int) model.LinkResult {
	return model.LinkResult{From: k.Ends[d], To: k.Ends[1-d], Backend: model.BackendUser, Seed: k.ways[d].seed,
		AskedRatio: k.ways[d].settings.LossRatio()}
}

// since adds to an account what was done since an earlier reading.
func (now reading) since(before reading, r model.LinkResult) model.LinkResult {
	known := func(n uint64) *uint64 { return &n }
	r.Frames, r.Refused = now.Frames-before.Frames, now.Refused-before.Refused
	r.Overrun = now.overrun - min(now.overrun, before.overrun)
	r.Passed, r.Lost = known(now.Passed-before.Passed), known(now.Lost-before.Lost)
	r.QueueFull = known(now.QueueFull - before.QueueFull)
	r.Duplicated, r.Corrupted = known(now.Duplicated-before.Duplicated), known(now.Corrupted-before.Corrupted)
	if r.Frames > 0 {
		ratio := float64(*r.Lost) / float64(r.Frames)
		r.LossRatio = &ratio
	}
	left, p50, p99 := now.Lateness(before.Counts)
	if left > 0 {
		r.LateRatio = float64(now.Late-before.Late) / float64(left)
	}
	r.LateNS.P50, r.LateNS.P99, r.LateNS.Max = p50, p99, now.LatestNS
	return r
}

// Blocked names a direction that no packet can pass, with what takes them all;
// "" if there is none that this process knows of.
func (l *Lab) Blocked() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.links {
		for d, w := range k.ways {
			switch {
			case w.settings.LossRatio() == 1:
				return k.Ends[d] + " to " + k.Ends[1-d] + " loses every packet"
			case w.settings.Corrupt == 1:
				return k.Ends[d] + " to " + k.Ends[1-d] + " damages every packet"
			}
		}
	}
	return ""
}
