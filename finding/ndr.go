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
		Rules: []Rule{ndrRule},
		Rows:  floodsOrHeld, Searches: true,
	}
}

// Parts of sentences.
const (
	freeLoss  = `[[{way}: at|At] most {loss_ratio:goal} lost|[{way}: no|No] loss]`
	freeOf    = freeLoss + ` up to {throughput_pps}[ {each}][ {where}]`
	freeTried = ` (next run: {holds_pps:next to fails_pps:next})| (single trials: {holds_pps:tried to fails_pps:tried})`
	freeNext  = `[ Of {searches_count} searches in turn, the [{lower ?}lower|{even ?}lower middle|middle] one counts` +
		`[{lower ?}|{two ?}, of two the lower one].][{range ?} The next run finds a rate in the range shown 19 times ` +
		`in 20, if the path changes no more than it did between the searches.]`
	freeFlood   = `[¶The path saturates at {receive_pps:flood range}.]`
	freeAtLeast = freeLoss + ` up to at least {throughput_pps}[ {each}][ {where}].`
)

var ndrSentences = map[string]string{
	"free.found": freeOf + `[` + freeTried + `| (fails at {fails_pps:fails})| (fails just above)].` +
		`[¶First losses[ ({flow})]: {first}.|{queue ?}¶Above {throughput_pps} a queue on the path grows.]` + freeFlood +
		`[¶The link of {link_bps} carries no more.]`,
	"free.link": freeOf + `[` + freeTried + `].[{below ?}|¶The link of {link_bps}[ to each of {receivers_count} ` +
		`receivers] carries no more.]`,
	"free.least": freeAtLeast,
	"free.asked": freeAtLeast + `¶No higher rate was tried (--rate).`,
	"free.end":   freeAtLeast + `¶Above {throughput_pps} a host loses packets[ ({first})], not the path.`,
	"free.none": `[{way}: no|No] rate [with at most {loss_ratio:goal} loss|without loss] was found[ {where}].[¶Even ` +
		`{holds_pps:least} loses {loss_ratio:least}.|¶Even at {holds_pps:queue} a queue grows.|¶Rates below ` +
		`{holds_pps:lowest} are not tried.]` + freeFlood,
	"free.unknown": `[{way}: which|Which] rate [loses at most {loss_ratio:goal}|passes without loss] is not known` +
		`[ {where}].[¶Single trials passed up to {holds_pps:single}.]` + freeFlood,
	"free.wide": `The rates that hold and fail are more than {width_ratio} apart: trials at one rate differ too much.`,
	"free.cut": `[{way}: the|The] search was cut[ {where}][: {holds_pps} holds, {fails_pps:fails} fails|` +
		`: {holds_pps} holds|: {fails_pps:fails} fails].`,
	"free.differ": `[{way}: ]{searches_count:such} of {searches_count} searches[ {where}] [{none ?}found no rate [with ` +
		`at most {loss_ratio:goal} loss|without loss]|{unknown ?}could not tell the rate|{least ?}found no rate that ` +
		`fails|found a rate that holds and one that fails].`,
	"free.random": `Below {receive_pps:below} about {loss_ratio:typical} is lost at every rate: random loss, not too ` +
		`high a rate.`,
	"free.explain": `See the first losses:`,
	"free.allow":   `Find the highest rate with little loss: run it again with --max-loss {share argument}.`,
	"free.burst": `At {fails_pps} each of {trials_count} trials lost its packets within {burst_s}: a stall of a ` +
		`host or of the router, maybe not the rate.`,
	"setup.search": `Search by RFC 9971, goal {goal}. A rate is tried for {measure_s:sum}, in trials of ` +
		`{measure_s:final}. It holds if {measure_s:good} of that loses no more than the goal allows. Rates that hold ` +
		`and fail are at most {width_ratio} apart. RFC 2544 asks for more (--strict).` + freeNext,
	"setup.search-strict": `Search by RFC 9971, goal {goal}. A rate holds if no trial of {measure_s:final} loses more ` +
		`than the goal allows. Rates that hold and fail are at most {width_ratio} apart.` + freeNext,
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
