/* SPDX-License-Identifier: GPL-2.0 */
/* Finding one's way in a packet at any point of the kernel. */
#ifndef PELT_PACKET_H
#define PELT_PACKET_H

#include "shared.h"
#include <bpf/bpf_core_read.h>

/* Set by the loader. */
const volatile bool use_dynptr; /* the kernel lets this kind of program read payload that is not linear (6.12) */
const volatile bool old_kernel; /* Linux 5.5 to 5.16: no reasons, no bpf_loop, and from 5.11 on only what is marked */

extern int bpf_dynptr_from_skb(struct sk_buff *skb, __u64 flags, struct bpf_dynptr *d) __ksym __weak;

/* Offsets are from skb->head, so they hold wherever skb->data points to. */
struct where {
	__u64 head;
	__u32 data, tail, end; /* tail: end of the linear part; end: of the packet */
	__u32 ip, l4;
	__u32 id;       /* of a fragment */
	__u32 family;   /* 4 or 6 */
	__u32 protocol; /* IP protocol */
	__u32 later;    /* 1: a fragment without a transport header */
	__u32 first;    /* 1: a fragment with one */
	__be32 x[2];    /* of an extension header of IPv6 */
	__u32 b[16];    /* from ip on; what lies beyond tail means nothing */
};

/* A UDP header and the head of the test header, as on the wire. */
struct test_header {
	__be32 ports, length, magic_trial, sequence_high, sequence_low;
};

#define MAGIC 0x9e17
#define MEETING_MAGIC (MAGIC + 1)
#define MEETING_KINDS 4 /* hello, welcome, confirm, ready; later ones are of a flow that runs */
#define WARMUP_BIT 0x8000
#define HEADER_BYTES 16

static __always_inline bool read_far(struct sk_buff *skb, struct where *w, __u32 off, void *to, __u32 n)
{
	struct bpf_dynptr d;

	if (!use_dynptr || off < w->data || off + n > w->end)
		return false;
	if (bpf_dynptr_from_skb(skb, 0, &d))
		return false;
	return !bpf_dynptr_read(to, n, &d, off - w->data, 0);
}

/* n bytes at off, or nothing. A linear buffer that ends before them must not be
 * read on: what follows is left over from an older packet. */
static __always_inline bool read_at(struct sk_buff *skb, struct where *w, __u32 off, void *to, __u32 n)
{
	if (off + n <= w->tail)
		return !bpf_probe_read_kernel(to, n, (void *)(w->head + off));
	return read_far(skb, w, off, to, n);
}

/* anew makes the verifier of an old kernel forget what it knows of a variable: see forget. */
#define anew(x) bpf_probe_read_kernel(x, sizeof(*(x)), x)

static __always_inline bool ip4(struct where *w)
{
	__u32 frag = be32(w->b[1]);

	w->family = 4;
	w->protocol = be32(w->b[2]) >> 16 & 0xff;
	w->l4 = w->ip + ((be32(w->b[0]) >> 24 & 15) << 2);
	w->later = !!(frag & 0x1fff);
	w->first = !w->later && (frag & 0x2000);
	w->id = frag >> 16;
	return w->l4 >= w->ip + 20;
}

/* ip6_extension takes in an extension header, RFC 8200 section 4. The verifier checks a global function once, and knows
 * nothing of what it wrote: in line, each round of the walk would double what there is to check of the rest. */
__noinline int ip6_extension(struct where *w)
{
	__u32 word, now;

	if (!w)
		return 0;
	word = be32(w->x[0]);
	now = w->protocol;
	w->protocol = word >> 24;
	if (now == PROTO_FRAGMENT) {
		w->later = !!(word & 0xfff8);
		w->first = !w->later && (word & 1);
		w->id = be32(w->x[1]);
		w->l4 += 8;
	} else {
		__u32 units = word >> 16 & 0xff;
		w->l4 += now == PROTO_AH ? (units + 2) << 2 : (units + 1) << 3;
	}
	return 0;
}

static __always_inline bool is_extension(__u32 protocol)
{
	return protocol == PROTO_HOP || protocol == PROTO_ROUTING || protocol == PROTO_OPTIONS ||
	       protocol == PROTO_FRAGMENT || protocol == PROTO_AH;
}

/* The header and up to four extension headers. */
static __noinline bool ip6(struct sk_buff *skb, struct where *w)
{
	w->family = 6;
	w->protocol = be32(w->b[1]) >> 8 & 0xff;
	w->l4 = w->ip + 40;
	w->id = w->later = w->first = 0;
#pragma unroll /* Linux 6.1 takes not every loop */
	for (int i = 0; i < 4; i++) {
		if (likely(!is_extension(w->protocol)) || w->later)
			break;
		if (!read_at(skb, w, w->l4, w->x, sizeof(w->x)))
			return false;
		ip6_extension(w);
		if (old_kernel)
			anew(w);
	}
	return true;
}

static __always_inline bool ip_at(struct sk_buff *skb, struct where *w, __u32 off)
{
	__u32 version;

	w->ip = off;
	if (off + 20 > w->tail || bpf_probe_read_kernel(w->b, sizeof(w->b), (void *)(w->head + off)))
		return false;
	version = be32(w->b[0]) >> 28;
	if (version == 4 && skb->protocol != be16(ETHER_IP6))
		return ip4(w);
	if (version == 6 && skb->protocol != be16(ETHER_IP4) && off + 40 <= w->tail)
		return ip6(skb, w);
	return false;
}

