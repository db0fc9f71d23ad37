package model

import (
	"fmt"
	"slices"
	"strings"
)

// Variant is one way to set a router up; the trials of a run that compares several are interleaved.
type Variant struct {
	Name string `json:"name"` // in a lab without a command, what its router is made to be: see RouterPlain
	// Command is run by sh -c before the first trial of this variant after one of another: in a lab within the
	// router's node, else on this host. "" does nothing.
	Command string `json:"command,omitempty"`
}

// Words of what a lab's router is made to be, joined by +: see package lab.
const (
	RouterPlain = "plain"
	RouterRules = "rules" // rules=N
	RouterLog   = "log"
	RouterFast  = "fast"
)

// ParseVariant reads NAME=COMMAND, or the words of what a lab's router is made to be.
func ParseVariant(text string, inLab bool) Variant {
	name, command, _ := strings.Cut(text, "=")
	first, _, _ := strings.Cut(name, "+")
	if inLab && (name == text || slices.Contains([]string{RouterPlain, RouterRules, RouterLog, RouterFast}, first)) {
		return Variant{Name: text}
	}
	return Variant{Name: strings.TrimSpace(name), Command: strings.TrimSpace(command)}
}

// LabDUT is what Plan.DUT says of a lab's own router.
const LabDUT = "lab"

// AgentDUT begins a Plan.DUT that is a pelt serve on the router.
const AgentDUT = "pelt://"

const maxVariants = 32

func (p Plan) checkRouter() error {
	inLab := strings.HasPrefix(p.Target, "lab:")
	remote := strings.HasPrefix(p.DUT, "ssh://") || strings.HasPrefix(p.DUT, AgentDUT)
	odd := inLab != (p.DUT == LabDUT) || !inLab && !remote || !printable(p.DUT) || strings.Contains(p.DUT, " ")
	if p.DUT != "" && odd {
		return wrong("dut",
			"want ssh://[USER@]HOST[:PORT] or pelt://HOST[:PORT] for real hosts, or lab in a lab, not %q",
			clip(p.DUT))
	}
	if p.Near != "" {
		if inLab {
			return wrong("near", "a lab has its own sender; want lab:NAME alone, or two hosts")
		}
		if _, _, err := HostPort(p.Near); err != nil {
			return wrong("near", "want HOST[:PORT], not %q", clip(p.Near))
		}
	}
	if len(p.Variants) > maxVariants {
		return wrong("variants", "want at most %d, not %d", maxVariants, len(p.Variants))
	}
	for i, v := range p.Variants {
		at := fmt.Sprintf("variants[%d]", i)
		switch {
		case v.Name == "" || !printable(v.Name):
			return wrong(at+".name", "want a short word, not %q", clip(v.Name))
		case slices.ContainsFunc(p.Variants[:i], func(o Variant) bool { return o.Name == v.Name }):
			return wrong(at+".name", "%q stands twice", v.Name)
		case len(v.Command) > maxCommand || strings.ContainsRune(v.Command, 0):
			return wrong(at+".command", "want at most %d letters", maxCommand)
		}
	}
	return nil
}

const maxCommand = 4096

// RouterFacts say what the router under test is, as it told itself before the first
// trial. An empty field is unknown.
type RouterFacts struct {
	Node        string       `json:"node"`             // on the path: router, switch
	Source      string       `json:"source"`           // how it is watched: ssh://root@192.168.1.1, or the lab
	System      string       `json:"system,omitempty"` // openwrt, linux
	Model       string       `json:"model,omitempty"`  // of the board
	Firmware    string       `json:"firmware,omitempty"`
	Kernel      string       `json:"kernel,omitempty"`
	CPU         string       `json:"cpu,omitempty"`
	Cores       int          `json:"cores,omitempty"`
	MemoryBytes uint64       `json:"memory_bytes,omitempty"`
	Told        []RouterFact `json:"told,omitempty"`
	Before      []Text       `json:"before,omitempty"` // as the router wrote them, before the first trial
	After       []Text       `json:"after,omitempty"`  // ... and after the last one
}

