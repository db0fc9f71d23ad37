//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 */
/* The sender: BPF_PROG_RUN calls send for each frame of a batch of live ones.
 * A frame's memory comes back as whoever had it last left it: a router has
 * written its addresses there and taken one off the hop limit. So that all but
 * the rest of the payload is written each time. */
#include "kernel.h"
#include "pace.h"

const volatile __u32 out_interface;
const volatile __u32 out_space; /* inode of its network namespace */
const volatile __u32 six; /* 1: IPv6 */
const volatile __u16 trial;
const volatile __u32 identified; /* 1: IPv4 packets carry a number, for whoever may fragment them */
const volatile __u64 clock_ahead; /* CLOCK_MONOTONIC of the process less the kernel's: its time namespace */

/* The frame's beginning up to where streams differ. */
const volatile __u64 header[COMMON_WORDS];

/* Each worker has a copy of the program and of its memory. Global variables cost
 * no lookup. */
struct worker self;
struct out outs[OUTS];
struct histogram gaps; /* between frames of one stream */
struct histogram lates; /* of frames against their own due times; paced only */

/* Up to the end of the UDP header, and of the test header behind it. */
enum { ETHERNET_BYTES = 14, HEADER4 = 14 + 20 + 8, HEADER6 = 14 + 40 + 8, TEST_HEADER = 16 };

/* The test header lies as near as it can: at an address that is even, not more. */
struct udp {
	__be16 from, to, length, check;
};

struct test {
	__u64 high; /* magic, trial, sequence's upper 32 bits */
	__u64 low;  /* sequence's lower 16 bits, time */
};

static __always_inline void begin(struct worker *w, __u64 at)
{
	w->begin = at;
	w->trial = w->phase == MEASURE ? trial : trial ^ WARMUP_BIT;
	pace_begin(&w->pacer, at + w->first_due);
	w->may = 0;
	w->cursor = 0;
	w->last_stamp = 0;
	w->step = 0;
	w->step_begin = at;
}

/* turn goes on to the phase of the time now, and says whether to send in it. It is
 * called when a phase ends. */
static __noinline int turn(__u64 now)
{
	struct worker *w = &self;
	__u32 i;

	if (w->phase == OVER)
		return 0;
	if (w->stop || now >= w->end_at) {
		w->phase = OVER;
		/* Of a worker that had to wait for its core, the last reading is old. */
		w->ended = w->stop ? bpf_ktime_get_ns() : now;
		w->turn = 0;
		return 0;
	}
	w->processor = bpf_get_smp_processor_id() + 1;
	if (now < w->begin_at)
		return 0;
	if (w->phase == READY && now < w->measure_at) {
		w->phase = WARMUP;
		begin(w, w->begin_at);
	}
	if (w->phase != MEASURE && now >= w->measure_at) {
		w->phase = MEASURE;
		w->warmup = w->emitted;
		w->counted = w->emitted;
		for (i = 0; i < OUTS; i++) {
			outs[i].sequence = 0;
			outs[i].skipped = 0;
			outs[i].last = 0;
		}
		begin(w, w->measure_at);
	}
	w->turn = w->phase == WARMUP ? w->measure_at : w->end_at;
	return 1;
}

/* give_up leaves out the slots that are too late. */
static __noinline void give_up(__u64 now)
{
	struct worker *w = &self;

	w->cursor = (w->cursor + pace_give_up(&w->pacer, now)) % w->out_count;
}

/* wait spins until a slot is due, for two microseconds or so. */
static __noinline __u64 wait(__u64 due)
{
	__u64 now = 0;

	for (int i = 0; i < 64; i++) {
		now = bpf_ktime_get_ns();
		if (now >= due)
			break;
	}
	return now;
}

/* account keeps the series and the gaps of the measured part, at each reading of
 * the clock. */
