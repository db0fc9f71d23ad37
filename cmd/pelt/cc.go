package main

import (
	"github.com/spf13/cobra"

	"pelt/finding"
	"pelt/model"
	"pelt/plan"
)

func newCC() *cobra.Command {
	c := newTest(&cobra.Command{
		Use:   "cc TARGET",
		Short: "Compare congestion controls: BBR against CUBIC under loss",
		Long: `cc transfers data by TCP under each of several congestion controls, whose trials
alternate and meet the same losses, and tells which is faster, by how much, and
whether that is more than chance; what it does to the delay of other packets; and
how streams of different controls share a path.

TARGET is a lab on this machine, or HOST[:PORT], where pelt serve runs. --loss and
--link set a lab's emulated links, each in both directions; real paths are as they
are. Without --bytes each trial transfers as much as it can in --time; with --bytes
the time until all has arrived is the figure.

--control cubic+bbr lets streams of both compete. --exec-server and --exec-client run
your own programs in the lab's nodes, with the control as the default of both: the
client's time from start to exit is the figure. {server} and {client} are the nodes'
addresses.`,
		Example: `  pelt cc lab:direct --control cubic,bbr,reno --loss 0,1%,10% --bytes 640MB
  pelt cc lab:direct --link rate=100mbit,delay=20ms,queue=100 --loss 0,1% --until-separable
  pelt cc lab:direct --control cubic+bbr,cubic+cubic --stagger 5s --time 30s --link rate=50mbit,delay=10ms,queue=200
  pelt cc lab:direct --loss 0,1% --exec-server 'python3 -m http.server 8080' --exec-client 'wget -qO /dev/null http://{server}:8080/file'
  pelt cc 192.168.1.5 --code tiger-42-amber --control cubic,bbr --http --bytes 100MB`,
	}, preset{
		knobs: "control loss bytes http time warmup repeats until-separable max-repeats streams stagger " +
			"direction family dscp per-skb exec-server exec-client",
		defaults: map[string]string{"control": "cubic,bbr", "repeats": "10", "direction": "up"},
		help: map[string]string{
			"control": "congestion controls to compare, the first is what the others are compared with; " +
				"cubic+bbr is two that compete",
			"time":      "time of each trial; with --bytes the longest (default 10s; 2m)",
			"warmup":    "sent before it and not counted: 2s (default none)",
			"repeats":   "trials of each combination, interleaved; those of one repeat meet the same losses",
			"streams":   "streams of each transfer (default 1; of a mix one for each control)",
			"direction": "up: this side sends; down: the far side does",
		},
		varies: true, plan: planControl,
	})
	for _, name := range []string{"engine", "record"} {
		_ = c.Flags().MarkHidden(name) // of UDP
	}
	return c
}

func planControl(t *test) (model.Plan, error) {
	if c := t.Commands; c != nil && (c.Server == "" || c.Client == "") {
		return model.Plan{}, usagef("--exec-server and --exec-client belong together; want both")
	}
	switch until := t.is("until-separable"); {
	case !until && t.MostRepeats != 0:
		return model.Plan{}, usagef("--max-repeats: is for --until-separable")
	case until && t.MostRepeats == 0:
		t.MostRepeats = min(plan.DefaultMostRepeats(t.Repeats), model.MaxRepeats)
	}
	p, err := plan.Control(t.Options)
	if err != nil {
		return p, err
	}
	for _, f := range finding.BeforeControls(&p) {
		t.notes = append(t.notes, f.Text())
	}
	return p, nil
}
