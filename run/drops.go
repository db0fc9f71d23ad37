package run

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pelt/finding"
	"pelt/ledger"
	"pelt/model"
	"pelt/observe/drops"
)

// Drops is a live watch over what this host's kernel drops, of any traffic. Its
// methods are for one goroutine.
type Drops struct {
	live   *drops.Live
	filter DropsFilter
	begun  time.Time
	last   time.Time
	before map[drops.LiveDrop]tally // by place in the kernel and flow, without counts
	spaces map[uint64]string        // namespaces by inode
}

type tally struct{ packets, bytes uint64 }

// DropsFilter limits a watch to what fits one of each of its lists; an empty list fits all. The kernel looks at ports.
// The others are judged here: what is left out takes room in the kernel's table.
type DropsFilter struct {
	Ports      []uint16       // TCP and UDP from or to them
	Hosts      []netip.Prefix // from or to an address in them
	Interfaces []string       // names, in any namespace
}

// String is the filter for people; "" without one.
func (f DropsFilter) String() string {
	var parts []string
	for _, one := range []struct {
		name string
		list []string
	}{{"port", texts(f.Ports)}, {"host", texts(f.Hosts)}, {"interface", f.Interfaces}} {
		if len(one.list) > 0 {
			parts = append(parts, one.name+" "+strings.Join(one.list, " or "))
		}
	}
	return strings.Join(parts, ", ")
}

func texts[T any](list []T) (out []string) {
	for _, x := range list {
		text := fmt.Sprint(x)
		if p, is := any(x).(netip.Prefix); is && p.IsSingleIP() {
			text = p.Addr().String()
		}
		out = append(out, text)
	}
	return out
}

// fits reports whether a drop is asked for, and whether that can be known.
func (f DropsFilter) fits(x drops.LiveDrop) (fits, known bool) {
	if len(f.Interfaces) > 0 && !slices.Contains(f.Interfaces, x.Site.Interface) {
		return false, true
	}
	if len(f.Hosts) == 0 || x.Rest {
		return len(f.Hosts) == 0, len(f.Hosts) == 0
	}
	return slices.ContainsFunc(f.Hosts, func(p netip.Prefix) bool {
		return p.Contains(x.From.Addr()) || p.Contains(x.To.Addr())
	}), true
}

// unwatched is why drops cannot be watched, in words.
type unwatched struct{ cause error }

func (e unwatched) Error() string { return "watch drops: " + finding.Clause(drops.Why(e.cause)) }
func (e unwatched) Unwrap() error { return e.cause }

// WatchDrops begins a watch. An error is one line; %+v of what it wraps tells all.
func WatchDrops(f DropsFilter) (*Drops, error) {
	live, err := drops.Watch(f.Ports)
	if err != nil {
		return nil, unwatched{err}
	}
	now := time.Now()
	return &Drops{live: live, filter: f, begun: now, last: now, before: map[drops.LiveDrop]tally{},
		spaces: map[uint64]string{}}, nil
}

func (d *Drops) Close() error { return d.live.Close() }

// Next tells what was dropped since the call before, or since the begin.
func (d *Drops) Next() (model.LiveDrops, error) { return d.read(false) }

// Sum tells what was dropped since the begin.
func (d *Drops) Sum() (model.LiveDrops, error) { return d.read(true) }

func (d *Drops) read(sum bool) (model.LiveDrops, error) {
	account, err := d.live.Read()
	if err != nil {
		return model.LiveDrops{}, fmt.Errorf("reading the drops: %w", err)
	}
	now, since := time.Now(), d.last
	if sum {
		since = d.begun
	}
	out := model.LiveDrops{Format: model.DropsFormat, At: now.UTC(), IntervalS: now.Sub(since).Seconds(), Sum: sum,
		Drops:     []model.LiveDrop{},
		SitesLost: account.Lost, Unwatched: account.Missed, Why: d.live.Why()}
	totals := map[drops.LiveDrop]tally{}
	for _, x := range account.Drops {
		if fits, known := d.filter.fits(x); !known {
			out.Unsorted += x.Packets
			continue
		} else if !fits {
			continue
		}
		k := x
		k.Site.Offset, k.Packets, k.Bytes = 0, 0, 0 // no row tells the offset: two places of one function are one
		t := totals[k]
		totals[k] = tally{t.packets + x.Packets, t.bytes + x.Bytes}
	}
	for k, t := range totals {
		was := tally{}
		if !sum {
			was = d.before[k]
		}
		out.Total += t.packets
		if t.packets <= was.packets {
			continue
		}
		one := d.describe(k)
		one.Packets, one.Bytes, one.Total = t.packets-was.packets, t.bytes-min(was.bytes, t.bytes), t.packets
		if out.IntervalS > 0 {
			one.PPS = float64(one.Packets) / out.IntervalS
		}
		out.Packets += one.Packets
		out.Drops = append(out.Drops, one)
	}
	slices.SortFunc(out.Drops, func(a, b model.LiveDrop) int {
		return cmp.Or(cmp.Compare(b.Packets, a.Packets), cmp.Compare(b.Total, a.Total),
			strings.Compare(a.Reason, b.Reason), strings.Compare(a.Function, b.Function),
			strings.Compare(a.From, b.From), strings.Compare(a.To, b.To))
	})
	if !sum {
		d.before, d.last = totals, now
	}
	return out, nil
}

