package run

import (
	"slices"

	"pelt/engine/xdp"
	"pelt/finding"
	"pelt/lab"
	"pelt/model"
	"pelt/observe"
	"pelt/observe/drops"
	"pelt/words"
)

// labUses says in a user's words what each capability of package lab is for.
func labUses() map[string]string {
	return map[string]string{
		"network-namespace": "the nodes of a lab",
		"user-namespace":    "labs without root",
		"veth":              "the cables of a lab",
		"bridge":            "lab:switch",
		"relay":             "a limit on the link at an end",
		"tbf":               "--link rate=...",
		"masquerade":        "lab:nat",
		"fast-path":         "lab:fast",
		"tun":               "--link delay=...,loss=...",
	}
}

// Check is what Doctor says of one thing.
type Check = observe.Check

// Doctor says in a language what this machine can do, in the order it should be read. labs is what package lab can do
// here; a program without labs has none.
func Doctor(l words.Language, labs []lab.Capability) []observe.Check {
	why, uses := l.Say("this is not root, and a small build makes no labs"), labUses()
	for _, c := range labs {
		if c.Name == "user-namespace" {
			why = c.Reason
		}
	}
	checks := observe.Doctor(l, lab.Privileged(), why,
		func(err error) string { return finding.ClauseIn(l, drops.Why(err)) })
	at := 1 + slices.IndexFunc(checks, func(c observe.Check) bool { return c.Topic == l.Say("ledger") })
	checks = slices.Insert(checks, max(at-1, 0), interfaceChecks(l, xdp.Interfaces)...)
	for _, c := range labs {
		checks = append(checks, observe.Check{Topic: l.Say("lab"), Name: c.Name, OK: c.OK,
			Detail: l.Say(uses[c.Name]), Reason: c.Reason, Remedy: c.Remedy})
	}
	return checks
}

// interfaceChecks says of each interface whether the xdp engine can use it.
func interfaceChecks(l words.Language, list func() ([]xdp.Interface, error)) []observe.Check {
	all, err := list()
	if err != nil {
		return []observe.Check{{Topic: "xdp", Name: "interfaces", Reason: err.Error(),
			Remedy: l.Say("none known; pelt uses sockets")}}
	}
	var checks []observe.Check
	for _, i := range all {
		c := observe.Check{Topic: "xdp", Name: l.Sayf("interface %s", i.Name), OK: true}
		receives := l.Say("receives XDP frames in its driver")
		if !i.Native {
			receives = l.Say("receives them behind its driver, as the kernel's generic XDP does")
		}
		switch {
		case i.Taken:
			c.OK, c.Detail = false, l.Say("receives by sockets")
			c.Reason = l.Say("another XDP program is attached to it")
			c.Remedy = l.Say("end the program that attached it, if it may end")
		case !i.Known:
			c.Detail = l.Say("the kernel does not say (before Linux 6.3): a test finds out")
		case i.Sends:
			c.Detail = l.Sayf("sends XDP frames, %s", receives)
		case i.Cable:
			c.Detail = l.Sayf("sends XDP frames when pelt receives at the cable's other end, %s", receives)
		case i.Native:
			c.Detail = l.Sayf("may send XDP frames once a program is attached to it, as pelt does, and %s", receives)
		default:
			c.OK, c.Detail = false, l.Sayf("sends by sockets, %s", receives)
			c.Reason = l.Say("its driver hands no XDP frames to the card (ndo_xdp_xmit)")
			c.Remedy = l.Say("another card or driver")
		}
		checks = append(checks, c)
	}
	return checks
}

func ThisHost() model.Host { return observe.Facts() }

// Settings reads the settings of this host, and of one interface unless it is "".
func Settings(iface string) []model.HostSetting { return observe.Knobs(iface) }
