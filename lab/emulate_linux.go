package lab

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"

	"github.com/vishvananda/netlink"

	"pelt/internal/spare"
	"pelt/lab/impair"
	"pelt/lab/userlink"
)

// tapQueue is how many frames may wait for this process to read them: some 5 ms
// at two million a second.
const tapQueue = 10_000

// emulate joins two nodes by a cable whose frames this process moves.
func (b *builder) emulate(k *Link, ports [2]port) error {
	if b.lab.pool == nil {
		threads := min(runtime.NumCPU(), 2*len(b.spec.links))
		// the sender over so many links has more to do than one of these threads, and needs a core, too
		if b.spec.many() {
			threads = max(runtime.NumCPU()/2, 1)
		}
		pool, err := userlink.NewPool(threads, linkMemory())
		if err != nil {
			return err
		}
		b.lab.pool = pool
	}
	var ends [2]userlink.End
	for d := range k.ways {
		k.draw(d, b.lab.seed)
		ends[d] = userlink.End{Do: k.ways[d].node.Do, Name: k.ways[d].iface}
	}
	var err error
	if k.cable, err = b.lab.pool.Open(ends[0], ends[1],
		[2]impair.Settings{k.ways[0].settings, k.ways[1].settings}); err != nil {
		return missing("TAP interfaces, so no link can be emulated", "CONFIG_TUN, module tun", err)
	}
	for d := range ports {
		if err := b.plug(b.end(k, ports, d), k.plan.MTU); err != nil {
			return err
		}
	}
	return nil
}

// linkMemory is how many bytes all emulated links of a lab may take.
func linkMemory() int64 {
	if n := spare.Memory(64<<20, 16<<30); n > 0 {
		return int64(n)
	}
	return 1 << 30
}

// draw has a direction do what its plan says. Drawn is the seed where none is asked.
func (k *Link) draw(d int, drawn uint64) {
	w := &k.ways[d]
	set := settingsOf(k.plan.Toward[d])
	seed := cmp.Or(set.Seed, drawn)
	if w.changes++; w.seed != seed { // a link made with that seed draws the same
		w.seed, w.changes = seed, 0
	}
	set.Seed = seedOf(seed, k.number, d)
	if w.changes > 0 { // or each change would bring the first draws again
		set.Seed = split(set.Seed, w.changes)
	}
	w.settings = set
}

// plug makes a new TAP what an end of a virtual cable is.
func (b *builder) plug(e vethEnd, mtu int) error {
	link, err := e.s.link(e.name)
	if err != nil {
		return err
	}
	err = errors.Join(e.s.rt.LinkSetMTU(link, mtu), e.s.rt.LinkSetTxQLen(link, tapQueue))
	if e.mac != nil {
		err = errors.Join(err, e.s.rt.LinkSetHardwareAddr(link, e.mac))
	}
	if err != nil {
		return fmt.Errorf("set MTU, queue and address of %s: %w", e.name, err)
	}
	if err := e.s.bare(link); err != nil {
		return fmt.Errorf("take the queue discipline off %s: %w", e.name, err)
	}
	b.ends = append(b.ends, e)
	return b.raise(e.s, e.name, mtu)
}

// bare leaves an interface no queue discipline, as a virtual cable's end has none: a TAP of which one is only deleted
// gets the kernel's default, which would have a say before the link.
func (s *space) bare(link netlink.Link) error {
	return s.rt.QdiscReplace(&netlink.GenericQdisc{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index,
			Parent: netlink.HANDLE_ROOT}, QdiscType: "noqueue"})
}

// overrun is how many frames this process was too slow to take from the interface since
// it was made.
func (w way) overrun() (frames uint64, err error) {
	err = w.node.Do(func() error {
		link, err := netlink.LinkByName(w.iface)
		if err == nil && link.Attrs().Statistics != nil {
			frames = link.Attrs().Statistics.TxDropped
		}
		return err
	})
	return frames, err
}
