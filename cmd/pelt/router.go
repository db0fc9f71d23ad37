package main

import (
	"strings"

	"github.com/spf13/cobra"

	"pelt/lab"
	"pelt/model"
	"pelt/plan"
	"pelt/unit"
)

func newRouter() *cobra.Command {
	var common commonFlags
	traffic := trafficFlags{}
	var dut, idle, connections string
	var variants []string
	c := &cobra.Command{
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
its configuration, keys and jump hosts: one connection, one shell loop, nothing is
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
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if empty := emptyFlag(c); empty != "" {
				return usagef("--%s: is empty; leave it out for its default", empty)
			}
			o := plan.RouterOptions{DUT: dut}
			for word := range strings.SplitSeq(traffic.proto, ",") {
				o.Protocols = append(o.Protocols, model.Protocol(strings.TrimSpace(word)))
			}
			var target string
			o.Near, target = plan.RouterPath(args[0])
			var err error
			if o.CurveOptions, err = traffic.options(target); err != nil {
				return err
			}
			common.apply(&o.CurveOptions)
			if o.Links, err = common.links(); err != nil {
				return err
			}
			if o.Variants, err = parseVariants(target, variants); err != nil {
				return err
			}
			if connections != "" {
				o.Connections = strings.Split(connections, ",")
			}
			if idle != "" {
				r, err := unit.ParseRate(idle)
				if idle == "0" {
					r, err = unit.Rate{}, nil
				} else if err == nil && r.IsMax() {
					err = usagef("want packets per second, or 0 for no such trials")
				}
				if err != nil {
					return usagef("--idle-rate: %v", err)
				}
				o.IdleRate = &r
			}
			p, err := plan.Router(o)
			if err != nil {
				return err
			}
			return common.execute(c, p)
		},
	}
	f := c.Flags()
	f.StringVar(&dut, "dut", "", "watch the router over ssh, ssh://[USER@]HOST[:PORT], or by its own pelt serve --observe-only, pelt://HOST[:PORT] (a lab's own is watched without)")
	f.StringArrayVar(&variants, "variant", nil, "a way to set the router up; in a lab plain, rules=N, limit=RATE, log, steer, joined by +; else NAME=COMMAND; once for each")
	f.StringVar(&traffic.proto, "proto", "udp,tcp", "transport protocols: udp, tcp, or both")
	f.StringVar(&traffic.frame, "frame", "", "UDP: Ethernet frame sizes in bytes, FCS included (default 64,512,1518)")
	f.StringVar(&traffic.direction, "direction", "up,down,both", "up (LAN to WAN), down (WAN to LAN), both at once, or a list")
	f.StringVar(&traffic.rate, "rate", "max", "UDP: offered rate of a flow: max, packets as 150kpps, or payload bits as 95mbit")
	f.StringVar(&idle, "idle-rate", "", "UDP: rate of the trials that measure the delay of the idle path, 0 for none (default 1kpps)")
	f.StringVar(&connections, "connections", "", "TCP connections from LAN to WAN as well: rate (how many a second), keep (how many at a time, until the router refuses), or rate,keep")
	f.StringVar(&traffic.time, "time", "", "measured time of each trial: 10s (default 3s)")
	f.StringVar(&traffic.warmup, "warmup", "", "sent before it and not counted: 1s (default 1s)")
	f.IntVar(&traffic.repeats, "repeats", 3, "trials of each row, interleaved")
	f.IntVar(&traffic.streams, "streams", 1, "streams of a flow, each a socket and a thread: 1 to 128")
	f.StringVar(&traffic.family, "family", "", "4 or 6: IP version to use (default: what the target has)")
	f.IntVar(&traffic.dscp, "dscp", 0, "differentiated services code point of the test packets: 0 to 63")
	f.StringVar(&traffic.drops, "drops", "", "how closely the kernels' drops are watched: seq (every packet), count, off (default: seq where rights and kernel allow)")
	f.StringVar(&traffic.maxLoss, "max-loss", "", "fail with exit code 3 if any row loses more: 0.1%")
	common.register(f)
	return c
}

// parseVariants reads --variant: what a lab's router is made to be, or NAME=COMMAND.
func parseVariants(target string, texts []string) (list []model.Variant, err error) {
	name, isLab := strings.CutPrefix(target, "lab:")
	for _, text := range texts {
		if isLab {
			if err := lab.CheckCharacter(name, text); err != nil {
				return nil, usagef("--variant: %v", err)
			}
			list = append(list, model.Variant{Name: text})
			continue
		}
		variant, command, _ := strings.Cut(text, "=")
		if variant = strings.TrimSpace(variant); variant == "" {
			return nil, usagef("--variant: want NAME=COMMAND, not %q", text)
		}
		list = append(list, model.Variant{Name: variant, Command: strings.TrimSpace(command)})
	}
	return list, nil
}
