package main

import (
	"github.com/spf13/cobra"

	"pelt/model"
	"pelt/plan"
)

// ofCurve are the knobs of pelt curve, and of pelt tune trial.
const ofCurve = "payload frame rate interval profile proto direction streams time warmup repeats max-loss family " +
	"dscp df drops burst " +
	"source-port source-address send-buffer receive-buffer gro gso bulk control"

func newCurve() *cobra.Command {
	return newTest(&cobra.Command{
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
	}, preset{
		knobs: ofCurve + " receivers",
		defaults: map[string]string{
			"proto": "udp", "rate": "max", "direction": "up", "streams": "1", "time": "2s", "warmup": "500ms",
			"repeats": "3", "receivers": "10",
		},
		plan: func(t *test) (model.Plan, error) { return plan.Curve(t.Options) },
	})
}
