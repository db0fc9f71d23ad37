package advice

import (
	"fmt"
	"slices"

	"pelt/model"
)

// channels: more receive queues where the streams could fill them. One 5-tuple goes to one
// queue, so one stream gains nothing (Documentation/networking/scaling.rst).
func channels(q *question) []model.Advice {
	dev := q.device()
	if dev == "" {
		return nil
	}
	for _, kind := range []string{"combined", "rx"} {
		knob := dev + ".channels_" + kind
		present, ok := q.number(knob)
		most, bounded := q.number(knob + "_max")
		if !ok || !bounded || present == 0 {
			continue
		}
		value := min(uint64(q.Streams), most)
		if value <= present {
			return nil
		}
		return []model.Advice{{Knob: knob, Present: text(present), Value: text(value),
			Why:     fmt.Sprintf("%s: %d streams share %d queues, and the card has up to %d", q.because(), q.Streams, present, most),
			Command: fmt.Sprintf("ethtool -L %s %s %d", dev, kind, value), Undo: fmt.Sprintf("ethtool -L %s %s %d", dev, kind, present),
			Note: "the link goes down for a moment; helps if there are cores to empty them, and if the card tells the streams apart (ethtool -N DEV rx-flow-hash udp4 sdfn)"}}
	}
	return nil
}

// tooLate tells whether the line is of a queue that was emptied too late.
func (q *question) tooLate() bool {
	return q.line.Layer == model.LayerReceiverBuffer || q.cause(model.LayerReceiverBacklog, "CPU_BACKLOG") || q.cause(model.LayerReceiverRing, model.CauseRingMissed, model.CauseRingFull)
}

// governor: cores that clock down when idle take their time when a burst comes.
func governor(q *question) []model.Advice {
	present := q.knob("cpu.governor")
	if !slices.Contains([]string{"powersave", "ondemand", "conservative", "schedutil"}, present) {
		return nil
	}
	return []model.Advice{{Knob: "cpu.governor", Present: present, Value: "performance",
		Why:     q.because() + ": what empties this queue ran too late or too slowly, and the cores clock down when they are idle",
		Command: "cpupower frequency-set -g performance", Undo: "cpupower frequency-set -g " + present, Note: "costs power and heat"}}
}
