package run

import (
	"pelt/lab"
	"pelt/observe"
)

// Doctor says what this machine can do, in the order it should be read.
func Doctor() []observe.Check {
	checks := observe.Doctor()
	for _, c := range lab.Probe() {
		checks = append(checks, observe.Check{Topic: "Lab", Name: c.Name, OK: c.OK, Reason: c.Reason, Remedy: c.Remedy})
	}
	return checks
}
