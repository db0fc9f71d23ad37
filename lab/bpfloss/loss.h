/* SPDX-License-Identifier: GPL-2.0 */
/* What the program and its loader share, and what it uses of the kernel's interface
 * (include/uapi/linux/bpf.h, pkt_cls.h). */
#ifndef PELT_LAB_BPFLOSS_H
#define PELT_LAB_BPFLOSS_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

enum { BPF_MAP_TYPE_ARRAY = 2 };
enum { TC_ACT_UNSPEC = -1, TC_ACT_SHOT = 2 };

struct bpf_spin_lock {
	__u32 val;
};

#include <bpf/bpf_helpers.h>

enum model { RANDOM, TWO_STATES, FOUR_STATES };

struct loss {
	struct bpf_spin_lock lock;
	__u32 model;
	__u32 state;
	__u32 unused;
	__u64 high, low; /* of the generator */
	__u64 bounds[5];
	__u64 frames, lost;
};

_Static_assert(sizeof(struct loss) == 88, "as the loader has it");

#endif
