package lab

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"pelt/lab/impair"
	"pelt/model"
	"pelt/unit"
)

// emulated reports whether a link does to frames what a rate and a queue do not,
// or is asked to be done in user space.
func (p linkPlan) emulated() bool {
	return p.toward[0].asked.Impaired() || p.toward[1].asked.Impaired() || p.backend == model.BackendUser
}

// merge overrides what is said of a link by what is said later.
func merge(a, b model.Link) model.Link {
	if b.LossRatio != 0 || b.LossModel != "" {
		a.LossRatio, a.LossModel, a.LossStates = b.LossRatio, b.LossModel, b.LossStates
	}
	if b.Distribution != "" {
		a.Distribution, a.DistributionTable = b.Distribution, b.DistributionTable
	}
	return model.Link{
		DelaySeconds: cmp.Or(b.DelaySeconds, a.DelaySeconds), JitterSeconds: cmp.Or(b.JitterSeconds, a.JitterSeconds),
		Correlation: cmp.Or(b.Correlation, a.Correlation), Distribution: a.Distribution, DistributionTable: a.DistributionTable,
		LossRatio: a.LossRatio, LossModel: a.LossModel, LossStates: a.LossStates, LossCorrelation: cmp.Or(b.LossCorrelation, a.LossCorrelation),
		ReorderRatio: cmp.Or(b.ReorderRatio, a.ReorderRatio), ReorderCorrelation: cmp.Or(b.ReorderCorrelation, a.ReorderCorrelation), Gap: cmp.Or(b.Gap, a.Gap),
		DuplicateRatio: cmp.Or(b.DuplicateRatio, a.DuplicateRatio), DuplicateCorrelation: cmp.Or(b.DuplicateCorrelation, a.DuplicateCorrelation),
		CorruptRatio: cmp.Or(b.CorruptRatio, a.CorruptRatio), CorruptCorrelation: cmp.Or(b.CorruptCorrelation, a.CorruptCorrelation),
		Seed: cmp.Or(b.Seed, a.Seed), Buffers: cmp.Or(b.Buffers, a.Buffers),
	}
}

// settings are a shape in the words of the model of links.
func (s shape) settings() impair.Settings {
	a := s.asked
	var table *impair.Table
	if file := a.DistributionFile(); file != "" {
		values, _ := a.Table() // planLinks has looked
		table = &impair.Table{Name: file, Values: values}
	} else if known, err := impair.Distribution(a.Distribution); err == nil { // model.Link's check knows the names
		table = known
	}
	set := impair.Settings{
		Rate:  s.rate,
		Delay: seconds(a.DelaySeconds), Jitter: seconds(a.JitterSeconds), Correlation: a.Correlation, Shape: table,
		Duplicate: impair.Chance{Ratio: a.DuplicateRatio, Correlation: a.DuplicateCorrelation},
		Corrupt:   impair.Chance{Ratio: a.CorruptRatio, Correlation: a.CorruptCorrelation},
		Reorder:   impair.Chance{Ratio: a.ReorderRatio, Correlation: a.ReorderCorrelation},
		Gap:       a.Gap, Seed: a.Seed, Whole: a.Buffers == model.BuffersWhole,
	}
	set.Loss.Chance = impair.Chance{Ratio: a.LossRatio, Correlation: a.LossCorrelation}
	switch v := a.LossStates; a.LossModel {
	case model.GilbertElliott:
		set.Loss.Model, set.Loss.P, set.Loss.R, set.Loss.Bad, set.Loss.Good = impair.GilbertElliott, v[0], v[1], v[2], v[3]
	case model.FourState:
		set.Loss.Model, set.Loss.P13, set.Loss.P31, set.Loss.P32, set.Loss.P23, set.Loss.P14 = impair.FourState, v[0], v[1], v[2], v[3], v[4]
	}
	if s.rate == 0 {
		return set
	}
	set.Overhead, set.MinFrame = s.overhead, etherLeast
	set.QueuePackets = s.queuePackets
	if s.queuePackets == 0 {
		set.QueueBytes = s.queueBytes
	}
	if s.queuePackets == 0 && s.queueBytes == 0 {
		set.QueuePackets = usualQueue
	}
	return set
}

// usualQueue is what tc gives netem where nothing is said, tc-netem(8), in packets: who knows
// links from there expects it.
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

// wayName is one direction of a link, in words.
func (t topologySpec) wayName(link, direction int) string {
	from, to := t.ends(link, direction)
	return from + " to " + to
}

// ends are the nodes that one direction of a link leads from and to.
func (t topologySpec) ends(link, direction int) (from, to string) {
	l := t.links[link]
	if direction == 1 {
		l.a, l.b = l.b, l.a
	}
	return t.nodes[l.a].name, t.nodes[l.b].name
}

// told says what one direction of an emulated link does, and who does it, for the report.
func told(s impair.Settings, by string) string {
	var words []string
	say := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	chance := func(what string, c impair.Chance) {
		if c.Ratio > 0 {
			say("%s %s%s", unit.FormatRatio(c.Ratio), what, correlated(c.Correlation))
		}
	}
	if s.Rate > 0 {
		say("%v", s.Rate)
		switch {
		case s.QueuePackets > 0:
			say("queue %d packets", s.QueuePackets)
		case s.QueueBytes > 0:
			say("queue %d KiB", s.QueueBytes>>10)
		}
		if s.Overhead > 0 {
			say("%d B more counted for each frame", s.Overhead)
		}
	}
	if s.Delay > 0 {
		say("delay %v", s.Delay)
	}
	if s.Jitter > 0 {
		name := "uniform"
		if s.Shape != nil {
			name = s.Shape.Name
		}
		say("jitter %v %s%s", s.Jitter, name, correlated(s.Correlation))
	}
	switch s.Loss.Model {
	case impair.Random:
		chance("loss", s.Loss.Chance)
	default:
		say("%s loss of %s on average", s.Loss.Model, unit.FormatRatio(s.LossRatio()))
	}
	chance("duplicated", s.Duplicate)
	chance("reordered", s.Reorder)
	chance("damaged", s.Corrupt)
	if s.Whole {
		say("buffers of segments whole")
	}
	if len(words) == 0 {
		words = []string{"as it is"}
	}
	return fmt.Sprintf("%s (%s)", strings.Join(words, ", "), by)
}

// inUserSpace says who does it where this process moves the frames.
func inUserSpace(seed uint64) string { return fmt.Sprintf("in user space, seed %d", seed) }

func correlated(ratio float64) string {
	if ratio == 0 {
		return ""
	}
	return " correlated " + unit.FormatRatio(ratio)
}
