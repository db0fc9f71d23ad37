package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pelt/lab"
	"pelt/model"
	"pelt/plan"
	"pelt/run"
	"pelt/unit"
)

func newSweep() *cobra.Command {
	var common commonFlags
	var table tableFlags
	traffic := trafficFlags{proto: "udp", rate: "max", streams: 1} // what is below says in its place is a list
	var o struct {
		interval, rate, streams, sendBuffer, receiveBuffer string
		receivers                                          string
		factors, profiles                                  []string
		count                                              uint64
		repeats                                            int
		quick                                              bool
		sideBySide                                         int
	}
	c := &cobra.Command{
		Use:   "sweep TARGET",
		Short: "Find the best packet size, interval and buffers for a path",
		Long: `sweep sends the same number of packets with every combination of the values that
it is given, several times over in shuffled order, and shows which combination
brought most through, which others are as good, and what the rest lost and where.

TARGET is HOST[:PORT], where pelt serve runs, or a lab on this machine. A flag
with a list makes a factor of the sweep: --payload 256..1472/256,1472
--interval 0..9ms/1ms tries 60 combinations. Settings of a lab's links vary with
--factor link.KEY=LEVELS, for the links at one node with --factor link-NODE.KEY=LEVELS.`,
		Example: `  pelt sweep lab:direct --payload 256..1472/256,1472 --interval 0..4ms/1ms --link rate=10mbit,delay=20ms,loss=1% --quick
  pelt sweep lab:star --receivers 100 --payload 512,1472 --interval 5ms,7ms,9ms --link-receiver rate=1mbit,delay=40ms,loss=5% --quick
  pelt sweep lab:direct --payload 1472 --interval 1ms,2ms --link rate=10mbit --factor link.loss=0,1%,5% --factor link.delay=0..40ms/10ms --quick
  pelt sweep 192.168.1.5 --code tiger-42-amber --payload 64,512,1472 --rate 10kpps,50kpps,max --time 2s`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if empty := emptyFlag(c); empty != "" {
				return usagef("--%s: is empty; leave it out for its default", empty)
			}
			traffic.repeats = max(o.repeats, 1)
			if len(o.profiles) == 1 {
				traffic.profile = o.profiles[0]
			}
			base, err := traffic.options(args[0])
			if err != nil {
				return err
			}
			if o.repeats == 0 {
				base.Repeats = 0
			} else if o.repeats < 0 || o.repeats > model.MaxRepeats {
				return usagef("--repeats: want 1 to %d, not %d", model.MaxRepeats, o.repeats)
			}
			common.apply(&base)
			if base.Links, err = common.links(); err != nil {
				return err
			}
			s := plan.SweepOptions{CurveOptions: base, Packets: o.count}
			for _, list := range []struct {
				flag, text string
				read       func(string) error
			}{
				{"interval", o.interval, func(t string) (err error) { s.Intervals, err = unit.ParseDurations(t); return err }},
				{"rate", o.rate, func(t string) (err error) { s.Rates, err = unit.ParseRates(t); return err }},
				{"streams", o.streams, func(t string) (err error) { s.StreamCounts, err = unit.ParseSizes(t); return err }},
				{"send-buffer", o.sendBuffer, func(t string) (err error) { s.SendBuffers, err = unit.ParseSizes(t); return err }},
				{"receivers", o.receivers, func(t string) (err error) { s.Receivers, err = unit.ParseSizes(t); return err }},
				{"receive-buffer", o.receiveBuffer, func(t string) (err error) { s.ReceiveBuffers, err = unit.ParseSizes(t); return err }},
			} {
				if list.text == "" {
					continue
				}
				if err := list.read(list.text); err != nil {
					return usagef("--%s: %v", list.flag, err)
				}
			}
			if len(o.profiles) > 1 {
				if s.Profiles, err = profileLevels(o.profiles); err != nil {
					return err
				}
			}
			if o.count > 0 && traffic.time != "" {
				return usagef("give --count or --time, not both")
			}
			name, isLab := strings.CutPrefix(args[0], "lab:")
			s.Held = isLab && !isTopology(name) && name != run.Loopback
			if o.receivers != "" && (!isLab || isTopology(name) && name != lab.Star) {
				return usagef("--receivers: %s has one receiver; lab:star has many", args[0])
			}
			for _, text := range o.factors {
				factor, err := plan.LinkFactor(text)
				if err != nil {
					return err
				}
				s.Links = append(s.Links, factor)
			}
			if slices.Contains(s.Receivers, 0) {
				return usagef("--receivers: want 1 to %d, not 0", model.MaxReceivers)
			}
			if o.sideBySide < 1 || o.sideBySide > model.MaxSideBySide {
				return usagef("--side-by-side: want 1 to %d, not %d", model.MaxSideBySide, o.sideBySide)
			}
			if s.SideBySide = o.sideBySide; o.quick {
				s = s.Quick()
			}
			p, err := plan.Sweep(s)
			if err != nil {
				return err
			}
			if common.output.table, err = table.options(p); err != nil {
				return err
			}
			if err := run.CheckLinks(p); err != nil {
				return err
			}
			if !common.printOut {
				trials, least := plan.SweepTime(p)
				fmt.Fprintf(c.ErrOrStderr(), "%d trials; their packets take at least %v to send\n", trials, (least / time.Duration(o.sideBySide)).Round(time.Second))
			}
			return common.execute(c, p)
		},
	}
	f := c.Flags()
	f.StringVar(&traffic.payload, "payload", "", "payload sizes in bytes: 256..1472/256,1472, or mtu for the largest that the path takes in one piece")
	traffic.registerShared(f)
	f.StringVar(&o.interval, "interval", "", "times between packets: 0..9ms/1ms; 0 is as fast as the sender can (default 0)")
	f.StringVar(&o.rate, "rate", "", "packets per second in place of --interval: 10kpps,20kpps,max")
	f.StringArrayVar(&o.profiles, "profile", nil, profileHelp+"; several times, with constant for none: a factor")
	f.StringVar(&o.streams, "streams", "", "streams of a flow: 1,4,16 (default 1)")
	f.StringVar(&o.sendBuffer, "send-buffer", "", "send buffers of each socket, as the kernel accounts them: 212992,4194304")
	f.StringVar(&o.receiveBuffer, "receive-buffer", "", "receive buffers of each socket, as the kernel accounts them: 212992,4194304")
	f.Uint64Var(&o.count, "count", 0, "packets of each trial, for each receiver (default 1000, or as many as fit in --time)")
	f.StringVar(&traffic.time, "time", "", "time of each trial in place of a number of packets: 2s")
	f.StringVar(&traffic.warmup, "warmup", "", "sent before it and not counted: 500ms (default none)")
	f.StringVar(&o.receivers, "receivers", "", "lab:star: how many, as 100 or 1,10,100 (default 10); each gets as many packets, at the interval or rate that is said")
	f.StringArrayVar(&o.factors, "factor", nil, "lab: a setting of --link that varies: link.loss=0,1%,5%, link-receiver.delay=0..40ms/10ms; once for each")
	f.IntVar(&o.repeats, "repeats", 0, "trials of each combination, interleaved (default 3)")
	f.BoolVar(&o.quick, "quick", false, "a tenth of the packets (at least 100), or of --time (0.1s), and two trials of each combination at most")
	f.IntVar(&o.sideBySide, "side-by-side", 1, "lab: trials at a time, each in a lab of its own; one that is invalid beside others is tried again alone")
	table.register(f)
	common.register(f)
	return c
}
