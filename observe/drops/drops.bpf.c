//go:build ignore

// SPDX-License-Identifier: GPL-2.0
// Verdicts about test packets, from the tracepoint that every drop passes. No
// ring buffer: nothing can be lost between kernel and reader but what is counted.
#include "site.h"
#include "live.h"

char _license[] SEC("license") = "GPL"; /* the tracing helpers ask for it */

/* Keeps types in the object's type information, from which Go's are made. */
const enum limits *limits_type __attribute__((unused));
const enum exit_reason *exit_reason_type __attribute__((unused));
const enum site_flags *site_flags_type __attribute__((unused));
const enum by_port *by_port_type __attribute__((unused));

/* Set by the loader, by name: the numbers differ between kernels. 0: this kernel has none. */
const volatile __u32 tap_reason;      /* PACKET_SOCK_ERROR */
const volatile struct tap taps[TAPS]; /* functions whose drops are none, where there is no tap_reason */
__u32 fragments_wanted;               /* tracks that ask for them */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STREAMS + FLOWS); /* flows: those that are alone in their trials */
	__type(key, struct stream_key);
	__type(value, struct stream);
} streams SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, FLOWS);
	__type(key, struct meeting_key);
	__type(value, struct stream); /* COUNT_ONLY */
} meetings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TALLIES);
	__type(key, struct tally_key);
	__type(value, struct tally);
} tallies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOWS);
	__type(key, __u32);
	__type(value, struct rest);
} rests SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* by the loader */
	__type(key, __u32);
	__type(value, struct page);
} verdicts SEC(".maps");

/* Of each page: 1 when a verdict was written since the reader's last visit. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* by the loader */
	__type(key, __u32);
	__type(value, __u64);
} dirty SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, STREAMS);
	__type(key, __u32);
	__type(value, struct newest);
} newest SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, HELD_FRAGMENTS);
	__type(key, struct held_key);
	__type(value, struct held);
} held SEC(".maps");

/* Without a branch on the value: the verifier would follow each that a walk over
 * segments can come to. */
#define add(to, value)                                              \
	do {                                                        \
		if (!__builtin_constant_p(value) || (value))        \
			__sync_fetch_and_add(to, value);            \
	} while (0)

static __always_inline void unlisted(struct stream *s, __u64 sites, __u64 overwritten)
{
	struct rest *r = bpf_map_lookup_elem(&rests, &s->flow);

	if (!r)
		return;
	add(&r->sites, sites);
	add(&r->overwritten, overwritten);
}

/* reached says whether a stream can have come to a sequence: what a link damages may claim
 * any, and the verdicts after it could not be read any more. Half of what the reader
 * can tell apart is always believed; beyond it a stream makes a packet in 64 ns at most. */
static __always_inline bool reached(struct newest *n, __u64 sequence, __u32 bits)
{
	__u64 ahead = sequence - n->at;

	return likely(ahead < 1ull << (bits + 14)) || ahead < (bpf_ktime_get_ns() - n->when) >> 6;
}

/* judge writes a verdict. The last one about a sequence counts, but of pieces
 * the first. */
static __always_inline void judge(struct stream *s, __u64 sequence, __u32 site, bool first)
{
	__u32 bits = s->bits & 31;
	__u32 i, number, verdict, old, *cell;
	struct newest *n;
	struct page *p;
	__u64 *at;

	i = s->base + (sequence & ((1u << bits) - 1));
	number = i / PAGE_CELLS;
	p = bpf_map_lookup_elem(&verdicts, &number);
	if (!p)
		return unlisted(s, 0, 1);
	n = bpf_map_lookup_elem(&newest, &s->slot);
	if (n && n->at < sequence && reached(n, sequence, bits))
		n->at = sequence; /* before the verdict, for whose reading it is needed */
	verdict = (sequence >> bits & 0xffff) << 16 | site;
	cell = &p->cell[i & (PAGE_CELLS - 1)];
	if (old_kernel) { /* what the reader takes out in between counts as overwritten, if it was of another sequence */
		old = *cell;
		if (!first || !old)
			*cell = verdict;
		if (old && old >> 16 != verdict >> 16)
			unlisted(s, 0, 1);
	} else if (first) {
		old = __sync_val_compare_and_swap(cell, 0, verdict);
		if (old && old >> 16 != verdict >> 16)
			unlisted(s, 0, 1);
	} else {
		old = __sync_lock_test_and_set(cell, verdict);
		if (unlikely(old && old >> 16 != verdict >> 16))
			unlisted(s, 0, 1);
	}
	at = bpf_map_lookup_elem(&dirty, &number);
	if (at && !*at)
		*at = 1;
}

