package view

import (
	"fmt"

	"pelt/finding"
	"pelt/table"
)

// nothing accounts for the packets that open the way of a flow, and the answers to them, where streams carry nothing,
// and for the segments of flows of TCP that carry nothing although their connections open.
func nothing(rows []table.Row) (out []Section) {
	for _, r := range finding.FirstStuck(rows) {
		out = append(out, accountOf(r)...)
	}
	for _, r := range finding.FirstBlocked(rows) {
		for _, way := range finding.Meeting(r) {
			if way.Flow.Lost > 0 {
				out = append(out, accountOf(way)...)
			}
		}
		out = append(out, deadStreams(r)...)
	}
	return out
}

// deadStreams lists the streams of a flow that carry nothing.
func deadStreams(r table.Row) []Section {
	if r.Flow.Streams < 2 {
		return nil
	}
	t := listing(r.Sayf("Streams that carry nothing, %s", r.Say(r.Flow.Name)), "*stream Stream", "*from_port From port",
		"*to_port To port", "packets_count Sent", "heard_packets Arrived", "answers_packets Answers",
		"answers_heard_packets Came back")
	for _, s := range r.Flow.DeadStreams {
		t.add(fmt.Sprint(s.Stream+1), fmt.Sprint(s.FromPort), fmt.Sprint(s.ToPort), s.Asked, s.AsksHeard, s.Answered,
			s.AnswersHeard)
	}
	return shown(t)
}
