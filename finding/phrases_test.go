package finding

import (
	"strings"
	"testing"

	"pelt/model"
)

func TestPhrase(t *testing.T) {
	for _, c := range []struct{ layer, cause, host, want string }{
		{"receiver-buffer", "SOCKET_RCVBUFF", "receiver", "receiver socket buffer full"},
		{"receiver-buffer", "SOCKET_RCVBUFF", "box 7", "box 7 socket buffer full"},
		{"receiver-filter", "NETFILTER_DROP", "receiver", "netfilter rule at the receiver"},
		{"network", "NETFILTER_DROP", "router", "netfilter rule at router"},
		{"network", "NETFILTER_DROP", "another namespace of sender",
			"netfilter rule in another namespace of the sender"},
		{"network", "NETFILTER_DROP", "10.0.1.1", "netfilter rule at 10.0.1.1"},
		{"network", "wire/DUT (by elimination)", "", "between the hosts (by elimination)"},
		{"network", "inside (by elimination)", "router", "somewhere in router (by elimination)"},
		{"network", "NEW", "", "on the way at an unknown node"},
		{"network", "queue of the link to b full", "a", "queue on the way at a full"},
		{"send-call", "EMSGSIZE", "sender", "too long for the path's MTU"},
		{"send-call", "EIO", "sender", "refused by the sender's kernel"},
		{"sender-qdisc", "ENOBUFS", "sender", "queue of the sender full"},
		{"sender-device", "NEIGH_FAILED", "sender", "no answer to the sender's neighbour lookup"},
		{"application", "unread", "receiver", "never read by the program at the receiver"},
		{"receiver-ip", "%h", "receiver", "IP layer of the receiver"},
		{"receiver-ip", "NEW", "%r", "IP layer of %r"},
		{"brand-new", "X", "a", "brand-new at a"},
	} {
		if got := phrase(c.layer, c.cause, c.host); got != c.want {
			t.Errorf("Phrase(%q, %q, %q) = %q, want %q", c.layer, c.cause, c.host, got, c.want)
		}
	}
}

// Every layer has words of its own for causes nobody foresaw, and every row can speak.
func TestEveryLayerHasAPhrase(t *testing.T) {
	for _, layer := range model.Layers() {
		if got := phrase(layer, "BRAND_NEW", "x"); strings.HasPrefix(got, layer) {
			t.Errorf("layer %s has no phrase but %q", layer, got)
		}
	}
	for i, w := range wordings {
		cause := strings.Replace(w.cause, "*", "anything", 1)
		if cause == "" {
			cause = "BRAND_NEW"
		}
		if got := phrase(w.layer, cause, ""); got != strings.NewReplacer("%h", "an unknown node", "%r",
			"an unknown node").Replace(w.text) {
			t.Errorf("row %d, %s %s, is hidden: %q speaks", i, w.layer, w.cause, got)
		}
	}
}