// noPacket is the protocol of messages between programs of one host (netlink), which no
// network carries.
const noPacket = "ether-0x0000"

func (d *Drops) describe(k drops.LiveDrop) model.LiveDrop {
	layer, cause := ledger.Classify(k.Site.Reason, k.Site.Function, ledger.SideBoth, k.Site.Received)
	one := model.LiveDrop{
		Layer: layer, Reason: cause, Function: k.Site.Function, Interface: k.Site.Interface,
		Namespace: d.space(k.Site.Namespace), Received: k.Site.Received,
		Protocol: k.Protocol, Rest: k.Rest, From: endpoint(k.From), To: endpoint(k.To),
		Ordinary: layer == "" || k.Protocol == noPacket || ofNeighbours(k) || asksForRoute(k),
	}
	if k.Protocol == "icmp" || k.Protocol == "icmp6" {
		kind, code := int(k.ICMP>>8), int(k.ICMP&0xff)
		one.ICMPType, one.ICMPCode = &kind, &code
	}
	return one
}

// ofNeighbours reports whether this is IPv6 link traffic for other hosts: multicast listener
// reports and neighbour discovery, RFC 3810 and 4861.
func ofNeighbours(k drops.LiveDrop) bool {
	kind := k.ICMP >> 8
	return k.Protocol == "icmp6" && k.To.Addr().IsMulticast() && (kind >= 130 && kind <= 137 || kind == 143)
}

// asksForRoute reports whether the kernel made the packet itself, to answer who asks for a route (ip route get).
func asksForRoute(k drops.LiveDrop) bool {
	return k.Site.Function == "inet_rtm_getroute" || k.Site.Function == "inet6_rtm_getroute"
}

// endpoint is an address, with its port where there is one.
func endpoint(a netip.AddrPort) string {
	switch {
	case !a.Addr().IsValid():
		return ""
	case a.Port() == 0:
		return a.Addr().String()
	}
	return a.String()
}

// space names a network namespace.
func (d *Drops) space(inode uint64) string {
	if inode == 0 {
		return ""
	}
	if d.spaces[inode] == "" {
		for _, x := range []struct{ link, name string }{{"/proc/self/ns/net", "own"}, {"/proc/1/ns/net", "host"}} {
			if target, err := os.Readlink(x.link); err == nil {
				d.spaces[spaceInode(target)] = x.name
			}
		}
		mounts, _ := os.ReadFile("/proc/self/mountinfo") // without it they have no names
		maps.Copy(d.spaces, parseSpaces(string(mounts)))
		d.spaces[inode] = cmp.Or(d.spaces[inode], fmt.Sprintf("net:[%d]", inode))
	}
	return d.spaces[inode]
}

// parseSpaces reads mountinfo, proc_pid_mountinfo(5): the fourth field is what is mounted, the
// fifth where. Namespaces that ip netns and container runtimes name are mounted on a file.
func parseSpaces(mountinfo string) map[uint64]string {
	names := map[uint64]string{}
	for line := range strings.Lines(mountinfo) {
		if f := strings.Fields(line); len(f) > 4 && spaceInode(f[3]) != 0 {
			names[spaceInode(f[3])] = filepath.Base(f[4])
		}
	}
	return names
}

// spaceInode reads "net:[4026531840]"; 0 if it is nothing of the kind.
func spaceInode(text string) (inode uint64) {
	if n, err := fmt.Sscanf(text, "net:[%d]", &inode); n != 1 || err != nil {
		return 0
	}
	return inode
}
