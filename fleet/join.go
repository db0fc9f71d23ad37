package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"pelt/finding"
	"pelt/model"
	"pelt/words"
)

// Join has an agent obey the controllers of a hub on another host until ctx ends; the error is nil then. The
// connection is made anew whenever it breaks. All clients of the hub count as one, at the hub's address, and one
// of them at a time has sessions here. ready, if set, is called once with what the agent is on the hub.
func Join(ctx context.Context, hub HubAddress, cfg AgentConfig, ready func(AgentInfo)) error {
	a, err := newAgent(cfg)
	if err != nil {
		return err
	}
	l, err := hub.dial(ctx, a.cfg.ID, true)
	if err != nil {
		return err
	}
	at := l.remote()
	a.cfg.clientOf = func(string) netip.Addr { return at.Addr() }
	a.alone = true
	tell := a.cfg.Events
	a.cfg.events = func(_ string, said error) { tell(said) }
	taken := make(chan time.Time, 1) // gets when another host of that name joined
	ask := func() bool {
		joined, is := l.nameTaken(ctx, a.cfg.ID)
		if is {
			select {
			case taken <- joined:
			default:
			}
		}
		return is
	}
	answered := make(chan bool, 1)
	go func() { answered <- ask() }()
	select {
	case is := <-answered:
		if is {
			err = nameTakenError(a.cfg.ID)
		}
	case <-ctx.Done():
	case <-time.After(nameWait): // the connection that has the name may be dead
		tell(words.Errorf("another host named %s may be on the hub, and has not answered for %v: "+
			"this one leaves if it does", a.cfg.ID, nameWait))
	}
	if err == nil {
		a.join()
		err = a.serve(l)
	}
	if err != nil {
		l.close()
		return err
	}
	l.mu.Lock()
	l.told = func(connected bool) {
		if !connected {
			tell(words.Errorf("the hub is away; this host joins again when it is back"))
			return
		}
		tell(words.Errorf("joined again"))
		a.join()
		go ask() // another host may have come meanwhile
	}
	l.mu.Unlock()
	if ready != nil {
		ready(a.info(at.Addr()))
	}
	again := func() {}
	if hub.NATS != "" { // the server asked may not have heard yet of a host at another one
		again = func() { go ask() }
	}
	err = a.remain(ctx, taken, again)
	a.shutdown(model.NewReason(model.PeltStopped, "name", "pelt join"))
	return err
}

// remain returns when a host that has joined is to leave its hub: without an error at the end of ctx. It asks again for
// another host of its name, of which taken tells.
func (a *Agent) remain(ctx context.Context, taken <-chan time.Time, ask func()) error {
	at := a.link.remote()
	wait := askAgain
	again := time.NewTimer(wait)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
			ask()
			if wait *= 2; wait < time.Minute {
				again.Reset(wait)
			}
		case other := <-taken:
			if !other.After(a.joinedAt()) { // else both found the name free, and the other one leaves
				return nameTakenError(a.cfg.ID)
			}
		case <-a.link.lost:
			if a.link.refused.Load() {
				return words.Errorf("the hub at %v has another code now: start this again with that one", at)
			}
			return words.Errorf("the connection to the hub at %v was lost for good", at)
		}
	}
}

