package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"

	"pelt/lab/userlink"
	"pelt/model"
)

// LinkAccount is what one emulated link did in a trial, both directions.
type LinkAccount struct {
	Results  [2]model.LinkResult `json:"results"`          // in the order of Link.Ends, and back
	Queues   map[string]string   `json:"queues,omitempty"` // of a link that the kernel emulates: what drops are called, by interface
	Unlisted uint64              `json:"unlisted"`         // verdicts for which there was no room
	Doubt    string              `json:"doubt,omitempty"`  // why the results are not complete
	Verdicts []userlink.Verdict  `json:"-"`                // in the order in which they fell, one direction after the other
}

// linkWatch is a watch over one link for one trial.
type linkWatch struct {
	link    *Link
	results [2]model.LinkResult // what is known before
	kernel  [2]wayReading       // before the trial; of a link that the kernel emulates

	watch   *userlink.Watching // ... and of any other
	before  [2]userlink.Counts
	overrun [2]uint64
}

func (l *Lab) begin(k *Link, trial uint16, identify userlink.Identify) (w linkWatch, err error) {
	w.link = k
	if k.Kernel() {
		w.kernel, err = l.readKernel(k)
		return w, err
	}
	if w.overrun, err = k.overrun(); err != nil {
		return w, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for d := range w.before {
		w.before[d] = k.cable.Counts(d)
		w.results[d] = model.LinkResult{From: k.Ends[d], To: k.Ends[1-d], Backend: model.BackendUser, Reason: k.by.reason, Seed: k.seeds[d],
			AskedRatio: k.settings[d].LossRatio()}
	}
	w.watch = k.cable.Watch(trial, identify)
	return w, nil
}

// end is the link's own account of the trial.
func (l *Lab) end(w linkWatch) (a LinkAccount) {
	if w.link.Kernel() {
		return l.endKernel(w)
	}
	lists, unlisted := w.watch.Collect()
	a.Verdicts, a.Unlisted = append(lists[0], lists[1]...), unlisted[0]+unlisted[1]
	overrun, err := w.link.overrun()
	if err != nil {
		a.Doubt = err.Error()
	}
	for d, before := range w.before {
		now := w.link.cable.Counts(d)
		one := w.results[d]
		one.Frames, one.Refused, one.Overrun = now.Frames-before.Frames, now.Refused-before.Refused, overrun[d]-min(overrun[d], w.overrun[d])
		lost := now.Lost - before.Lost
		for _, n := range []struct {
			to    **uint64
			value uint64
		}{
			{&one.Passed, now.Passed - before.Passed}, {&one.Lost, lost}, {&one.QueueFull, now.QueueFull - before.QueueFull},
			{&one.Duplicated, now.Duplicated - before.Duplicated}, {&one.Corrupted, now.Corrupted - before.Corrupted},
		} {
			*n.to = &n.value
		}
		late := now.Lateness(before)
		one.LateNS.P50, one.LateNS.P99, one.LateNS.Max = late.P50, late.P99, now.LatestNS
		if one.Frames > 0 {
			ratio := float64(lost) / float64(one.Frames)
			one.LossRatio = &ratio
		}
		if left := now.Left - before.Left; left > 0 {
			one.LateRatio = float64(now.Late-before.Late) / float64(left)
		}
		a.Results[d] = one
	}
	return a
}

func (l *Lab) endKernel(w linkWatch) (a LinkAccount) {
	now, err := l.readKernel(w.link)
	if err != nil {
		now, a.Doubt = w.kernel, err.Error()
	}
	a.Queues = map[string]string{}
	for d, way := range w.link.kernel {
		a.Results[d] = way.since(w.kernel[d], now[d])
		maps.Copy(a.Queues, way.causes(a.Results[d]))
	}
	return a
}

// readKernel reads the counters of a link that the kernel emulates.
func (l *Lab) readKernel(k *Link) (r [2]wayReading, err error) {
	for d, w := range k.kernel {
		if r[d], err = l.readWay(w); err != nil {
			return r, fmt.Errorf("read the link %s to %s: %w", w.From, w.To, err)
		}
	}
	return r, nil
}

// LinkWatch is an open watch over all emulated links of a lab, for one trial.
// Collect must be called once.
type LinkWatch struct {
	lab   *Lab
	links []linkWatch // nil if another process holds the lab
}

// WatchLinks begins to list what the emulated links do to the packets of a trial.
// identify reads them; a process that holds the lab has its own. One process
// watches one trial of a held lab at a time.
func (l *Lab) WatchLinks(trial uint16, identify userlink.Identify) (*LinkWatch, error) {
	if l.holder != nil {
		if err := l.holder.watch(trial); err != nil {
			return nil, err
		}
		return &LinkWatch{lab: l}, nil
	}
	x := &LinkWatch{lab: l}
	for _, k := range l.Emulated() {
		w, err := l.begin(k, trial, identify)
		if err != nil {
			for _, began := range x.links {
				_ = l.end(began)
			}
			return nil, fmt.Errorf("watch link %s-%s: %w", k.Ends[0], k.Ends[1], err)
		}
		x.links = append(x.links, w)
	}
	return x, nil
}

// LostSoFar is what one direction of a link has lost of all frames since its watch began.
type LostSoFar struct{ Asked, QueueFull uint64 }

// Lost tells what a link has lost by now, by its number in Lab.Emulated and in the order
// of Link.Ends; ok is false for a link that the kernel emulates or another process holds.
// It may be called until Collect is.
func (x *LinkWatch) Lost(number int) (lost [2]LostSoFar, ok bool) {
	if number >= len(x.links) || x.links[number].watch == nil {
		return lost, false
	}
	w := x.links[number]
	for d, before := range w.before {
		now := w.link.cable.Counts(d)
		lost[d] = LostSoFar{now.Lost - before.Lost, now.QueueFull - before.QueueFull}
	}
	return lost, true
}

// Collect ends the watch and returns the account of each link, in the order of
// Lab.Emulated.
func (x *LinkWatch) Collect() ([]LinkAccount, error) {
	if x.lab.holder != nil {
		return x.lab.holder.collect()
	}
	var list []LinkAccount
	for _, w := range x.links {
		list = append(list, x.lab.end(w))
	}
	return list, nil
}

// Between processes a verdict is 16 B, big endian: ports from and to, cause,
// whether of the warm-up, number of the link, sequence.
const (
	verdictBytes = 16
	maxBulk      = 4 << 20 // verdicts of one reply
)

func appendVerdict(b []byte, link int, v userlink.Verdict) []byte {
	b = binary.BigEndian.AppendUint16(b, v.From)
	b = binary.BigEndian.AppendUint16(b, v.To)
	warmup := byte(0)
	if v.Warmup {
		warmup = 1
	}
	b = append(b, byte(v.Cause), warmup)
	b = binary.BigEndian.AppendUint16(b, uint16(link))
	return binary.BigEndian.AppendUint64(b, v.Sequence)
}

// takeVerdicts hands verdicts to the accounts of their links.
func takeVerdicts(b []byte, accounts []LinkAccount) error {
	if len(b)%verdictBytes != 0 {
		return errors.New("the holder's verdicts are cut short")
	}
	for ; len(b) > 0; b = b[verdictBytes:] {
		link := int(binary.BigEndian.Uint16(b[6:]))
		v := userlink.Verdict{From: binary.BigEndian.Uint16(b), To: binary.BigEndian.Uint16(b[2:]), Cause: userlink.Cause(b[4]), Warmup: b[5] == 1,
			Sequence: binary.BigEndian.Uint64(b[8:])}
		if link >= len(accounts) || v.Cause > userlink.Damaged || b[5] > 1 {
			return errors.New("the holder's verdicts make no sense")
		}
		accounts[link].Verdicts = append(accounts[link].Verdicts, v)
	}
	return nil
}

// packVerdicts is what fits of the accounts' verdicts, each link its share; what
// does not is counted as unlisted.
func packVerdicts(accounts []LinkAccount, room int) (b []byte) {
	left := len(accounts)
	for i := range accounts {
		a := &accounts[i]
		n := min(len(a.Verdicts), room/left)
		for _, v := range a.Verdicts[:n] {
			b = appendVerdict(b, i, v)
		}
		a.Unlisted += uint64(len(a.Verdicts) - n)
		room, left = room-n, left-1
	}
	return b
}
