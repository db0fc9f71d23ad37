/* SPDX-License-Identifier: GPL-2.0 */
/* The live view: what this host drops, of any traffic. */
#ifndef PELT_LIVE_H
#define PELT_LIVE_H

#include "site.h"

const volatile bool live_view;               /* count all traffic by flow, instead of streams by sequence */
const volatile __u32 live_ports;             /* in the list; 0: all traffic */
const volatile __u16 live_port[LIVE_PORTS];  /* host byte order; source or destination */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LIVE_FLOWS); /* 1 by the loader, without live_view */
	__type(key, struct live_key);
	__type(value, struct live_count);
} live_flows SEC(".maps");

/* By site, when there is no room for the flow. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SITES + 1);
	__type(key, __u32);
	__type(value, struct live_count);
} live_rest SEC(".maps");

static __always_inline bool wanted_port(__u16 from, __u16 to)
{
	if (!live_ports)
		return true;
	for (int i = 0; i < LIVE_PORTS; i++)
		if (i < live_ports && (live_port[i] == from || live_port[i] == to))
			return true;
	return false;
}

static __always_inline void live_count(struct live_count *c, __u64 packets, __u64 bytes)
{
	__sync_fetch_and_add(&c->packets, packets);
	__sync_fetch_and_add(&c->bytes, bytes);
}

static __always_inline void live_flow(struct sk_buff *skb, struct where *w, struct live_key *k)
{
	__be32 x;

	k->ether = w->family == 4 ? ETHER_IP4 : ETHER_IP6;
	k->protocol = w->protocol;
	addresses(w, k->from, k->to);
	if (w->later || !read_at(skb, w, w->l4, &x, sizeof(x)))
		return;
	if (w->protocol == PROTO_TCP || w->protocol == PROTO_UDP) {
		k->from_port = be32(x) >> 16;
		k->to_port = be32(x);
	} else if (w->protocol == PROTO_ICMP || w->protocol == PROTO_ICMP6) {
		k->to_port = be32(x) >> 16;
	}
}

static __always_inline int live(__u64 *ctx, struct sk_buff *skb)
{
	struct live_key k = {};
	struct live_count one = {}, *c;
	struct where w;
	__u32 step, type;
	__u64 bytes, packets = 1;

	if (find_ip(skb, &w)) {
		live_flow(skb, &w, &k);
		bytes = w.end - w.ip;
		step = segment_bytes(skb, &w, &type);
		if (step && w.end > w.l4 + 8 + step) {
			/* TCP's header may be longer than UDP's: count it out */
			__u32 header = 8;
			if (k.protocol == PROTO_TCP) {
				__u8 offset = 0;
				if (read_at(skb, &w, w.l4 + 12, &offset, 1))
					header = offset >> 4 << 2;
			}
			if (w.end > w.l4 + header)
				packets = (w.end - w.l4 - header + step - 1) / step;
		}
	} else {
		k.ether = be16(skb->protocol);
		bytes = skb->len;
	}
	if (!wanted_port(k.from_port, k.to_port) || (k.protocol != PROTO_UDP && k.protocol != PROTO_TCP && live_ports))
		return leave(EXIT_LIVE_OTHER);
	k.site = site_of(ctx, skb, skb->dev, 0);
	if (!k.site)
		return leave(EXIT_LIVE_LOST);
	c = bpf_map_lookup_elem(&live_flows, &k);
	if (!c) {
		bpf_map_update_elem(&live_flows, &k, &one, BPF_NOEXIST);
		c = bpf_map_lookup_elem(&live_flows, &k);
	}
	if (c) {
		live_count(c, packets, bytes);
		return leave(EXIT_LIVE);
	}
	c = bpf_map_lookup_elem(&live_rest, &k.site);
	if (!c)
		return leave(EXIT_LIVE_LOST);
	live_count(c, packets, bytes);
	return leave(EXIT_LIVE_REST);
}

#endif
