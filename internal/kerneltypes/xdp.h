/* SPDX-License-Identifier: GPL-2.0 */
/* What XDP programs use of the kernel's interface (include/uapi/linux/bpf.h), and how headers lie in a packet. */
#ifndef PELT_KERNELTYPES_XDP_H
#define PELT_KERNELTYPES_XDP_H

#include "types.h"

enum { BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_PERCPU_ARRAY = 6, BPF_MAP_TYPE_LRU_HASH = 9 };
enum { BPF_F_MMAPABLE = 1 << 10 };
enum xdp_action { XDP_ABORTED, XDP_DROP, XDP_PASS, XDP_TX, XDP_REDIRECT };

struct xdp_md {
	__u32 data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex;
};

#define ntohs(x) __builtin_bswap16(x)
#define htons(x) __builtin_bswap16(x)

struct ethernet {
	__u8 to[6], from[6];
	__be16 kind;
};

struct ip4 {
	__u8 version, tos;
	__be16 length, id, fragment;
	__u8 ttl, protocol;
	__be16 check;
	__be32 from, to;
};

struct ip6 {
	__be32 version;
	__be16 length;
	__u8 next, hops;
	__be32 from[4], to[4];
};

#endif
