package finding

import (
	"cmp"
	"slices"
	"strings"

	"pelt/ledger"
	"pelt/model"
	"pelt/table"
	"pelt/words"
)

// phraseHere says for people why this host dropped packets: as phrase, without the place. known is false if the words
// would be of the place alone.
func phraseHere(l words.Language, layer, cause string) (text string, known bool) {
	english := ledger.Of(layer, cause).Said(layer)
	known = english != ledger.Of(model.LayerNetwork, "").Said(layer) // of which nothing is known
	text = l.Say(english)
	if at := strings.IndexAny(text, "(（"); at > 0 && strings.HasSuffix(english, "?)") { // a guess
		text = strings.TrimRight(text[:at], " ")
	}
	if place, why, ok := strings.Cut(text, "："); ok && place == "%h" {
		text = why
	}
	return strings.NewReplacer("queue on the way at %h", "queue", "queue of %h", "queue", ", at %h", "", " at %h", "",
		"%r ", "", "%h", l.Say(nearHost), "%c", cause).Replace(text), known
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
func phrase(l words.Language, layer, cause, host string) string {
	who, owner, at, text := nodeName(l, host), l.Say(host), "at ", ledger.Of(layer, cause).Said(layer)
	if !slices.Contains(model.Layers(), layer) {
		text = l.Sayf("%s at %s", layer, "%h") // of another version
	}
	switch {
	case host == nearHost:
		owner += "'s"
	case strings.HasPrefix(host, model.AnotherNamespace):
		at = "in "
		for _, end := range []string{model.Sender, model.Receiver} {
			if strings.HasSuffix(host, " of "+end) {
				who = l.Sayf("another namespace of %s", theNode(l, end))
			}
		}
	}
	return strings.NewReplacer("at %h", at+who, "%h", who, "%r", owner, "%c", cause).Replace(l.Say(text))
}

// nodeName is what people call a host in a sentence.
func nodeName(l words.Language, host string) string {
	switch host {
	case model.Sender, model.Receiver:
		return theNode(l, host)
	case "":
		return l.Say("an unknown node")
	}
	return l.Say(host)
}

// theNode is an end in a sentence.
func theNode(l words.Language, node string) string { return l.Say("the " + node) }
