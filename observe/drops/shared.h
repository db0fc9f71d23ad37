/* SPDX-License-Identifier: GPL-2.0 */
/* What the programs and the loader both know: bpf2go makes Go types of these. */
#ifndef PELT_SHARED_H
#define PELT_SHARED_H

#include "kernel.h"

enum limits {
	SITES = 4096,           /* places where packets are dropped; a verdict holds 16 bits of their ids */
	FLOWS = 4096,           /* tracked at a time, and ways of meetings; 0 is none */
	STREAMS = 16384,        /* keys: two views of 8192 streams */
	TALLIES = 16384,        /* pairs of flow and site */
	PAGE_CELLS = 1024,      /* verdicts in one entry of their array */
	HELD_FRAGMENTS = 16384, /* datagrams whose first fragment has been seen */
	LIVE_FLOWS = 16384,     /* pairs of site and 5-tuple in the live view */
	LIVE_PORTS = 16,
	TAPS = 8,          /* functions whose drops are copies for sniffers, or parts of a packet */
	STACK_SIZE = 16384, /* of a task, with pages of 4 KiB */
	COUNT_ONLY = 0xff, /* in stream.bits: no verdicts */
	ANY_STREAM = 0xfe, /* likewise: of which stream of the flow a packet is cannot be known */
};

/* Every exit of a program. */
enum exit_reason {
	EXIT_NOTED,       /* a test packet of a tracked stream */
	EXIT_TAP,         /* a sniffer's copy */
	EXIT_NOT_IP,      /* no IPv4 or IPv6 header found */
	EXIT_OTHER_PROTOCOL, /* neither UDP nor TCP */
	EXIT_FRAGMENT,    /* a later fragment of a datagram that is not known as ours */
	EXIT_OUT_OF_SIGHT, /* UDP or TCP, but its header is out of reach */
	EXIT_SHORT,       /* UDP, but too short for a test packet, or TCP without its header */
	EXIT_FOREIGN,     /* UDP, but no test packet */
	EXIT_STRANGER,    /* a test packet of a stream, a packet of a meeting, or TCP, that is not tracked here */
	EXIT_UNREADABLE,  /* of a tracked stream by its ports; its payload is out of reach */
	EXIT_REST,        /* noted, but without a site or a tally: see struct rest */
	EXIT_REMEMBERED,  /* a first fragment was remembered */
	EXIT_LIVE,        /* counted in the live view */
	EXIT_LIVE_REST,   /* counted there by site only: no room for its flow */
	EXIT_LIVE_LOST,   /* no room for its site */
	EXIT_LIVE_OTHER,  /* of a port that was not asked for */
	EXITS,
};

/* A stream as one host sees it. Ports and trial in host byte order. Both ports are 0 where the trial has
 * one flow: NAT may change them at any time. */
struct stream_key {
	__u16 trial;   /* without the warm-up bit; 0 when by ports only */
	__u16 from;    /* source port */
	__u16 to;      /* destination port */
	__u16 by_port; /* enum by_port, without a trial; 0: by the trial */
};

enum by_port {
	BY_UDP_PORTS = 1, /* for packets whose trial can't be read */
	BY_TCP_PORTS = 2,
};

/* The packets by which the ends of a flow meet, whatever their ports: NAT may change them on the way. Those of TCP are
 * known by the port where connections are awaited. */
struct meeting_key {
	__u16 trial;   /* of UDP */
	__u16 tag;     /* the port of TCP */
	__u16 by_port; /* 0 of UDP, BY_TCP_PORTS */
	__u16 asks;    /* 1: of the end that dials; 0: of the one that answers */
};

struct stream {
	__u32 flow; /* of the tallies */
	__u32 slot; /* of newest */
	__u32 base; /* first cell; of TCP the address of one of its ends, folded, 0 if none is known */
	__u16 bits; /* log2 of the cells, or COUNT_ONLY or ANY_STREAM */
	__u16 iperf; /* 1: its packets have the header of iperf3, with a magic and a trial only if pelt sends them */
};

enum site_flags {
	SITE_PIECE = 1, /* the packets are fragments, or about to become some */
	SITE_IP6 = 2,
};

struct site_key {
	__u64 location; /* address in the kernel */
	__u64 cookie;   /* of the network namespace, whose inode another may get later; 0 unknown */
	__u32 reason;   /* enum skb_drop_reason of the running kernel */
	__u32 iface;    /* index of that where the packet was; 0 unknown */
	__u32 from;     /* index of that where it had come in; 0: nowhere */
	__u32 flags;    /* enum site_flags */
};

struct site {
	__u32 id;    /* 1... */
	__u32 space; /* inode of the network namespace; 0 unknown */
	char name[16]; /* of the interface */
};

struct tally_key {
	__u32 flow;
	__u32 site;
};

struct tally {
	__u64 packets;    /* datagrams of the measured part, and unreadable ones */
	__u64 unreadable; /* of them: without a sequence in reach, or of any stream */
	__u64 warmup;     /* datagrams */
	__u64 fragments;  /* later fragments */
};

/* Of one flow, what found no room. */
struct rest {
	__u64 sites;       /* packets without a site or a tally */
	__u64 overwritten; /* verdicts that nobody had read */
};

/* Of a stream: the highest sequence dropped, near which the others lie, and a moment of the
 * monotonic clock, in ns, at which the stream was not further; the reader sets it. */
struct newest {
	__u64 at;
	__u64 when;
};

/* A cell is a verdict: site, and the low 16 bits of sequence >> bits above it. 0 is none. */
struct page {
	__u32 cell[PAGE_CELLS];
};

/* Of one processor. */
struct counts {
	__u64 exit[EXITS];
	__u64 nested;        /* drops that the second program took over */
	__u64 done[2];       /* the drop that the first program has handled and the second not seen yet, see on_interrupt */
};

struct held_key {
	__u8 from[16], to[16]; /* IPv4 in the first 4 B */
	__u32 id;
	__u32 family; /* 4 or 6 */
};

struct held {
	struct stream_key stream;
	__u64 sequence;
	__u64 warmup;
};

struct tap {
	__u64 begin, end;
};

struct naming {
	__u64 address;
	char symbol[120]; /* function+0xoffset/0xsize */
};

struct live_key {
	__u8 from[16], to[16]; /* IPv4 in the first 4 B */
	__u32 site;
	__u16 ether;     /* ethertype */
	__u16 from_port; /* TCP, UDP */
	__u16 to_port;   /* TCP, UDP; ICMP: type << 8 | code */
	__u16 protocol;  /* IP protocol */
};

struct live_count {
	__u64 packets; /* datagrams or TCP segments: those of a super-packet counted singly */
	__u64 bytes;   /* from the network header on */
};

_Static_assert(sizeof(struct stream_key) == 8 && sizeof(struct stream) == 16, "stream");
_Static_assert(sizeof(struct meeting_key) == 8, "meeting");
_Static_assert(sizeof(struct site_key) == 32 && sizeof(struct site) == 24, "site");
_Static_assert(sizeof(struct tally_key) == 8 && sizeof(struct tally) == 32 && sizeof(struct rest) == 16, "tally");
_Static_assert(sizeof(struct newest) == 16, "newest");
_Static_assert(sizeof(struct page) == 4096, "page");
_Static_assert(sizeof(struct held_key) == 40 && sizeof(struct held) == 24, "held");
_Static_assert(sizeof(struct live_key) == 44 && sizeof(struct live_count) == 16, "live");

#endif
