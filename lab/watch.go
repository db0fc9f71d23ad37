package lab

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"pelt/lab/userlink"
	"pelt/model"
)

// LinkAccount is what one emulated link did in a trial, both directions.
type LinkAccount struct {
	Results  [2]model.LinkResult `json:"results"`         // in the order of Link.Ends, and back
	Unlisted uint64              `json:"unlisted"`        // verdicts for which there was no room
	Doubt    model.Reasons       `json:"doubt,omitempty"` // why the results are not complete
	// in the order in which they fell, one direction after the other
	Verdicts verdicts `json:"verdicts"`
}

// verdicts pass between processes as base64 of their fields, big endian.
type verdicts []userlink.Verdict

func (v verdicts) MarshalText() ([]byte, error) {
	b, err := binary.Append(nil, binary.BigEndian, []userlink.Verdict(v))
	return base64.StdEncoding.AppendEncode(nil, b), err
}

func (v *verdicts) UnmarshalText(text []byte) error {
	b, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil {
		return err
	}
	list := make(verdicts, len(b)/binary.Size(userlink.Verdict{}))
	_, err = binary.Decode(b, binary.BigEndian, []userlink.Verdict(list))
	if slices.ContainsFunc(list, func(one userlink.Verdict) bool { return one.Cause > userlink.Damaged }) {
		err = errors.New("a verdict has no known cause")
	}
	*v = list
	return err
}

// linkWatch is a watch over one link for one trial.
type linkWatch struct {
	link    *Link
	results [2]model.LinkResult // what is known before
	before  [2]reading
	watch   *userlink.Watching
}

// LinkWatch is an open watch over all emulated links of a lab, for one trial.
// Collect must be called once.
type LinkWatch struct {
	lab   *Lab
	links []linkWatch // nil if another process holds the lab
}

// WatchLinks begins to list what the emulated links do to the packets of a trial, whose flows have so many numbers from
// that one on.
// identify reads them; a process that holds the lab has its own. One process
// watches one trial of a held lab at a time.
func (l *Lab) WatchLinks(trial uint16, flows int, identify userlink.Identify) (*LinkWatch, error) {
	x := &LinkWatch{lab: l}
	if l.holder != nil {
		return x, l.holder.ask(request{Do: watch, Trial: trial, Flows: flows}, nil)
	}
	for _, k := range l.Emulated() {
		before, err := k.read()
		if err != nil {
			_, _ = x.Collect()
			return nil, fmt.Errorf("watch link %s-%s: %w", k.Ends[0], k.Ends[1], err)
		}
		l.mu.Lock()
		x.links = append(x.links, linkWatch{k, [2]model.LinkResult{k.result(0), k.result(1)}, before,
			k.cable.Watch(trial, flows, identify)})
		l.mu.Unlock()
	}
	return x, nil
}

// LostSoFar is what one direction of a link has lost of all frames since its watch began.
type LostSoFar struct{ Asked, QueueFull uint64 }

// Lost tells what a link has lost by now, by its number in Lab.Emulated and in the order
// of Link.Ends; ok is false for a link that another process holds. It may be called until
// Collect is.
func (x *LinkWatch) Lost(number int) (lost [2]LostSoFar, ok bool) {
	if number >= len(x.links) {
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
func (x *LinkWatch) Collect() (list []LinkAccount, err error) {
	if x.lab.holder != nil {
		err = x.lab.holder.ask(request{Do: collect}, &list)
		return list, err
	}
	for _, w := range x.links {
		var a LinkAccount
		lists, unlisted := w.watch.Collect()
		a.Verdicts, a.Unlisted = append(lists[0], lists[1]...), unlisted[0]+unlisted[1]
		now, err := w.link.read()
		if err != nil {
			a.Doubt = model.Reasons{{Code: model.HostFault, Text: model.SystemSaid(err)}}
		}
		for d := range now {
			a.Results[d] = now[d].since(w.before[d], w.results[d])
		}
		list = append(list, a)
	}
	return list, nil
}
