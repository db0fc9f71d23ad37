package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pelt/analysis/internal/say"
	"pelt/model"
)

// engines says what the figures leave out because frames pass by the hosts' own
// stacks, or why they could not.
func (a *analyst) engines() {
	type use struct {
		sizes map[int]bool
		why   string
	}
	uses := map[string]*use{}
	for _, r := range a.doc.Results {
		if r.State != model.Valid || r.Engine == "" {
			continue
		}
		for _, f := range r.Flows {
			if f.Protocol != model.UDP {
				continue
			}
			if uses[r.Engine] == nil {
				uses[r.Engine] = &use{map[int]bool{}, r.EngineReason}
			}
			uses[r.Engine].sizes[f.PayloadBytes] = true
		}
	}
	names := slices.Sorted(maps.Keys(uses))
	switch {
	case len(names) == 1 && names[0] == "udp":
		if why := refused(uses["udp"].why); why != "" {
			a.add(KindEngines, nil, "Sockets carried the packets (%s). Frames past the sockets (the xdp engine) send and receive many times as much.", why)
		}
	case len(names) == 1 && names[0] == "xdp":
		a.add(KindEngines, nil, "XDP frames carried the packets, past the two hosts' own stacks: what their packet filters, queues and sockets would lose is not in here; --engine udp has it.")
	case len(names) == 1 && names[0] == "xdp+udp":
		a.add(KindEngines, nil, "XDP frames past the sender's own stack went into sockets of the receiver: what these lose is in here, what the sender's packet filter and queues would lose is not.")
	case len(names) == 1 && names[0] == "udp+xdp":
		a.add(KindEngines, nil, "Packets from sockets were received by an XDP program: what the receiver's packet filter and sockets would lose is not in here; --engine udp has it.")
	case len(names) > 1:
		var parts []string
		why, shared, seen := "", false, map[int]bool{}
		for _, name := range names {
			parts = append(parts, fmt.Sprintf("%s by %s", payloads(uses[name].sizes), name))
			why = cmp.Or(why, refused(uses[name].why))
			for n := range uses[name].sizes {
				shared = shared || seen[n]
				seen[n] = true
			}
		}
		if why != "" {
			why = " (" + why + ")"
		}
		what := "Not all sizes were carried alike: " + strings.Join(parts, ", ")
		if shared {
			what = "Not all trials were carried alike: some by " + say.And(names)
		}
		a.add(KindEngines, nil, "%s%s. Rates of different engines differ by what the hosts spend on a packet: compare those of one, or ask for --engine udp.", what, why)
	}
}

// refused is why sockets were taken, and at which end if it is of one; "" if that
// is not said.
func refused(reason string) string {
	var all []string
	for part := range strings.SplitSeq(reason, "; ") {
		node, why, found := strings.Cut(part, "udp sockets, because ")
		if !found || why == "they were asked for" {
			continue
		}
		if text := node + why; len(all) == 0 || !strings.HasSuffix(all[0], ": "+why) {
			all = append(all, text)
		} else {
			all[0] = why // the same at both ends
		}
	}
	return strings.Join(all, "; ")
}

func payloads(sizes map[int]bool) string {
	var words []string
	for _, n := range slices.Sorted(maps.Keys(sizes)) {
		words = append(words, fmt.Sprint(n))
	}
	return say.And(words) + " B"
}
