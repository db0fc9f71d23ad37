package lab

import (
	"cmp"
	"fmt"
	"net"
	"runtime"

	"github.com/vishvananda/netlink"

	"pelt/lab/userlink"
	"pelt/model"
)

// tapQueue is how many frames may wait for this process to read them: some 5 ms
// at two million a second.
const tapQueue = 10_000

// emulate joins two nodes by the backend that was chosen for the link.
func (b *builder) emulate(link int, pa, pb port) error {
	c := b.lab.links[link].by
	if c.backend != model.BackendUser {
		return b.emulateInKernel(link, pa, pb, c)
	}
	return b.emulateInUserSpace(link, pa, pb)
}

// emulateInUserSpace joins two nodes by a cable whose frames this process moves.
func (b *builder) emulateInUserSpace(link int, pa, pb port) error {
	if b.lab.pool == nil {
		threads := min(runtime.NumCPU(), 2*len(b.spec.links))
		if b.spec.many() { // who sends over so many links has more to do than one of these threads, and needs a core, too
			threads = max(runtime.NumCPU()/2, 1)
		}
		pool, err := userlink.NewPool(threads)
		if err != nil {
			return err
		}
		b.lab.pool = pool
	}
	k := b.lab.links[link]
	for direction, s := range k.plan.toward {
		set := s.settings()
		k.seeds[direction] = cmp.Or(set.Seed, b.lab.seed)
		set.Seed = seedOf(k.seeds[direction], link, direction)
		k.settings[direction] = set
	}
	var ends [2]userlink.End
	for i, p := range []port{pa, pb} {
		k.nodes[i], k.names[i] = b.lab.nodes[p.node], b.spec.ifaceName(link, p.node)
		ends[i] = userlink.End{Do: b.spaces[p.node].ns.Do, Name: k.names[i]}
	}
	var err error
	if k.cable, err = b.lab.pool.Open(ends[0], ends[1], k.settings); err != nil {
		return missing("TAP interfaces, so no link can be emulated in user space", "CONFIG_TUN, module tun", err)
	}
	for i, p := range []port{pa, pb} {
		if err := b.plug(b.spaces[p.node], k.names[i], b.macOf(p), k.plan.mtu); err != nil {
			return err
		}
	}
	return nil
}

// plug makes a new TAP what an end of a virtual cable is.
func (b *builder) plug(s *space, name string, mac net.HardwareAddr, mtu int) error {
	link, err := s.link(name)
	if err != nil {
		return err
	}
	if err := s.rt.LinkSetMTU(link, mtu); err != nil {
		return fmt.Errorf("set the MTU of %s to %d B: %w", name, mtu, err)
	}
	if mac != nil {
		if err := s.rt.LinkSetHardwareAddr(link, mac); err != nil {
			return fmt.Errorf("set the address of %s: %w", name, err)
		}
	}
	if err := s.rt.LinkSetTxQLen(link, tapQueue); err != nil {
		return fmt.Errorf("set the queue of %s: %w", name, err)
	}
	// As a virtual cable's: a queue of the kernel's before the link would have a say.
	none := &netlink.GenericQdisc{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Parent: netlink.HANDLE_ROOT}, QdiscType: "noqueue"}
	if err := s.rt.QdiscReplace(none); err != nil {
		return fmt.Errorf("take the queue discipline off %s: %w", name, err)
	}
	b.ends = append(b.ends, vethEnd{s: s, name: name})
	return b.raise(s, name, mtu)
}

// overrun is how many frames each direction was too slow to take, since the lab
// was made.
func (k *Link) overrun() (frames [2]uint64, err error) {
	for i, n := range k.nodes {
		err := n.Do(func() error {
			link, err := netlink.LinkByName(k.names[i])
			if err != nil {
				return err
			}
			if s := link.Attrs().Statistics; s != nil {
				frames[i] = s.TxDropped
			}
			return nil
		})
		if err != nil {
			return frames, fmt.Errorf("read the counters of %s of %s: %w", k.names[i], k.Ends[i], err)
		}
	}
	return frames, nil
}
