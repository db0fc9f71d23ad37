//go:build amd64 || arm64

package drops

import (
	"cmp"
	"fmt"
	"slices"

	"pelt/model"
)

// Collect tells what this kernel dropped of a trial so far. It takes nothing
// away: both ends of one process get the same account. Without the sequences it is cheap
// enough to be asked each second.
func (m *Machine) Collect(number uint16, sequences bool) (model.Drops, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var d model.Drops
	if m.closed {
		return d, errClosed
	}
	t := m.trials[number]
	if t == nil {
		return d, fmt.Errorf("collect drops: trial %d is not tracked", number)
	}
	sums, err := m.tallies()
	if err != nil {
		return d, err
	}
	m.drain()
	if err := m.names.refresh(m.objects.Sites); err != nil {
		return d, err
	}
	m.names.resolve(&m.kernel)
	m.names.locate()
	c := collection{names: &m.names, index: map[uint32]int{}, sites: map[model.Site]int{}}
	for _, f := range t.flows {
		var rest bpfRest
		if err := m.objects.Rests.Lookup(f.id, &rest); err != nil {
			return d, fmt.Errorf("read what found no room: %w", err)
		}
		d.SitesLost += rest.Sites
		d.Overwritten += rest.Overwritten
		account := c.flow(f, sums, sequences)
		if f.way != "" && len(account.Counts) == 0 {
			continue // a thousand flows have met without a loss
		}
		for _, n := range account.Counts {
			d.Unreadable += n.Unreadable
		}
		for _, s := range f.streams {
			d.Overwritten += s.store.refused
		}
		d.Flows = append(d.Flows, account)
	}
	d.Sites = c.list
	return d, nil
}

// collection gathers the sites that one account names. Several of the kernel's
// may be one in words.
type collection struct {
	names *names
	index map[uint32]int // by the kernel's id
	sites map[model.Site]int
	list  []model.Site
}

func (c *collection) site(id uint32) (int, bool) {
	if i, ok := c.index[id]; ok {
		return i, true
	}
	s, ok := c.names.site(id)
	if !ok {
		return 0, false
	}
	i, ok := c.sites[s]
	if !ok {
		i = len(c.list)
		c.sites[s] = i
		c.list = append(c.list, s)
	}
	c.index[id] = i
	return i, true
}

func (c *collection) flow(f *flow, sums map[bpfTallyKey]bpfTally, sequences bool) model.FlowDrops {
	out := model.FlowDrops{Flow: f.name, Way: f.way}
	by := map[int]*model.SiteCount{}
	var ids []uint32
	for k := range sums {
		if k.Flow == f.id {
			ids = append(ids, k.Site)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		i, ok := c.site(id)
		if !ok {
			continue // cannot be: a site is made before its tally
		}
		v := sums[bpfTallyKey{Flow: f.id, Site: id}]
		n := by[i]
		if n == nil {
			n = &model.SiteCount{Site: i}
			by[i] = n
		}
		n.Packets += v.Packets - f.warmup[id]
		n.Unreadable += v.Unreadable
		n.Warmup += v.Warmup + f.warmup[id]
		n.Fragments += v.Fragments
	}
	for _, n := range by {
		out.Counts = append(out.Counts, *n)
	}
	slices.SortFunc(out.Counts, func(a, b model.SiteCount) int { return cmp.Compare(a.Site, b.Site) })
	if f.mode != model.DropsSeq || !sequences {
		return out
	}
	for _, s := range f.streams {
		out.Streams = append(out.Streams, s.store.marks(func(id uint16) (uint16, bool) {
			i, ok := c.site(uint32(id))
			return uint16(i), ok
		}))
	}
	return out
}
