package userlink

import (
	"encoding/binary"

	"pelt/internal/kernelclock"
	"pelt/lab/impair"
)

// Watching is an open watch over one trial. Collect ends it.
type Watching struct {
	cable *Cable
	seen  [2]*watch
}

// watch is what one way keeps for one trial. It belongs to the pump's thread.
type watch struct {
	trial     uint16 // number of the first flow
	flows     int    // that have numbers of their own
	identify  Identify
	verdicts  []Verdict
	granted   int    // bytes for them
	unlisted  uint64 // for which there was no room
	fragments map[fragmentKey]identity
	ring      []fragmentKey // of the map, to forget the oldest
	oldest    int
}

type fragmentKey struct {
	from, to [16]byte
	id       uint32
}

type identity struct {
	from, to uint16
	sequence uint64
	warmup   bool
}

// Bounds of what one way keeps for one trial.
const (
	maxVerdicts  = 4 << 20
	verdictBytes = 24
	maxFragments = 1 << 14 // datagrams whose later fragments may still come
)

// Watch begins to list what the cable does to the packets of a trial, whose flows have so many numbers from that one
// on.
func (c *Cable) Watch(trial uint16, flows int, identify Identify) *Watching {
	x := &Watching{cable: c}
	for i, w := range c.ways {
		one := &watch{trial: trial, flows: flows, identify: identify, fragments: map[fragmentKey]identity{}}
		x.seen[i] = one
		w.pump.do(func() { w.watches = append(w.watches, one) })
	}
	return x
}

// Collect ends the watch and returns what each direction lost, in the order in
// which it did, and how many there was no room for.
func (x *Watching) Collect() (lists [2][]Verdict, unlisted [2]uint64) {
	for i, w := range x.cable.ways {
		w.pump.do(func() {
			for k, one := range w.watches {
				if one == x.seen[i] {
					w.watches = append(w.watches[:k:k], w.watches[k+1:]...)
					w.pump.budget.give(one.granted)
					break
				}
			}
		})
		lists[i], unlisted[i] = x.seen[i].verdicts, x.seen[i].unlisted
	}
	return lists, unlisted
}

// note remembers which packet the fragments of a datagram are of.
func (w *way) note(k *packet) {
	if len(w.watches) == 0 || k.headers != 0 {
		return
	}
	d, ok := dissect(k.frame())
	if !ok || !d.more || d.offset != 0 {
		return
	}
	for _, one := range w.watches {
		if id, ok := one.identity(d.ports, d.payload); ok {
			one.remember(d.key, id)
		}
	}
}

func (o *watch) remember(key fragmentKey, id identity) {
	if len(o.ring) < maxFragments {
		o.ring = append(o.ring, key)
	} else {
		delete(o.fragments, o.ring[o.oldest])
		o.ring[o.oldest] = key
		o.oldest = (o.oldest + 1) % maxFragments
	}
	o.fragments[key] = id
}

func (o *watch) identity(ports, payload []byte) (identity, bool) {
	trial, sequence, warmup, ok := o.identify(payload)
	after := int(trial) - int(o.trial)
	if after < 0 { // after the highest number comes 1
		after += 1<<15 - 1
	}
	if !ok || after >= o.flows {
		return identity{}, false
	}
	return identity{binary.BigEndian.Uint16(ports), binary.BigEndian.Uint16(ports[2:]), sequence, warmup}, true
}

// lose counts a frame, or segment i of a buffer, that does not leave.
func (w *way) lose(k *packet, i int, cause impair.Cause) {
	if cause == impair.Lost {
		w.counts.Lost++
		w.judge(k, i, Lost)
		return
	}
	w.counts.QueueFull++
	w.judge(k, i, QueueFull)
}

