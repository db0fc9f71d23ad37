//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 */
/* The sender: BPF_PROG_RUN calls send for each frame of a batch of live ones.
 * A frame's memory comes back as whoever had it last left it: a router has
 * written its addresses there and taken one off the hop limit. So that all but
 * the rest of the payload is written each time. */
#include "kernel.h"

const volatile __u32 worker_index; /* of this copy of the program */
const volatile __u32 out_interface;
const volatile __u32 six; /* 1: IPv6 */
const volatile __u16 trial;
const volatile __u32 ip_sum; /* of the IPv4 header's words but for identification and checksum */

/* The frame's beginning up to the UDP checksum; what is beyond is written after it. */
const volatile __u64 header[HEADER_WORDS];

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, WORKERS);
	__type(key, __u32);
	__type(value, struct worker);
} workers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, OUTS);
	__type(key, __u32);
	__type(value, struct out);
} outs SEC(".maps");

/* Gaps between frames of one stream, of each worker. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WORKERS);
	__type(key, __u32);
	__type(value, struct histogram);
} gaps SEC(".maps");

enum { ETHERNET_BYTES = 14, IP4_BYTES = 20, IP6_BYTES = 40 };

struct ip4 {
	__u8 version, tos;
	__be16 length, id, fragment;
	__u8 ttl, protocol;
	__be16 check;
	__be32 from, to;
};

struct udp {
	__be16 from, to, length, check;
	__u64 high; /* magic, trial, sequence's upper 32 bits */
	__u64 low;  /* sequence's lower 16 bits, time */
};

static __always_inline void begin(struct worker *w, __u64 at, __u64 turn)
{
	w->begin = at;
	w->turn = turn;
	w->due = at + w->first_due;
	w->part = 0;
	w->cursor = 0;
	w->last_stamp = 0;
	w->step = 0;
	w->step_begin = at;
}

/* advance moves the due time n slots on. */
static __always_inline void advance(struct worker *w, __u64 n)
{
	w->due += n * w->whole;
	w->part += n * w->rest;
	if (w->part >= w->parts) {
		w->due += w->part / w->parts;
		w->part %= w->parts;
	}
}

/* turn goes on to the phase of the time now, and says whether to send in it. */
static __noinline int turn(struct worker *w, __u64 now)
{
	__u32 i;

	if (!w || w->phase == OVER)
		return 0;
	if (w->stop || now >= w->end_at) {
		w->phase = OVER;
		w->ended = now;
		w->turn = 0;
		return 0;
	}
	if (now < w->begin_at)
		return 0;
	if (w->phase == READY) {
		w->thread = bpf_get_current_pid_tgid();
		if (now < w->measure_at) {
			w->phase = WARMUP;
			begin(w, w->begin_at, w->measure_at);
			return 1;
		}
	}
	w->phase = MEASURE;
	w->warmup = w->emitted;
	for (i = 0; i < OUTS; i++) {
		__u32 key = w->first_out + i * w->out_step;
		struct out *o;

		if (i >= w->out_count)
			break;
		o = bpf_map_lookup_elem(&outs, &key);
		if (!o)
			break;
		o->sequence = 0;
		o->last = 0;
	}
	begin(w, w->measure_at, w->end_at);
	return 1;
}

