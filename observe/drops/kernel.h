/* SPDX-License-Identifier: GPL-2.0 */
/* What of the kernel's types the programs read. Offsets are those of the running
 * kernel: the loader relocates them by its type information (CO-RE). */
#ifndef PELT_KERNEL_H
#define PELT_KERNEL_H

#include "../../internal/kerneltypes/types.h"

/* include/uapi/linux/bpf.h */
enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_PERCPU_ARRAY = 6, BPF_MAP_TYPE_LRU_HASH = 9 };
enum { BPF_ANY = 0, BPF_NOEXIST = 1, BPF_F_MMAPABLE = 1 << 10 };
struct bpf_dynptr {
	__u64 opaque[2];
} __attribute__((aligned(8)));

#include <bpf/bpf_helpers.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct net_device;

struct net {
	struct ns_common ns;
	__u64 net_cookie;
	struct net_device *loopback_dev;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct net_device {
	int ifindex;
	unsigned int mtu;
	possible_net_t nd_net;
	char name[16];
};

struct sock_common {
	possible_net_t skc_net;
};

struct sock {
	struct sock_common __sk_common;
};

struct sk_buff {
	struct net_device *dev;
	struct sock *sk;
	unsigned int len;
	int skb_iif;
	__be16 protocol;
	__u16 network_header;
	__u16 inner_network_header;
	unsigned int tail; /* an offset from head, as on every 64-bit kernel */
	unsigned int end;
	unsigned char *head;
	unsigned char *data;
};

struct task_struct {
	void *stack;
};

struct skb_shared_info {
	unsigned short gso_size;
	unsigned int gso_type;
};

#pragma clang attribute pop

/* include/linux/skbuff.h; the same since the flag came (4.18). */
#define GSO_UDP_L4 (1 << 17)

/* IANA */
enum { PROTO_HOP = 0, PROTO_ICMP = 1, PROTO_IP4 = 4, PROTO_TCP = 6, PROTO_UDP = 17, PROTO_IP6 = 41, PROTO_ROUTING = 43, PROTO_FRAGMENT = 44,
	PROTO_AH = 51, PROTO_ICMP6 = 58, PROTO_OPTIONS = 60 };
enum { PORT_VXLAN = 4789 };
enum { ETHER_IP4 = 0x0800, ETHER_ARP = 0x0806, ETHER_IP6 = 0x86dd };

#define be16(x) __builtin_bswap16(x)
#define be32(x) __builtin_bswap32(x)
#define be64(x) __builtin_bswap64(x)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define likely(x) __builtin_expect(!!(x), 1)

/* Kernel addresses have their top byte set on amd64 and arm64; what else stands
 * in a field that the kernel uses for two things has not. */
#define is_kernel(p) ((__u64)(p) >= 0xff00000000000000ull)

#endif
