package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"pelt/engine"
	"pelt/engine/udp"
	"pelt/finding"
	"pelt/fleet"
	"pelt/internal/bind"
	"pelt/model"
)

// openHosts makes a site of this host, or of the plan's near one, and the target; a router
// may be watched between them.
func openHosts(ctx context.Context, p model.Plan, o Options) (_ *site, err error) {
	if p.Receivers > 0 {
		return nil, refuse("receivers", "are for lab:star and fleet:")
	}
	if err := checkDevice(p.Device); err != nil {
		return nil, err
	}
	far, more, err := controlAddresses(ctx, p.Target, p.Flows[0].Family)
	if err != nil {
		return nil, err
	}
	codes, err := codesOf(o.Code, p)
	if err != nil {
		return nil, err
	}
	s := &site{engine: p.Engine, noXDP: model.FirstReason(o.records.needsSockets(), boundSockets(p.Device))}
	s.nodes = []node{{name: model.Sender, end: true},
		{name: model.Receiver, end: true, address: func(int) netip.Addr { return s.end(model.Receiver).agent.Reached }}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if p.Near == "" {
		way := func(h *model.Host) { // the far address may change until it is reached
			reaching(cmp.Or(s.end(model.Receiver).agent.Reached, far.Addr()), p.Device)(h)
		}
		agent, _ := s.agentHere(model.Sender, engine.ThisHost{}, o, udp.Config{Device: p.Device}, way)
		join := func() error {
			return s.join(ctx, o, []fleet.AgentConfig{agent},
				fleet.HubAddress{Addr: far, More: more, Code: codes.far, From: p.Flows[0].Source(0),
					Device: p.Device})
		}
		if p.Drops == model.DropsOff {
			err = join()
		} else {
			err = whileCalling(far.Port(), append([]netip.Addr{far.Addr()}, more...), join)
		}
		if h := &s.nodes[0].agent.Host; err == nil {
			way(h)
		}
	} else {
		err = s.commandTwo(ctx, p.Near, far, more, codes, o)
	}
	if err != nil {
		return nil, err
	}
	h := &s.nodes[1].agent.Host
	h.Address, h.OtherAddresses = s.nodes[1].agent.Reached.String(), nil
	for _, a := range append(more, far.Addr()) {
		if a != s.nodes[1].agent.Reached {
			h.OtherAddresses = append(h.OtherAddresses, a.String())
		}
	}
	near, there := s.nodes[0].agent.Host, s.nodes[1].agent.Host
	s.oneClock = near.Boot != "" && near.Boot == there.Boot
	s.setVariants(p.Variants, setByHost)
	return s, s.watchRouter(ctx, p, codes.router, o.Version)
}

// checkDevice refuses what this host's sockets cannot be bound to.
func checkDevice(name string) error {
	if name == "" {
		return nil
	}
	switch err := bind.Check(name); {
	case errors.Is(err, errors.ErrUnsupported):
		return refuse("--dev", "only Linux binds sockets to an interface")
	case errors.Is(err, syscall.ENODEV):
		return refuse("--dev", "no interface of this host is named %s: ip link shows their names", name)
	case errors.Is(err, syscall.EPERM):
		return refuse("--dev", "before Linux 5.7 only root may bind a socket to an interface")
	default:
		return err
	}
}

// boundSockets is why sockets carry all flows of a host that calls over a device; without a code it names none.
func boundSockets(device string) (why model.Reason) {
	if device != "" {
		why.Code = model.FramesDevice
	}
	return why
}

// commandTwo takes command of two far hosts: one sends, the other receives.
func (s *site) commandTwo(ctx context.Context, at string, far netip.AddrPort, more []netip.Addr, codes hostCodes,
	o Options) error {
	near, others, err := controlAddresses(ctx, at, 0) // control may be of another IP version than data
	if err != nil {
		return err
	}
	for _, a := range append([]netip.Addr{far.Addr()}, more...) {
		if err := checkFarAddress(near.Addr(), a); err != nil {
			return err
		}
	}
	return s.command(ctx, o, fleet.HubAddress{Addr: near, More: others, Code: codes.near, Node: model.Sender},
		fleet.HubAddress{Addr: far, More: more, Code: codes.far, Node: model.Receiver})
}

// controlAddresses resolves the control address of a pelt serve. A name may have more addresses, at the same port.
func controlAddresses(ctx context.Context, text string, family int) (first netip.AddrPort, more []netip.Addr,
	err error) {
	host, port, err := model.HostPort(text)
	if err != nil {
		return first, nil, err
	}
	all, err := fleet.Resolve(ctx, host, family)
	if err != nil {
		return first, nil, err
	}
	return netip.AddrPortFrom(all[0], cmp.Or(port, fleet.DefaultPort)), all[1:], nil
}

// checkFarAddress refuses a far address that names another host when the near host uses it.
func checkFarAddress(near, far netip.Addr) error {
	what := ""
	switch {
	case far.IsLoopback() && !near.IsLoopback():
		what = "each host itself"
	case far.IsLinkLocalUnicast():
		what = "of one link of this host"
	default:
		return nil
	}
	return refuse("target", "the near host calls it by this address, and %v is %s; want one that the near host reaches",
		far, what)
}

// hostCodes are those of the pelt serves that a plan needs.
type hostCodes struct{ near, far, router string }

// codesOf reads them: one text for all, or one each with commas between, in the
// order near, far, router.
func codesOf(text string, p model.Plan) (codes hostCodes, err error) {
	into, names := []*string{&codes.far}, []string{"FAR"}
	if p.Near != "" {
		into, names = slices.Insert(into, 0, &codes.near), slices.Insert(names, 0, "NEAR")
	}
	if strings.HasPrefix(p.DUT, model.AgentDUT) {
		into, names = append(into, &codes.router), append(names, "ROUTER")
	}
	words := strings.Split(text, ",")
	switch {
	case len(words) == 1:
		words = slices.Repeat(words, len(into))
	case len(into) == 1:
		return codes, refuse("--code", "want one code: one host alone asks for it")
	case len(words) != len(into):
		hosts := "both hosts, or two"
		if len(into) > 2 {
			hosts = "all hosts, or three"
		}
		return codes, refuse("--code", "want one code for %s as %s", hosts, strings.Join(names, ","))
	}
	for i, word := range words {
		*into[i] = strings.TrimSpace(word)
	}
	return codes, nil
}

// commandLimit is how long a command may take to set a router up.
const commandLimit = 2 * time.Minute

// setVariants has apply set up the router under test: before each trial as its variant says, and after the last trial
// as the first variant says.
func (s *site) setVariants(variants []model.Variant, apply func(context.Context, model.Variant) error) {
	if len(variants) == 0 {
		return
	}
	now, begun := "", false // now is "" after a variant that failed, too
	s.set = append(s.set, func(ctx context.Context, t model.Trial) error {
		if t.Variant == now || t.Variant == "" {
			return nil
		}
		i := slices.IndexFunc(variants, func(v model.Variant) bool { return v.Name == t.Variant })
		now, begun = "", true
		if err := apply(ctx, variants[i]); err != nil {
			return fmt.Errorf("variant %s: %w", t.Variant, err)
		}
		now = t.Variant
		return nil
	})
	s.restore = func() error {
		if !begun || now == variants[0].Name {
			return nil
		}
		if err := apply(context.Background(), variants[0]); err != nil {
			return (&finding.Fault{Reason: model.Reason{Code: model.NotRestored, Name: variants[0].Name,
				Of: model.Reasons{bySystem(err)}}}).From(err)
		}
		return nil
	}
}

// setByHost sets a real router up by a command on this host.
func setByHost(ctx context.Context, v model.Variant) error {
	return runCommand(ctx, v.Command, func(ctx context.Context, command string) ([]byte, error) {
		c := exec.CommandContext(ctx, "sh", "-c", command)
		c.WaitDelay = time.Second // what it started may hold its output open
		return c.CombinedOutput()
	})
}

// runCommand runs a user's command, if there is one, within commandLimit.
func runCommand(ctx context.Context, command string, run func(context.Context, string) ([]byte, error)) error {
	if command == "" {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	out, err := run(limited, command)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		return finding.NewFault(model.CommandLong, "after_s", commandLimit.Seconds(), "command", command)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return finding.NewFault(model.CommandFailed, "text", err, "command", command,
			"output", lastLine(string(out))).From(err)
	}
	return nil
}

// lastLine returns the last line of a program's output as a quoted text; "" if there is none.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return fmt.Sprintf("%.200q", last)
	}
	return ""
}
