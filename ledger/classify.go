package ledger

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"pelt/model"
)

// Side is where on a flow's path a packet was when a kernel let go of it.
type Side int

// The sides. Both is a namespace that holds both ends, as loopback does.
const (
	SideUnknown Side = iota
	SideSender
	SideReceiver
	SideBoth
	SideOther // neither end's: a router, a switch, a container's host
)

// stage is what a packet was going through, whichever host it was on.
type stage int

const (
	stageOutput      stage = iota // on its way from the socket to the queue
	stageTransmit                 // handed to the device past the queue
	stageQdisc                    // queueing discipline or classifier of an output
	stageNeighbour                // waiting for a link address
	stageDevice                   // driver, virtual device
	stageRing                     // a device's receive ring
	stageXDP                      //
	stageTC                       // classifier of an input
	stageClassifier               // classifier of either
	stageBacklog                  // softnet backlog
	stageFilter                   // netfilter
	stageLink                     // bridge, tunnel, link addresses
	stageIP                       //
	stageUDP                      //
	stageMemory                   // of all UDP sockets
	stageBuffer                   // of the socket
	stagePurge                    // a queue was thrown away, the socket's or the device's
	stageApplication              // the socket was closed on it
	stageWay                      // between the hosts
	stageKernel                   // nothing known but that it was the kernel
	stageNone                     // a tap's copy, a segment that TCP has already: no loss
)

// place is where kernels let go of packets: a reason, and the function where the reason alone does not tell.
type place struct {
	reason, function *regexp.Regexp
	proven           bool // the row's counter must have moved as well
}

// places are those that the rows of causes list.
var places = func() (all [len(causes)][]place) {
	for i, c := range causes {
		if c.Name != "" && c.when == nil {
			all[i] = append(all[i], place{reason: whole(regexp.QuoteMeta(c.Name))})
		}
		for text := range strings.FieldsSeq(c.seen) {
			reason, function, ofFunction := strings.Cut(text, "@")
			p := place{reason: whole(reason)}
			if ofFunction {
				function, p.proven = strings.CutSuffix(function, "!")
				p.function = whole(function)
			}
			all[i] = append(all[i], p)
		}
	}
	return all
}()

func whole(expression string) *regexp.Regexp {
	return regexp.MustCompile("(?s)^(?:" + expression + ")$")
}

var unspecified = whole("|NOT_SPECIFIED|([A-Z0-9]+_)*UNSPEC")

// Classify says which layer of the ledger a packet was lost in, and the cause
// that the line bears: the kernel's reason (without SKB_DROP_REASON_), or a word
// of pelt's own where the kernel gives none and its function tells. received
// says that the packet had come in through an interface of the namespace it was
// in. The layer is "" if nothing of the flow was lost there (a tap's copy).
func Classify(reason, function string, side Side, received bool) (layer, cause string) {
	_, layer, cause = classify(reason, function, side, received)
	return layer, cause
}

func classify(reason, function string, side Side, received bool) (at stage, layer, cause string) {
	c, cause := find(reason, function, facts{})
	layer = layerOf(c.at, side, received)
	if layer == model.LayerNetwork {
		c, cause = find(reason, function, facts{passing: true})
	}
	return c.at, layer, cause
}

// find returns the row that a verdict means, and what files call it.
func find(reason, function string, known facts) (c *Cause, name string) {
	if strings.TrimPrefix(reason, "QDISC_DROP_") == "GENERIC" { // its new name: include/net/dropreason-qdisc.h
		reason = "QDISC_DROP"
	}
	for i := range causes {
		c = &causes[i]
		for _, p := range places[i] {
			if !p.reason.MatchString(reason) && !(unspecified.MatchString(reason) && p.reason.MatchString("-")) ||
				p.function != nil && !p.function.MatchString(function) || p.proven && !known.moved(c) ||
				c.when != nil && !c.when(known) {
				continue
			}
			switch {
			case i == lastResort && function != "" && unspecified.MatchString(reason):
				return &causes[lastResort-1], function + unknownFunction
			case p.function == nil:
				return c, spell(reason)
			}
			return c, cmp.Or(c.Name, spell(reason))
		}
	}
	return c, spell(reason)
}

// unknownFunction ends the cause of a packet of which only the function that dropped it is known.
const unknownFunction = "()"

func spell(reason string) string { return cmp.Or(reason, "NOT_SPECIFIED") }