// dialNATS connects to servers of the user's own. Their accounts decide who may do what.
func (l *link) dialNATS(hub HubAddress) (*link, error) {
	opts := append(l.options(), l.reconnecting()...)
	// Servers that start again may refuse for a while.
	opts = append(opts, nats.Timeout(dialTimeout), nats.IgnoreAuthErrorAbort())
	if hub.Credentials != "" {
		if _, err := os.Stat(hub.Credentials); err != nil {
			return nil, finding.NewFault(model.CredentialsUnread, "text", err).From(err)
		}
		opts = append(opts, nats.UserCredentials(hub.Credentials))
	}
	nc, err := nats.Connect(hub.NATS, opts...)
	var text *url.Error
	var address *net.AddrError
	var dns *net.DNSError
	var network *net.OpError
	switch {
	case errors.Is(err, nats.ErrAuthorization):
		return nil, finding.NewFault(model.NATSForbids).From(err)
	case errors.As(err, &text), errors.As(err, &address): // not repeated: there may be a password in it
		return nil, model.NewFieldError("--nats", "want URLs of servers, as nats://192.0.2.7:4222")
	case errors.As(err, &dns) && dns.IsNotFound:
		return nil, finding.NewFault(model.HostUnknown, "host", dns.Name).From(err)
	case errors.Is(err, nats.ErrNoServers), errors.As(err, &network):
		return nil, finding.NewFault(model.NATSSilent).From(err)
	case err != nil:
		said := fmt.Sprintf("%.200q", strings.TrimPrefix(err.Error(), "nats: "))
		return nil, finding.NewFault(model.NATSRefuses, "said", said).From(err)
	}
	l.use(nc)
	return l, nil
}

// remote is the address of the other host of a connection.
func (l *link) remote() netip.AddrPort {
	if raw := l.socket(); raw != nil {
		return addrPortOf(raw.RemoteAddr().String())
	}
	return addrPortOf(l.nc.ConnectedAddr())
}

// addresses are those of this end: its own, and where the other end sees it come from, invalid if that is not told. A
// connection that was made anew may have others.
func (l *link) addresses() (own, seen netip.Addr) {
	l.mu.Lock()
	raw, seen := l.raw, l.seen
	l.mu.Unlock()
	if raw != nil {
		return addrPortOf(raw.LocalAddr().String()).Addr(), seen
	}
	if ip, err := l.nc.GetClientIP(); err == nil { // old servers do not tell
		a, _ := netip.AddrFromSlice(ip)
		seen = a.Unmap()
	}
	return addrPortOf(l.nc.LocalAddr()).Addr(), seen
}

