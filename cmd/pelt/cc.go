package main

import (
	"strings"

	"github.com/spf13/cobra"

	"pelt/lab"
	"pelt/model"
	"pelt/plan"
	"pelt/run"
	"pelt/unit"
)

func newCC() *cobra.Command {
	var common commonFlags
	traffic := trafficFlags{rate: "max"}
	var o struct {
		controls, loss, bytes, stagger string
		factors                        []string
		http, untilSeparable           bool
		maxRepeats                     int
		server, client                 string
		perSKB                         bool
	}
	c := &cobra.Command{
		Use:   "cc TARGET",
		Short: "Compare congestion controls: BBR against CUBIC under loss",
		Long: `cc transfers data by TCP under each of several congestion controls, whose trials
alternate and meet the same losses, and tells which is faster, by how much, and
whether that is more than chance; what it does to the delay of other packets; and
how streams of different controls share a path.

TARGET is a lab on this machine, or HOST[:PORT], where pelt serve runs. --loss and
--factor set a lab's emulated links, each in both directions; real paths are as they
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
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if empty := emptyFlag(c); empty != "" {
				return usagef("--%s: is empty; leave it out for its default", empty)
			}
			streams := traffic.streams
			traffic.streams = max(streams, 1)
			base, err := traffic.options(args[0])
			if err != nil {
				return err
			}
			if streams < 0 {
				return usagef("--streams: want 1 to %d, not %d", model.MaxStreams, streams)
			}
			common.apply(&base)
			if base.Links, err = common.links(); err != nil {
				return err
			}
			base.Streams = streams
			if o.perSKB {
				base.Links = append(base.Links, model.Link{Buffers: model.BuffersWhole})
			}
			s := plan.ControlOptions{CurveOptions: base, HTTP: o.http}
			for name := range strings.SplitSeq(o.controls, ",") {
				s.Controls = append(s.Controls, strings.TrimSpace(name))
			}
			if o.bytes != "" {
				n, err := unit.ParseBytes(o.bytes)
				if err != nil || n < 1 {
					return usagef("--bytes: want how many, as 640MB, not %q", o.bytes)
				}
				s.Bytes = uint64(n)
			}
			if o.stagger != "" {
				if s.Stagger, err = positive(o.stagger); err != nil {
					return usagef("--stagger: %v", err)
				}
			}
			if o.loss != "" {
				f, err := plan.LinkFactor("link.loss=" + o.loss)
				if err != nil {
					return usagef("--loss: %s", strings.TrimPrefix(strings.TrimPrefix(err.Error(), "--factor: "), "link.loss: "))
				}
				s.Losses = &f
			}
			for _, text := range o.factors {
				f, err := plan.LinkFactor(text)
				if err != nil {
					return err
				}
				s.Factors = append(s.Factors, f)
			}
			if (o.server == "") != (o.client == "") {
				return usagef("--exec-server and --exec-client belong together; want both")
			}
			if o.server != "" {
				s.Commands = &model.Commands{Server: o.server, Client: o.client}
				for flag, line := range map[string]string{"exec-server": o.server, "exec-client": o.client} {
					if _, err := lab.SplitWords(line); err != nil {
						return usagef("--%s: %v", flag, err)
					}
				}
			}
			switch {
			case o.untilSeparable && o.maxRepeats == 0:
				s.MostRepeats = min(plan.DefaultMostRepeats(s.Repeats), model.MaxRepeats)
			case o.untilSeparable && o.maxRepeats <= s.Repeats:
				return usagef("--max-repeats: want more than the %d of --repeats, not %d", s.Repeats, o.maxRepeats)
			case o.untilSeparable:
				s.MostRepeats = o.maxRepeats
			case o.maxRepeats != 0:
				return usagef("--max-repeats: is for --until-separable")
			}
			p, err := plan.Control(s)
			if err != nil {
				return err
			}
			if err := run.CheckLinks(p); err != nil {
				return err
			}
			return common.execute(c, p)
		},
	}
	f := c.Flags()
	f.StringVar(&o.controls, "control", "cubic,bbr", "congestion controls to compare, the first is what the others are compared with; cubic+bbr is two that compete")
	f.StringVar(&o.loss, "loss", "", "lab: loss of each link in each direction: 0,1%,10% (default: as --link says)")
	f.StringArrayVar(&o.factors, "factor", nil, "lab: another setting of --link that varies: link.delay=1ms,20ms; once for each")
	f.StringVar(&o.bytes, "bytes", "", "bytes of each transfer, as 640MB; its time is the figure (default: as many as fit in --time)")
	f.BoolVar(&o.http, "http", false, "the bytes are the body of an HTTP answer (net/http, memory to memory), timed by the client from its request")
	f.StringVar(&traffic.time, "time", "", "time of each trial; with --bytes the longest (default 10s; 2m)")
	f.StringVar(&traffic.warmup, "warmup", "", "sent before it and not counted: 2s (default none)")
	f.IntVar(&traffic.repeats, "repeats", 10, "trials of each combination, interleaved; those of one repeat meet the same losses")
	f.BoolVar(&o.untilSeparable, "until-separable", false, "repeat until all controls are told apart, or --max-repeats")
	f.IntVar(&o.maxRepeats, "max-repeats", 0, "with --until-separable: repeats at most (default 30, or three times --repeats if that is more)")
	f.IntVar(&traffic.streams, "streams", 0, "streams of each transfer (default 1; of a mix one for each control)")
	f.StringVar(&o.stagger, "stagger", "", "time between the beginnings of streams: 5s (default: together)")
	f.StringVar(&traffic.direction, "direction", "up", "up: this side sends; down: the far side does")
	f.StringVar(&traffic.family, "family", "", "4 or 6: IP version to use (default: what the target has)")
	f.IntVar(&traffic.dscp, "dscp", 0, "differentiated services code point of the test packets: 0 to 63")
	f.BoolVar(&o.perSKB, "per-skb", false, "lab: lose whole buffers of segments, as the kernel's netem does with segmentation offload (--link buffers=whole); else each frame by itself")
	f.StringVar(&o.server, "exec-server", "", "lab: your own server, started at the sending node for each trial; words are parted as by a shell, and no shell runs them")
	f.StringVar(&o.client, "exec-client", "", "lab: your own client, run at the receiving node once the server listens; its time is the figure")
	common.register(f)
	for _, name := range []string{"engine", "record"} {
		_ = f.MarkHidden(name) // of UDP
	}
	return c
}