/* forfeit gives up slots that are later than a sender may catch up with. */
static __noinline void forfeit(struct worker *w, __u64 now)
{
	__u64 n;

	if (!w || !w->whole)
		return;
	/* A slot is a little longer than whole, so each round comes closer from below. */
	for (int i = 0; i < 8 && now > w->due + w->patience; i++) {
		n = (now - w->due - w->patience) / (w->whole + 1);
		if (n > 1 << 30)
			n = 1 << 30;
		if (!n)
			n = 1;
		advance(w, n);
		w->cursor = (w->cursor + n) % w->out_count;
		if (w->phase == MEASURE)
			w->forfeited += n;
	}
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

/* account counts a frame of the measured part in the series and the gaps. */
static __always_inline void account(struct worker *w, struct out *o, __u64 now)
{
	if (w->whole || w->left == STAMP_EVERY - 1) {
		__u32 key = worker_index;
		struct histogram *h = bpf_map_lookup_elem(&gaps, &key);

		if (now - w->step_begin >= SECOND) {
			__u64 n = (now - w->step_begin) / SECOND;

			w->step += n;
			w->step_begin += n * SECOND;
		}
		if (h && w->whole && o->last)
			record(h, now - o->last, 1);
		else if (h && !w->whole && w->last_stamp) /* frames between two readings of the clock are taken to leave evenly */
			record(h, (now - w->last_stamp) * w->out_count / STAMP_EVERY, STAMP_EVERY);
		w->last_stamp = now;
		o->last = now;
	}
	w->steps[w->step & (STEPS - 1)]++;
}

/* copy writes the first words of a frame, which has as many. */
static __always_inline void copy(void *data, int words)
{
	__u64 *to = data;

#pragma unroll
	for (int i = 0; i < words; i++)
		to[i] = header[i];
}

SEC("xdp")
int send(struct xdp_md *ctx)
{
	__u32 key = worker_index;
	struct worker *w = bpf_map_lookup_elem(&workers, &key);
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct udp *u;
	struct out *o;
	__u64 now, sequence, sum;

	if (!w)
		return XDP_DROP;
	if (w->whole) {
		now = bpf_ktime_get_ns();
		if (now < w->due && now < w->turn) {
			now = wait(w->due);
			if (now < w->due && now < w->turn)
				return XDP_DROP;
		}
		w->now = now;
	} else {
		if (!w->left) {
			w->left = STAMP_EVERY;
			w->now = bpf_ktime_get_ns();
		}
		w->left--;
		now = w->now;
	}
	if (now >= w->turn || w->stop) {
		w->left = 0;
		if (!turn(w, now) || (w->whole && now < w->due))
			return XDP_DROP;
		if (!w->whole)
			w->left = STAMP_EVERY - 1;
	}
	if (w->whole) {
		if (now - w->due > w->patience) {
			forfeit(w, now);
			if (now < w->due)
				return XDP_DROP;
		}
		if (now - w->due > w->latest)
			w->latest = now - w->due;
		advance(w, 1);
	}
	if (six) {
		u = data + ETHERNET_BYTES + IP6_BYTES;
		if ((void *)(u + 1) > end)
			return XDP_DROP;
		copy(data, HEADER_WORDS);
	} else {
		struct ip4 *ip = data + ETHERNET_BYTES;

		u = (void *)(ip + 1);
		if ((void *)(u + 1) > end)
			return XDP_DROP;
		copy(data, HEADER_WORDS4);
		sum = ip_sum + (w->emitted & 0xffff);
		sum = (sum & 0xffff) + (sum >> 16);
		sum = (sum & 0xffff) + (sum >> 16);
		ip->id = htons(w->emitted);
		ip->check = htons(~sum);
	}
	key = w->first_out + w->cursor * w->out_step;
	if (++w->cursor >= w->out_count)
		w->cursor = 0;
	o = bpf_map_lookup_elem(&outs, &key);
	if (!o)
		return XDP_DROP;
	sequence = o->sequence++;
	key = w->phase == MEASURE ? trial : trial ^ WARMUP_BIT;
	u->from = o->from;
	u->to = o->to;
	u->high = __builtin_bswap64((__u64)MAGIC << 48 | (__u64)key << 32 | (sequence & SEQUENCE_MASK) >> 16);
	u->low = __builtin_bswap64(sequence << 48 | (now & SEQUENCE_MASK));
	sum = o->sum + key + (sequence & 0xffff) + (sequence >> 16 & 0xffff) + (sequence >> 32 & 0xffff) +
	      (now & 0xffff) + (now >> 16 & 0xffff) + (now >> 32 & 0xffff);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum ^= 0xffff;
	u->check = htons(sum ? sum : 0xffff); /* 0 would say that there is none */

	if (w->phase == MEASURE)
		account(w, o, now);
	w->emitted++;
	return bpf_redirect(out_interface, 0);
}

/* Tracepoints see what became of the frames. Those of one worker come to the
 * device in the order in which it emitted them. */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct net_device {
	int ifindex;
};
#pragma clang attribute pop

/* mine finds the worker whose thread runs on this processor now. */
static __always_inline struct worker *mine(void)
{
	__u32 thread = (__u32)bpf_get_current_pid_tgid(), i;

	for (i = 0; i < WORKERS; i++) {
		__u32 key = i;
		struct worker *w = bpf_map_lookup_elem(&workers, &key);

		if (!w)
			return 0;
		if (w->thread == thread)
			return w;
		if (!w->out_count)
			return 0;
	}
	return 0;
}

static __always_inline void settle(struct worker *w, __u64 sent, __u64 lost, __u64 *measured)
{
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
	struct worker *w;

	if (to->ifindex != out_interface)
		return 0;
	w = mine();
	if (!w)
		return 0;
	if (sent < 0)
		sent = 0;
	if (drops < 0)
		drops = 0;
	if (err < 0)
		w->last_error = -err;
	settle(w, sent, drops, &w->refused);
	return 0;
}

SEC("tp_btf/xdp_redirect_err")
int unredirected(__u64 *ctx)
{
	struct worker *w = mine();

	if (!w)
		return 0;
	w->last_error = -(int)ctx[3];
	settle(w, 0, 1, &w->failed);
	return 0;
}

const enum limits *types __attribute__((unused));
const enum phase *phases __attribute__((unused));
char _license[] SEC("license") = "GPL";