static __noinline int tally_up(struct stream *s, __u32 site, struct tally *by, enum exit_reason why)
{
	struct tally_key k = {s->flow, site};
	struct tally *t = bpf_map_lookup_elem(&tallies, &k);

	if (unlikely(!t)) {
		struct tally none = {};
		bpf_map_update_elem(&tallies, &k, &none, BPF_NOEXIST);
		t = bpf_map_lookup_elem(&tallies, &k);
		if (!t) {
			unlisted(s, by->packets + by->warmup + by->fragments, 0);
			return leave(EXIT_REST);
		}
	}
	add(&t->packets, by->packets);
	add(&t->unreadable, by->unreadable);
	add(&t->warmup, by->warmup);
	add(&t->fragments, by->fragments);
	return leave(why);
}

/* The datagrams that a packet carries. */
struct datagrams {
	__u64 info;    /* of the packet: struct skb_shared_info */
	__u32 bytes;   /* from the IP header on */
	__u32 payload; /* from behind the UDP header on */
	__u32 mtu;     /* of the device that it leaves by; ~0: of none */
	__u32 first;   /* as in struct where */
	__u32 step;    /* they are so far apart; 0: it is one */
	__u32 count;
	__u32 piece;   /* SITE_PIECE, or 0 */
	__u32 unused;
};

/* count_datagrams fills in the rest. A piece is a fragment, or about to become several. The first verdict about one of
 * them is the cause of the loss; what becomes of the others, such as failed reassembly, only follows from it. */
__noinline int count_datagrams(struct datagrams *d)
{
	struct skb_shared_info *info;
	__u32 type = 0;
	__u16 size = 0;

	if (!d)
		return 0;
	info = (void *)d->info;
	bpf_core_read(&size, sizeof(size), &info->gso_size);
	d->piece = !size && (d->first || d->bytes > d->mtu) ? SITE_PIECE : 0;
	d->step = 0;
	d->count = 1;
	if (likely(!size))
		return 0;
	bpf_core_read(&type, sizeof(type), &info->gso_type);
	if (type & GSO_UDP_L4 && d->payload > size) {
		d->step = size;
		d->count = (d->payload + size - 1) / size;
	}
	return 0;
}

/* A walk over the datagrams of a super-packet. */
struct walk {
	struct sk_buff *skb;
	struct stream *stream;
	struct where w;
	struct tally sum;
	__u32 at, step, site;
	__u32 trial;
};

static long segment(__u32 i, struct walk *k)
{
	__be32 h[3];
	__u64 sequence;
	__u32 word, at = k->at + i * k->step;

	if (at + HEADER_BYTES > k->w.end)
		return 1;
	if (!read_at(k->skb, &k->w, at, h, sizeof(h))) {
		k->sum.packets++;
		k->sum.unreadable++;
		return 0;
	}
	word = be32(h[0]);
	if (k->trial && (word >> 16 != MAGIC || (word & 0x7fff) != k->trial))
		return 0;
	if (k->trial && (word & WARMUP_BIT)) {
		k->sum.warmup++;
		return 0;
	}
	k->sum.packets++;
	sequence = sequence_of(k->stream->iperf, h[1], h[2]);
	k->sum.unreadable += k->stream->bits == ANY_STREAM;
	if (k->stream->bits < ANY_STREAM)
		judge(k->stream, sequence, k->site, false);
	return 0;
}

static __always_inline struct held_key held_key(struct where *w)
{
	struct held_key k = {.id = w->id, .family = w->family};

	addresses(w, k.from, k.to);
	return k;
}

/* stream_of finds a packet's stream by trial and ports, or by the trial alone where that names one. */
static __always_inline struct stream *stream_of(struct stream_key *k)
{
	struct stream_key alone = {.trial = k->trial};
	struct stream *s = bpf_map_lookup_elem(&streams, k);

	return s || k->by_port ? s : bpf_map_lookup_elem(&streams, &alone);
}

/* named_by finds a packet's stream by its headers, and the key. iperf3's own packets name no trial, nor do those whose
 * payload is out of reach, which read tells. */
