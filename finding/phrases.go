package finding

import (
	"cmp"
	"slices"
	"strings"

	"pelt/ledger"
	"pelt/model"
	"pelt/table"
)

// phraseHere says for people why this host dropped packets: as phrase, without the place. known is false if the words
// would be of the place alone.
func phraseHere(layer, cause string) (words string, known bool) {
	words = ledger.Of(layer, cause).Said(layer)
	known = words != ledger.Of(model.LayerNetwork, "").Said(layer)                  // of which nothing is known
	if at := strings.Index(words, " ("); at > 0 && strings.HasSuffix(words, "?)") { // a guess
		words = words[:at]
	}
	return strings.NewReplacer("queue on the way at %h", "queue", "queue of %h", "queue", ", at %h", "", " at %h", "",
		"%r ", "", "%h", "this host", "%c", cause).Replace(words), known
}

// nearHost is who runs pelt, where both hosts send or the other one.
const nearHost = "this host"

// spoken is what people call a host of a row's trial. Where packets come from the other host, too, "the sender" is
// neither of the two.
func spoken(r table.Row, host string) string {
	name, plan := table.HostName(r, host), r.Doc.Plan
	plain := r.Doc.Lab == nil && !strings.HasPrefix(plan.Target, model.FleetTarget) && len(plan.Hosts) == 0
	far, _, err := model.HostPort(plan.Target)
	if err != nil {
		far = plan.Target
	}
	down := slices.ContainsFunc(plan.Flows, func(f model.Flow) bool { return f.From == model.Receiver })
	switch {
	case !plain || !down && r.Flow.From != model.Receiver:
	case name == model.Sender:
		return cmp.Or(plan.Near, nearHost)
	case name == model.Receiver && far != "":
		return far
	}
	return name
}

// phrase says for people where and why packets were lost: "receiver socket buffer full", "netfilter rule at the
// receiver". It holds no digits of its own and does not repeat the cause, which may stand behind it in brackets.
func phrase(layer, cause, host string) string {
	who, owner, at, words := host, host, "at ", ledger.Of(layer, cause).Said(layer)
	if !slices.Contains(model.Layers(), layer) {
		words = layer + " at %h"
	}
	switch {
	case host == model.Sender, host == model.Receiver:
		who = "the " + host
	case host == nearHost:
		owner += "'s"
	case host == "":
		who = "an unknown node"
	case strings.HasPrefix(host, model.AnotherNamespace):
		at = "in "
		for _, end := range []string{model.Sender, model.Receiver} {
			if machine, ok := strings.CutSuffix(host, " "+end); ok {
				who = machine + " the " + end
			}
		}
	}
	return strings.NewReplacer("at %h", at+who, "%h", who, "%r", owner,
		"%c", cause).Replace(words)
}
