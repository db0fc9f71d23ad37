package main

import (
	"github.com/spf13/cobra"

	"pelt/plan"
)

func newRouter() *cobra.Command {
	return newTest(&cobra.Command{
		Use:   "router LAN..WAN | HOST | lab:NAME",
		Short: "Bench a router: both directions, UDP sizes and TCP, beside its own CPU",
		Long: `router sends UDP frames of several sizes and TCP from LAN to WAN, back, and both ways, and
shows what came through beside the load of the router's processors.

LAN..WAN are the hosts beside the router, HOST[:PORT] each, where pelt serve runs. One host
alone is the WAN side, and this host the LAN side. The LAN side calls, so NAT is no
obstacle; on another host, pelt serve --calls WAN allows it.

--dut ssh://... watches the router through your ssh; BusyBox is enough. --dut pelt://... asks
a pelt serve --observe-only there, which also names the packets that its kernel dropped; its
code stands last in --code.

Several --variant take turns.`,
		Example: `  pelt router lab:nat --variant plain --variant rules=1000+log --frame 64,1518 --direction up
  pelt router 192.168.1.20..192.168.2.10 --code tiger-42-amber,otter-7-blue --dut ssh://root@192.168.1.1`,
	}, plan.Router)
}
