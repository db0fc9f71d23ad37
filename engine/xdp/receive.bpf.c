//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 */
/* The receiver: takes the packets of known streams off an interface and keeps
 * the account of each; all else goes its way. A stream is one 5-tuple and comes
 * through one queue, so that one processor at a time writes its account. */
#include "kernel.h"

const volatile __u64 clock_ahead; /* CLOCK_MONOTONIC of the process less the kernel's: its time namespace */

/* Global variables cost no lookup. */
__u32 heads[CHAINS]; /* of the chains: 1 + index of a stream; 0 none */
struct flow flows[FLOWS];
struct in ins[INS];
__u64 bits[WORDS]; /* one for each sequence of the windows */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, FLOWS);
	__type(key, __u32);
	__type(value, struct histogram);
} delays SEC(".maps");

struct udp {
	__be16 from, to, length, check;
	__u64 high, low; /* of the test header */
};

static __always_inline __u32 chain(__u32 ports)
{
	return ports * 0x9e3779b1 >> (32 - CHAIN_BITS);
}

/* fold brings a sum of words back to 16 bits, if it is below 2^48. */
static __always_inline __u64 fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* within keeps the compiler from comparing in a way that the verifier does not know. */
static __always_inline bool within(void *p, void *end)
{
	asm volatile("" : "+r"(p), "+r"(end));
	return p <= end;
}

#define MOST_SUMMED 4096 /* the first part of a frame is shorter */

/* sound checks the datagram's checksum, given the sum of the addresses. What a
 * virtual device hands over from a local sender has none yet: only the sum of
 * the pseudo header stands there. Data outside of the frame's first part is
 * not checked. */
static __always_inline bool sound(struct udp *u, void *end, __u64 addresses, __u32 family)
{
	__u32 length = ntohs(u->length), i;
	__u64 sum;
	__u32 *first = (void *)u;
	void *p;

	if (!u->check)
		return family == 4;
	if (length < sizeof(*u))
		return true; /* no packet of the trial is */
	length -= sizeof(*u);
	addresses += u->length + htons(17);
	/* Words of 32 bits: their sum stays far below 2^48. */
	sum = addresses + first[0] + first[1] + first[2] + first[3] + first[4] + first[5];
	if (length > MOST_SUMMED)
		return true;
	/* The odd bytes at the end come first: behind the loop the verifier would check them for each way out of it. */
	p = (void *)(u + 1) + (length & ~15);
	if (length & 8) {
		if (!within(p + 8, end))
			return true;
		sum += *(__u32 *)p;
		sum += *(__u32 *)(p + 4);
		p += 8;
	}
	if (length & 4) {
		if (!within(p + 4, end))
			return true;
		sum += *(__u32 *)p;
		p += 4;
	}
	if (length & 2) {
		if (!within(p + 2, end))
			return true;
		sum += *(__u16 *)p;
		p += 2;
	}
	if (length & 1) {
		if (!within(p + 1, end))
			return true;
		sum += *(__u8 *)p;
	}
	for (i = 0; i < MOST_SUMMED / 16; i++) {
		if (length < 16)
			break;
		p = (void *)(u + 1) + i * 16;
		if (!within(p + 16, end))
			return true;
		sum += *(__u32 *)p;
		sum += *(__u32 *)(p + 4);
		sum += *(__u32 *)(p + 8);
		sum += *(__u32 *)(p + 12);
		length -= 16;
	}
	sum = fold(sum);
	return (sum & 0xffff) == 0xffff || fold(addresses) == u->check;
}

/* time accounts when a packet came. */
static __always_inline void time(struct in *s, struct xdp_md *ctx, __u64 send)
{
	__u64 now, transit;
	bool first;
	__u32 number = s->flow;
	struct histogram *h;
	struct flow *f;

	/* Two in a row are timed, for what is between them. */
	first = !s->left;
	if (first)
		s->left = s->skip + 1;
	else if (s->left-- != s->skip + 1)
		return;
	if (s->queue != ctx->rx_queue_index + 1) {
		s->moves += s->queue != 0;
		s->queue = ctx->rx_queue_index + 1;
	}
	now = bpf_ktime_get_ns();
	f = &flows[number & (FLOWS - 1)];
	if (!s->first) {
		s->first = now;
		__sync_val_compare_and_swap(&f->begin, 0, now);
		s->step_to = f->begin + SECOND;
	}
	if (now >= s->step_to) {
		__u64 n = (now - s->step_to) / SECOND + 1;

		s->steps[s->step & (STEPS - 1)] += s->fresh - s->counted;
		s->counted = s->fresh;
		publish(&s->step, s->step + n);
		s->step_to += n * SECOND;
	}
	transit = now - send;
	if (s->timed && (!first || !s->skip)) {
		__s64 d = elapsed(s->transit, transit);

		if (d < 0)
			d = -d;
		s->jitter += d - ((s->jitter + 8) >> 4);
	}
	s->transit = transit;
	s->last = now;
	s->timed++;
	if (s->one_clock) {
		h = bpf_map_lookup_elem(&delays, &number);
		if (h)
			record(h, elapsed(send & SEQUENCE_MASK, (now + clock_ahead) & SEQUENCE_MASK), 1);
	}
}

