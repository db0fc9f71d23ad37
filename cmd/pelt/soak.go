package main

import (
	"github.com/spf13/cobra"

	"pelt/model"
	"pelt/plan"
)

func newSoak() *cobra.Command {
	c := newTest(&cobra.Command{
		Use:   "soak TARGET | LAN..WAN",
		Short: "Send at one rate for hours, and tell when something changes",
		Long: `soak sends packets of one size at one rate for as long as it is told, keeps every
second of both ends, and says at any moment how many are lost, and where.

TARGET is HOST[:PORT], where pelt serve runs, a lab on this machine, or LAN..WAN, two
hosts beside a router as for pelt router; --dut watches the router in between.

A soak goes on while its control connection is gone, for up to --patience: what was
measured meanwhile is in the result, and the gap is told. What is known by now is stored
every ten seconds, so that pelt report tells it while the soak runs, and after this process
was killed. pelt run --resume begins such a trial anew.`,
		Example: `  pelt soak lab:router --rate 40kpps --payload 512 --time 10m
  pelt soak 192.168.1.5 --code tiger-42-amber --rate 40kpps --payload 512 --time 2h
  pelt soak 192.168.1.20..192.168.2.10 --code tiger-42-amber,otter-7-blue --dut ssh://root@192.168.1.1 --time 8h`,
	}, preset{
		knobs: "payload frame rate interval profile direction streams time warmup max-loss family dscp df drops " +
			"burst source-port send-buffer " +
			"receive-buffer patience dut at",
		defaults: map[string]string{
			"payload": "512", "rate": "40kpps", "direction": "up", "streams": "1", "time": "10m", "warmup": "1s",
		},
		help: map[string]string{
			"payload": "payload size in bytes: 512; 16 to 65507, or mtu for the largest that the path takes in " +
				"one piece",
			"frame":     "Ethernet frame size in bytes, FCS included, in place of --payload: 512",
			"rate":      "offered rate of a flow: packets as 40kpps, or payload bits as 95mbit",
			"time":      "how long: 2h; at most a week",
			"direction": "up (from here), down, or both at once",
		},
		far: true,
		plan: func(t *test) (model.Plan, error) {
			if t.flags.Changed("rate") && t.Rate.IsMax() {
				return model.Plan{}, usagef("--rate: a soak has one that its sender can keep, as 40kpps; pelt curve finds the highest")
			}
			if !t.flags.Changed("engine") {
				t.Engine = "udp" // what programs use, and what counts each packet's way through the kernel
			}
			return plan.Soak(t.Options)
		},
	})
	engine := c.Flags().Lookup("engine")
	engine.Usage, engine.DefValue = "udp for sockets as programs use them; auto, xdp, or SENDER:RECEIVER as in xdp:udp", "udp"
	return c
}
