package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"pelt/engine"
)

// Controller gives orders to the agents of one hub, or of two. Its methods may be
// called concurrently; trials of one controller do not touch each other.
type Controller struct {
	links   []*link
	local   *Agent // of this host when the hub is on another; nil in a lab
	version string
	members map[string]member
	infos   []AgentInfo

	mu     sync.Mutex
	trials map[string]*trial // by name
}

// member is an agent as the controller reaches it.
type member struct {
	info AgentInfo
	name string // for people: node, and address if it is far
	link *link  // to the hub it is on
	ask  func(ctx context.Context, verb string, data []byte) ([]byte, error)
}

const helloPatience = 5 * time.Second

// Dial connects to the hub at addr, which another host serves, and takes this
// host in as the agent local describes. Errors: [ErrCode], *[VersionError], or
// one line that says what was found there and what to do.
func Dial(ctx context.Context, addr netip.AddrPort, code string, local AgentConfig) (*Controller, error) {
	var pair nkeys.KeyPair
	if code != "" {
		var err error
		if pair, err = codeKey(code); err != nil {
			return nil, err
		}
	}
	return dialWith(ctx, addr, pair, local)
}

func dialWith(ctx context.Context, addr netip.AddrPort, pair nkeys.KeyPair, local AgentConfig) (*Controller, error) {
	agent, err := NewAgent(local)
	if err != nil {
		return nil, err
	}
	l, err := dialHub(ctx, addr, pair)
	if err != nil {
		return nil, err
	}
	agent.link = l
	c := newController(local.Version, l)
	c.local, agent.direct = agent, c.direct
	c.add(member{agent.info(), agent.cfg.Node, l, func(ctx context.Context, verb string, data []byte) ([]byte, error) {
		return agent.answer(ctx, verb, data), nil
	}})
	if err := c.hello(ctx, l, nil, addr.Addr().String(), ""); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// NewController connects to a hub of this process; it sees the agents that
// have joined by now.
func NewController(ctx context.Context, hub *Hub, version string) (*Controller, error) {
	l, err := hub.connect()
	if err != nil {
		return nil, err
	}
	c := newController(version, l)
	if err := c.hello(ctx, l, hub.joined(), "", ""); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func newController(version string, links ...*link) *Controller {
	return &Controller{links: links, version: version, members: map[string]member{}, trials: map[string]*trial{}}
}

// Agents lists who can take part, the sender's side first.
func (c *Controller) Agents() []AgentInfo { return slices.Clone(c.infos) }

// Close cuts running trials, ends the local agent and leaves every hub.
func (c *Controller) Close() error {
	if c.local != nil {
		c.local.shutdown("pelt has ended")
	}
	for _, l := range c.links {
		l.close()
	}
	return nil
}

func (c *Controller) add(m member) {
	c.members[m.info.ID] = m
	c.infos = append(c.infos, m.info)
}

// hello asks everybody on a hub to introduce himself. It waits for the expected
// names, or, if there are none, for somebody and a moment more. node, unless it
// is "", is what they are on the path, whatever they say.
func (c *Controller) hello(ctx context.Context, l *link, expected []string, where, node string) error {
	ctx, cancel := context.WithTimeout(ctx, helloPatience)
	defer cancel()
	data, err := json.Marshal(hello{Protocol: ProtocolVersion, Version: c.version})
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
	missing := slices.Clone(expected)
	found := 0
	for found == 0 || len(missing) > 0 {
		m, err := next(ctx, sub, found > 0 && expected == nil)
		if errors.Is(err, errQuiet) {
			break
		}
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrNoResponders) {
			return fmt.Errorf("%snobody on the hub answered: %s", prefix(where), strings.Join(missing, ", "))
		}
		if err != nil {
			return fmt.Errorf("%shello: %w", prefix(where), err)
		}
		info, err := c.introduced(m.Data, where)
		if err != nil {
			return err
		}
		if info.Observer && node != routerNode {
			return fmt.Errorf("%sthat pelt serve only observes (--observe-only there): it can be --dut pelt://HOST, and no end of a test", prefix(where))
		} else if !info.Observer && node == routerNode {
			return fmt.Errorf("%sthat pelt serve is an end of tests; want one that only observes: pelt serve --observe-only", prefix(where))
		}
		if other, known := c.members[info.ID]; known && other.link != l {
			return fmt.Errorf("%sthat is the same pelt serve as the %s: want one on each side", prefix(where), other.name)
		} else if known || !agentName.MatchString(info.ID) {
			return fmt.Errorf("%stwo agents call themselves %.70q", prefix(where), info.ID)
		}
		info.Node = cmp.Or(node, info.Node)
		name := info.Node
		if where != "" {
			name = fmt.Sprintf("%s (%s)", info.Node, where)
		}
		c.add(member{info, name, l, func(ctx context.Context, verb string, data []byte) ([]byte, error) {
			return l.ask(ctx, "pelt.agent."+info.ID+"."+verb, data)
		}})
		found++
		missing = slices.DeleteFunc(missing, func(id string) bool { return id == info.ID })
	}
	return nil
}

func prefix(where string) string {
	if where == "" {
		return ""
	}
	return where + ": "
}

var errQuiet = errors.New("nobody else")

// next waits for one introduction; with quiet set, only a moment.
func next(ctx context.Context, sub *nats.Subscription, quiet bool) (*nats.Msg, error) {
	const moment = 100 * time.Millisecond
	wait := ctx
	if quiet {
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeout(ctx, moment)
		defer cancel()
	}
	m, err := sub.NextMsgWithContext(wait)
	if err != nil && quiet && wait.Err() != nil {
		return nil, errQuiet
	}
	if err == nil && len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		return nil, nats.ErrNoResponders
	}
	return m, err
}

