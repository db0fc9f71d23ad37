package main

import (
	"github.com/spf13/cobra"

	"pelt/model"
	"pelt/plan"
)

func newRouter() *cobra.Command {
	return newTest(&cobra.Command{
		Use:   "router LAN..WAN | HOST | lab:NAME",
		Short: "Bench a router: both directions, UDP sizes and TCP, beside its own CPU",
		Long: `router sends UDP frames of several sizes and TCP through a router or switch, from
LAN to WAN, from WAN to LAN, and both ways at once, and shows what came through
beside what the router's processors did meanwhile, and what the limit was.

LAN..WAN are the two hosts beside it, HOST[:PORT] each, where pelt serve runs. One
host alone is the WAN side, and this host is the LAN side. The LAN side always
calls, so a router with NAT in between is no obstacle; where it is another host, its
pelt serve says whom it may call: pelt serve --calls WAN.

--dut ssh://[USER@]HOST[:PORT] watches the router itself, through your own ssh with
its configuration, keys and jump hosts: one connection, one shell, and nothing is
installed there. BusyBox is enough. No test packet is addressed to the router.

--dut pelt://HOST[:PORT] asks a pelt serve --observe-only on the router instead, which
tells of each packet that its kernel dropped, too. Its code stands last in --code.

lab:switch, lab:router, lab:nat and lab:fast (NAT with a fast path that stands for
hardware offload) do the same with a router in this machine's kernel.

--variant sets the router up in several ways, whose trials alternate: in a lab plain,
rules=N, limit=RATE, log, steer, in lab:fast also fast, and several joined by +, as
rules=N+log; a real router by a command that is run on this host:
--variant 'quiet=ssh root@192.168.1.1 dmesg -n 1'. pelt compare tells them apart.`,
		Example: `  pelt router lab:nat
  pelt router lab:nat --variant plain --variant rules=1000 --variant log --frame 64,1518 --direction up
  pelt router 192.168.2.10 --code tiger-42-amber --dut ssh://root@192.168.1.1
  pelt router 192.168.1.20..192.168.2.10 --code tiger-42-amber,otter-7-blue --dut ssh://root@192.168.1.1
  pelt router 192.168.2.10 --code tiger-42-amber,lynx-9-teal --dut pelt://192.168.1.1`,
	}, preset{
		knobs: "dut variant proto frame direction rate idle-rate connections time warmup repeats streams family " +
			"dscp drops max-loss",
		defaults: map[string]string{"proto": "udp,tcp", "frame": "64,512,1518", "direction": "up,down,both", "rate": "max", "time": "3s", "warmup": "1s",
			"repeats": "3", "streams": "1"},
		help: map[string]string{
			"proto":     "transport protocols: udp, tcp, or both",
			"frame":     "UDP: Ethernet frame sizes in bytes, FCS included",
			"direction": "up (LAN to WAN), down (WAN to LAN), both at once, or a list",
			"rate":      "UDP: offered rate of a flow: max, packets as 150kpps, or payload bits as 95mbit",
		},
		far:  true,
		plan: func(t *test) (model.Plan, error) { return plan.Router(t.Options) },
	})
}