// RouterFact is one thing that a router told of its forwarding and its tuning, or did not tell.
type RouterFact struct {
	Code  string            `json:"code"`
	Words map[string]string `json:"words,omitempty"`
	Of    Reasons           `json:"of,omitempty"`
	Later bool              `json:"later,omitempty"` // so after the last trial, and not before the first
}

// Codes of facts, with their words; findings are called so after "router.fact.".
const (
	FactSetting     = "setting"      // name, value
	FactOffload     = "offload"      // configured: by (software, hardware), state (on, off), name
	FactFlowtable   = "flowtable"    // of nft: name, devices, by
	FactNoFlowtable = "no-flowtable" // nft answers, and has none
	FactXDP         = "xdp"          // device, with an XDP program
	FactConnections = "connections"  // of the tracked ones count are offloaded, by
	FactUntold      = "untold"       // name of a question, or Of: why none was answered
)

type Text struct {
	Name string `json:"name"` // of the file or the command
	Text string `json:"text"`
}

// RouterWatch is what the router under test did during the measured part of a trial, by its own samples.
type RouterWatch struct {
	Node    string  `json:"node"`
	Samples int     `json:"samples"`            // within the measured part
	PeriodS float64 `json:"period_s,omitempty"` // between two samples
	// CostRatio is what the watch takes of one of the router's cores, by the
	// router's own account; nil while it is not known.
	CostRatio *float64 `json:"cost_ratio,omitempty"`
	// CPU is the mean over the samples and all cores, Cores of each. None are there if fewer than two samples came.
	CPU   *CPUSplit  `json:"cpu,omitempty"`
	Cores []CPUSplit `json:"cores,omitempty"`
	// ThreadRatio is what the busiest receive thread of a lab's router took of one core: its own work alone, where
	// all else shares the machine's cores. Nil where no thread is its own.
	ThreadRatio *float64 `json:"thread_ratio,omitempty"`

	SoftnetDropped  *uint64 `json:"softnet_dropped,omitempty"`  // packets beyond the backlog
	SoftnetSqueezed *uint64 `json:"softnet_squeezed,omitempty"` // times that work was left in net_rx_action
	Connections     *uint64 `json:"connections,omitempty"`      // tracked, the most that a sample saw
	ConnectionsMax  *uint64 `json:"connections_max,omitempty"`  // that it tracks at most

	ClockHz      *float64 `json:"clock_hz,omitempty"`      // of the slowest core, mean
	TemperatureC *float64 `json:"temperature_c,omitempty"` // of the hottest place, highest

	Gaps []RouterGap `json:"unwatched,omitempty"`
}

// RouterGap is what is missing of a watch, and why.
type RouterGap struct {
	Why   string  `json:"why"`
	FromS float64 `json:"from_s"`         // of the measured part
	ToS   float64 `json:"to_s,omitempty"` // 0: to its end
	Of    Reasons `json:"of,omitempty"`   // what ssh said, or what pelt there told, or that it told nothing
}

// Why a watch has a gap; findings are called so after "router.gap.".
const (
	GapClosed    = "closed"    // the connection was closed
	GapLate      = "late"      // the router did not answer in time
	GapGarbled   = "garbled"   // its answer was none
	GapRestarted = "restarted" // somewhere between
	GapUnbegun   = "unbegun"   // there was no measured part
	GapShort     = "short"     // the measured part held too few samples
	GapLong      = "long"      // ... more samples than are kept
	GapCores     = "cores"     // the series of single cores found no room in the report
)

// CPUSplit is how one core, or all, spent a time: ratios 0..1 of it that add up
// to 1. Names and order are top's. Guests are within User.
type CPUSplit struct {
	Core    int     `json:"core"` // -1: all of them
	User    float64 `json:"user_ratio"`
	System  float64 `json:"system_ratio"`
	Nice    float64 `json:"nice_ratio"`
	Idle    float64 `json:"idle_ratio"`
	IOWait  float64 `json:"iowait_ratio"`
	IRQ     float64 `json:"irq_ratio"`
	Softirq float64 `json:"softirq_ratio"`
	Steal   float64 `json:"steal_ratio"`
}

// Busy is what was not idle; waiting for a disk is idle.
func (c CPUSplit) Busy() float64 { return max(0, 1-c.Idle-c.IOWait) }
