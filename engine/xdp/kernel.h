/* SPDX-License-Identifier: GPL-2.0 */
/* What both programs use. */
#ifndef PELT_XDP_KERNEL_H
#define PELT_XDP_KERNEL_H

#include "shared.h"
#include <bpf/bpf_helpers.h>

#define MAGIC 0x9e17
#define WARMUP_BIT 0x8000
#define SECOND 1000000000ULL
#define SEQUENCE_MASK 0xffffffffffffULL

/* bin is the histogram's bin of a duration below 2^LONGEST_BITS ns. */
static __always_inline __u32 bin(__u64 v)
{
	__u32 e = 0;
	__u64 x = v;

	if (v < 64)
		return v;
	if (x >> 32)
		e += 32, x >>= 32;
	if (x >> 16)
		e += 16, x >>= 16;
	if (x >> 8)
		e += 8, x >>= 8;
	if (x >> 4)
		e += 4, x >>= 4;
	if (x >> 2)
		e += 2, x >>= 2;
	e += x >> 1;
	return (e - BIN_BITS + 1) * 64 + ((v >> (e - BIN_BITS)) & 63);
}

static __always_inline void record(struct histogram *h, __u64 v, __u64 n)
{
	__u32 i;

	if (v >> LONGEST_BITS) {
		h->out += n;
		return;
	}
	i = bin(v) & (BINS - 1); /* for the verifier: it is never beyond */
	h->bin[i] += n;
	if (v < h->least || !h->most)
		h->least = v;
	if (v >= h->most)
		h->most = v + 1; /* 0 is none yet */
}

/* publish writes the number of the second being counted behind the counts of those before. Without
 * an atomic operation an arm64 processor may show their reader the number first. */
static __always_inline void publish(__u32 *step, __u32 number)
{
	__sync_lock_test_and_set(step, number);
}

/* elapsed is b-a of two 48-bit readings of one clock, signed. */
static __always_inline __s64 elapsed(__u64 a, __u64 b)
{
	return (__s64)((b - a) << 16) >> 16;
}
#endif
