package model

import "strings"

// A star has one sender and many receivers. A flow of its plan becomes a flow to each receiver, and their results are
// summed again: the receivers, and the links to them, then have one name each.
const (
	ManyReceivers = "receivers"
	ManyLinks     = "links to receivers"
)

// PlanFlow is the flow of the plan that a flow of a trial is a part of: up of up/17.
func PlanFlow(flow string) string {
	name, _, _ := strings.Cut(flow, "/")
	return name
}

// NodeGroup is the name of a node, or of a link, together with the others of a star; its own name if there are none.
func NodeGroup(node string) string {
	switch {
	case strings.HasPrefix(node, Receiver+"-"):
		return ManyReceivers
	case strings.HasPrefix(node, "link ") && strings.Contains(node, "-"+Receiver+"-"):
		return ManyLinks
	}
	return node
}

// SamePlace reports whether packets of two lines ended at the same place, of the same cause.
func (l Line) SamePlace(o Line) bool {
	return l.Layer == o.Layer && l.Host == o.Host && l.Cause == o.Cause
}
