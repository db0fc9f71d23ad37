//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 */
/* Carries packets of known connections past a router's kernel, as hardware with
 * flow offload does. A connection is known once the kernel tracks it: its first
 * packet has passed all rules then and has its addresses. What the kernel knows is
 * asked again each second of a flow, which also keeps it from forgetting the flow. */
#include "fast.h"

char _license[] SEC("license") = "GPL";

const volatile struct port ports[PORTS];
/* After so many ms without a packet a connection is forgotten. */
const volatile __u32 udp_ms, udp_stream_ms, tcp_ms;

const enum reason *reason_type __attribute__((unused));
const enum limits *limits_type __attribute__((unused));

/* Of the kernel's connection tracking, by its names; where they lie is looked up
 * when the program is loaded. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
union nf_inet_addr {
	__u32 all[4];
};
union nf_conntrack_man_proto {
	__be16 all;
};
struct nf_conntrack_man {
	union nf_inet_addr u3;
	union nf_conntrack_man_proto u;
};
struct nf_conntrack_tuple {
	struct nf_conntrack_man src;
	struct {
		union nf_inet_addr u3;
		union {
			__be16 all;
		} u;
	} dst;
};
struct nf_conntrack_tuple_hash {
	struct nf_conntrack_tuple tuple;
};
struct ip_ct_tcp {
	__u8 state;
};
union nf_conntrack_proto {
	struct ip_ct_tcp tcp;
};
struct nf_conn {
	struct nf_conntrack_tuple_hash tuplehash[2];
	unsigned long status;
	union nf_conntrack_proto proto;
};
#pragma clang attribute pop

/* Bits of nf_conn.status and a state of TCP, include/uapi/linux/netfilter/nf_conntrack_common.h, _tcp.h. */
enum { SEEN_REPLY = 1 << 1, CONFIRMED = 1 << 3, SEQ_ADJUST = 1 << 6, DYING = 1 << 9, HELPER = 1 << 13 };
enum { TCP_ESTABLISHED = 3 };

struct ct_opts {
	__s32 netns;
	__s32 error;
	__u8 l4proto, dir, reserved[2];
};

extern struct nf_conn *bpf_xdp_ct_lookup(struct xdp_md *ctx, struct bpf_sock_tuple *tuple, __u32 tuple_len, struct ct_opts *opts, __u32 opts_len) __ksym;
extern int bpf_ct_change_timeout(struct nf_conn *ct, __u32 timeout) __ksym;
extern void bpf_ct_release(struct nf_conn *ct) __ksym;

/* A flow. IPv4 uses the first word of an address, here and below. */
struct key {
	__be32 from[4], to[4];
	__u32 ports; /* as they lie in the packet */
	__u16 at;    /* index in ports */
	__u8 protocol, family;
};

/* How a flow goes on. */
struct way {
	__u64 asked; /* when the kernel was, ns */
	__be32 from[4], to[4];
	__u32 ports;
	__u32 out;
	__u32 mtu;
	__u16 sum;    /* what its checksums change by: UDP's or TCP's, */
	__u16 ip_sum; /* and IPv4's with the time to live */
	__u8 target[6], source[6];
	__u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, FLOWS);
	__type(key, struct key);
	__type(value, struct way);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, REASONS);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

#define SECOND 1000000000ULL

enum { IPPROTO_TCP = 6, IPPROTO_UDP = 17 };
enum { AF_INET = 2, AF_INET6 = 10 };
enum { FIN = 1, SYN = 2, RST = 4, ACK = 16 };

struct udp {
	__u32 ports;
	__be16 length, check;
};

struct tcp {
	__u32 ports, sequence, acknowledged;
	__u8 offset, flags;
	__be16 window, check, urgent;
};

static __always_inline int count(__u32 reason)
{
	__u64 *n = bpf_map_lookup_elem(&counts, &reason);

	if (n)
		(*n)++;
	return XDP_PASS;
}

