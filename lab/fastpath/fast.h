/* SPDX-License-Identifier: GPL-2.0 */
/* What the program and its loader share, and what it uses of the kernel's interface
 * (include/uapi/linux/bpf.h, net/netfilter/nf_conntrack_bpf.c). */
#ifndef PELT_LAB_FASTPATH_H
#define PELT_LAB_FASTPATH_H

#include "../../internal/kerneltypes/xdp.h"

struct bpf_sock_tuple {
	union {
		struct {
			__be32 saddr, daddr;
			__be16 sport, dport;
		} ipv4;
		struct {
			__be32 saddr[4], daddr[4];
			__be16 sport, dport;
		} ipv6;
	};
};

struct bpf_fib_lookup {
	__u8 family, l4_protocol;
	__be16 sport, dport;
	__u16 mtu; /* in: length, 0 unknown; out: MTU of the way */
	__u32 ifindex;
	__u32 tos;
	__be32 src[4], dst[4];
	__u32 tbid;
	__u8 smac[6], dmac[6];
};
_Static_assert(sizeof(struct bpf_fib_lookup) == 64, "as the kernel has it");

#include <bpf/bpf_helpers.h>

/* What became of a frame: the exits of the program. All but the first leave it to
 * the kernel. */
enum reason {
	CARRIED,
	OFF,       /* the fast path is turned off */
	FOREIGN,   /* not to this interface's Ethernet address, or no IP packet */
	CUT,       /* shorter than its headers say */
	OPTIONS,   /* IPv4 options, IPv6 extension headers */
	FRAGMENT,
	HOP_LIMIT, /* the router is where it ends */
	DAMAGED,   /* IPv4 header checksum */
	PROTOCOL,  /* neither UDP nor TCP */
	OPENING,   /* TCP that opens or ends a connection */
	UNKNOWN,   /* no connection is tracked */
	UNSETTLED, /* one is, but not all of it is known yet, or more than addresses must change */
	UNSUMMED,  /* no checksum in it yet: a local sender left that to hardware */
	NO_ROUTE,  /* nor a neighbour */
	TOO_LONG,  /* for the way's MTU */
	FULL,      /* no room for another flow */
	REASONS,
};

enum limits {
	PORTS = 2,
	FLOWS = 1 << 16, /* directions of connections */
};

/* An interface of the router. */
struct port {
	__u32 index;
	__u8 address[6];
	__u16 unused;
};

#endif