static __always_inline void outline(struct sk_buff *skb, struct where *w)
{
	w->head = (__u64)skb->head;
	w->data = (__u64)skb->data - w->head;
	w->tail = skb->tail;
	w->end = w->data + skb->len;
	w->id = w->x[0] = w->x[1] = 0; /* all of it is written, for forget */
}

__noinline int untouched(struct where *w)
{
	asm volatile("" : : "r"(w) : "memory");
	return 0;
}

/* forget changes nothing. The verifier checks a global function by itself, once, and believes that it may have written
 * anything into w: what follows is checked once, and not for each way in which w can have been filled in. Before Linux
 * 5.12 global functions took no pointers. */
static __always_inline void forget(struct where *w)
{
	if (old_kernel)
		anew(w);
	else
		untouched(w);
}

/* folded makes one word of an address, of which at is the first word in w->b. */
static __always_inline __u32 folded(struct where *w, int at)
{
	return w->family == 4 ? w->b[at] : w->b[at] ^ w->b[at + 1] ^ w->b[at + 2] ^ w->b[at + 3];
}

/* ip_end is the end of the packet as IP has it: a short frame is padded. Super-packets may be longer than it can say. */
static __always_inline __u32 ip_end(struct where *w)
{
	__u32 length = w->family == 4 ? be32(w->b[0]) & 0xffff : (be32(w->b[1]) >> 16) + 40;

	return length > 40 && w->ip + length < w->end ? w->ip + length : w->end;
}

/* find_ip fills in all of w. The network header is not set before a received
 * packet reaches the stack; then data points to it. */
static __always_inline bool find_ip(struct sk_buff *skb, struct where *w)
{
	outline(skb, w);
	if (!ip_at(skb, w, skb->network_header) && (skb->network_header == w->data || !ip_at(skb, w, w->data)))
		return false;
	forget(w);
	return true;
}

/* carried returns where the packet lies that a tunnel's packet carries; 0 if it is no tunnel's. The kernel that made the
 * tunnel's packet remembers it. */
static __always_inline __u32 carried(struct sk_buff *skb, struct where *w)
{
	__u32 skip = w->l4 - w->ip, ports = 0;

	if (w->later)
		return 0;
	if (skb->inner_network_header > w->l4)
		return skb->inner_network_header;
	if (w->protocol == PROTO_IP4 || w->protocol == PROTO_IP6)
		return w->l4;
	if (w->protocol != PROTO_UDP)
		return 0;
	if (likely(skip == 20))
		ports = be32(w->b[5]);
	else if (skip == 40)
		ports = be32(w->b[10]);
	return unlikely((__u16)ports == PORT_VXLAN) ? w->l4 + 8 + 8 + 14 : 0; /* headers of UDP, VXLAN and Ethernet */
}

/* unwrap fills in w anew, for the packet at off. */
static __noinline bool unwrap(struct sk_buff *skb, struct where *w, __u32 off)
{
	__u32 version;
	bool found;

	w->ip = off;
	if (off + 20 > w->tail || bpf_probe_read_kernel(w->b, sizeof(w->b), (void *)(w->head + off)))
		return false;
	version = be32(w->b[0]) >> 28;
	found = version == 4 ? ip4(w) : version == 6 && off + 40 <= w->tail && ip6(skb, w);
	forget(w);
	return found;
}

/* udp_header reads both headers. 1: both; 0: of a packet whose payload is out of
 * reach, the ports only; -1: nothing. */
static __always_inline int udp_header(struct sk_buff *skb, struct where *w, struct test_header *h)
{
	__u32 skip = w->l4 - w->ip;

	if (w->l4 + sizeof(*h) <= w->tail) {
		if (likely(skip == 20))
			__builtin_memcpy(h, w->b + 5, sizeof(*h));
		else if (skip == 40)
			__builtin_memcpy(h, w->b + 10, sizeof(*h));
		else
			return bpf_probe_read_kernel(h, sizeof(*h), (void *)(w->head + w->l4)) ? -1 : 1;
		return 1;
	}
	if (read_far(skb, w, w->l4, h, sizeof(*h)))
		return 1;
	if (w->l4 + 8 > w->tail || bpf_probe_read_kernel(h, 8, (void *)(w->head + w->l4)))
		return -1;
	/* A socket has pulled the UDP header already: what follows may be in reach all the same. */
	return read_far(skb, w, w->l4 + 8, &h->magic_trial, sizeof(*h) - 8);
}

static __always_inline bool is_test(struct test_header *h)
{
	return be32(h->magic_trial) >> 16 == MAGIC;
}

/* sequence_of reads the second and the third word of a header. iperf3 counts from 1, in the third. */
static __always_inline __u64 sequence_of(bool iperf, __be32 high, __be32 low)
{
	return iperf ? (__u32)(be32(low) - 1) : (__u64)be32(high) << 16 | be32(low) >> 16;
}

/* A super-packet's datagrams are gso_size apart. 0: it is none. */
static __always_inline __u32 segment_bytes(struct sk_buff *skb, struct where *w, __u32 *type)
{
	struct skb_shared_info *info = (void *)(w->head + skb->end);
	__u16 size = 0;

	*type = 0;
	bpf_core_read(&size, sizeof(size), &info->gso_size);
	if (likely(!size))
		return 0;
	bpf_core_read(type, sizeof(*type), &info->gso_type);
	return size;
}

/* Both are 16 B and zero. */
static __always_inline void addresses(struct where *w, __u8 *from, __u8 *to)
{
	if (w->family == 4) {
		__builtin_memcpy(from, w->b + 3, 4);
		__builtin_memcpy(to, w->b + 4, 4);
	} else {
		__builtin_memcpy(from, w->b + 2, 16);
		__builtin_memcpy(to, w->b + 6, 16);
	}
}

#endif