/* fold brings a sum of words to 16 bits. */
static __always_inline __u16 fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* changed is a checksum after its words changed by a sum (RFC 1624 equation 3). */
static __always_inline __u16 changed(__u16 check, __u16 by)
{
	__u32 sum = (__u16)~check + by;

	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* instead is what a sum changes by with one word for another. */
static __always_inline __u64 instead(__u32 old, __u32 new)
{
	return (__u64)(__u32)~old + new;
}

/* transport looks at the header behind IP's. The checksum's place is left in check. */
static __always_inline int transport(void *at, void *end, __u32 protocol, __u32 length, __u32 *where, __be16 **check)
{
	struct udp *u = at;
	struct tcp *t = at;

	if (protocol == IPPROTO_UDP) {
		if ((void *)(u + 1) > end || ntohs(u->length) < sizeof(*u) || ntohs(u->length) > length)
			return CUT;
		*check = &u->check;
		*where = u->ports;
		return CARRIED;
	}
	if (protocol != IPPROTO_TCP)
		return PROTOCOL;
	if ((void *)(t + 1) > end || t->offset >> 4 < 5 || (__u32)(t->offset >> 4) * 4 > length)
		return CUT;
	if ((t->flags & (FIN | SYN | RST | ACK)) != ACK)
		return OPENING;
	*check = &t->check;
	*where = t->ports;
	return CARRIED;
}

/* bare says that a checksum has only the pseudo header's sum yet. */
static __always_inline int bare(__u64 addresses, __u32 length, __u32 protocol, __u16 check)
{
	return fold(addresses + htons(length) + htons(protocol)) == check;
}

/* ask the kernel for a packet's connection: how the packet leaves, in way. */
static __always_inline int ask(struct xdp_md *ctx, struct bpf_sock_tuple *tuple, __u32 bytes, __u32 protocol, struct way *way)
{
	struct ct_opts opts = {.netns = -1, .l4proto = protocol};
	struct nf_conn *ct = bpf_xdp_ct_lookup(ctx, tuple, bytes, &opts, sizeof(opts));
	int reason = UNSETTLED;
	unsigned long status;
	__u32 ms;

	if (!ct)
		return UNKNOWN;
	status = ct->status;
	if (!(status & CONFIRMED) || status & (DYING | SEQ_ADJUST | HELPER))
		goto out;
	ms = status & SEEN_REPLY ? udp_stream_ms : udp_ms;
	if (protocol == IPPROTO_TCP) {
		if (ct->proto.tcp.state != TCP_ESTABLISHED)
			goto out;
		ms = tcp_ms;
	}
	/* What answers would come as, the other way round. */
#define TAKE(t) \
	do { \
		way->from[0] = (t).dst.u3.all[0]; \
		way->from[1] = (t).dst.u3.all[1]; \
		way->from[2] = (t).dst.u3.all[2]; \
		way->from[3] = (t).dst.u3.all[3]; \
		way->to[0] = (t).src.u3.all[0]; \
		way->to[1] = (t).src.u3.all[1]; \
		way->to[2] = (t).src.u3.all[2]; \
		way->to[3] = (t).src.u3.all[3]; \
		way->ports = (t).dst.u.all | (__u32)(t).src.u.all << 16; \
	} while (0)
	if (opts.dir)
		TAKE(ct->tuplehash[0].tuple);
	else
		TAKE(ct->tuplehash[1].tuple);
	if (!bpf_ct_change_timeout(ct, ms))
		reason = CARRIED;
out:
	bpf_ct_release(ct);
	return reason;
}

/* route finds where a packet leaves. Its source is the one that it came with. */
static __always_inline int route(struct xdp_md *ctx, struct bpf_fib_lookup *f, struct way *way)
{
	f->ifindex = ctx->ingress_ifindex;
	if (bpf_fib_lookup(ctx, f, sizeof(*f), 0) || f->ifindex == ctx->ingress_ifindex)
		return NO_ROUTE;
	way->out = f->ifindex;
	way->mtu = f->mtu;
	__builtin_memcpy(way->target, f->dmac, 6);
	__builtin_memcpy(way->source, f->smac, 6);
	return CARRIED;
}

static __always_inline int whole(struct xdp_md *ctx, void *from, __u32 length, void *end)
{
	void *data = (void *)(long)ctx->data;

	return from + length <= end || (from - data) + length <= bpf_xdp_get_buff_len(ctx);
}

static __always_inline int send(struct ethernet *eth, struct way *way)
{
	__builtin_memcpy(eth->to, way->target, 6);
	__builtin_memcpy(eth->from, way->source, 6);
	count(CARRIED);
	return bpf_redirect(way->out, 0);
}

static __always_inline void rewrite(__be16 *check, __u32 protocol, struct way *way)
{
	if (protocol == IPPROTO_UDP) {
		if (!*check)
			return;
		*check = changed(*check, way->sum);
		if (!*check)
			*check = 0xffff;
		return;
	}
	*check = changed(*check, way->sum);
}

/* learn asks the kernel how the packets of a flow go on. */
static __always_inline int learn(struct xdp_md *ctx, struct key *key, __u32 tos, __u32 length, __u16 check, __u64 now)
{
	struct bpf_fib_lookup f = {.family = key->family, .l4_protocol = key->protocol, .tos = tos};
	struct bpf_sock_tuple tuple = {};
	struct way way = {.asked = now};
	__u64 addresses = 0, sum = 0;
	int reason, i;

#pragma unroll
	for (i = 0; i < 4; i++)
		addresses += (__u64)key->from[i] + key->to[i];
	/* UDP over IPv4 may have none. */
	if ((check || key->family == AF_INET6) && bare(addresses, length, key->protocol, check))
		return UNSUMMED;
	if (key->family == AF_INET) {
		tuple.ipv4.saddr = key->from[0];
		tuple.ipv4.daddr = key->to[0];
		tuple.ipv4.sport = key->ports;
		tuple.ipv4.dport = key->ports >> 16;
		reason = ask(ctx, &tuple, sizeof(tuple.ipv4), key->protocol, &way);
	} else {
		__builtin_memcpy(tuple.ipv6.saddr, key->from, 16);
		__builtin_memcpy(tuple.ipv6.daddr, key->to, 16);
		tuple.ipv6.sport = key->ports;
		tuple.ipv6.dport = key->ports >> 16;
		reason = ask(ctx, &tuple, sizeof(tuple.ipv6), key->protocol, &way);
	}
	if (reason != CARRIED)
		return reason;
	f.sport = way.ports;
	f.dport = way.ports >> 16;
#pragma unroll
	for (i = 0; i < 4; i++) {
		f.src[i] = key->from[i];
		f.dst[i] = way.to[i];
		sum += instead(key->from[i], way.from[i]) + instead(key->to[i], way.to[i]);
	}
	reason = route(ctx, &f, &way);
	if (reason != CARRIED)
		return reason;
	way.ip_sum = fold(sum + (__u16)~htons(0x100));
	way.sum = fold(sum + instead(key->ports, way.ports));
	return bpf_map_update_elem(&flows, key, &way, 0) ? FULL : CARRIED;
}

/* find returns how a flow goes on, as the kernel said within the last second. */
static __always_inline int find(struct xdp_md *ctx, struct key *key, __u32 tos, __u32 length, __u16 check, struct way **way)
{
	__u64 now = bpf_ktime_get_coarse_ns();
	int reason;

	*way = bpf_map_lookup_elem(&flows, key);
	if (*way && now - (*way)->asked <= SECOND)
		return CARRIED;
	reason = learn(ctx, key, tos, length, check, now);
	if (reason == CARRIED)
		*way = bpf_map_lookup_elem(&flows, key);
	else if (*way)
		bpf_map_delete_elem(&flows, key);
	return reason;
}

static __always_inline int carry4(struct xdp_md *ctx, struct ethernet *eth, void *end, __u16 at)
{
	struct ip4 *ip = (void *)(eth + 1);
	struct key key = {.at = at, .family = AF_INET};
	__u32 *words = (void *)ip;
	struct way *way;
	__be16 *check;
	__u32 length;
	int reason;

	if ((void *)(ip + 1) > end)
		return count(CUT);
	if (ip->version != 0x45)
		return count(OPTIONS);
	if (ip->fragment & htons(0x3fff))
		return count(FRAGMENT);
	if (ip->ttl <= 1)
		return count(HOP_LIMIT);
	if (fold((__u64)words[0] + words[1] + words[2] + words[3] + words[4]) != 0xffff)
		return count(DAMAGED);
	length = ntohs(ip->length);
	if (length < sizeof(*ip) || !whole(ctx, ip, length, end))
		return count(CUT);
	key.protocol = ip->protocol;
	reason = transport(ip + 1, end, key.protocol, length - sizeof(*ip), &key.ports, &check);
	if (reason != CARRIED)
		return count(reason);
	key.from[0] = ip->from;
	key.to[0] = ip->to;
	reason = find(ctx, &key, ip->tos, length - sizeof(*ip), *check, &way);
	if (reason != CARRIED)
		return count(reason);
	if (!way)
		return count(FULL);
	if (length > way->mtu)
		return count(TOO_LONG);
	ip->from = way->from[0];
	ip->to = way->to[0];
	ip->ttl--;
	ip->check = changed(ip->check, way->ip_sum);
	*(__u32 *)(ip + 1) = way->ports;
	rewrite(check, key.protocol, way);
	return send(eth, way);
}

static __always_inline int carry6(struct xdp_md *ctx, struct ethernet *eth, void *end, __u16 at)
{
	struct ip6 *ip = (void *)(eth + 1);
	struct key key = {.at = at, .family = AF_INET6};
	struct way *way;
	__be16 *check;
	__u32 length;
	int reason;

	if ((void *)(ip + 1) > end)
		return count(CUT);
	if ((*(__u8 *)ip & 0xf0) != 0x60)
		return count(FOREIGN);
	if (ip->hops <= 1)
		return count(HOP_LIMIT);
	length = ntohs(ip->length);
	if (!length || !whole(ctx, ip + 1, length, end))
		return count(CUT);
	key.protocol = ip->next;
	reason = transport(ip + 1, end, key.protocol, length, &key.ports, &check);
	if (reason == PROTOCOL && (key.protocol == 0 || key.protocol == 43 || key.protocol == 60))
		reason = OPTIONS;
	if (reason == PROTOCOL && key.protocol == 44)
		reason = FRAGMENT;
	if (reason != CARRIED)
		return count(reason);
	__builtin_memcpy(key.from, ip->from, 16);
	__builtin_memcpy(key.to, ip->to, 16);
	/* The flow label and the class. */
	reason = find(ctx, &key, ip->version & 0xffffff0f, length, *check, &way);
	if (reason != CARRIED)
		return count(reason);
	if (!way)
		return count(FULL);
	if (length + sizeof(*ip) > way->mtu)
		return count(TOO_LONG);
	__builtin_memcpy(ip->from, way->from, 16);
	__builtin_memcpy(ip->to, way->to, 16);
	ip->hops--;
	*(__u32 *)(ip + 1) = way->ports;
	rewrite(check, key.protocol, way);
	return send(eth, way);
}

SEC("xdp.frags")
int carry(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethernet *eth = data;
	const volatile __u8 *own;
	__u16 at;

	if ((void *)(eth + 1) > end)
		return count(CUT);
	at = ctx->ingress_ifindex != ports[0].index;
	own = ports[at].address;
	if (ports[at].index != ctx->ingress_ifindex || eth->to[0] != own[0] || eth->to[1] != own[1] || eth->to[2] != own[2] ||
	    eth->to[3] != own[3] || eth->to[4] != own[4] || eth->to[5] != own[5])
		return count(FOREIGN);
	if (eth->kind == htons(0x0800))
		return carry4(ctx, eth, end, at);
	if (eth->kind == htons(0x86dd))
		return carry6(ctx, eth, end, at);
	return count(FOREIGN);
}

/* pass keeps the interface taking frames while the fast path is off. */
SEC("xdp.frags")
int pass(struct xdp_md *ctx)
{
	return count(OFF);
}
