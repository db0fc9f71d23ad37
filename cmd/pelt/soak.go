package main

import (
	"github.com/spf13/cobra"

	"pelt/plan"
)

func newSoak() *cobra.Command {
	return newTest(&cobra.Command{
		Use:   "soak TARGET | LAN..WAN",
		Short: "Send at one rate for hours, and tell when something changes",
		Long: `soak sends packets of one size at one rate, keeps every second of both ends, and shows at
any moment how many are lost, and where. TARGET is as for pelt curve, LAN..WAN as for pelt
router.

It stores its account every ten seconds: pelt report shows it meanwhile, and after a kill.`,
		Example: `  pelt soak lab:router --rate 40kpps --payload 512 --time 10m`,
	}, plan.Soak)
}
