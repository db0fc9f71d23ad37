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

	"pelt/finding"
	"pelt/model"
)

// Controller gives orders to the agents of one hub, or of two. That of a fleet may run trials beside each other,
// others run one at a time.
type Controller struct {
	links   []*link // the sender's side first
	version string

	mu      sync.Mutex
	members []member          // the sender's side first
	unfit   []error           // see Unfit
	trials  map[string]*trial // that run, by SESSION
}

// member is an agent as the controller reaches it.
type member struct {
	info AgentInfo
	at   string // its address, if it is far
	link *link  // to the hub it is on
}

// HubAddress is a hub that a controller commands.
type HubAddress struct {
	Local *Hub           // of this process; nil: another host serves it, at Addr
	Addr  netip.AddrPort // of its control port
	More  []netip.Addr   // other addresses of that host, tried in turn
	Code  string         // that it wants to hear; "" for none
	Node  string         // what its agent is on the path, whatever it calls itself; "" leaves it that name
	// NATS are the addresses of servers of the user's own, with commas between, in place of a hub of pelt, and
	// Credentials the file that lets a user in; of fleets only.
	NATS, Credentials string

	From   netip.Addr // this host's address toward it; invalid: the system chooses
	Device string     // this host's interface toward it; "": routes choose
}

// dial connects to a hub on another host, of many hosts or of one. agent is whose connection it is, "" for a
// controller's.
func (h HubAddress) dial(ctx context.Context, agent string, fleet bool) (*link, error) {
	l := newLink()
	l.agent, l.fleet, l.from, l.device = agent, fleet, h.From, h.Device
	if h.NATS != "" {
		return l.dialNATS(h)
	}
	var code []byte
	if h.Code != "" {
		var err error
		if code, err = tidyCode(h.Code); err != nil {
			return nil, err
		}
	}
	addresses := []netip.AddrPort{h.Addr}
	for _, a := range h.More {
		addresses = append(addresses, netip.AddrPortFrom(a, h.Addr.Port()))
	}
	return l.dial(ctx, code, addresses...)
}

// NewController connects to one hub or to two, the sender's side first. It sees the agents
// of this process that have joined by now, and the one of each far host. If both ends are far,
// the near one calls the far one, so whoever serves that must have allowed it, see
// [ServeConfig]. Errors are one line that says what was found there and what to do.
func NewController(ctx context.Context, version string, hubs ...HubAddress) (*Controller, error) {
	c := &Controller{version: version, trials: map[string]*trial{}}
	for _, hub := range hubs {
		join := c.joinFar
		if hub.Local != nil {
			join = c.joinHere
		}
		if err := join(ctx, hub); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

func (c *Controller) joinHere(_ context.Context, hub HubAddress) error {
	l, err := hub.Local.connect()
	if err != nil {
		return err
	}
	if err := c.command(l); err != nil {
		return err
	}
	for _, a := range hub.Local.joined() {
		if err := c.meet(l, a.info(netip.Addr{}), hub.Node, ""); err != nil {
			return err
		}
	}
	return nil
}

// command has the controller hear the agents of a hub. Many trials run beside each other, and a hub bounds
// subscriptions, so there is one for all.
func (c *Controller) command(l *link) (err error) {
	c.links = append(c.links, l)
	l.beats, err = l.subscribe("pelt.session."+l.client+".*.*", func(m *nats.Msg) {
		words := strings.Split(m.Subject, ".")
		c.mu.Lock()
		t := c.trials[words[3]]
		c.mu.Unlock()
		if t != nil {
			t.hear(l, words[4], m.Data)
		}
	})
	return err
}

// lead has a trial hear its agents, or hear them no more.
func (c *Controller) lead(t *trial, on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.trials, t.name); on {
		c.trials[t.name] = t
	}
	for _, l := range c.links {
		l.sessions.Store(int32(len(c.trials)))
	}
}

const helloTimeout = 5 * time.Second

func (c *Controller) joinFar(ctx context.Context, hub HubAddress) error {
	l, err := hub.dial(ctx, "", false)
	if err != nil {
		return err
	}
	where := l.addr.Addr().String()
	if err := c.command(l); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	answer, err := l.request(ctx, helloSubject, nil)
	if errors.Is(err, errNobody) {
		return finding.NewFault(model.HubNoEnd, "address", where, "hub", withoutUsualPort(l.addr))
	}
	if err != nil {
		return finding.Because(err, model.HostMute, "address", where)
	}
	info, err := c.decodeHello(answer, where)
	if err != nil {
		return err
	}
	info.Reached = l.addr.Addr()
	return c.meet(l, info, hub.Node, where)
}

// mostHello is the longest introduction that is read, in bytes.
const mostHello = 64 << 10

// withoutUsualPort is an address as a user types it.
func withoutUsualPort(at netip.AddrPort) string {
	if at.Port() == DefaultPort {
		return at.Addr().String()
	}
	return at.String()
}

// decodeHello reads how an agent of another host introduces itself. where is that host; "" is one of a fleet.
func (c *Controller) decodeHello(answer []byte, where string) (AgentInfo, error) {
	var who struct { // another version is told apart from rubbish
		ID, Version string
		Protocol    int
	}
	understood := json.Unmarshal(answer, &who) == nil
	if where == "" && model.IsHostName(who.ID) {
		where = who.ID
	}
	if understood && who.Protocol > 0 && who.Protocol != protocolVersion {
		return AgentInfo{}, otherVersion(where, c.version, short(model.PrintableText(who.Version)), who.Protocol)
	}
	info, err := decode[AgentInfo](answer[:min(len(answer), mostHello)])
	model.Clamp(&info)
	if err == nil && !model.IsHostName(info.ID) {
		err = finding.NewFault(model.AgentNameWrong, "name", fmt.Sprintf("%.70q", info.ID))
	}
	if err != nil {
		err = finding.Because(err, model.HelloUnread, "address", where)
	}
	return info, err
}

// meet takes in an agent that introduced itself.
func (c *Controller) meet(l *link, info AgentInfo, node, where string) error {
	other, known := c.member(info.ID)
	switch {
	case info.Observer && node != routerNode:
		return finding.NewFault(model.ObserverNoEnd, "address", where)
	case !info.Observer && node == routerNode:
		return finding.NewFault(model.EndNoObserver, "address", where)
	case known:
		return finding.NewFault(model.SameServe, "address", where, "node", other.info.Node, "name", other.at)
	}
	info.Node = cmp.Or(node, info.Node)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members = append(c.members, member{info, where, l})
	return nil
}

func (c *Controller) member(id string) (m member, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.members, func(m member) bool { return m.info.ID == id })
	if i < 0 {
		return m, false
	}
	return c.members[i], true
}

// Agents lists who can take part, the sender's side first.
func (c *Controller) Agents() (all []AgentInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.members {
		all = append(all, m.info)
	}
	return all
}

// Close cuts running trials and leaves every hub.
func (c *Controller) Close() error {
	for _, l := range c.links {
		l.close()
	}
	return nil
}

// give gives one order; the error names the host.
func give[A any](ctx context.Context, m member, verb string, q any) (answer A, err error) {
	data, err := json.Marshal(q)
	if err == nil {
		data, err = m.link.request(ctx, orderSubject(m.info.ID, verb, m.link.client), data)
	}
	if err == nil {
		answer, err = decode[A](data)
	}
	if err != nil {
		return answer, &HostError{m.info.ID, m.info.Node, m.at, err}
	}
	return answer, nil
}
