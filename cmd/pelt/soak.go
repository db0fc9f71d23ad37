package main

import (
	"strings"

	"github.com/spf13/cobra"

	"pelt/lab"
	"pelt/model"
	"pelt/plan"
	"pelt/unit"
)

func newSoak() *cobra.Command {
	var common commonFlags
	traffic := trafficFlags{proto: "udp", repeats: 1}
	var dut, patience string
	var timed []string
	c := &cobra.Command{
		Use:   "soak TARGET | LAN..WAN",
		Short: "Send at one rate for hours, and tell when something changes",
		Long: `soak sends packets of one size at one rate for as long as it is told, keeps every
second of both ends, and says at any moment how many are lost, and where.

TARGET is HOST[:PORT], where pelt serve runs, a lab on this machine, or LAN..WAN, two
hosts beside a router as for pelt router; --dut watches the router in between.

A soak goes on while its control connection is gone, for up to --patience: what was
measured meanwhile is in the result, and the gap is told. What is known by now is stored
every ten seconds, so that pelt show tells it while the soak runs, and after this process
was killed. pelt run --resume begins such a trial anew.`,
		Example: `  pelt soak lab:router --rate 40kpps --payload 512 --time 10m
  pelt soak 192.168.1.5 --code tiger-42-amber --rate 40kpps --payload 512 --time 2h
  pelt soak 192.168.1.20..192.168.2.10 --code tiger-42-amber,otter-7-blue --dut ssh://root@192.168.1.1 --time 8h`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if empty := emptyFlag(c); empty != "" {
				return usagef("--%s: is empty; leave it out for its default", empty)
			}
			o := plan.SoakOptions{DUT: dut}
			var target string
			var err error
			o.Near, target = plan.RouterPath(args[0])
			if !c.Flags().Changed("rate") {
				traffic.rate = "max" // none is asked: the plan's default, unless --interval or a profile says one
			}
			if o.CurveOptions, err = traffic.options(target); err != nil {
				return err
			}
			if c.Flags().Changed("rate") && o.Rate.IsMax() {
				return usagef("--rate: a soak has one that its sender can keep, as 40kpps; pelt curve finds the highest")
			}
			common.apply(&o.CurveOptions)
			if !c.Flags().Changed("engine") {
				o.Engine = "udp" // what programs use, and what counts each packet's way through the kernel
			}
			if o.Links, err = common.links(); err != nil {
				return err
			}
			if patience != "" {
				d, err := unit.ParseDuration(patience)
				if err != nil {
					return usagef("--patience: %v", err)
				}
				o.Patience = &d
			}
			for _, text := range timed {
				one, err := parseTimed(target, text)
				if err != nil {
					return err
				}
				o.Timed = append(o.Timed, one)
			}
			p, err := plan.Soak(o)
			if err != nil {
				return err
			}
			return common.execute(c, p)
		},
	}
	f := c.Flags()
	traffic.registerShared(f)
	f.StringVar(&traffic.payload, "payload", "", "payload size in bytes: 512; 16 to 65507, or mtu for the largest that the path takes in one piece (default 512)")
	f.StringVar(&traffic.rate, "rate", "40kpps", "offered rate of a flow: packets as 40kpps, or payload bits as 95mbit")
	f.StringVar(&traffic.interval, "interval", "", "time between packets in place of --rate: 5ms")
	f.StringVar(&traffic.profile, "profile", "", profileHelp)
	f.StringVar(&traffic.time, "time", "", "how long: 2h (default 10m; at most a week)")
	f.StringVar(&traffic.warmup, "warmup", "", "sent before it and not counted: 2s (default 1s)")
	f.StringVar(&patience, "patience", "", "how long the test goes on without its control connection, 0 for not at all (default 1m, the most)")
	f.StringVar(&dut, "dut", "", "watch the router over ssh, ssh://[USER@]HOST[:PORT], or by its own pelt serve --observe-only, pelt://HOST[:PORT] (a lab's own is watched without)")
	f.StringArrayVar(&timed, "at", nil, "lab: what changes while it runs, as 80s:router=rules=1000 or 2m:link-receiver=loss=1%; once for each")
	f.IntVar(&traffic.streams, "streams", 1, "streams of a flow, each a socket and a thread: 1 to 128")
	f.IntVar(&traffic.burst, "burst", 0, "packets of each stream that may leave back to back (default 1 up to 100 kpps of a stream)")
	f.IntVar(&traffic.sourcePort, "source-port", 0, "first local port; --streams ports are used from there (default: any)")
	f.StringVar(&traffic.sendBuffer, "send-buffer", "", "send buffer of each socket, as the kernel accounts it: 212992 (default: below one queue's length)")
	f.StringVar(&traffic.receiveBuffer, "receive-buffer", "", "receive buffer of each socket, as the kernel accounts it: 4194304 (default: 16 MiB shared by the streams, at least 512 KiB each)")
	common.register(f)
	f.Lookup("direction").Usage = "up (from here), down, or both at once"
	f.Lookup("frame").Usage = "Ethernet frame size in bytes, FCS included, in place of --payload: 512"
	engine := f.Lookup("engine")
	engine.Usage, engine.DefValue = "udp for sockets as programs use them; auto, xdp, or SENDER:RECEIVER as in xdp:udp", "udp"
	return c
}

// parseTimed reads --at, and holds it against what the target is.
func parseTimed(target, text string) (model.TimedChange, error) {
	name, inLab := strings.CutPrefix(target, "lab:")
	if !inLab {
		return model.TimedChange{}, usagef("--at: only a lab changes by itself; want lab:NAME")
	}
	c, err := model.ParseTimedChange(text)
	if err == nil && c.Router != "" {
		err = lab.CheckCharacter(name, c.Router)
	}
	if err != nil {
		return c, usagef("--at: %v", err)
	}
	return c, nil
}
