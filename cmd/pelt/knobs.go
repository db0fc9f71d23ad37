package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pelt/lab"
	"pelt/model"
	"pelt/plan"
	"pelt/unit"
)

// knob is one flag of test commands: what it is called, what --help says, and which option
// of a plan it sets.
type knob struct {
	flag, kind string // kind of the value as --help names it; "" is text
	help       string
	set        func(o *options, text string) error
	list       func(o *options, text string) error // in a sweep, where several values are a factor; nil: as set
}

// Kinds of knobs that are not text.
const (
	oneNumber   = "number"
	onOff       = "bool"   // pflag's own word: its help shows no value
	manyTimes   = "values" // each use of the flag adds one
	profileHelp = "UDP: how packets are spread over time, in place of even gaps: poisson, burst=64, " +
		"on=10ms,off=90ms[,random], " +
		"ramp=10kpps..100kpps, trace=FILE or gaps=FILE (docs/pacing.md)"
)

// knobs is the one table of flags that say what a test does.
var knobs = []knob{
	{"payload", "", "payload sizes in bytes: 64,1460 or 256..1472/256; UDP 16 to 65507, or mtu for the largest " +
		"that the path takes in one piece",
		func(o *options, s string) (err error) { o.Payloads, o.Whole, err = payloads(s); return err }, nil},
	{"frame", "", "UDP: Ethernet frame sizes in bytes, FCS included, in place of --payload: 64,128,1518",
		read(unit.ParseSizes, func(o *options) *[]int { return &o.Frames }), nil},
	{"rate", "", "offered rate of a flow: max, packets as 150kpps, or payload bits as 95mbit",
		read(unit.ParseRate, func(o *options) *unit.Rate { return &o.Rate }),
		factor("rate_pps", unit.PPS)},
	{"interval", "", "time between packets in place of --rate: 5ms",
		read(func(s string) (unit.Rate, error) { return unit.ParseRate("every " + s) },
			func(o *options) *unit.Rate { return &o.Rate }),
		factor("interval_ns", unit.Nanos)},
	{"profile", manyTimes, profileHelp, setProfile, addProfile},
	{"proto", "", "transport protocol: udp or tcp", func(o *options, s string) error {
		o.Protocol, o.Protocols = model.Protocol(s), nil
		for word := range strings.SplitSeq(s, ",") {
			o.Protocols = append(o.Protocols, model.Protocol(strings.TrimSpace(word)))
		}
		return nil
	}, nil},
	{"direction", "", "up (from here), down, both at once, or a list as up,down,both",
		asIs(func(o *options) *string { return &o.Direction }), nil},
	{"streams", oneNumber, "streams of a flow, each a socket and a thread: 1 to 128",
		whole(1, model.MaxStreams, func(o *options) *int { return &o.Streams }),
		factor("streams", unit.Count)},
	{"receivers", "", "lab:star: how many; each gets as many packets, at the rate that is said",
		whole(1, model.MaxReceivers, func(o *options) *int { return &o.Receivers }), factor("receivers", unit.Count)},
	{"count", "", "packets of each trial, for each receiver (default 1000, or as many as fit in --time)",
		read(func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) },
			func(o *options) *uint64 { return &o.Packets }), nil},
	{"quick", onOff, "100 packets in each trial, unless --count or --time says more",
		func(*options, string) error { return nil }, nil},
	{"time", "", "measured time of each trial: 10s",
		read(positive, func(o *options) *time.Duration { return &o.Time }), nil},
	{"warmup", "", "sent before it and not counted: 1s",
		readNew(unit.ParseDuration, func(o *options) **time.Duration { return &o.Warmup }), nil},
	{"repeats", oneNumber, "trials of each combination, interleaved; pelt compare needs 3",
		whole(1, model.MaxRepeats, func(o *options) *int { return &o.Repeats }), nil},
	{"max-loss", "", "fail with exit code 3 if any size or combination loses more: 0.1%",
		readNew(unit.ParseRatio, func(o *options) **float64 { return &o.MaxLoss }), nil},
	{"family", "", "4 or 6: IP version to use (default: what the target has)",
		whole(4, 6, func(o *options) *int { return &o.Family }), nil},
	{"dscp", oneNumber, "differentiated services code point of the test packets: 0 to 63",
		whole(0, 63, func(o *options) *int { return &o.DSCP }), nil},
	{"df", onOff, "forbid fragmentation of UDP packets",
		on(func(o *options) *bool { return &o.DontFragment }), nil},
	{"drops", "", "how closely the kernels' drops are watched: seq (every packet), count, off (default: seq where " +
		"rights and kernel allow)",
		setDrops, nil},
	{"burst", oneNumber, "due packets of a stream that may leave back to back (default: a late sender catches up " +
		"at twice the rate)",
		whole(0, model.MaxBurst, func(o *options) *int { return &o.Burst }), nil},
	{"source-port", oneNumber, "first local port; --streams ports are used from there (default: any)",
		whole(0, model.MaxSourcePort, func(o *options) *int { return &o.SourcePort }), nil},
	{"source-address", "", "local addresses that the streams take in turn: 192.0.2.1,192.0.2.2 or " +
		"198.18.129.1..198.18.129.8",
		func(o *options, s string) (err error) { o.Sources, err = unit.ParseAddresses(s); return err }, nil},
	{"send-buffer", "", "UDP: send buffer of each socket, as the kernel accounts it: 212992 (default: below one " +
		"queue's length)",
		read(oneSize, func(o *options) *int { return &o.SendBuffer }), factor("send_buffer_bytes", unit.Bytes)},
	{"receive-buffer", "", "UDP: receive buffer of each socket, as the kernel accounts it: 4194304 (default: 16 " +
		"MiB shared by the streams, at least 512 KiB each)",
		read(oneSize, func(o *options) *int { return &o.ReceiveBuffer }), factor("receive_buffer_bytes", unit.Bytes)},
	{"gro", onOff, "UDP: let the receiver's kernel hand over packets joined (UDP_GRO)",
		on(func(o *options) *bool { return &o.Joined }), nil},
	{"gso", oneNumber, "UDP: packets handed to the kernel as one segmentation-offload buffer: 2 to 64 (default: " +
		"singly)",
		whole(0, model.MaxSegments, func(o *options) *int { return &o.Segments }), nil},
	{"bulk", onOff, "TCP: large writes as for a file transfer (Nagle on), in place of small ones with TCP_NODELAY",
		on(func(o *options) *bool { return &o.Bulk }), nil},
	{"control", "", "TCP: congestion control, as cubic or bbr (default: the host's)",
		func(o *options, s string) error {
			o.Control, o.Controls = s, nil
			for name := range strings.SplitSeq(s, ",") {
				o.Controls = append(o.Controls, strings.TrimSpace(name))
			}
			return nil
		}, nil},

	// Of pelt cc.
	{"loss", "", "lab: loss of each link in each direction: 0,1%,10% (default: as --link says)",
		readNew(model.LossLevels, func(o *options) **model.Factor { return &o.Losses }), nil},
	{"bytes", "", "bytes of each transfer, as 640MB; its time is the figure (default: as many as fit in --time)",
		func(o *options, s string) error {
			n, err := unit.ParseBytes(s)
			if err != nil || n < 1 {
				return usagef("want how many, as 640MB, not %q", s)
			}
			o.Bytes = uint64(n)
			return nil
		}, nil},
	{"http", onOff, "the bytes are the body of an HTTP answer (net/http, memory to memory), timed by the client " +
		"from its request",
		on(func(o *options) *bool { return &o.HTTP }), nil},
	{"stagger", "", "time between the beginnings of streams: 5s (default: together)",
		read(positive, func(o *options) *time.Duration { return &o.Stagger }), nil},
	{"until-separable", onOff, "repeat until all controls are told apart, or --max-repeats",
		func(*options, string) error { return nil }, nil},
	{"max-repeats", oneNumber, "with --until-separable: repeats at most (default 30, or three times --repeats if " +
		"that is more)",
		whole(1, model.MaxRepeats, func(o *options) *int { return &o.MostRepeats }), nil},
	{"per-skb", onOff, "lab: lose whole buffers of segments, as the kernel's netem does with segmentation offload " +
		"(--link buffers=whole); else each frame by itself",
		func(o *options, _ string) error {
			o.Links = append(o.Links, model.Link{Buffers: model.BuffersWhole})
			return nil
		}, nil},
	{"exec-server", "", "lab: your own server, started at the sending node for each trial; words are parted as by " +
		"a shell, and no shell runs them",
		program(func(c *model.Commands) *string { return &c.Server }), nil},
	{"exec-client", "", "lab: your own client, run at the receiving node once the server listens; its time is the " +
		"figure",
		program(func(c *model.Commands) *string { return &c.Client }), nil},

	// Of a router, and of soaks.
	{"dut", "", "watch the router over ssh, ssh://[USER@]HOST[:PORT], or by its own pelt serve --observe-only, " +
		"pelt://HOST[:PORT] (a lab's own is watched without)",
		asIs(func(o *options) *string { return &o.DUT }), nil},
	{"variant", manyTimes, "a way to set the router up; in a lab plain, rules=N, limit=RATE, log, steer, joined by " +
		"+; else NAME=COMMAND; once for each",
		addVariant, nil},
	{"idle-rate", "", "UDP: rate of the trials that measure the delay of the idle path, 0 for none (default 1kpps)",
		readNew(idleRate, func(o *options) **unit.Rate { return &o.IdleRate }), nil},
	{"connections", "", "TCP connections from LAN to WAN as well: rate (how many a second), keep (how many at a " +
		"time, until the router refuses), or rate,keep",
		func(o *options, s string) error { o.Connections = strings.Split(s, ","); return nil }, nil},
	{"patience", "", "how long the test goes on without its control connection, 0 for not at all (default 1m, the " +
		"most)",
		readNew(unit.ParseDuration, func(o *options) **time.Duration { return &o.Patience }), nil},
	{"at", manyTimes, "lab: what changes while it runs, as 80s:router=rules=1000 or 2m:link-receiver=loss=1%; once " +
		"for each",
		addTimed, nil},
}