static __always_inline struct stream *named_by(struct test_header *h, bool read, struct stream_key *k)
{
	__u32 ports = be32(h->ports);
	bool test = read && is_test(h);
	struct stream *s;

	*k = (struct stream_key){.from = ports >> 16, .to = ports};
	if (likely(test))
		k->trial = be32(h->magic_trial) & 0x7fff;
	else
		k->by_port = BY_UDP_PORTS;
	s = stream_of(k);
	return s && read && !test && !s->iperf ? 0 : s;
}

/* in_warmup reports whether a packet of a stream with that key is of the warm-up. */
static __always_inline bool in_warmup(struct stream_key *k, struct test_header *h)
{
	return k->trial && (be32(h->magic_trial) & WARMUP_BIT);
}

/* These two have a stack of their own, of which a program has 512 B in all. */
static __noinline int hold(struct where *w, struct test_header *h, struct stream_key *stream, bool iperf)
{
	struct held_key k = held_key(w);
	struct held v = {.stream = *stream, .sequence = sequence_of(iperf, h->sequence_high, h->sequence_low),
		.warmup = in_warmup(stream, h)};

	return bpf_map_update_elem(&held, &k, &v, BPF_ANY);
}

static __noinline struct held *held_of(struct where *w)
{
	struct held_key k = held_key(w);

	return bpf_map_lookup_elem(&held, &k);
}

/* later handles the drop of a fragment that has no header of its own. */
static __always_inline int later(__u64 *ctx, struct walk *k)
{
	struct held *v;

	if (!fragments_wanted)
		return leave(EXIT_FRAGMENT);
	v = held_of(&k->w);
	if (!v)
		return leave(EXIT_FRAGMENT);
	k->stream = stream_of(&v->stream);
	if (!k->stream)
		return leave(EXIT_STRANGER);
	k->site = site_of(ctx, k->skb, k->skb->dev, SITE_PIECE);
	if (!k->site) {
		unlisted(k->stream, 1, 0);
		return leave(EXIT_REST);
	}
	if (!v->warmup && k->stream->bits < ANY_STREAM)
		judge(k->stream, v->sequence, k->site, true);
	k->sum.fragments = 1;
	return tally_up(k->stream, k->site, &k->sum, EXIT_NOTED);
}

/* of_meeting handles the drop of a UDP packet that is no test packet. */
static __always_inline int of_meeting(__u64 *ctx, struct walk *k, struct test_header *h)
{
	__u32 what = be32(h->sequence_high), kind = what >> 8 & 0xff;
	struct meeting_key key = {.trial = be32(h->magic_trial), .tag = what >> 16, .asks = kind & 1};

	if (be32(h->magic_trial) >> 16 != MEETING_MAGIC || kind - 1 >= MEETING_KINDS)
		return leave(EXIT_FOREIGN);
	k->stream = bpf_map_lookup_elem(&meetings, &key);
	if (!k->stream)
		return leave(EXIT_STRANGER);
	k->site = site_of(ctx, k->skb, k->skb->dev, 0);
	if (!k->site) {
		unlisted(k->stream, 1, 0);
		return leave(EXIT_REST);
	}
	k->sum.packets = 1;
	return tally_up(k->stream, k->site, &k->sum, EXIT_NOTED);
}

/* connection_of finds what a segment of TCP counts for: its connection, if it has data and that is tracked, else the port
 * where connections are awaited. h are the first words of its header. */
static __noinline struct stream *connection_of(struct walk *k, __be32 *h, __u32 data)
{
	struct stream_key key = {.from = be32(h[0]) >> 16, .to = be32(h[0]), .by_port = BY_TCP_PORTS};
	struct meeting_key call = {.by_port = BY_TCP_PORTS};
	struct where *w = &k->w;
	bool four = w->family == 4;
	struct stream *s;
	__u32 step, type;

	k->sum.packets = 1;
	s = data ? bpf_map_lookup_elem(&streams, &key) : 0;
	if (s) {
		step = segment_bytes(k->skb, w, &type);
		if (step)
			k->sum.packets = (data + step - 1) / step;
	} else {
		call.tag = key.to;
		call.asks = 1;
		s = bpf_map_lookup_elem(&meetings, &call);
	}
	if (!s) {
		call.tag = key.from;
		call.asks = 0;
		s = bpf_map_lookup_elem(&meetings, &call);
	}
	if (s && s->base && s->base != folded(w, four ? 3 : 2) && s->base != folded(w, four ? 4 : 6))
		return 0; /* between other hosts, in another namespace */
	return s;
}

