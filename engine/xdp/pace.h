/* SPDX-License-Identifier: GPL-2.0 */
/* The pacer of package pace for even gaps, a slot at a time. */
#ifndef PELT_XDP_PACE_H
#define PELT_XDP_PACE_H

#include "shared.h"

#define CATCH_UP_SLACK 20000ULL /* ns: pace.CatchUpSlack */

/* pace_begin sets the first slot. */
static __always_inline void pace_begin(struct pacer *p, __u64 due)
{
	p->due = due;
	p->part = 0;
	p->ready = 0;
}

/* pace_next is the earliest time of the next slot. */
static __always_inline __u64 pace_next(const struct pacer *p)
{
	return p->due > p->ready ? p->due : p->ready;
}

static __always_inline void pace_advance(struct pacer *p, __u64 n)
{
	p->due += n * p->whole;
	p->part += n * p->rest;
	if (p->part >= p->parts) {
		p->due += p->part / p->parts;
		p->part %= p->parts;
	}
}

/* pace_give_up leaves out the slots that are too late, and returns how many. */
static __always_inline __u64 pace_give_up(struct pacer *p, __u64 now)
{
	__u64 n, all = 0;

	/* A slot is a little longer than whole, so each round comes closer from below. */
	for (int i = 0; i < 8 && now >= p->due + p->patience; i++) {
		n = (now - p->due - p->patience) / (p->whole + 1) + 1;
		if (n > 1 << 30)
			n = 1 << 30;
		pace_advance(p, n);
		all += n;
	}
	return all;
}

/* pace_use takes the next slot, which is due and ready. */
static __always_inline void pace_use(struct pacer *p, __u64 now)
{
	pace_advance(p, 1);
	if (p->ready + CATCH_UP_SLACK < now)
		p->ready = now - CATCH_UP_SLACK;
	p->ready += p->least_gap;
}
#endif
