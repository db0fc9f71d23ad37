//go:build amd64 || arm64

package fastpath

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"pelt/internal/kerneltypes"
)

// Path is an open fast path. It is turned off at first. Its methods may be called
// concurrently, but not with Close, which is called once.
type Path struct {
	objects fastObjects
	hooks   []link.Link
}

// reasons names the exits of the program.
func reasons() [fastReasonREASONS]string {
	return [...]string{
		fastReasonCARRIED:   Carried,
		fastReasonOFF:       "off",
		fastReasonFOREIGN:   "foreign",
		fastReasonCUT:       "cut",
		fastReasonOPTIONS:   "options",
		fastReasonFRAGMENT:  "fragment",
		fastReasonHOP_LIMIT: "hop-limit",
		fastReasonDAMAGED:   "damaged",
		fastReasonPROTOCOL:  "protocol",
		fastReasonOPENING:   "opening",
		fastReasonUNKNOWN:   "unknown",
		fastReasonUNSETTLED: "unsettled",
		fastReasonUNSUMMED:  "unsummed",
		fastReasonNO_ROUTE:  "no-route",
		fastReasonTOO_LONG:  "too-long",
		fastReasonFULL:      "full",
	}
}

// Load gets the program ready for two interfaces. The program is nowhere yet.
// The error is errors.ErrUnsupported where the kernel lacks what the program asks,
// and unix.EPERM without CAP_BPF and CAP_NET_ADMIN.
func Load(ports [2]Port, t Timeouts) (*Path, error) {
	spec, err := loadFast()
	if err != nil {
		return nil, fmt.Errorf("load the fast path: %w", err)
	}
	var own [fastLimitsPORTS]fastPort
	for i, p := range ports {
		own[i] = fastPort{Index: uint32(p.Index), Address: p.Address}
	}
	for name, value := range map[string]any{
		fastVarPorts: own, fastVarUdpMs: milliseconds(t.UDP), fastVarUdpStreamMs: milliseconds(t.UDPStream),
		fastVarTcpMs: milliseconds(t.TCP),
	} {
		if err := spec.Variables[name].Set(value); err != nil {
			return nil, fmt.Errorf("load the fast path: %w", err)
		}
	}
	options := &ebpf.CollectionOptions{Cache: kerneltypes.Cache()}
	// Where connection tracking is a module, its types are described there.
	module, err := kerneltypes.Cache().Module("nf_conntrack")
	if err == nil {
		options.Programs.ExtraRelocationTargets = []*btf.Spec{module}
	}
	p := &Path{}
	err = spec.LoadAndAssign(&p.objects, options)
	if errors.Is(err, ebpf.ErrNotSupported) {
		err = fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	if errors.Is(err, unix.EPERM) {
		err = unix.EPERM // without advice on memory limits, which Linux 5.11 has done away with
	}
	if err != nil {
		return nil, fmt.Errorf("load the fast path: %w", err)
	}
	return p, nil
}

func milliseconds(d time.Duration) uint32 { return uint32(d.Milliseconds()) }

// Attach puts the program on one of the interfaces, in the calling thread's
// namespace, as its driver's own. It leaves with Close, or with the process.
func (p *Path) Attach(index int) error {
	hook, err := link.AttachXDP(link.XDPOptions{Program: p.objects.Pass, Interface: index, Flags: link.XDPDriverMode})
	if err != nil {
		return fmt.Errorf("attach the fast path: %w", err)
	}
	p.hooks = append(p.hooks, hook)
	return nil
}

// Carry turns the fast path on or off, for the frames that come from then on.
func (p *Path) Carry(on bool) error {
	program := p.objects.Pass
	if on {
		program = p.objects.Carry
	}
	for _, h := range p.hooks {
		if err := h.Update(program); err != nil {
			return fmt.Errorf("turn the fast path on or off: %w", err)
		}
	}
	return nil
}

// Counts are the frames that came to the interfaces since Attach, by what became
// of them. All reasons are there, in a fixed order.
func (p *Path) Counts() ([]Count, error) {
	var list []Count
	for reason, name := range reasons() {
		var each []uint64 // by core
		if err := p.objects.Counts.Lookup(uint32(reason), &each); err != nil {
			return nil, fmt.Errorf("read the counts of the fast path: %w", err)
		}
		c := Count{Reason: name}
		for _, n := range each {
			c.Frames += n
		}
		list = append(list, c)
	}
	return list, nil
}

// Close takes the program off. It tries all and joins the errors.
func (p *Path) Close() error {
	var errs []error
	for _, h := range slices.Backward(p.hooks) {
		errs = append(errs, h.Close())
	}
	return errors.Join(append(errs, p.objects.Close())...)
}