/* of_connection handles the drop of TCP. */
static __always_inline int of_connection(__u64 *ctx, struct walk *k, __be32 *h)
{
	__u32 header;

	if (k->w.later)
		return leave(EXIT_FRAGMENT);
	if (!read_at(k->skb, &k->w, k->w.l4, h, 4 * sizeof(*h)))
		return leave(EXIT_OUT_OF_SIGHT);
	header = be32(h[3]) >> 28 << 2;
	if (ip_end(&k->w) < k->w.l4 + header)
		return leave(EXIT_SHORT);
	k->stream = connection_of(k, h, ip_end(&k->w) - k->w.l4 - header);
	if (!k->stream)
		return leave(EXIT_STRANGER);
	k->site = site_of(ctx, k->skb, k->skb->dev, 0);
	if (!k->site) {
		unlisted(k->stream, k->sum.packets, 0);
		return leave(EXIT_REST);
	}
	return tally_up(k->stream, k->site, &k->sum, EXIT_NOTED);
}

static __always_inline bool is_tap(__u64 location, __u32 reason)
{
	if (tap_reason)
		return reason == tap_reason;
	for (int i = 0; i < TAPS; i++)
		if (location - taps[i].begin < taps[i].end - taps[i].begin)
			return true;
	return false;
}

static __always_inline int of_stream(__u64 *ctx, struct sk_buff *skb)
{
	struct walk k = {.skb = skb};
	struct test_header h = {};
	struct datagrams d;
	struct net_device *dev;
	struct stream_key key;
	__u32 inner;
	int read;

	if (is_tap(ctx[1], reason_of(ctx)))
		return leave(EXIT_TAP);
	if (!find_ip(skb, &k.w))
		return leave(EXIT_NOT_IP);
	inner = carried(skb, &k.w);
	if (unlikely(inner) && !unwrap(skb, &k.w, inner))
		return leave(EXIT_NOT_IP);
	if (k.w.protocol == PROTO_TCP)
		return of_connection(ctx, &k, (__be32 *)&h);
	if (k.w.protocol != PROTO_UDP)
		return leave(EXIT_OTHER_PROTOCOL);
	if (k.w.later)
		return later(ctx, &k);
	k.at = k.w.l4 + 8;
	if (k.at + HEADER_BYTES > k.w.end)
		return leave(EXIT_SHORT);
	read = udp_header(skb, &k.w, &h);
	if (read < 0)
		return leave(EXIT_OUT_OF_SIGHT);
	k.stream = named_by(&h, read, &key);
	k.trial = key.trial;
	if (!k.stream && read && !is_test(&h))
		return of_meeting(ctx, &k, &h);
	if (!k.stream)
		return leave(read ? EXIT_STRANGER : EXIT_FOREIGN);
	dev = skb->dev;
	d = (struct datagrams){.info = k.w.head + skb->end, .bytes = k.w.end - k.w.ip, .payload = k.w.end - k.at,
		.first = k.w.first, .mtu = ~0};
	if (!skb->skb_iif && is_kernel(dev))
		d.mtu = dev->mtu;
	count_datagrams(&d);
	if (old_kernel)
		anew(&d);
	k.step = d.step;
	k.site = site_of(ctx, skb, dev, d.piece);
	if (unlikely(!k.site)) {
		unlisted(k.stream, d.count, 0);
		return leave(EXIT_REST);
	}
	if (unlikely(!read)) {
		k.sum.packets = k.sum.unreadable = d.count;
		return tally_up(k.stream, k.site, &k.sum, EXIT_UNREADABLE);
	}
	if (unlikely(k.step) && !old_kernel) {
		bpf_loop(1 << 16, segment, &k, 0);
		return tally_up(k.stream, k.site, &k.sum, EXIT_NOTED);
	}
	if (k.w.first && fragments_wanted)
		hold(&k.w, &h, &key, k.stream->iperf);
	if (in_warmup(&key, &h)) {
		k.sum.warmup = d.count;
	} else {
		k.sum.packets = d.count;
		k.sum.unreadable = k.stream->bits == ANY_STREAM ? d.count : d.count - 1;
		if (k.stream->bits < ANY_STREAM)
			judge(k.stream, sequence_of(k.stream->iperf, h.sequence_high, h.sequence_low), k.site, d.piece);
	}
	return tally_up(k.stream, k.site, &k.sum, EXIT_NOTED);
}

