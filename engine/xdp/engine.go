package xdp

import (
	"context"
	"fmt"
	"sync"

	"pelt/engine"
	"pelt/engine/udp"
	"pelt/model"
)

// Engine makes ends on one host. It lives as long as the host's agent.
type Engine struct {
	// CablesOnly keeps programs off every interface but virtual cables: a card's driver may take the link down for
	// them.
	CablesOnly bool

	sockets *udp.Engine

	mu    sync.Mutex
	ports map[int]*port // by interface index
}

// New makes the engine. All its ends must be prepared with the same host. sockets opens the
// flow's sockets and gets consent over them. It carries out orders with Fallback that cannot
// be carried out with frames here.
func New(sockets *udp.Engine) *Engine { return &Engine{sockets: sockets} }

// Name is xdp.
func (e *Engine) Name() string { return "xdp" }

// Open opens the sockets of one end; see engine.Engine. Without Fallback an
// order that is known not to be possible here is refused.
func (e *Engine) Open(_ context.Context, host engine.Host, o engine.Order) (engine.Transport, error) {
	why, cannot := unfit(o), whyUnable(o.Role)
	if why == "" {
		why = cannot
	}
	if why != "" && !o.Fallback {
		return nil, &engine.Refusal{Why: why}
	}
	sockets, err := e.sockets.SocketsFor(host, o, nil)
	if err != nil {
		return nil, err
	}
	if o.Sockets && o.Role == engine.Receive && why == "" {
		why = "the plan says sockets"
	}
	return &transport{
		Sockets: sockets, engine: e, host: host, order: o, why: why,
		letsFrames: o.Role == engine.Receive && cannot == "" && Unfit(engine.Send, o.Flow) == "",
	}, nil
}

// Interface is what an interface can do with XDP.
type Interface struct {
	Name   string
	Known  bool // the kernel tells what follows: since Linux 6.3
	Native bool // the driver runs programs; else the kernel does, behind it
	Sends  bool // frames can be handed to it now
	Cable  bool // a virtual one: it sends once its other end is ready
	Taken  bool // a program is there already
}

// Unfit says why no host could carry an end of a flow with frames, "" if one could.
func Unfit(role engine.Role, f model.Flow) string { return unfit(engine.Order{Role: role, Flow: f}) }

// unfit says why no host could carry out the order with frames, "" if one could.
func unfit(o engine.Order) string {
	switch {
	case o.Role != engine.Send && o.Role != engine.Receive:
		return "the xdp engine sends and receives only"
	case o.Flow.Segments > 1:
		return "segments of a buffer need sockets"
	case o.Role == engine.Send && o.Flow.Profile != nil:
		return "frames leave at even gaps: a profile needs sockets"
	case o.Role == engine.Send && o.Flow.Packets > 0:
		return "frames are sent for a time, not by number"
	case o.Role == engine.Send && o.Flow.SendBuffer > 0 || o.Role == engine.Receive && o.Flow.ReceiveBuffer > 0:
		return "the size of a socket's buffer was asked for"
	case o.Role == engine.Receive && o.Flow.Joined:
		return "packets joined for a socket were asked for"
	case o.Role == engine.Receive && o.Record != nil:
		return "each packet is recorded, and an XDP program only counts them"
	case o.Flow.PayloadBytes > maxPayload:
		return fmt.Sprintf("an XDP frame lies in one memory page: %d B of payload at most", maxPayload)
	}
	return ""
}

// maxPayload keeps a frame in one page of 4096 B with what the kernel keeps
// before it (XDP_PACKET_HEADROOM, 256 B) and after it (struct skb_shared_info, 320 B).
const maxPayload = 3300
