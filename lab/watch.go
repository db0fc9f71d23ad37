package lab

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"pelt/lab/impair"
	"pelt/lab/userlink"
	"pelt/model"
)

// LinkAccount is what one emulated link did in a trial, both directions.
type LinkAccount struct {
	Results  [2]model.LinkResult `json:"results"`         // in the order of EmulatedLink.Ends, and back
	Unlisted uint64              `json:"unlisted"`        // verdicts for which there was no room
	Doubt    string              `json:"doubt,omitempty"` // why the results are not complete
	Verdicts []userlink.Verdict  `json:"-"`               // in the order in which they fell, one direction after the other
}

// linkWatch is a watch over one link for one trial.
type linkWatch struct {
	link    EmulatedLink
	watch   *userlink.Watching
	before  [2]userlink.Counts
	overrun [2]uint64
}

func (e EmulatedLink) begin(trial uint16, identify userlink.Identify) (w linkWatch, err error) {
	w = linkWatch{link: e}
	if w.overrun, err = e.Overrun(); err != nil {
		return w, err
	}
	for d := range w.before {
		w.before[d] = e.Cable.Counts(d)
	}
	w.watch = e.Cable.Watch(trial, identify)
	return w, nil
}

// end is the link's own account of the trial.
func (w linkWatch) end() (a LinkAccount) {
	lists, unlisted := w.watch.Collect()
	a.Verdicts, a.Unlisted = append(lists[0], lists[1]...), unlisted[0]+unlisted[1]
	overrun, err := w.link.Overrun()
	if err != nil {
		a.Doubt = err.Error()
	}
	for d, before := range w.before {
		now := w.link.Cable.Counts(d)
		one := model.LinkResult{
			From: w.link.Ends[d], To: w.link.Ends[1-d],
			Backend: model.BackendUser, Reason: w.link.Reason, Mode: string(cmp.Or(w.link.Ways[d].Mode, impair.Exact)), Seed: w.link.Seeds[d],
			Frames: now.Frames - before.Frames, Refused: now.Refused - before.Refused,
			Overrun: overrun[d] - min(overrun[d], w.overrun[d]), AskedRatio: w.link.Ways[d].LossRatio(),
		}
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

// LinkWatch is an open watch over all emulated links of a lab, for one trial.
// Collect must be called once.
type LinkWatch struct {
	lab   *Lab // if another process moves the frames
	links []linkWatch
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
	x := &LinkWatch{}
	for _, e := range l.Emulated() {
		w, err := e.begin(trial, identify)
		if err != nil {
			for _, began := range x.links {
				_ = began.end()
			}
			return nil, fmt.Errorf("watch link %s-%s: %w", e.Ends[0], e.Ends[1], err)
		}
		x.links = append(x.links, w)
	}
	return x, nil
}

// LostSoFar is what one direction of a link has lost of all frames since its watch began.
type LostSoFar struct{ Asked, QueueFull uint64 }

// Lost tells what each link has lost by now, in the order of Lab.Emulated and of
// EmulatedLink.Ends; nothing of a lab that another process holds. It may be called until Collect is.
func (x *LinkWatch) Lost() (list [][2]LostSoFar) {
	for _, w := range x.links {
		var one [2]LostSoFar
		for d, before := range w.before {
			now := w.link.Cable.Counts(d)
			one[d] = LostSoFar{now.Lost - before.Lost, now.QueueFull - before.QueueFull}
		}
		list = append(list, one)
	}
	return list
}

// Collect ends the watch and returns the account of each link, in the order of
// Lab.Emulated.
func (x *LinkWatch) Collect() ([]LinkAccount, error) {
	if x.lab != nil {
		return x.lab.holder.collect()
	}
	var list []LinkAccount
	for _, w := range x.links {
		list = append(list, w.end())
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