// judge writes down what is done to a frame, or to segment i of a buffer.
func (w *way) judge(k *packet, i int, cause Cause) {
	if len(w.watches) == 0 {
		return
	}
	d, ok := dissect(k.frame())
	if !ok {
		return
	}
	if k.headers != 0 {
		d.payload = k.frame()[k.headers+i*k.gsoBytes:]
	}
	if cause == Lost && (d.more || d.offset != 0) {
		cause = Fragment
	}
	for _, one := range w.watches {
		var id identity
		known := false
		switch {
		case d.tcp:
			known = len(d.payload) > 0 && cause != Damaged // whose kernel drops a damaged one counts it
			id = identity{binary.BigEndian.Uint16(d.ports), binary.BigEndian.Uint16(d.ports[2:]), Now(), false}
		case d.offset == 0:
			id, known = one.identity(d.ports, d.payload)
		default:
			id, known = one.fragments[d.key]
		}
		switch {
		case !known:
		case !one.room(w.pump.budget):
			one.unlisted++
		default:
			one.verdicts = append(one.verdicts,
				Verdict{From: id.from, To: id.to, Sequence: id.sequence, Cause: cause, Warmup: id.warmup, TCP: d.tcp})
		}
	}
}

// room makes room for a further verdict; false: there is none.
func (o *watch) room(memory *budget) bool {
	n := len(o.verdicts)
	if n < cap(o.verdicts) {
		return true
	}
	more := min(max(n, 1024), maxVerdicts-n)
	if more == 0 || !memory.take(more*verdictBytes) {
		return false
	}
	o.granted += more * verdictBytes
	o.verdicts = append(make([]Verdict, 0, n+more), o.verdicts...)
	return true
}

// Now is a time in ns that all processes of a machine share.
func Now() uint64 { return kernelclock.Now() }

// dissected is what a frame says of a UDP datagram, or of a part of one, or of a segment of TCP.
type dissected struct {
	tcp            bool
	key            fragmentKey // of a part
	offset         int         // of the part's data, in bytes
	more           bool        // parts follow
	ports, payload []byte      // where the header of UDP or TCP is in it
}

// dissect finds the UDP datagram, or the whole segment of TCP, in a frame; ok is false if there is none.
func dissect(f []byte) (d dissected, ok bool) {
	at := 12
	for at+2 <= len(f) {
		switch binary.BigEndian.Uint16(f[at:]) {
		case 0x8100, 0x88a8: // a VLAN tag, IEEE 802.1Q
			at += 4
			continue
		case etherTypeIP4:
			return dissect4(f[at+2:])
		case etherTypeIP6:
			return dissect6(f[at+2:])
		}
		break
	}
	return d, false
}

func dissect4(ip []byte) (d dissected, ok bool) {
	if len(ip) < ip4Bytes {
		return d, false
	}
	head, whole := int(ip[0]&15)*4, int(binary.BigEndian.Uint16(ip[2:]))
	part := binary.BigEndian.Uint16(ip[6:])
	d.offset, d.more = int(part&0x1fff)*8, part&0x2000 != 0
	copy(d.key.from[:], ip[12:16])
	copy(d.key.to[:], ip[16:20])
	d.key.id = uint32(binary.BigEndian.Uint16(ip[4:]))
	return d.transport(ip, head, whole, ip[9])
}

func dissect6(ip []byte) (d dissected, ok bool) {
	if len(ip) < ip6Bytes {
		return d, false
	}
	copy(d.key.from[:], ip[8:24])
	copy(d.key.to[:], ip[24:40])
	next, at := ip[6], ip6Bytes
	if next == protocolFrag && len(ip) >= at+fragBytes {
		part := binary.BigEndian.Uint16(ip[at+2:])
		d.offset, d.more = int(part&^7), part&1 != 0
		d.key.id = binary.BigEndian.Uint32(ip[at+4:])
		next, at = ip[at], at+fragBytes
	}
	return d.transport(ip, at, ip6Bytes+int(binary.BigEndian.Uint16(ip[4:])), next)
}

// transport reads the header of UDP or TCP in a packet, whose length a frame may exceed.
func (d dissected) transport(ip []byte, at, whole int, protocol byte) (dissected, bool) {
	d.tcp = protocol == protocolTCP
	head := udpBytes
	switch {
	case !d.tcp && protocol != protocolUDP:
		return d, false
	case d.offset != 0:
		return d, !d.tcp
	case d.tcp && at+tcpLeastBytes > len(ip):
		return d, false
	case d.tcp:
		head, ip = int(ip[at+12]>>4)*4, ip[:min(max(whole, at+tcpLeastBytes), len(ip))]
	}
	if at+head > len(ip) {
		return d, false
	}
	d.ports, d.payload = ip[at:at+4], ip[at+head:]
	return d, true
}
