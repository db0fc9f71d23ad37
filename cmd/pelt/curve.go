package main

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pelt/model"
	"pelt/plan"
	"pelt/unit"
)

func newCurve() *cobra.Command {
	var traffic trafficFlags
	var common commonFlags
	var receivers int
	c := &cobra.Command{
		Use:   "curve TARGET",
		Short: "Measure how many packets a path carries at each packet size",
		Long: `curve sends packets of several sizes through whatever lies between this host and
TARGET, and shows packets and bits per second at each size: where small packets
stop fitting, and what limits large ones.

TARGET is HOST[:PORT], where pelt serve runs, or a lab on this machine:
lab:direct, lab:switch, lab:router, lab:nat, lab:fast (nat with a fast path),
lab:star (one sender, many receivers), lab:loopback (needs no rights), or
lab:NAME for a lab that pelt lab up holds.`,
		Example: `  pelt curve lab:router --link rate=1gbit
  pelt curve 192.168.1.5 --code tiger-42-amber
  pelt curve 192.168.1.5 --code tiger-42-amber --proto tcp --payload 64,1460 --direction both --time 10s`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := traffic.options(args[0])
			if empty := emptyFlag(c); err == nil && empty != "" {
				err = usagef("--%s: is empty; leave it out for its default", empty)
			}
			if err != nil {
				return err
			}
			common.apply(&o)
			if o.Links, err = common.links(); err != nil {
				return err
			}
			p, err := plan.Curve(o)
			if err != nil {
				return err
			}
			p.Receivers = receivers
			return common.execute(c, p)
		},
	}
	traffic.register(c.Flags())
	common.register(c.Flags())
	c.Flags().IntVar(&receivers, "receivers", 0, "lab:star: how many (default 10); each gets as many packets, at the rate that is said")
	return c
}

// emptyFlag names a flag that was given without a value.
func emptyFlag(c *cobra.Command) (name string) {
	c.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "string" && f.Value.String() == "" {
			name = f.Name
		}
	})
	return name
}

// trafficFlags say what is sent. What pelt sweep has as well with the same words
// is in registerShared.
type trafficFlags struct {
	proto, payload, frame, rate, interval, direction string
	time, warmup                                     string
	family, control                                  string
	streams, repeats, dscp, burst, sourcePort        int
	df, bulk                                         bool
	maxLoss, drops, sendBuffer, receiveBuffer        string
	gso                                              int
	gro                                              bool
	sources                                          string
	profile                                          string
}

func (t *trafficFlags) registerShared(f *pflag.FlagSet) {
	f.StringVar(&t.frame, "frame", "", "Ethernet frame sizes in bytes, FCS included, in place of --payload: 64,128,1518")
	f.StringVar(&t.direction, "direction", "up", "up (from here), down, both at once, or a list as up,down,both")
	f.StringVar(&t.family, "family", "", "4 or 6: IP version to use (default: what the target has)")
	f.IntVar(&t.dscp, "dscp", 0, "differentiated services code point of the test packets: 0 to 63")
	f.BoolVar(&t.df, "df", false, "forbid fragmentation of UDP packets")
	f.StringVar(&t.drops, "drops", "", "how closely the kernels' drops are watched: seq (every packet), count, off (default: seq where rights and kernel allow)")
	f.StringVar(&t.maxLoss, "max-loss", "", "fail with exit code 3 if any size or combination loses more: 0.1%")
}

func (t *trafficFlags) register(f *pflag.FlagSet) {
	t.registerShared(f)
	f.StringVar(&t.proto, "proto", "udp", "transport protocol: udp or tcp")
	f.StringVar(&t.payload, "payload", "", "payload sizes in bytes: 64,1460 or 256..1472/256; UDP 16 to 65507, or mtu for the largest that the path takes in one piece (default: a curve's worth)")
	f.StringVar(&t.rate, "rate", "max", "offered rate of a flow: max, packets as 150kpps, or payload bits as 95mbit")
	f.StringVar(&t.interval, "interval", "", "time between packets in place of --rate: 5ms")
	f.StringVar(&t.profile, "profile", "", profileHelp)
	f.StringVar(&t.time, "time", "", "measured time of each trial: 10s (default 2s)")
	f.StringVar(&t.warmup, "warmup", "", "sent before it and not counted: 1s (default 500ms)")
	f.IntVar(&t.repeats, "repeats", 2, "trials of each size, interleaved")
	f.IntVar(&t.streams, "streams", 1, "streams of a flow, each a socket and a thread: 1 to 128")
	f.IntVar(&t.burst, "burst", 0, "packets of each stream that may leave back to back when paced (default 1 up to 100 kpps of a stream)")
	f.IntVar(&t.sourcePort, "source-port", 0, "first local port; --streams ports are used from there (default: any)")
	f.StringVar(&t.sources, "source-address", "", "local addresses that the streams take in turn: 192.0.2.1,192.0.2.2 or 198.18.129.1..198.18.129.8")
	f.BoolVar(&t.gro, "gro", false, "UDP: let the receiver's kernel hand over packets joined (UDP_GRO)")
	f.IntVar(&t.gso, "gso", 0, "UDP: packets handed to the kernel as one segmentation-offload buffer: 2 to 64 (default: singly)")
	f.StringVar(&t.sendBuffer, "send-buffer", "", "UDP: send buffer of each socket, as the kernel accounts it: 212992 (default: below one queue's length)")
	f.StringVar(&t.receiveBuffer, "receive-buffer", "", "UDP: receive buffer of each socket, as the kernel accounts it: 4194304 (default: 16 MiB shared by the streams, at least 512 KiB each)")
	f.BoolVar(&t.bulk, "bulk", false, "TCP: large writes as for a file transfer (Nagle on), in place of small ones with TCP_NODELAY")
	f.StringVar(&t.control, "control", "", "TCP: congestion control, as cubic or bbr (default: the host's)")
}

