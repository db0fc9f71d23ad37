package counters

import (
	"fmt"

	"pelt/model"
)

type qdisc struct {
	link           int
	handle, parent uint32
	kind           string
	queued         uint32 // packets in it
	drops          uint32
	requeues       uint32
	overlimits     uint32
	limitPackets   uint32 // 0 unknown
	limitFlow      uint32 // packets of one socket, fq's
	rate           uint64 // bytes per second that it shapes to; 0: none, or not said
}

// Handles of include/uapi/linux/pkt_sched.h.
const (
	rootHandle    = 0xffffffff
	ingressHandle = 0xfffffff1 // also clsact
)

// Queues are the queueing disciplines at the outputs of a namespace's
// interfaces, as the last of two snapshots shows them; what was queued is the
// larger of the two readings.
func Queues(measure, end Snapshot) (list []model.Queue) {
	for _, q := range end.queues {
		queued := q.queued
		for _, before := range measure.queues {
			if before.link == q.link && before.handle == q.handle && before.kind == q.kind {
				queued = max(queued, before.queued)
			}
		}
		list = append(list, model.Queue{
			Interface: end.links[q.link].name, Kind: q.kind, Handle: fmt.Sprintf("%x:", q.handle>>16),
			RateBPS: 8 * float64(q.rate), QueuedPackets: uint64(queued),
		})
	}
	return list
}

// name is the qdisc as tc writes it: kind and handle.
func (q qdisc) name() string { return fmt.Sprintf("%s.%x:", q.kind, q.handle>>16) }

// top reports whether nothing stands above the qdisc.
func (q qdisc) top() bool { return q.parent == rootHandle || q.parent == ingressHandle }
