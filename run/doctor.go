package run

import (
	"net"
	"net/netip"
	"slices"

	"pelt/engine/xdp"
	"pelt/finding"
	"pelt/lab"
	"pelt/model"
	"pelt/observe"
	"pelt/observe/drops"
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

// Doctor says what this machine can do, in the order it should be read. labs is what package lab can do here; a program
// without labs has none.
func Doctor(labs []lab.Capability) []observe.Check {
	why, uses := "this is not root, and a small build makes no labs", labUses()
	for _, c := range labs {
		if c.Name == "user-namespace" {
			why = c.Reason
		}
	}
	checks := observe.Doctor(lab.Privileged(), why, func(err error) string { return finding.Clause(drops.Why(err)) })
	at := 1 + slices.IndexFunc(checks, func(c observe.Check) bool { return c.Topic == "ledger" })
	checks = slices.Insert(checks, max(at-1, 0), interfaceChecks(xdp.Interfaces)...)
	for _, c := range labs {
		checks = append(checks, observe.Check{Topic: "lab", Name: c.Name, OK: c.OK,
			Detail: uses[c.Name], Reason: c.Reason, Remedy: c.Remedy})
	}
	return checks
}

// interfaceChecks says of each interface whether the xdp engine can use it.
func interfaceChecks(list func() ([]xdp.Interface, error)) []observe.Check {
	all, err := list()
	if err != nil {
		return []observe.Check{{Topic: "xdp", Name: "interfaces", Reason: err.Error(),
			Remedy: "none known; pelt uses sockets"}}
	}
	var checks []observe.Check
	for _, i := range all {
		c := observe.Check{Topic: "xdp", Name: "interface " + i.Name, OK: true}
		receives := "receives XDP frames in its driver"
		if !i.Native {
			receives = "receives them behind its driver, as the kernel's generic XDP does"
		}
		switch {
		case i.Taken:
			c.OK, c.Detail = false, "receives by sockets"
			c.Reason, c.Remedy = "another XDP program is attached to it",
				"end the program that attached it, if it may end"
		case !i.Known:
			c.Detail = "the kernel does not say (before Linux 6.3): a test finds out"
		case i.Sends:
			c.Detail = "sends XDP frames, " + receives
		case i.Cable:
			c.Detail = "sends XDP frames when pelt receives at the cable's other end, " + receives
		case i.Native:
			c.Detail = "may send XDP frames once a program is attached to it, as pelt does, and " + receives
		default:
			c.OK, c.Detail = false, "sends by sockets, "+receives
			c.Reason, c.Remedy = "its driver hands no XDP frames to the card (ndo_xdp_xmit)", "another card or driver"
		}
		checks = append(checks, c)
	}
	return checks
}

// ThisHost describes this host.
func ThisHost() model.Host { return observe.Facts() }

// Addresses are those of this process's network namespace.
func Addresses() (list []netip.Addr) {
	all, _ := net.InterfaceAddrs() // empty if it fails
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			list = append(list, p.Addr().Unmap())
		}
	}
	return list
}

// Settings reads the settings of this host, and of one interface unless it is "".
func Settings(iface string) []model.HostSetting { return observe.Knobs(iface) }
