//go:build amd64 || arm64

package drops

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/cilium/ebpf"

	"pelt/model"
)

// Live counts what this host drops, of any traffic, by site and flow. Its
// methods may be called concurrently.
type Live struct{ machine *Machine }

// Watch begins a live watch. Ports, at most 16, limit it to TCP and UDP from or to one of
// them; none counts all traffic. Errors are of type *Error.
func Watch(ports []uint16) (*Live, error) {
	if len(ports) > int(bpfLimitsLIVE_PORTS) {
		return nil, fmt.Errorf("watch drops: %d ports; want at most %d", len(ports), bpfLimitsLIVE_PORTS)
	}
	var wanted [bpfLimitsLIVE_PORTS]uint16
	copy(wanted[:], ports)
	m, err := openMachine(1, func(spec *ebpf.CollectionSpec) error {
		v := spec.Variables
		return errors.Join(v["live_view"].Set(true), v["live_ports"].Set(uint32(len(ports))),
			v["live_port"].Set(wanted))
	})
	if err != nil {
		return nil, err
	}
	return &Live{m}, nil
}

// Read tells what was dropped since Watch. Counts only grow.
func (l *Live) Read() (a LiveAccount, err error) {
	m := l.machine
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return a, errClosed
	}
	var (
		key bpfLiveKey
		n   bpfLiveCount
		ids []uint32
	)
	entries := m.objects.LiveFlows.Iterate()
	for entries.Next(&key, &n) {
		a.Drops = append(a.Drops, liveDrop(key, n))
		ids = append(ids, key.Site)
	}
	if err := entries.Err(); err != nil {
		return a, fmt.Errorf("read the flows: %w", err)
	}
	exits, missed, err := m.exits()
	if err != nil {
		return a, err
	}
	a.Lost, a.Missed = exits[bpfExitReasonEXIT_LIVE_LOST], missed
	if err := m.names.refresh(m.objects.Sites); err != nil {
		return a, err
	}
	m.names.resolve(&m.kernel)
	m.names.locate()
	if exits[bpfExitReasonEXIT_LIVE_REST] > 0 {
		for id := range m.names.places {
			if err := m.objects.LiveRest.Lookup(id, &n); err != nil {
				return a, fmt.Errorf("read what found no room: %w", err)
			}
			if n.Packets > 0 {
				a.Drops = append(a.Drops, LiveDrop{Rest: true, Packets: n.Packets, Bytes: n.Bytes})
				ids = append(ids, id)
			}
		}
	}
	for i, id := range ids {
		a.Drops[i].Site, _ = m.names.site(id)
	}
	return a, nil
}

// IANA protocol numbers and ethertypes that have a name here.
var (
	protocols = map[uint16]string{1: "icmp", 2: "igmp", 6: "tcp", 17: "udp", 41: "ip6-in-ip", 47: "gre", 50: "esp",
		51: "ah", 58: "icmp6",
		89: "ospf", 132: "sctp", 136: "udplite"}
	ethertypes = map[uint16]string{0x0800: "ip4", 0x0806: "arp", 0x86dd: "ip6", 0x88cc: "lldp", 0x888e: "eapol",
		0x8100: "vlan"}
)

func liveDrop(k bpfLiveKey, n bpfLiveCount) LiveDrop {
	d := LiveDrop{Packets: n.Packets, Bytes: n.Bytes}
	var from, to netip.Addr
	switch {
	case k.Ether == 0x0800 && k.hasAddress():
		from, to = netip.AddrFrom4([4]byte(k.From[:4])), netip.AddrFrom4([4]byte(k.To[:4]))
	case k.Ether == 0x86dd && k.hasAddress():
		from, to = netip.AddrFrom16(k.From), netip.AddrFrom16(k.To)
	default:
		if d.Protocol = ethertypes[k.Ether]; d.Protocol == "" {
			d.Protocol = fmt.Sprintf("ether-0x%04x", k.Ether)
		}
		return d
	}
	if d.Protocol = protocols[k.Protocol]; d.Protocol == "" {
		d.Protocol = "ip-" + strconv.Itoa(int(k.Protocol))
	}
	if k.Protocol == 1 || k.Protocol == 58 {
		d.ICMP, k.ToPort = k.ToPort, 0
	}
	d.From, d.To = netip.AddrPortFrom(from, k.FromPort), netip.AddrPortFrom(to, k.ToPort)
	return d
}

func (k *bpfLiveKey) hasAddress() bool { return k.From != [16]byte{} || k.To != [16]byte{} }

// Why is what this kernel does not let the watch tell.
func (l *Live) Why() model.Reasons {
	l.machine.mu.Lock()
	defer l.machine.mu.Unlock()
	return l.machine.why()
}

// Close takes the program out of the kernel. It may be called more than once.
func (l *Live) Close() error { return l.machine.Close() }