// options are what the flags of a test say.
type options = plan.Options

type setter = func(o *options, text string) error

func read[T any](parse func(string) (T, error), to func(*options) *T) setter {
	return func(o *options, text string) (err error) {
		*to(o), err = parse(text)
		return err
	}
}

func readNew[T any](parse func(string) (T, error), to func(*options) **T) setter {
	return func(o *options, text string) error {
		v, err := parse(text)
		*to(o) = &v
		return err
	}
}

func asIs(to func(*options) *string) setter {
	return func(o *options, text string) error { *to(o) = text; return nil }
}

func on(to func(*options) *bool) setter {
	return func(o *options, text string) error {
		yes, err := strconv.ParseBool(text)
		if *to(o) = yes; err != nil {
			return usagef("want true or false, not %s", text)
		}
		return nil
	}
}

func whole(low, top int, to func(*options) *int) setter {
	return func(o *options, text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < low || n > top {
			return usagef("want %d to %d, not %s", low, top, text)
		}
		*to(o) = n
		return nil
	}
}

// factor reads levels of a knob.
func factor(knob string, u unit.Unit) setter {
	return func(o *options, text string) error {
		levels, err := model.ParseLevels(u, text)
		o.Factors = append(o.Factors, model.Factor{Knob: knob, Levels: levels})
		return err
	}
}