static __always_inline int drop(__u64 *ctx, struct sk_buff *skb)
{
	return live_view ? live(ctx, skb) : of_stream(ctx, skb);
}

/* on_interrupt tells which of two slots is this run's: 0 on the stack of a task; 1 on the processor's own stack, where
 * soft interrupts run that come on top of a task. While a packet is dropped, no run of the same slot comes in between,
 * but on old kernels of arm64, which run soft interrupts on the stack of a task. */
static __always_inline __u32 on_interrupt(__u64 *ctx)
{
	struct task_struct *task;
	void *stack = 0;
	__s64 above;
	__u32 at;

	/* Its lower half: the verifier lets no whole pointer be reckoned with. */
	asm volatile("r0 = %1; w0 = w0; %0 = r0" : "=r"(at) : "r"(ctx) : "r0");
	if (old_kernel) {
		task = (void *)bpf_get_current_task();
		bpf_core_read(&stack, sizeof(stack), &task->stack);
	} else { /* Linux 5.11 */
		stack = bpf_get_current_task_btf()->stack;
	}
	above = at - (__u32)(__u64)stack;
	/* Without a branch: the verifier would check twice all that follows. */
	above = STACK_SIZE - 1 - above;
	asm volatile("" : "+r"(above));
	return (__u64)above >> 63;
}

SEC("tp_btf/kfree_skb")
int dropped(__u64 *ctx)
{
	struct sk_buff *skb = (void *)ctx[0];
	__u32 upper = on_interrupt(ctx);
	struct counts *c = here();

	if (!c)
		return 0;
	c->done[1] &= 0 - (__u64)upper;
	drop(ctx, skb);
	c->done[upper & 1] = (__u64)skb;
	return 0;
}

/* The kernel runs no program while it is running on the same processor already.
 * When a soft interrupt drops packets on top of a send call that is dropping one,
 * this second program, attached after the first, does what that was not let do.
 * It is not run on top of itself either: what the first did there stays in the slot of
 * interrupts. A task's programs empty that, or a later packet in the same memory is taken for it. */
SEC("tp_btf/kfree_skb")
int nested(__u64 *ctx)
{
	struct sk_buff *skb = (void *)ctx[0];
	__u32 upper = on_interrupt(ctx);
	struct counts *c = here();
	bool done;

	if (!c)
		return 0;
	done = c->done[upper & 1] == (__u64)skb;
	c->done[upper & 1] = 0;
	c->done[1] &= 0 - (__u64)upper;
	if (done)
		return 0;
	__sync_fetch_and_add(&c->nested, 1);
	return drop(ctx, skb);
}

static __always_inline int remember(struct sk_buff *skb)
{
	struct test_header h = {};
	struct stream_key key;
	struct stream *s;
	struct where w;

	if (!find_ip(skb, &w))
		return leave(EXIT_NOT_IP);
	if (!w.first || w.protocol != PROTO_UDP)
		return leave(EXIT_FRAGMENT);
	if (udp_header(skb, &w, &h) != 1)
		return leave(EXIT_OUT_OF_SIGHT);
	s = named_by(&h, true, &key);
	if (!s)
		return leave(is_test(&h) ? EXIT_STRANGER : EXIT_FOREIGN);
	hold(&w, &h, &key, s->iperf);
	return leave(EXIT_REMEMBERED);
}

/* Attached only while a track asks for fragments: they see delivered packets. */
SEC("tp_btf/net_dev_queue")
int queued(__u64 *ctx)
{
	return remember((void *)ctx[0]);
}

SEC("tp_btf/netif_receive_skb")
int received(__u64 *ctx)
{
	return remember((void *)ctx[0]);
}

/* Tells the function that an address is in: /proc/kallsyms has 200 000 of them to look through. bpf_snprintf came with
 * Linux 5.13, this kind of program with 5.14. */
SEC("syscall")
int function_of(struct naming *n)
{
	static const char format[] = "%pS";
	__u64 address = n->address;
	char symbol[sizeof(n->symbol)] = {};

	bpf_snprintf(symbol, sizeof(symbol), format, &address, sizeof(address));
	__builtin_memcpy(n->symbol, symbol, sizeof(symbol));
	return 0;
}