func (t *trafficFlags) options(target string) (o plan.CurveOptions, err error) {
	o = plan.CurveOptions{
		Target: target, Protocol: model.Protocol(t.proto), Direction: t.direction, Streams: t.streams, Repeats: t.repeats,
		DSCP: t.dscp, DontFragment: t.df, Burst: t.burst, SourcePort: t.sourcePort, Bulk: t.bulk, Control: t.control,
		Segments: t.gso, Joined: t.gro, Drops: model.DropMode(t.drops),
	}
	if !slices.Contains([]string{"", "seq", "count", "off"}, t.drops) {
		return o, usagef("--drops: want seq, count or off, not %q", t.drops)
	}
	for _, n := range []struct {
		flag            string
		value, low, top int
	}{
		{"streams", t.streams, 1, model.MaxStreams}, {"repeats", t.repeats, 1, model.MaxRepeats}, {"dscp", t.dscp, 0, 63},
		{"burst", t.burst, 0, model.MaxBurst}, {"gso", t.gso, 0, model.MaxSegments}, {"source-port", t.sourcePort, 0, model.MaxSourcePort},
	} {
		if n.value < n.low || n.value > n.top {
			return o, usagef("--%s: want %d to %d, not %d", n.flag, n.low, n.top, n.value)
		}
	}
	read := func(flag, text string, into func(string) error) {
		if err == nil && text != "" {
			if e := into(text); e != nil {
				err = usagef("--%s: %v", flag, e)
			}
		}
	}
	read("payload", t.payload, func(s string) (e error) { o.Payloads, o.Whole, e = payloads(s); return e })
	read("frame", t.frame, func(s string) (e error) { o.Frames, e = unit.ParseSizes(s); return e })
	read("send-buffer", t.sendBuffer, func(s string) (e error) { o.SendBuffer, e = bufferBytes(s); return e })
	read("receive-buffer", t.receiveBuffer, func(s string) (e error) { o.ReceiveBuffer, e = bufferBytes(s); return e })
	read("source-address", t.sources, func(s string) (e error) { o.Sources, e = unit.ParseAddresses(s); return e })
	read("rate", t.rate, func(s string) (e error) { o.Rate, e = unit.ParseRate(s); return e })
	read("interval", t.interval, func(s string) (e error) {
		if t.rate != "max" {
			return usagef("give --rate or --interval, not both")
		}
		o.Rate, e = unit.ParseRate("every " + s)
		return e
	})
	read("profile", t.profile, func(s string) error {
		p, own, e := readProfile(s)
		o.Profile, o.ProfileRate = p, own
		return e
	})
	read("time", t.time, func(s string) (e error) { o.Time, e = positive(s); return e })
	read("warmup", t.warmup, func(s string) error {
		d, e := unit.ParseDuration(s)
		o.Warmup = &d
		return e
	})
	read("family", t.family, func(s string) error {
		if s != "4" && s != "6" {
			return usagef("want 4 or 6, not %q", s)
		}
		o.Family = int(s[0] - '0')
		return nil
	})
	read("max-loss", t.maxLoss, func(s string) error {
		r, e := unit.ParseRatio(s)
		o.MaxLoss = &r
		return e
	})
	return o, err
}

// payloads reads a list of sizes, in which mtu may stand for the path's.
func payloads(text string) (sizes []int, whole bool, err error) {
	var rest []string
	for _, word := range strings.Split(text, ",") {
		if strings.TrimSpace(word) != model.PathMTULevel {
			rest = append(rest, word)
		} else if whole {
			return nil, false, usagef("%s stands twice", word)
		} else {
			whole = true
		}
	}
	if len(rest) > 0 {
		sizes, err = unit.ParseSizes(strings.Join(rest, ","))
	}
	return sizes, whole, err
}

// bufferBytes reads one size.
func bufferBytes(text string) (int, error) {
	sizes, err := unit.ParseSizes(text)
	if err == nil && len(sizes) != 1 {
		err = usagef("want one size in bytes, not %d", len(sizes))
	}
	if err != nil {
		return 0, err
	}
	return sizes[0], nil
}

func positive(text string) (time.Duration, error) {
	d, err := unit.ParseDuration(text)
	if err == nil && d == 0 {
		return 0, usagef("must be more than 0")
	}
	return d, err
}
