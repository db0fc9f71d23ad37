package run

import (
	"pelt/lab"
	"pelt/observe"
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
		"netem":             "delay and loss by the kernel",
		"masquerade":        "lab:nat",
		"tun":               "delay and loss without netem",
	}
}

// Doctor says what this machine can do, in the order it should be read.
func Doctor() []observe.Check {
	checks, uses := observe.Doctor(), labUses()
	for _, c := range lab.Probe() {
		checks = append(checks, observe.Check{Topic: "lab", Name: c.Name, OK: c.OK, Detail: uses[c.Name], Reason: c.Reason, Remedy: c.Remedy})
	}
	return checks
}
