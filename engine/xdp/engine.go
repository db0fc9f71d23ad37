package xdp

import (
	"context"
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

func (e *Engine) Name() string { return "xdp" }

// Open opens the sockets of one end; see engine.Engine. Without Fallback an
// order that is known not to be possible here is refused.
func (e *Engine) Open(_ context.Context, host engine.Host, o engine.Order) (engine.Transport, error) {
	cannot := whyUnable(o.Role)
	why := model.FirstReason(unfit(o), cannot)
	if why.Code != "" && !o.Fallback {
		return nil, &engine.Refusal{Why: why}
	}
	sockets, err := e.sockets.SocketsFor(host, o, nil)
	if err != nil {
		return nil, err
	}
	if o.Sockets && o.Role == engine.Receive && why.Code == "" {
		why.Code = model.SocketsAsked
	}
	t := &transport{
		Sockets: sockets, engine: e, host: host, order: o,
		letsFrames: o.Role == engine.Receive && cannot.Code == "" && Unfit(engine.Send, o.Flow).Code == "",
	}
	if why.Code != "" {
		t.why = model.Reasons{why}
	}
	return t, nil
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

// Unfit says why no host could carry an end of a flow with frames; without a code one could.
func Unfit(role engine.Role, f model.Flow) model.Reason {
	return unfit(engine.Order{Role: role, Flow: f})
}

// unfit says why no host could carry out the order with frames; without a code one could.
func unfit(o engine.Order) (why model.Reason) {
	switch {
	case o.Role != engine.Send && o.Role != engine.Receive:
		why.Code = model.FramesRole
	case o.Flow.Segments > 1:
		why.Code = model.FramesSegments
	case o.Role == engine.Send && o.Flow.Profile != nil:
		why.Code = model.FramesProfile
	case o.Role == engine.Send && o.Flow.Packets > 0:
		why.Code = model.FramesCounted
	case o.Role == engine.Send && o.Flow.SendBuffer > 0 || o.Role == engine.Receive && o.Flow.ReceiveBuffer > 0:
		why.Code = model.FramesBuffer
	case o.Role == engine.Receive && o.Flow.Joined:
		why.Code = model.FramesJoined
	case o.Role == engine.Receive && o.Record != nil:
		why.Code = model.FramesRecorded
	case o.Flow.PayloadBytes > maxPayload:
		why = model.Reason{Code: model.FramesLong, Numbers: map[string]float64{"payload_bytes": maxPayload}}
	}
	return why
}

// maxPayload keeps a frame in one page of 4096 B with what the kernel keeps
// before it (XDP_PACKET_HEADROOM, 256 B) and after it (struct skb_shared_info, 320 B).
const maxPayload = 3300
