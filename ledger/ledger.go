// Package ledger says where each attempted packet of a flow ended.
//
// Counts from both ends come in, a balanced account goes out: lost packets are
// always the sum of the named lines and the unattributed rest. It never adds
// two counters that may have seen the same packet beyond what was lost, and
// never names a cause without a counter that moved.
package ledger

import (
	"fmt"
	"maps"
	"slices"

	"pelt/model"
	"pelt/unit"
)

// How sure a line is, the surest first.
const (
	ExactSeq   = "exact-seq"   // a verdict for each of the very packets
	ExactCount = "exact-count" // a counter of the flow's own socket
	Bounded    = "bounded"     // a counter of the namespace or device: no more than this
	Inferred   = "inferred"    // a difference between two hosts
)

// The layers that this account can name, in travel order.
const (
	SendCall       = "send-call"
	Network        = "network"
	ReceiverBuffer = "receiver-buffer"
	Application    = "application"
)

// Input is what both ends counted of one flow of one trial, in datagrams.
type Input struct {
	Sender, Receiver string // names of the two ends on the path

	Planned    uint64
	Attempted  uint64
	Accepted   uint64
	SendErrors map[string]uint64 // errno name -> datagrams the kernel refused

	Received    uint64 // distinct sequences
	Late        uint64 // arrived after the account was closed
	WrongLength uint64 // arrived with another length than ordered
	SocketDrops uint64 // that the receiving sockets dropped; meaningless unless SocketKnown
	SocketKnown bool
	Unread      uint64 // left in the sockets at the end

	// OnTheWay are drop counters of the path's own queues in this flow's
	// direction, over the whole trial with its warm-up.
	OnTheWay []Counter
}

// Counter is what one counter beyond the two ends moved by.
type Counter struct {
	Host  string // node it sits on
	Cause string // what it counts
	Unit  string // datagram or skb
	Delta uint64
}

// claim is one line with what its counter says, before it is held against the loss.
type claim struct {
	line  model.Line
	count uint64
	order int // the surest claim takes first
}

// Balance makes the account. The lines stand in travel order.
func Balance(in Input) model.Ledger {
	lost := in.Attempted - min(in.Received, in.Attempted)
	claims := in.claims()
	remaining := lost
	for _, i := range byOrder(claims) {
		c := &claims[i]
		c.line.Packets = min(c.count, remaining)
		remaining -= c.line.Packets
		c.line.Evidence[0].Excess = c.count - c.line.Packets
	}
	l := model.Ledger{Lost: lost, Unattributed: remaining, Lines: []model.Line{}, Checks: in.checks(lost)}
	for _, c := range claims {
		if c.line.Packets > 0 {
			l.Lines = append(l.Lines, c.line)
		}
	}
	return l
}

func byOrder(claims []claim) []int {
	places := make([]int, len(claims))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return claims[a].order - claims[b].order })
	return places
}

// claims lists what the counters say, in travel order. A verdict about the very
// sequence comes before a socket's count, which may hold duplicates too.
func (in Input) claims() []claim {
	var all []claim
	for _, errno := range slices.Sorted(maps.Keys(in.SendErrors)) {
		all = append(all, newClaim(1, SendCall, in.Sender, errno, ExactSeq, "send errors "+errno, in.SendErrors[errno]))
	}
	for _, c := range in.OnTheWay {
		one := newClaim(3, Network, c.Host, c.Cause, Bounded, "qdisc drops", c.Delta)
		one.line.Evidence[0].Scope, one.line.Evidence[0].Unit = "device", c.Unit
		all = append(all, one)
	}
	if in.SocketKnown {
		// SK_MEMINFO_DROPS, include/uapi/linux/sock_diag.h
		all = append(all, newClaim(2, ReceiverBuffer, in.Receiver, "SOCKET_RCVBUFF", ExactCount, "SO_MEMINFO drops", in.SocketDrops))
	}
	return append(all,
		newClaim(1, Application, in.Receiver, "late", ExactSeq, "arrived after the drain", in.Late),
		newClaim(2, Application, in.Receiver, "unread", ExactCount, "left in the socket", in.Unread),
		newClaim(1, Application, in.Receiver, "wrong-length", ExactSeq, "arrived with another length", in.WrongLength),
	)
}

func newClaim(order int, layer, host, cause, confidence, counter string, n uint64) claim {
	return claim{order: order, count: n, line: model.Line{
		Layer: layer, Host: host, Cause: cause, Confidence: confidence,
		Evidence: []model.Evidence{{Counter: counter, Scope: "socket", Unit: "datagram", Delta: n}},
	}}
}

// checks are the laws that the counts must obey among themselves.
func (in Input) checks(lost uint64) []model.Check {
	n := unit.FormatCount
	var refused uint64
	for _, e := range in.SendErrors {
		refused += e
	}
	checks := []model.Check{
		law("attempted", in.Attempted == in.Accepted+refused,
			fmt.Sprintf("%s attempted = %s accepted + %s refused by the kernel", n(in.Attempted), n(in.Accepted), n(refused))),
		law("received", in.Received <= in.Attempted,
			fmt.Sprintf("%s received, at most the %s attempted", n(in.Received), n(in.Attempted))),
		law("planned", in.Attempted <= in.Planned || in.Planned == 0,
			fmt.Sprintf("%s attempted, at most the %s planned", n(in.Attempted), n(in.Planned))),
	}
	if in.SocketKnown {
		checks = append(checks, law("socket", in.SocketDrops <= lost,
			fmt.Sprintf("%s dropped by the receiver's sockets, at most the %s lost", n(in.SocketDrops), n(lost))))
	}
	return checks
}

func law(name string, held bool, text string) model.Check {
	if !held {
		text = "broken: " + text
	}
	return model.Check{Name: name, Held: held, Text: text}
}
