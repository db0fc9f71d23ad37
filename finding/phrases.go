package finding

import (
	"slices"
	"strings"

	"pelt/ledger"
	"pelt/model"
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
		"%r ", "", "%h", "this host").Replace(words), known
}

// phrase says for people where and why packets were lost: "receiver socket buffer full", "netfilter rule at the
// receiver". It holds no digits of its own and does not repeat the cause, which may stand behind it in brackets.
func phrase(layer, cause, host string) string {
	who, at, words := host, "at ", ledger.Of(layer, cause).Said(layer)
	if !slices.Contains(model.Layers(), layer) {
		words = layer + " at %h"
	}
	switch {
	case host == model.Sender, host == model.Receiver:
		who = "the " + host
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
	return strings.NewReplacer("at %h", at+who, "%h", who, "%r", strings.TrimPrefix(who, "the "),
		"%c", cause).Replace(words)
}
