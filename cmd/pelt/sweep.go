package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pelt/lab"
	"pelt/model"
	"pelt/plan"
	"pelt/run"
)

func newSweep() *cobra.Command {
	return newTest(&cobra.Command{
		Use:   "sweep TARGET",
		Short: "Find the best packet size, interval and buffers for a path",
		Long: `sweep sends the same number of packets with every combination of the values that
it is given, several times over in shuffled order, and shows which combination
brought most through, which others are as good, and what the rest lost and where.

TARGET is HOST[:PORT], where pelt serve runs, or a lab on this machine. A flag
with a list makes a factor of the sweep: --payload 256..1472/256,1472
--interval 0..9ms/1ms tries 60 combinations. So do settings of a lab's links:
--link loss=0,1%,5%,delay=20ms, or --link-NODE for the links at one node.`,
		Example: `  pelt sweep lab:direct --payload 256..1472/256,1472 --interval 0..4ms/1ms --link rate=10mbit,delay=20ms,loss=1% --quick
  pelt sweep lab:star --receivers 100 --payload 512,1472 --interval 5ms,7ms,9ms --link-receiver rate=1mbit,delay=40ms,loss=5% --quick
  pelt sweep lab:direct --payload 1472 --interval 1ms,2ms --link rate=10mbit,loss=0,1%,5%,delay=0..40ms/10ms --quick
  pelt sweep 192.168.1.5 --code tiger-42-amber --payload 64,512,1472 --rate 10kpps,50kpps,max --time 2s`,
	}, preset{
		knobs: "payload frame rate interval profile direction streams receivers count quick time warmup repeats " +
			"max-loss family dscp df drops " +
			"send-buffer receive-buffer",
		defaults: map[string]string{
			"interval": "0", "direction": "up", "streams": "1", "receivers": "10", "repeats": "3",
		},
		help: map[string]string{
			"interval": "times between packets: 0..9ms/1ms; 0 is as fast as the sender can",
			"rate":     "packets per second in place of --interval: 10kpps,20kpps,max",
			"profile":  profileHelp + "; several times, with constant for none: a factor",
			"streams":  "streams of a flow: 1,4,16",
			"warmup":   "sent before it and not counted: 500ms (default none)",
			"time":     "time of each trial in place of a number of packets: 2s",
			"receivers": "lab:star: how many, as 100 or 1,10,100; each gets as many packets, at the interval " +
				"or rate that is said",
			"send-buffer":    "send buffers of each socket, as the kernel accounts them: 212992,4194304",
			"receive-buffer": "receive buffers of each socket, as the kernel accounts them: 212992,4194304",
		},
		factors: true, varies: true, plan: planSweep,
	})
}

func planSweep(t *test) (model.Plan, error) {
	name, isLab := strings.CutPrefix(t.Target, "lab:")
	t.Held = isLab && !lab.IsTopology(name) && name != run.Loopback
	switch {
	case t.Packets > 0 && t.Time > 0:
		return model.Plan{}, usagef("give --count or --time, not both")
	case t.flags.Changed("receivers") && (!isLab || lab.IsTopology(name) && name != lab.Star):
		return model.Plan{}, usagef("--receivers: %s has one receiver; lab:star has many", t.Target)
	}
	if t.is("quick") {
		t.Options = t.Quick()
	}
	p, err := plan.Sweep(t.Options)
	if err != nil {
		return p, err
	}
	trials, least := plan.SweepTime(p)
	note := fmt.Sprintf("%d trials; their packets take at least %v to send", trials, least.Round(time.Second))
	t.notes = append(t.notes, note)
	return p, nil
}
