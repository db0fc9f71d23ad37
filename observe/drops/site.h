/* SPDX-License-Identifier: GPL-2.0 */
/* Where a packet was dropped: kernel code, reason, namespace, interface. */
#ifndef PELT_SITE_H
#define PELT_SITE_H

#include "packet.h"

const volatile bool has_rx_sk; /* the tracepoint tells the receiving socket (6.11) */
__u32 next_site;               /* ids given out */
__u32 claims[SITES];           /* of each id; two programs may meet at one */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SITES);
	__type(key, struct site_key);
	__type(value, struct site);
} sites SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counts);
} exits SEC(".maps");

static __always_inline struct counts *here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&exits, &zero);
}

static __always_inline int leave(enum exit_reason why)
{
	struct counts *c = here();

	if (c)
		__sync_fetch_and_add(&c->exit[why], 1); /* a soft interrupt may come in between */
	return 0;
}

static __always_inline void socket_space(struct site_key *k, __u32 *space, struct sock *sk)
{
	struct net *net = 0;

	if (is_kernel(sk))
		bpf_core_read(&net, sizeof(net), &sk->__sk_common.skc_net.net);
	if (is_kernel(net)) {
		bpf_core_read(space, sizeof(*space), &net->ns.inum);
		if (old_kernel)
			k->cookie = *space;
		else
			bpf_core_read(&k->cookie, sizeof(k->cookie), &net->net_cookie);
	}
}

static __always_inline __u32 reason_of(__u64 *ctx)
{
	return old_kernel ? 0 : ctx[2];
}

/* space_of returns the namespace of a device; 0 if what stands in skb->dev is none: UDP keeps other things in the
 * field, and so do reassembly and the queues. A namespace whose own loopback device leads back to it is one. */
static __always_inline struct net *space_of(struct net_device *dev)
{
	struct net_device *loopback;
	struct net *net;

	if (!is_kernel(dev))
		return 0;
	net = dev->nd_net.net;
	if (!is_kernel(net))
		return 0;
	loopback = net->loopback_dev;
	if (!is_kernel(loopback) || (__u64)loopback->nd_net.net != (__u64)net)
		return 0;
	return net;
}

/* place fills in where the packet is dropped, with the inode of the namespace, and returns whether it has a device. Of
 * a packet that was in a UDP socket's queue nothing may lead to a namespace. */
static __always_inline bool place(__u64 *ctx, struct sk_buff *skb, struct net_device *dev, struct site_key *k, __u32 *space)
{
	struct net *net = space_of(dev);
	struct sock *sk = 0;

	k->location = ctx[1];
	k->reason = reason_of(ctx);
	k->iface = k->from = skb->skb_iif;
	if (skb->protocol == be16(ETHER_IP6))
		k->flags |= SITE_IP6;
	if (net)
		k->iface = dev->ifindex;
	if (has_rx_sk) {
		/* 6.11 to 6.13 take the pointer for good even if it is NULL: read it safely */
		struct sock *rx = (void *)ctx[3];
		if (rx)
			socket_space(k, space, rx);
	}
	if (!k->cookie && net) {
		*space = net->ns.inum;
		k->cookie = old_kernel ? net->ns.inum : net->net_cookie;
	}
	if (!k->cookie) {
		bpf_core_read(&sk, sizeof(sk), &skb->sk);
		socket_space(k, space, sk);
	}
	return net;
}

/* new_id returns an id that no other program has, 0 if none is left. It is without the fetching instructions that came
 * with Linux 5.12: who finds its own claim alone was the first. */
static __always_inline __u32 new_id(void)
{
	__u32 at;

	for (int i = 0; i < 8; i++) {
		at = next_site;
		if (at >= SITES)
			return 0;
		next_site = at + 1;
		__sync_fetch_and_add(&claims[at & (SITES - 1)], 1);
		if (*(volatile __u32 *)&claims[at & (SITES - 1)] == 1)
			return at + 1;
	}
	return 0;
}

/* site_id returns the id of the place, 0 if the table is full. */
static __always_inline __u32 site_id(struct site_key *k, __u32 space, struct net_device *dev)
{
	struct site *s = bpf_map_lookup_elem(&sites, k), made = {};

	if (likely(s))
		return s->id;
	made.id = new_id();
	if (!made.id)
		return 0;
	made.space = space;
	if (dev)
		bpf_core_read_str(made.name, sizeof(made.name), &dev->name);
	if (!bpf_map_update_elem(&sites, k, &made, BPF_NOEXIST))
		return made.id;
	s = bpf_map_lookup_elem(&sites, k); /* another processor was faster */
	return s ? s->id : 0;
}

/* site_of returns the id of the place where a packet is dropped, 0 if the table is full; dev is skb->dev, for whose
 * reading the verifier takes long. */
static __noinline __u32 site_of(__u64 *ctx, struct sk_buff *skb, struct net_device *dev, __u32 flags)
{
	struct site_key k = {.flags = flags};
	__u32 space = 0;
	bool has_device = place(ctx, skb, dev, &k, &space);

	return site_id(&k, space, has_device ? dev : 0);
}

#endif
