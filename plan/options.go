package plan

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"pelt/model"
	"pelt/unit"
)

// Options are what a user may say about a test. A zero field takes the preset's default;
// Target alone is enough for all but a sweep.
type Options struct {
	Target   string
	Near     string // HOST[:PORT] of the sender's agent; "" is this host
	DUT      string // ssh://[USER@]HOST[:PORT] or pelt://HOST[:PORT], the router; "" watches none but a lab's
	Held     bool   // the lab runs already, so the plan does not say its links' delays
	Links    []model.Link
	Factors  []model.Factor // what varies; of a sweep, one level is a setting
	Losses   *model.Factor  // of all links of a lab; nil leaves them as they are
	Variants []model.Variant
	Timed    []model.TimedChange

	Time, Stagger    time.Duration
	Warmup, Patience *time.Duration
	Repeats          int
	MostRepeats      int // above Repeats: go on until all cells are told apart
	Seed             uint64
	Engine           string // default auto
	Drops            model.DropMode
	MaxLoss          *float64

	Protocol     model.Protocol   // default UDP
	Protocols    []model.Protocol // of a router bench; default UDP and TCP
	Direction    string           // up (default), down, both, or a list as up,down,both, each a trial of its own
	Family       int              // 4, 6, or 0 for whichever the target has
	Payloads     []int            // bytes; nil for the preset's sizes
	Whole        bool             // UDP: and the largest payload that the path takes without fragments
	Frames       []int            // Ethernet frames in bytes, FCS included, in place of Payloads; UDP only
	Rate         unit.Rate        // zero: as fast as the sender can
	IdleRate     *unit.Rate       // of the flow that measures the delay of the idle path; default 1 kpps, 0 for none
	Profile      *model.Profile   // how packets are spread over time; nil is evenly
	ProfileRate  unit.Rate        // that the profile itself has: a ramp's last, a trace's mean; else zero
	Packets      uint64           // of each trial and receiver; 0: as many as fit in Time
	Streams      int              // default 1
	Receivers    int              // of a lab:star; 0 is all that it has
	DSCP         int
	DontFragment bool
	Burst        int // packets; 0 is chosen from the rate
	SourcePort   int
	Sources      []netip.Addr // local addresses that the streams take in turn
	Segments     int          // datagrams handed to the kernel as one buffer; 0 is one
	Joined       bool         // UDP_GRO at the receiver

	SendBuffer, ReceiveBuffer int // bytes, as the kernel accounts them; 0 is chosen

	Bulk        bool     // TCP
	Control     string   // TCP congestion control
	Controls    []string // of a comparison; mixes have their controls joined by +; default cubic and bbr
	Connections []string // how TCP connections are opened beside the rest, see model.Flow; default not at all
	Bytes       uint64   // of each transfer, and Time is the longest it may take; 0: as much as fits in Time
	HTTP        bool
	Commands    *model.Commands
}

// optionNames says which option sets which field of a plan, by the field's last word.
func optionNames() map[string]string {
	return map[string]string{
		"target": "TARGET", "links": "--link", "engine": "--engine", "payload_bytes": "--payload",
		"frame_bytes": "--frame", "rate": "--rate", "direction": "--direction", "streams": "--streams",
		"family": "--family", "dscp": "--dscp", "burst": "--burst", "profile": "--profile",
		"burst_packets": "--profile", "on_s": "--profile", "off_s": "--profile", "from": "--profile",
		"trace": "--profile", "file": "--profile", "source_port": "--source-port", "receivers": "--receivers",
		"packets": "--count", "interval_ns": "--interval", "rate_pps": "--rate",
		"source_addresses": "--source-address", "control": "--control", "protocol": "--proto", "dut": "--dut",
		"near": "TARGET", "variants": "--variant", "measure_s": "--time", "warmup_s": "--warmup",
		"repeats": "--repeats", "max_loss_ratio": "--max-loss", "bytes": "--bytes", "http": "--http",
		"stagger_s": "--stagger", "commands": "--exec-server, --exec-client", "most_repeats": "--max-repeats",
		"patience_s": "--patience", "at_s": "--at", "timed": "--at",
	}
}

var (
	nestedField = regexp.MustCompile(`^flows\[\d+\]\.\w+: `)
	linkField   = regexp.MustCompile(`^links\[\d+\]`)
	lastWord    = regexp.MustCompile(`\w+$`)
)

// translate names the option in place of the plan's field.
func translate(p model.Plan, err error) error {
	var f *model.FieldError
	if !errors.As(err, &f) {
		return err
	}
	field, want := f.Field, f.Want
	for i, factor := range p.Factors {
		if strings.HasPrefix(field, fmt.Sprintf("factors[%d]", i)) {
			field = factor.Knob
			if _, setting, link := model.SplitLinkKnob(factor.Knob); link {
				return &model.FieldError{Field: "--" + strings.TrimSuffix(factor.Knob, "."+setting), Want: setting + ": " + want}
			}
		}
	}
	want = nestedField.ReplaceAllString(want, "")
	if linkField.MatchString(field) {
		field = "links"
	}
	if strings.HasPrefix(field, "variants[") {
		field = "variants"
	}
	name, ok := optionNames()[lastWord.FindString(field)]
	if !ok {
		return err
	}
	return &model.FieldError{Field: name, Want: want}
}