func addrPortOf(text string) netip.AddrPort {
	a, _ := netip.ParseAddrPort(text) // what is not one is invalid
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// nameWait is how long a host that joins waits for another one that may have its name.
const nameWait = 2 * time.Second

// nameTaken asks the hub for another host of a name. It returns when that joined, or false once the server knows of
// none, or at the end of ctx. An answer may be late.
func (l *link) nameTaken(ctx context.Context, id string) (joined time.Time, is bool) {
	answer, err := l.ask(ctx, orderSubject(id, verbHello, l.client), nil)
	if err != nil {
		return joined, false
	}
	var other AgentInfo
	if body, err := open(answer); len(answer) <= mostHello && err == nil {
		_ = json.Unmarshal(body, &other) // who does not tell was there before
	}
	return other.Joined, true
}

func nameTakenError(id string) error {
	return words.Errorf("a host named %s is on the hub already: choose another --name", id)
}

// Time for the agents of a fleet to answer: since the last answer, or since the hub said that one is not there; since
// the last answer of those that are named, or without any; and for all.
const (
	helloQuiet = 700 * time.Millisecond
	helloFirst = 5 * time.Second
	helloMost  = 15 * time.Second
	askAgain   = 500 * time.Millisecond // servers of a cluster hear of new agents one after the other
)

// NewFleetController connects to a hub of many hosts and meets the agents named, or all that answer. Errors are one
// line that says what was found there and what to do.
func NewFleetController(ctx context.Context, version string, hub HubAddress, names ...string) (*Controller, error) {
	l, err := hub.dial(ctx, "", true)
	if err != nil {
		return nil, err
	}
	c := &Controller{version: version, trials: map[string]*trial{}}
	if err = c.command(l); err == nil {
		err = c.meetFleet(ctx, l, names)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Meet asks the hub of a fleet for agents that joined since, or came again.
func (c *Controller) Meet(ctx context.Context) error {
	return c.meetFleet(ctx, c.links[0], nil)
}

func (c *Controller) meetFleet(asked context.Context, l *link, names []string) error {
	ctx, cancel := context.WithTimeout(asked, helloMost)
	defer cancel()
	answers := make(chan *nats.Msg, maxConnections)
	inbox := l.nc.NewInbox() + "."
	sub, err := l.subscribe(inbox+"*", func(m *nats.Msg) {
		if len(m.Data) <= mostHello {
			select {
			case answers <- m:
			default: // it is asked again
			}
		}
	})
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only if the connection is gone
	missing, absent := map[string]bool{}, map[string]bool{}
	for _, name := range names {
		missing[name] = true
	}
	all, unreachable, heard := len(names) == 0, false, map[string]bool{}
	ask := func() { // if it fails, nobody answers
		if all || len(absent) > 0 { // those of other versions know this subject alone
			_ = l.nc.PublishRequest(helloSubject, inbox+"=", nil) // no name
		}
		for name := range missing {
			_ = l.nc.PublishRequest(orderSubject(name, verbHello, l.client), inbox+name, nil)
		}
	}
	ask()
	quiet, began := time.NewTimer(helloFirst), time.Now()
	again := time.NewTicker(askAgain)
	defer again.Stop()
	for all || len(missing) > 0 {
		select {
		case m := <-answers:
			if len(m.Data) == 0 { // the server knows of no such agent
				if name := strings.TrimPrefix(m.Subject, inbox); missing[name] && !absent[name] {
					absent[name] = true
					ask()
					quiet.Reset(helloQuiet)
				}
				continue
			}
			body, err := open(m.Data)
			var info AgentInfo
			if err == nil {
				info, err = c.decodeHello(body, "")
			}
			who := info.ID
			if err != nil {
				who = err.Error()
			}
			// Where the slowest so far took long, another one may take twice as long; and whoever is asked again may
			// take as long as at first.
			if took := time.Since(began); all && !heard[who] {
				quiet.Reset(max(helloQuiet, 2*took, askAgain+helloQuiet-took))
			}
			heard[who] = true
			switch {
			case err != nil: // the others can be used
				c.leaveOut(err)
			case !info.Address.IsValid(): // as of a pelt serve
				unreachable = true
				c.leaveOut(finding.NewFault(model.AddressUntold, "host", info.ID))
			case all:
				c.enter(l, info)
			case missing[info.ID]:
				c.enter(l, info)
				delete(missing, info.ID)
				delete(absent, info.ID)
				if len(absent) == 0 {
					quiet.Reset(helloFirst)
				}
			}
			continue
		case <-again.C:
			ask()
			continue
		case <-quiet.C:
		case <-ctx.Done():
		}
		break
	}
	if unreachable && len(c.Agents()) == 0 {
		return noHubError(l.remote())
	}
	for _, name := range names {
		if absent[name] || len(absent) == 0 && missing[name] {
			why := finding.NewFault(model.HostUnlisted, "name", name)
			for _, unfit := range c.Unfit() {
				why.Of = append(why.Of, finding.ReasonOf(unfit))
			}
			return why
		}
	}
	return asked.Err()
}

// maxUnfit is how many hosts that cannot be used are told.
const maxUnfit = 64

// leaveOut remembers why a host cannot be used. It is asked more than once.
func (c *Controller) leaveOut(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	told := func(one error) bool { return one.Error() == why.Error() }
	if !slices.ContainsFunc(c.unfit, told) && len(c.unfit) < maxUnfit {
		c.unfit = append(c.unfit, why)
	}
}

// Unfit says which hosts of a fleet answered as no agent of this version does.
func (c *Controller) Unfit() []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.unfit)
}

// enter adds an agent of a fleet to the members, or replaces what was known of it.
func (c *Controller) enter(l *link, info AgentInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.members, func(m member) bool { return m.info.ID == info.ID }); i >= 0 {
		c.members[i].info = info
	} else if len(c.members) < 2*maxConnections { // no hub has more
		c.members = append(c.members, member{info, "", l})
	}
}