func (c *Controller) introduced(data []byte, where string) (AgentInfo, error) {
	if where == "" {
		where = "an agent"
	}
	body, err := open(data)
	if err != nil {
		return AgentInfo{}, fmt.Errorf("%s: hello: %w", where, err)
	}
	if err := checkProtocol(body, c.version, where); err != nil {
		return AgentInfo{}, err
	}
	info, err := decode[AgentInfo](body)
	if err != nil {
		return AgentInfo{}, fmt.Errorf("%s: hello: %w", where, err)
	}
	return info, nil
}

// open takes a reply out of its envelope, or the error that is in it.
func open(data []byte) (json.RawMessage, error) {
	r, err := decode[reply](plain(data))
	if err != nil {
		return nil, err
	}
	switch {
	case r.Fault == nil:
		return r.Body, nil
	case r.Fault.Kind == "refusal":
		return nil, &engine.Refusal{Why: r.Fault.Text}
	case r.Fault.Kind == "version":
		return nil, &VersionError{Host: "the agent", There: r.Fault.Version, HereProtocol: ProtocolVersion, ThereProtocol: r.Fault.Protocol}
	}
	return nil, errors.New(r.Fault.Text)
}

// order gives one order; the error names the host and the step.
func order[A any](ctx context.Context, m member, verb string, q any) (A, error) {
	var zero A
	data, err := json.Marshal(q)
	if err != nil {
		return zero, fmt.Errorf("%s: %s: %w", m.name, verb, err)
	}
	answer, err := m.ask(ctx, verb, data)
	if err == nil {
		var body json.RawMessage
		if body, err = open(answer); err == nil {
			var a A
			if a, err = decode[A](body); err == nil {
				return a, nil
			}
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("no answer in time")
	}
	return zero, fmt.Errorf("%s: %s: %w", m.name, verb, err)
}

// direct takes the beats of the local agent.
func (c *Controller) direct(session string, b beat) {
	_, name, _ := strings.Cut(session, ".")
	c.mu.Lock()
	t := c.trials[name]
	c.mu.Unlock()
	if t != nil {
		t.heard(c.local.cfg.ID, b)
	}
}