static __always_inline void account(struct worker *w, struct out *o, __u64 now)
{
	struct histogram *h = &gaps;

	if (w->phase != MEASURE)
		return;
	if (now - w->step_begin >= SECOND) {
		__u64 n = (now - w->step_begin) / SECOND;

		w->steps[w->step & (STEPS - 1)] += w->emitted - w->counted;
		w->counted = w->emitted;
		publish(&w->step, w->step + n);
		w->step_begin += n * SECOND;
	}
	if (w->pacer.whole && o->last)
		record(h, now - o->last, 1);
	else if (!w->pacer.whole && w->last_stamp) /* frames between two readings are taken to leave evenly */
		record(h, (now - w->last_stamp) * w->out_count / STAMP_EVERY, STAMP_EVERY);
	w->last_stamp = now;
	o->last = now;
}

/* stamp keeps what all frames of one reading of the clock have in common. */
static __always_inline void stamp(struct worker *w, __u64 now)
{
	__u32 sum;

	w->now = now;
	now += clock_ahead;
	sum = (now & 0xffff) + (now >> 16 & 0xffff) + (now >> 32 & 0xffff) + w->trial;
	w->sum = (sum & 0xffff) + (sum >> 16);
	w->low = __builtin_bswap64(now & SEQUENCE_MASK);
	w->stamps++;
}

/* renew keeps what the frames of one stream have in common until the next stamp,
 * or until the sequence's lower 16 bits are used up. */
static __always_inline void renew(struct worker *w, struct out *o, __u64 sequence)
{
	__u32 sum = o->sum + w->sum + (sequence >> 16 & 0xffff) + (sequence >> 32 & 0xffff);

	sum = (sum & 0xffff) + (sum >> 16);
	o->common = (sum & 0xffff) + (sum >> 16);
	o->high = __builtin_bswap64((__u64)MAGIC << 48 | (__u64)w->trial << 32 | (sequence & SEQUENCE_MASK) >> 16);
	o->stamp = w->stamps;
}

/* put writes what is not there already: the processor that read the frame last
 * has that memory in its cache, and taking it back costs as much as all the rest. */
static __always_inline void put(__u64 *to, __u64 v)
{
	if (*to != v)
		*to = v;
}

/* head writes a frame's beginning up to the UDP length, and returns its UDP header. */
static __always_inline struct udp *head(void *data, void *end, struct out *o)
{
	__u64 *to = data;
	int i;

	if (six) {
		__u32 *last = data + 56;

		if (data + HEADER6 + TEST_HEADER > end)
			return 0;
#pragma unroll
		for (i = 0; i < 2; i++)
			put(to + i, header[i]);
#pragma unroll
		for (i = 0; i < 5; i++)
			put(to + 2 + i, o->own[i]);
		if (*last != (__u32)o->own[5])
			*last = (__u32)o->own[5];
		return data + HEADER6 - sizeof(struct udp);
	}
	if (data + HEADER4 + TEST_HEADER > end)
		return 0;
	/* All of it at once: frames that come back as they left are the rule. */
	if ((to[0] ^ header[0]) | (to[1] ^ header[1]) | (to[2] ^ header[2]) | (to[3] ^ o->own[0])) {
#pragma unroll
		for (i = 0; i < 3; i++)
			to[i] = header[i];
		to[3] = o->own[0];
	}
	put(to + 4, o->own[1]);
	return data + HEADER4 - sizeof(struct udp);
}

