package main

import "pelt/plan"

// testText is a command that tests something: its preset, and what --help says of it.
type testText struct {
	preset                    plan.Preset
	use, short, long, example string
}

var tests = []testText{
	{
		preset: plan.Curve,
		use:    "curve TARGET",
		short:  "Measure how many packets a path carries at each packet size",
		long: `curve sends packets of several sizes to TARGET, and shows packets and bits per second at
each: where small packets stop fitting, and what limits large ones.

TARGET is HOST[:PORT] where pelt serve runs, or a lab here: lab:direct, lab:switch,
lab:router, lab:nat, lab:fast (NAT with a fast path), lab:star (many receivers),
lab:loopback (needs no rights), or lab:NAME of pelt lab up. iperf3://HOST[:PORT] is any
iperf3 server.`,
		example: `  pelt curve lab:router --link rate=1gbit
  pelt curve 192.168.1.5 --proto tcp --payload 64,1460 --direction both`,
	},
	{
		preset: plan.Ndr,
		use:    "ndr TARGET",
		short:  "Find the highest rate that a path carries without loss",
		long: `ndr floods TARGET, up to --rate, and then searches the highest rate without loss for each
frame size by MLRsearch (RFC 9971), up and then down; with --direction both, of each way.

Each size is searched three times in turn (once with --goal csit or --strict): that tells
where the next run finds the rate. --max-loss 0,0.5% searches the rate with at most 0.5 %
loss, too. Full trials last 0.5 s, or --time. --goal csit is surer and takes longer, by trials
of 1 s; --strict has trials of 60 s as RFC 2544.

Loss at the hosts of the sender and the receiver does not lower the answer: it then says
"at least", and what to change.`,
		example: `  pelt ndr lab:router --link-receiver rate=1gbit
  pelt ndr 192.168.1.5 --payload 18,1472 --max-loss 0,0.5%`,
	},
	{
		preset: plan.Latency,
		use:    "latency TARGET",
		short:  "Measure delay, loss and jitter of a thin flow beside a load",
		long: `latency searches the rate without loss (RFC 9971) up to --rate, and times 100 packets a second
beside loads of up to 150 % of it: up, down and both. It tells what each direction adds and
from which load on, and grades it.`,
		example: `  pelt latency lab:router --link-receiver rate=50mbit,queue=1000,delay=20ms --direction up`,
	},
	{
		preset: plan.Sweep,
		use:    "sweep TARGET",
		short:  "Find the best packet size, interval and buffers for a path",
		long: `sweep sends packets with every combination of values, several times in shuffled order. It
shows which brought most through, which are as good, and what the rest lost.

TARGET is as for pelt curve. Sizes, rates, intervals, streams, receivers, buffers and --link
take lists; --profile is given once for each.`,
		example: `  pelt sweep lab:direct --payload 256..1472/256,1472 --interval 0..4ms/1ms --link rate=10mbit,loss=1% --quick
  pelt sweep lab:star --receivers 100 --payload 512,1472 --interval 5ms,9ms --link-receiver rate=1mbit --quick`,
	},
	{
		preset: plan.Router,
		use:    "router LAN..WAN | HOST | lab:NAME",
		short:  "Bench a router: both directions, UDP sizes and TCP, beside its own CPU",
		long: `router sends UDP frames of several sizes and TCP from LAN to WAN, back, and both ways, and
shows what came through beside the load of the router's processors.

LAN..WAN are the hosts beside the router, HOST[:PORT] each, where pelt serve runs. One host
alone is the WAN side, and this host the LAN side. The LAN side calls, so NAT is no
obstacle; on another host, pelt serve --calls WAN allows it.

--dut ssh://... watches the router through your ssh; BusyBox is enough. --dut pelt://... asks
a pelt serve --observe-only there, which also names the packets that its kernel dropped; its
code is the last of several, with commas between.

Several --variant take turns.`,
		example: `  pelt router lab:nat --variant plain --variant rules=1000+log --frame 64,1518 --direction up
  pelt router 192.168.1.20..192.168.2.10 --dut ssh://root@192.168.1.1`,
	},
	{
		preset: plan.Control,
		use:    "cc TARGET",
		short:  "Compare congestion controls: BBR against CUBIC under loss",
		long: `cc transfers data by TCP under each congestion control in turn, with the same losses. It
shows which is faster, by how much, whether that may be chance, and how much each delays
other packets. TARGET is as for pelt curve.`,
		example: `  pelt cc lab:direct --control cubic,bbr,reno --loss 0,1%,10% --bytes 640MB`,
	},
	{
		preset: plan.Soak,
		use:    "soak TARGET | LAN..WAN",
		short:  "Send at one rate for hours, and tell when something changes",
		long: `soak sends packets of one size at one rate, keeps every second of both ends, and shows at
any moment how many are lost, and where. TARGET is as for pelt curve, LAN..WAN as for pelt
router.

It stores its account every ten seconds: pelt report shows it meanwhile, and after a kill.
With --every it runs again and again, as every test does, and tells what changed.`,
		example: `  pelt soak lab:router --rate 40kpps --payload 512 --time 10m
  pelt soak 192.168.1.5 --time 10s --every 5m`,
	},
	{
		preset: plan.Mesh,
		use:    "mesh TARGET",
		short:  "Measure every pair of a fleet's hosts",
		long: `mesh sends packets between every two hosts of a fleet, both ways, and shows which pairs lose
packets, where, and which hosts are to blame. TARGET is fleet: for all hosts that joined the
hub, or fleet:A,B,C for some.

A host takes part in one test at a time, so pairs are measured in rounds. With --every the
mesh is measured again and again, and pelt tells what changes.`,
		example: `  pelt mesh fleet: --rate 1kpps --time 10s
  pelt mesh fleet: --every 5m --for 7d`,
	},
}