/* leap takes note of a packet too far ahead of the account to move it alone. Enough of them
 * move it to the lowest: the rule of package measure. */
static __always_inline void leap(struct in *s, __u64 at, bool room)
{
	if (!s->ahead || at < s->lowest)
		s->lowest = at;
	s->strangers += !room;
	if (++s->ahead < AGREEING)
		return;
	if (s->lowest >= s->expected)
		s->expected = s->lowest + 1;
	s->beyond += s->strangers;
	s->strangers = 0;
	s->ahead = 0;
}

static __always_inline bool same6(const __be32 *a, const __be32 *b)
{
	return a[0] == b[0] && a[1] == b[1] && a[2] == b[2] && a[3] == b[3];
}

static __always_inline __u64 sum6(const __be32 *a)
{
	return (__u64)a[0] + a[1] + a[2] + a[3];
}

/* What makes an IPv4 packet whole, and UDP: fragment, hop limit, protocol, at 20. */
#define WHOLE4 0x11000000
#define WHOLE4_MASK 0xff00ff3f

SEC("xdp.frags")
int receive(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ip4 *ip4 = data + sizeof(struct ethernet);
	struct ip6 *ip6 = data + sizeof(struct ethernet);
	struct udp *u;
	struct in *s = 0;
	__u64 high, low, sequence, at, bit, sum = 0, pair = 0, *word;
	__u32 key = 0, number, i, family, ports;
	__s64 step;
	bool room;

	if (data + sizeof(struct ethernet) + sizeof(struct ip4) + sizeof(struct udp) > end)
		return XDP_PASS;
	/* IPv4 is told without a look at the Ethernet header, which lies in a line of
	 * memory of its own: fetching that from the sender's cache would cost as much
	 * as all the rest. Addresses, ports and checksum are checked where IPv4 has them. */
	u = (void *)(ip4 + 1);
	if (*(__be16 *)&u->high == htons(MAGIC) && (*(__u32 *)(data + 20) & WHOLE4_MASK) == WHOLE4 && ntohs(ip4->length) - ntohs(u->length) == sizeof(*ip4)) {
		family = 4;
		pair = *(__u64 *)&ip4->from;
		sum = (pair & 0xffffffff) + (pair >> 32);
	} else if (((struct ethernet *)data)->kind == htons(0x86dd)) {
		u = (void *)(ip6 + 1);
		if ((void *)(u + 1) > end || ip6->next != 17)
			return XDP_PASS;
		family = 6;
		sum = sum6(ip6->from) + sum6(ip6->to);
	} else {
		return XDP_PASS;
	}
	high = __builtin_bswap64(u->high);
	if (high >> 48 != MAGIC)
		return XDP_PASS;

	ports = *(__u32 *)&u->from;
	key = heads[chain(ports)];
	for (i = 0; i < LINKS && key; i++) {
		s = &ins[(key - 1) & (INS - 1)];
		if (s->ports == ports && s->family == family) {
			if (family == 4) {
				if (s->pair == pair)
					break;
			} else if ((void *)(ip6 + 1) <= end && same6(s->source, ip6->from) && same6(s->target, ip6->to)) {
				break;
			}
		}
		key = s->next;
		s = 0;
	}
	if (!s)
		return XDP_PASS;
	if (!sound(u, end, sum, family)) {
		s->checksum++;
		return XDP_DROP;
	}
	number = (high >> 32) & 0xffff;
	if (number != s->trial) {
		if (number != (s->trial ^ WARMUP_BIT))
			return XDP_PASS;
		s->warmup++;
		return XDP_DROP;
	}
	if (u->length != s->length) {
		s->size++;
		return XDP_DROP;
	}

	low = __builtin_bswap64(u->low);
	sequence = (high << 16 & SEQUENCE_MASK) | low >> 48;
	/* The wire has 48 bits; the position nearest to the next expected is meant. */
	step = elapsed(s->expected, sequence);
	at = s->expected + step;
	if (at < s->floor || (__s64)at < 0) {
		s->late++;
		return XDP_DROP;
	}
	room = at < s->top;
	if (room) {
		key = s->words + ((at & s->mask) >> 6);
		word = &bits[key & (WORDS - 1)];
		bit = 1ULL << (at & 63);
		if (*word & bit) {
			s->again++;
			return XDP_DROP;
		}
		*word |= bit;
	}
	if (step >= MOST_STEP)
		leap(s, at, room);
	else if (step >= 0)
		s->expected = at + 1;
	if (!room) {
		s->beyond += step < MOST_STEP;
		return XDP_DROP;
	}
	s->reordered += step < 0;
	time(s, ctx, low & SEQUENCE_MASK);
	s->fresh++;
	return XDP_DROP;
}

const enum limits *types __attribute__((unused));
char _license[] SEC("license") = "GPL";
