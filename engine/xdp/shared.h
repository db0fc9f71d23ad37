/* SPDX-License-Identifier: GPL-2.0 */
/* What the programs and the loader both know: bpf2go makes Go types of these. */
#ifndef PELT_XDP_SHARED_H
#define PELT_XDP_SHARED_H

#include "../../internal/kerneltypes/xdp.h"

enum limits {
	WORKERS = 64,  /* of one sending end */
	OUTS = 128,    /* streams of one sending end */
	FLOWS = 4,     /* received through one interface at a time */
	INS = 512,     /* streams of all of them */
	CHAIN_BITS = 10,
	CHAINS = 1 << CHAIN_BITS, /* where a stream is looked for, by its ports */
	LINKS = 16,    /* streams in one chain, at most */

	WORDS = 1 << 20,          /* of 64 sequences, of all flows: 8 MiB */
	FLOW_WORDS = WORDS / FLOWS,

	MOST_STEP = 1 << 11, /* as in package measure */
	AGREEING = 32,

	STEPS = 64, /* seconds of a series that wait for their reader, a power of two */

	/* A histogram has 64 bins an octave: bin(v) is exact below 64 ns and no
	 * wider than a 64th of v above. */
	BINS = 2048, /* a power of two */
	BIN_BITS = 6,
	LONGEST_BITS = 36, /* what is longer than 2^36 ns is counted as out of range */

	COMMON_WORDS = 3, /* of 8 B, of a frame's beginning, which all streams may have in common */
	OWN_WORDS = 6,    /* ... that a stream has for itself, at most */

	FULL_RING_PAUSE = 3000, /* ns that an unpaced sender waits when the device has no room */

	STAMP_EVERY = 16, /* frames of an unpaced sender share one reading of the clock */
};

enum phase { READY, WARMUP, MEASURE, OVER };

/* Slot n is due at n * (whole + rest/parts) ns after the first. */
struct pacer {
	__u64 whole, rest, parts; /* whole is 0 for an unpaced sender */
	__u64 patience;  /* ns a slot may be late before it is given up */
	__u64 least_gap; /* ns between slots that are used, however late they are */
	__u64 due;       /* of the next slot */
	__u64 part;      /* of it, in parts */
	__u64 ready;     /* when the next slot may be used at the earliest */
};

/* One thread of a sending end. The loader writes the first part before the run
 * and stop while it lasts, the program the rest. Times are of CLOCK_MONOTONIC. */
struct worker {
	__u64 begin_at, measure_at, end_at; /* no warm-up if the first two are one */
	struct pacer pacer;
	__u64 first_due; /* ns after the beginning of a phase */
	__u32 out_count; /* its streams */
	__u32 stop;

	__u32 phase;
	__u32 processor; /* 1 + the one it runs on; 0 before it does */

	__u64 begin; /* of the phase */
	__u64 turn;  /* when to look at all of this again; 0 at once */
	__u64 now;   /* last reading of the clock */
	__u64 low;    /* the time, where it stands in the test header */
	__u64 stamps; /* readings of the clock that frames were sent with */
	__u32 sum;    /* of trial and time as the checksum has them */
	__u32 trial;  /* with the warm-up bit */
	__u64 may;       /* when an unpaced worker may try the full device again; 0: it is not full */
	__u64 emitted;   /* frames redirected since the beginning, warm-up included */
	__u64 warmup;    /* of them */
	__u64 settled;   /* of emitted, those whose fate is known */
	__u64 refused;   /* frames of the measured part that the device did not take */
	__u64 warmup_lost;
	__u64 failed; /* frames of the measured part that could not be redirected */
	__u64 last_error; /* errno of a driver that took none of a bulk, else 0 */
	__u64 step_begin;
	__u64 last_stamp;
	__u64 ended;  /* time of the last look at the clock before OVER */
	__u32 cursor; /* stream of the next slot, of out_count */
	__u32 left;   /* frames until the clock is read again */
	__u32 step;
	__u64 counted;      /* of emitted, in steps */
	__u64 steps[STEPS]; /* frames of each second of the measured part */
} __attribute__((aligned(128))); /* what processors write stands apart */

/* A stream as it is sent. */
struct out {
	__u32 sum;      /* of the 16-bit words that a checksum is over, but for trial, sequence and time */
	__u32 ip_sum;   /* of the IPv4 header's words but for identification and checksum, folded */
	__u64 sequence; /* of the next frame of this phase */
	__u64 last;     /* when the frame before left */
	__u64 stamp;    /* of the worker, that the rest is of */
	__u64 high;     /* magic, trial and the sequence's upper bits, as they stand in the test header */
	__u32 common;   /* sum, with all but the sequence's lower bits */
	__u32 silent;   /* set by the loader: the receiver no longer consents, and the stream's slots are skipped */
	__u64 skipped;  /* slots of this phase */
	__u64 own[OWN_WORDS]; /* addresses and ports, and what lies between and behind them up to the UDP checksum */
} __attribute__((aligned(128)));

/* Durations seen by one processor. */
struct histogram {
	__u64 out; /* of range */
	__u64 least, most;
	__u64 pad;
	__u64 bin[BINS];
};

/* Of one receiving end. */
struct flow {
	__u64 begin; /* time of the first measured packet of any stream; 0 none yet */
};

/* A stream as it is received. A zero flow number ends the use of it. */
struct in {
	__u64 pair;    /* source and target as they lie in an IPv4 header */
	__u32 ports;   /* ... in a UDP header */
	__u32 family;  /* 4, 6; 0 unused */
	__be16 length; /* of the UDP datagram */
	__u16 trial;   /* host byte order, without the warm-up bit */
	__u32 next;    /* in its chain: 1 + index; 0 none */
	__u32 flow;
	__u32 skip; /* packets between two that are timed; 0: none */
	__u32 one_clock;
	__u32 words;     /* first of its window */
	__be32 source[4], target[4]; /* IPv6 */
	__u64 mask;      /* sequences of the window less one */
	__u64 floor;     /* below it all is settled, or about to be */
	__u64 top;       /* from it on there is no room yet */
	__u64 fresh;     /* distinct packets that the window has marks of */
	__u64 again, reordered, late, beyond, size, checksum, warmup;
	__u64 expected; /* one above the highest sequence counted, not wrapped */
	__u32 ahead;     /* packets too far above it to move it, fewer than AGREEING */
	__u32 strangers; /* of them, those that the window had no room for */
	__u64 lowest;    /* of those ahead */
	__u64 first, last;
	__u64 transit; /* of the packet timed last */
	__u64 jitter;  /* 16 times it, in ns: RFC 3550 section A.8 */
	__u64 timed;   /* packets whose arrival was timed */
	__u64 step_to; /* end of the second being counted */
	__u32 step;
	__u32 queue;  /* 1 + the one it came through last */
	__u64 moves;  /* times that the queue changed */
	__u32 left; /* packets until two are timed */
	__u32 pad;
	__u64 counted; /* of fresh, in steps */
	__u64 steps[STEPS];
} __attribute__((aligned(128)));
#endif