// oneSize reads one size in bytes.
func oneSize(text string) (int, error) {
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

func setDrops(o *options, text string) error {
	modes := []model.DropMode{model.DropsSeq, model.DropsCount, model.DropsOff}
	if o.Drops = model.DropMode(text); !slices.Contains(modes, o.Drops) {
		return usagef("want seq, count or off, not %q", text)
	}
	return nil
}

func idleRate(text string) (unit.Rate, error) {
	r, err := unit.ParseRate(text)
	if text == "0" {
		return unit.Rate{}, nil
	} else if err == nil && r.IsMax() {
		err = usagef("want packets per second, or 0 for no such trials")
	}
	return r, err
}

func program(of func(*model.Commands) *string) setter {
	return func(o *options, text string) error {
		if o.Commands == nil {
			o.Commands = &model.Commands{}
		}
		*of(o.Commands) = text
		_, err := lab.SplitWords(text)
		return err
	}
}

// addVariant reads --variant: what a lab's router is made to be, or NAME=COMMAND.
func addVariant(o *options, text string) error {
	if name, isLab := strings.CutPrefix(o.Target, "lab:"); isLab {
		o.Variants = append(o.Variants, model.Variant{Name: text})
		return lab.CheckCharacter(name, text)
	}
	name, command, _ := strings.Cut(text, "=")
	if name = strings.TrimSpace(name); name == "" {
		return usagef("want NAME=COMMAND, not %q", text)
	}
	o.Variants = append(o.Variants, model.Variant{Name: name, Command: strings.TrimSpace(command)})
	return nil
}

// addTimed reads --at, and holds it against what the target is.
func addTimed(o *options, text string) error {
	name, inLab := strings.CutPrefix(o.Target, "lab:")
	if !inLab {
		return usagef("only a lab changes by itself; want lab:NAME")
	}
	c, err := model.ParseTimedChange(text)
	if err == nil && c.Router != "" {
		err = lab.CheckCharacter(name, c.Router)
	}
	o.Timed = append(o.Timed, c)
	return err
}

// test is a command that tests something: its options as the flags say them, and the flags
// of every test.
type test struct {
	plan.Options
	commonFlags
	flags   *pflag.FlagSet
	factors bool // flags with several values make factors
}

// preset is what one command says of the knobs.
type preset struct {
	knobs    string            // flags, in the order of the table
	defaults map[string]string // as --help shows them; package plan has them
	help     map[string]string // texts that differ from the table's
	factors  bool              // flags with several values make factors
	varies   bool              // so do settings of links
	far      bool              // TARGET may be NEAR..FAR
	plan     func(t *test) (model.Plan, error)
}

// newTest makes a command that runs a plan.
func newTest(c *cobra.Command, p preset) *cobra.Command {
	var t test
	c.Args = cobra.ExactArgs(1)
	c.RunE = func(c *cobra.Command, args []string) error {
		if p.far {
			t.Near, args[0] = plan.RouterPath(args[0])
		}
		if err := t.read(args[0], p.varies); err != nil {
			return err
		}
		made, err := p.plan(&t)
		if err != nil {
			return err
		}
		return t.execute(c, made)
	}
	t.register(c.Flags(), p)
	return c
}

func (t *test) register(s *pflag.FlagSet, p preset) {
	t.flags, t.factors = s, p.factors
	for _, k := range knobs {
		if !slices.Contains(strings.Fields(p.knobs), k.flag) {
			continue
		}
		help := k.help
		if text, other := p.help[k.flag]; other {
			help = text
		}
		f := s.VarPF(&typed{kind: k.kind}, k.flag, "", help)
		f.DefValue = p.defaults[k.flag]
		if k.kind == onOff {
			f.NoOptDefVal = "true"
		}
	}
	t.commonFlags.register(s)
}

// typed is the text of a flag as it was typed.
type typed struct {
	kind  string
	texts []string
}

func (v *typed) String() string { return strings.Join(v.texts, " ") }

func (v *typed) Type() string {
	return cmp.Or(v.kind, "value")
}

func (v *typed) Set(text string) error {
	if v.kind != manyTimes {
		v.texts = nil
	}
	v.texts = append(v.texts, text)
	return nil
}

// read turns all that was typed into options.
func (t *test) read(target string, linksVary bool) error {
	t.Target, t.Seed, t.Engine = target, t.seed, t.engine
	if t.flags.Changed("rate") && t.flags.Changed("interval") {
		return usagef("--interval: give --rate or --interval, not both")
	}
	links, factors, err := parseLinks(t.link, t.nodes, linksVary)
	if err != nil {
		return err
	}
	t.Links = links
	for _, k := range knobs {
		f := t.flags.Lookup(k.flag)
		if f == nil || !f.Changed {
			continue
		}
		set := k.set
		texts := f.Value.(*typed).texts
		if t.factors && k.list != nil && (k.kind != manyTimes || len(texts) > 1) {
			set = k.list
		}
		for _, text := range texts {
			if err := set(&t.Options, text); err != nil {
				return usageError{fmt.Errorf("--%s: %w", k.flag, err)}
			}
		}
	}
	t.Factors = append(t.Factors, factors...)
	return nil
}

// is reports whether a flag was switched on.
func (t *test) is(flag string) bool { return t.flags.Lookup(flag).Value.String() == "true" }

// emptyFlag names a flag that was given without a value.
func emptyFlag(flags *pflag.FlagSet) (name string) {
	flags.Visit(func(f *pflag.Flag) {
		if _, ours := f.Value.(*typed); (ours || f.Value.Type() == "string") && f.Value.String() == "" {
			name = f.Name
		}
	})
	return name
}
