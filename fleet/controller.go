package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/nats-io/nkeys"

	"pelt/model"
)

// Controller gives orders to the agents of one hub, or of two. It runs one trial at a time.
type Controller struct {
	links   []*link // the sender's side first
	hub     *Hub    // of this host's agent, where the far host has a hub of its own; else nil
	version string
	members map[string]member
	infos   []AgentInfo
}

// member is an agent as the controller reaches it.
type member struct {
	info AgentInfo
	name string // for people: node, and address if it is far
	link *link  // to the hub it is on
}

const helloTimeout = 5 * time.Second

// Dial connects to the hub at addr, which another host serves, and takes this
// host in as the agent local describes. Errors: [ErrCode], *[VersionError], or
// one line that says what was found there and what to do.
func Dial(ctx context.Context, addr netip.AddrPort, code string, local AgentConfig) (*Controller, error) {
	return dialWith(ctx, HubAddress{Addr: addr, Code: code}, local)
}

func dialWith(ctx context.Context, far HubAddress, local AgentConfig) (_ *Controller, err error) {
	near, err := StartHub(HubConfig{DontListen: true})
	if err != nil {
		return nil, err
	}
	c := newController(local.Version)
	c.hub = near
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if _, err := near.Join(local); err != nil {
		return nil, err
	}
	if err := c.joinHere(ctx, near); err != nil {
		return nil, err
	}
	return c, c.join(ctx, "", far)
}

// HubAddress is a hub that another host serves.
type HubAddress struct {
	Addr netip.AddrPort // of its control port
	Code string         // that it wants to hear; "" for none

	key nkeys.KeyPair // of the code, if it is at hand
}

func (h HubAddress) dial(ctx context.Context) (*link, error) {
	pair := h.key
	if h.Code != "" && pair == nil {
		var err error
		if pair, err = codeKey(h.Code); err != nil {
			return nil, err
		}
	}
	return dialHub(ctx, h.Addr, pair)
}

// DialTwo connects to the hubs of both ends of a path and takes no agent of this
// host in: the one at near is the sender's side, the one at far the receiver's,
// whatever they call themselves. Each trial's ends talk to their own hub only;
// the controller tells each side how far the other has come. The near host calls
// the far one, so whoever serves it must have allowed that, see
// [ServeConfig]. Errors are those of [Dial].
func DialTwo(ctx context.Context, near, far HubAddress, version string) (*Controller, error) {
	c := newController(version)
	for _, side := range []struct {
		node string
		HubAddress
	}{{model.Sender, near}, {model.Receiver, far}} {
		if err := c.join(ctx, side.node, side.HubAddress); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// join connects to one more hub, whose agent sits at node.
func (c *Controller) join(ctx context.Context, node string, hub HubAddress) error {
	l, err := hub.dial(ctx)
	if err != nil {
		return err
	}
	if node != "" {
		l.far = fmt.Sprintf("the %s (%v)", node, hub.Addr.Addr())
	}
	c.links = append(c.links, l)
	return c.hello(ctx, l, 1, hub.Addr.Addr().String(), node)
}

// NewController connects to a hub of this process; it sees the agents that
// have joined by now.
func NewController(ctx context.Context, hub *Hub, version string) (*Controller, error) {
	c := newController(version)
	if err := c.joinHere(ctx, hub); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Controller) joinHere(ctx context.Context, hub *Hub) error {
	l, err := hub.connect()
	if err != nil {
		return err
	}
	c.links = append(c.links, l)
	return c.hello(ctx, l, max(hub.joined(), 1), "", "")
}

func (c *Controller) self() hello { return hello{Protocol: ProtocolVersion, Version: c.version} }

func newController(version string, links ...*link) *Controller {
	return &Controller{links: links, version: version, members: map[string]member{}}
}

// Agents lists who can take part, the sender's side first.
func (c *Controller) Agents() []AgentInfo { return slices.Clone(c.infos) }

// Close cuts running trials, ends the agent of this host and leaves every hub.
func (c *Controller) Close() error {
	for _, l := range c.links {
		l.close()
	}
	if c.hub == nil {
		return nil
	}
	return c.hub.Close()
}

// hello asks a number of agents on a hub to introduce themselves. node, unless it is "",
// is what they are on the path, whatever they say.
func (c *Controller) hello(ctx context.Context, l *link, agents int, where, node string) error {
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	data, err := json.Marshal(c.self())
	if err != nil {
		return fmt.Errorf("hello: %w", err)
	}
	inbox := "pelt.inbox." + l.client + ".hello"
	sub, err := l.nc.SubscribeSync(inbox)
	if err != nil {
		return fmt.Errorf("hello: %w", err)
	}
	defer sub.Unsubscribe()
	if err := l.nc.PublishRequest(helloSubject, inbox, data); err != nil {
		return fmt.Errorf("hello: %w", err)
	}
	for range agents {
		m, err := sub.NextMsgWithContext(ctx)
		if errors.Is(err, context.DeadlineExceeded) || err == nil && m.Header.Get("Status") == "503" { // no responders
			return fmt.Errorf("%snobody on the hub answered", prefix(where))
		}
		if err != nil {
			return fmt.Errorf("%shello: %w", prefix(where), err)
		}
		if err := c.meet(l, m.Data, where, node); err != nil {
			return err
		}
	}
	return nil
}

// meet takes in an agent that introduced itself.
func (c *Controller) meet(l *link, data []byte, where, node string) error {
	body, err := open(data)
	if err == nil {
		err = checkProtocol(body, c.version, cmp.Or(where, "an agent"))
	}
	var info AgentInfo
	if err == nil {
		info, err = decode[AgentInfo](body)
	}
	var version *VersionError
	if errors.As(err, &version) {
		return err
	} else if err != nil {
		return fmt.Errorf("%shello: %w", prefix(where), err)
	}
	other, known := c.members[info.ID]
	switch {
	case info.Observer && node != routerNode:
		return fmt.Errorf("%sthat pelt serve only observes (--observe-only there): it can be --dut pelt://HOST, and no end of a test", prefix(where))
	case !info.Observer && node == routerNode:
		return fmt.Errorf("%sthat pelt serve is an end of tests; want one that only observes: pelt serve --observe-only", prefix(where))
	case known && other.link != l:
		return fmt.Errorf("%sthat is the same pelt serve as the %s: want one on each side", prefix(where), other.name)
	case known || !agentName.MatchString(info.ID):
		return fmt.Errorf("%stwo agents call themselves %.70q", prefix(where), info.ID)
	}
	info.Node = cmp.Or(node, info.Node)
	name := info.Node
	if where != "" {
		name = fmt.Sprintf("%s (%s)", info.Node, where)
	}
	c.members[info.ID] = member{info, name, l}
	c.infos = append(c.infos, info)
	return nil
}

func prefix(where string) string {
	if where == "" {
		return ""
	}
	return where + ": "
}

// give gives one order; the error names the host and the step.
func give[A any](ctx context.Context, m member, verb string, q any) (A, error) {
	var zero A
	data, err := json.Marshal(q)
	if err != nil {
		return zero, fmt.Errorf("%s: %s: %w", m.name, verb, err)
	}
	answer, err := m.link.ask(ctx, "pelt.agent."+m.info.ID+"."+verb, data)
	var body json.RawMessage
	if err == nil {
		body, err = open(answer)
	}
	if err == nil {
		var a A
		if a, err = decode[A](body); err == nil {
			return a, nil
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("no answer in time")
	}
	return zero, fmt.Errorf("%s: %s: %w", m.name, verb, err)
}
