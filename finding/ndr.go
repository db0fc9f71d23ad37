package finding

import (
	"pelt/model"
	"pelt/plan"
	"pelt/table"
)

// ndrKind is a search of the highest rates without loss.
func ndrKind() Kind {
	return Kind{
		Preset: plan.Ndr,
		Use:    "ndr TARGET",
		Short:  "Find the highest rate that a path carries without loss",
		Long: `ndr floods TARGET, up to --rate, and then searches the highest rate without loss for each
frame size by MLRsearch (RFC 9971), up and then down; with --direction both, of each way.

Each size is searched three times in turn (once with --goal csit or --strict): that tells
where the next run finds the rate. --max-loss 0,0.5% searches the rate with at most 0.5 %
loss, too. Full trials last 0.5 s, or --time. --goal csit is surer and takes longer, by trials
of 1 s; --strict has trials of 60 s as RFC 2544.

Loss at the hosts of the sender and the receiver does not lower the answer: it then says
"at least", and what to change.`,
		Example: `  pelt ndr lab:router --link-receiver rate=1gbit
  pelt ndr 192.168.1.5 --payload 18,1472 --max-loss 0,0.5%`,
		Title: "Loss-free rate",
		Rules: []Rule{LossFree},
		Rows:  floodsOrHeld, Searches: true,
	}
}

// floodsOrHeld are the rows of the floods that searches began with, or where none is usable those of the rates that
// hold.
func floodsOrHeld(d *model.Document) (rows []table.Row) {
	floods := table.Unsearched(table.Rows(d))
	if len(table.Usable(floods)) == 0 {
		for _, r := range TypicalSearches(floods) {
			rows = append(rows, r.Around(func(pps float64) bool { return pps == r.Search.Lower })...)
		}
	}
	if len(table.Usable(rows)) == 0 {
		return floods
	}
	return rows
}
