//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 */
/* Loses frames that come in through an interface, as lab/impair's exact link
 * draws it. At an ingress, a drop is one on the way: the sender's stack hears of
 * none. What passes goes on to the next filter. */
#include "loss.h"

char _license[] SEC("license") = "GPL";

/* Keeps the type in the object's type information, from which Go's is made. */
const enum model *model_type __attribute__((unused));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct loss);
} losses SEC(".maps");

/* multiply gives the high half of a product, and the low one by its pointer. */
static __always_inline __u64 multiply(__u64 a, __u64 b, __u64 *low)
{
	__u64 a0 = (__u32)a, a1 = a >> 32, b0 = (__u32)b, b1 = b >> 32;
	__u64 low0 = a0 * b0, t = a1 * b0 + (low0 >> 32);
	__u64 w = (__u32)t + a0 * b1;

	*low = a * b;
	return a1 * b1 + (t >> 32) + (w >> 32);
}

/* draw is PCG.Uint64 >> 11 of Go's math/rand/v2. */
static __always_inline __u64 draw(struct loss *l)
{
	const __u64 mul_high = 2549297995355413924ULL, mul_low = 4865540595714422341ULL;
	const __u64 inc_high = 6364136223846793005ULL, inc_low = 1442695040888963407ULL;
	__u64 low, high = multiply(l->low, mul_low, &low);

	high += l->high * mul_low + l->low * mul_high;
	low += inc_low;
	high += inc_high + (low < inc_low);
	l->high = high;
	l->low = low;
	high ^= high >> 32;
	high *= 0xda942042e4dd58b5ULL;
	high ^= high >> 48;
	high *= low | 1;
	return high >> 11;
}

static __always_inline int random_loss(struct loss *l)
{
	__u64 bound = l->state == 0 ? l->bounds[0] : l->state == 1 ? l->bounds[1] : l->bounds[2];
	int lost = draw(l) < bound;

	l->state = lost ? 2 : 1;
	return lost;
}

static __always_inline int two_states(struct loss *l)
{
	__u64 move = draw(l), lose = draw(l);

	if (l->state) {
		l->state = move >= l->bounds[1];
		return lose < l->bounds[2];
	}
	l->state = move < l->bounds[0];
	return lose < l->bounds[3];
}

static __always_inline int four_states(struct loss *l)
{
	__u64 u = draw(l);

	if (l->state == 1) {
		if (u < l->bounds[0])
			l->state = 4;
		else if (u < l->bounds[1])
			l->state = 3;
	} else if (l->state == 2) {
		if (u < l->bounds[2])
			l->state = 3;
	} else if (l->state == 3) {
		if (u < l->bounds[3])
			l->state = 2;
		else if (u < l->bounds[4])
			l->state = 1;
	} else {
		l->state = 1;
	}
	return l->state >= 3;
}

SEC("tc")
int lose(void *frame)
{
	__u32 key = 0;
	struct loss *l = bpf_map_lookup_elem(&losses, &key);
	int lost;

	if (!l)
		return TC_ACT_UNSPEC;
	bpf_spin_lock(&l->lock);
	if (l->model == TWO_STATES)
		lost = two_states(l);
	else if (l->model == FOUR_STATES)
		lost = four_states(l);
	else
		lost = random_loss(l);
	l->frames++;
	l->lost += lost;
	bpf_spin_unlock(&l->lock);
	return lost ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}