SEC("xdp")
int send(struct xdp_md *ctx)
{
	struct worker *w = &self;
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct udp *u;
	struct test *t;
	struct out *o;
	__u64 now, sequence, sum;

	if (w->pacer.whole) {
		now = bpf_ktime_get_ns();
		sum = pace_next(&w->pacer);
		if (now < sum && now < w->turn) {
			now = wait(sum);
			if (now < sum && now < w->turn)
				return XDP_DROP;
		}
	} else {
		if (w->may) {
			/* The device's ring was full: let it empty somewhat. */
			if (bpf_ktime_get_ns() < w->may)
				return XDP_DROP;
			w->may = 0;
		}
		if (!w->left) {
			w->left = STAMP_EVERY;
			stamp(w, bpf_ktime_get_ns());
		}
		w->left--;
		now = w->now;
	}
	if (now >= w->turn) {
		w->left = 0;
		if (!turn(now) || (w->pacer.whole && now < w->pacer.due))
			return XDP_DROP;
		if (!w->pacer.whole) {
			stamp(w, now); /* of another trial number now */
			w->left = STAMP_EVERY - 1;
		}
	}
	if (w->pacer.whole) {
		if (now >= w->pacer.due + w->pacer.patience) {
			give_up(now);
			if (now < w->pacer.due)
				return XDP_DROP;
		}
		if (w->phase == MEASURE)
			record(&lates, now - w->pacer.due, 1);
		pace_use(&w->pacer, now);
		stamp(w, now);
	}
	o = &outs[w->cursor & (OUTS - 1)];
	if (++w->cursor >= w->out_count)
		w->cursor = 0;
	if (o->silent) {
		o->skipped++;
		if (w->left == STAMP_EVERY - 1)
			w->left = 0; /* the next frame reads the clock and is accounted for in its place */
		return XDP_DROP;
	}
	u = head(data, end, o);
	if (!u)
		return XDP_DROP;
	if (identified && !six) {
		struct ip4 *ip = data + ETHERNET_BYTES;

		sum = o->ip_sum + (w->emitted & 0xffff);
		sum = (sum & 0xffff) + (sum >> 16);
		ip->id = htons(w->emitted);
		ip->check = htons(~sum);
	}
	sequence = o->sequence++;
	t = (void *)(u + 1);
	if (o->stamp != w->stamps || !(sequence & 0xffff))
		renew(w, o, sequence);
	t->high = o->high;
	t->low = w->low | htons(sequence);
	sum = o->common + (sequence & 0xffff);
	sum = ((sum & 0xffff) + (sum >> 16)) ^ 0xffff;
	u->check = htons(sum ? sum : 0xffff); /* 0 would say that there is none */

	if (w->pacer.whole || w->left == STAMP_EVERY - 1)
		account(w, o, now);
	w->emitted++;
	return bpf_redirect(out_interface, 0);
}

/* Tracepoints see what became of the frames. Those of one worker come to the
 * device in the order in which it emitted them. */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct net_device {
	int ifindex;
	possible_net_t nd_net;
};
#pragma clang attribute pop

/* mine tells whether these are the worker's frames: it runs on this processor, and
 * has frames on their way, which are handed on before anything else can run. */
static __always_inline bool mine(__u64 frames)
{
	struct worker *w = &self;

	return w->processor == bpf_get_smp_processor_id() + 1 && w->emitted - w->settled >= frames;
}

static __always_inline void settle(__u64 sent, __u64 lost, __u64 *measured)
{
	struct worker *w = &self;
	__u64 from = w->settled + sent, to = from + lost, warmup = w->phase < MEASURE ? w->emitted : w->warmup;

	w->settled = to;
	if (to > warmup)
		*measured += to - (from > warmup ? from : warmup);
	if (from < warmup)
		w->warmup_lost += (to < warmup ? to : warmup) - from;
}

SEC("tp_btf/xdp_devmap_xmit")
int transmitted(__u64 *ctx)
{
	struct net_device *to = (void *)ctx[1];
	int sent = ctx[2], drops = ctx[3], err = ctx[4];
	struct worker *w = &self;

	if (to->ifindex != out_interface || to->nd_net.net->ns.inum != out_space)
		return 0;
	if (sent < 0)
		sent = 0;
	if (drops < 0)
		drops = 0;
	if (!mine(sent + drops))
		return 0;
	if (err < 0)
		w->last_error = -err;
	settle(sent, drops, err < 0 ? &w->failed : &w->refused); /* no error: there was no room for the rest */
	if (drops > 0 && !w->pacer.whole)
		w->may = bpf_ktime_get_ns() + FULL_RING_PAUSE;
	return 0;
}

SEC("tp_btf/xdp_redirect_err")
int unredirected(__u64 *ctx)
{
	struct worker *w = &self;

	if (!mine(1))
		return 0;
	w->last_error = -(int)ctx[3];
	settle(0, 1, &w->failed);
	return 0;
}

const enum limits *types __attribute__((unused));
const enum phase *phases __attribute__((unused));
char _license[] SEC("license") = "GPL";