// Of returns the row of a line of a ledger: by name, by a reason or errno that means it, or the layer's last resort.
func Of(layer, cause string) *Cause {
	named := func(i int) bool {
		name := causes[i].Name
		return name != "" && (name == cause || name == model.CauseICMP && strings.HasPrefix(cause, name) ||
			name == unknownFunction && strings.HasSuffix(cause, name))
	}
	meant := func(i int) bool {
		return causes[i].when == nil && (slices.Contains(strings.Fields(causes[i].errno), cause) ||
			slices.ContainsFunc(places[i], func(p place) bool {
				return p.function == nil && p.reason.MatchString(cause)
			}))
	}
	for _, fits := range []func(int) bool{named, meant} {
		for i := range lastResort {
			if causes[i].in(layer) && fits(i) {
				return &causes[i]
			}
		}
	}
	for i := range causes {
		if slices.Contains(strings.Fields(causes[i].rest), cmp.Or(layer, noLayer)) {
			return &causes[i]
		}
	}
	return &causes[lastResort]
}

// noLayer is how the table writes the layer of what is no loss.
const noLayer = "-"

// lastResort is the row of what no other row knows.
const lastResort = len(causes) - 1

// Said returns the words for losses of a layer.
func (c *Cause) Said(layer string) string {
	if layer == model.LayerNetwork {
		return cmp.Or(c.Way, c.Words)
	}
	return c.Words
}

// in reports whether what the row is about may be lost in a layer.
func (c *Cause) in(layer string) bool {
	switch c.at {
	case stageNone:
		return layer == ""
	case stageTransmit:
		return layer == model.LayerSenderDevice
	}
	return layer == model.LayerNetwork || layer == layers[c.at].sender || layer == layers[c.at].receiver
}

// layers are what each stage means at either end of a flow.
var layers = [...]struct {
	sender, receiver string
	leaves           bool // a packet that came in nowhere yet is on its way out there
}{
	stageOutput:      {model.LayerSendCall, model.LayerReceiverIP, true},
	stageTransmit:    {model.LayerSenderDevice, model.LayerSenderDevice, true},
	stageQdisc:       {model.LayerSenderQdisc, model.LayerNetwork, true}, // it left the receiver's namespace again
	stageNeighbour:   {model.LayerSenderDevice, model.LayerNetwork, true},
	stageDevice:      {model.LayerSenderDevice, model.LayerReceiverRing, true},
	stageRing:        {model.LayerSenderDevice, model.LayerReceiverRing, false},
	stageXDP:         {model.LayerSenderDevice, model.LayerReceiverXDP, false},
	stageTC:          {model.LayerSenderQdisc, model.LayerReceiverTC, false},
	stageClassifier:  {model.LayerSenderQdisc, model.LayerReceiverTC, true},
	stageBacklog:     {model.LayerSenderDevice, model.LayerReceiverBacklog, false},
	stageFilter:      {model.LayerSendCall, model.LayerReceiverFilter, true},
	stageLink:        {model.LayerSenderDevice, model.LayerReceiverIP, false},
	stageIP:          {model.LayerSendCall, model.LayerReceiverIP, true},
	stageUDP:         {model.LayerSendCall, model.LayerReceiverUDP, false},
	stageMemory:      {model.LayerSendCall, model.LayerReceiverMemory, false},
	stageBuffer:      {model.LayerSendCall, model.LayerReceiverBuffer, false},
	stagePurge:       {model.LayerSenderQdisc, model.LayerApplication, false},
	stageApplication: {model.LayerSendCall, model.LayerApplication, false},
	stageWay:         {model.LayerNetwork, model.LayerNetwork, false},
	stageKernel:      {model.LayerSenderDevice, model.LayerReceiverIP, true},
}

// layerOf maps a stage on one side to a layer.
func layerOf(at stage, side Side, received bool) string {
	if at == stageNone {
		return ""
	}
	is, sends := layers[at], false
	switch side {
	case SideOther:
		return model.LayerNetwork
	case SideSender:
		sends = true
	case SideBoth:
		sends = !received && is.leaves
	case SideUnknown:
		switch at { // of these it is plain which end they belong to
		case stageOutput, stageQdisc, stageNeighbour:
			return is.sender
		case stageKernel, stageDevice, stageLink, stageClassifier:
			return model.LayerNetwork
		}
	}
	switch {
	case !sends:
		return is.receiver
	case received: // the sender's namespace forwarded it for itself, as a container host does
		return model.LayerNetwork
	}
	return is.sender
}
