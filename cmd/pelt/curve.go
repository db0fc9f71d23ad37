package main

import (
	"github.com/spf13/cobra"

	"pelt/plan"
)

func newCurve() *cobra.Command {
	return newTest(&cobra.Command{
		Use:   "curve TARGET",
		Short: "Measure how many packets a path carries at each packet size",
		Long: `curve sends packets of several sizes to TARGET, and shows packets and bits per second at
each: where small packets stop fitting, and what limits large ones.

TARGET is HOST[:PORT] where pelt serve runs, or a lab here: lab:direct, lab:switch,
lab:router, lab:nat, lab:fast (NAT with a fast path), lab:star (many receivers),
lab:loopback (needs no rights), or lab:NAME of pelt lab up.`,
		Example: `  pelt curve lab:router --link rate=1gbit
  pelt curve 192.168.1.5 --code tiger-42-amber --proto tcp --payload 64,1460 --direction both`,
	}, plan.Curve)
}
