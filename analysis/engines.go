package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

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
			a.add(KindEngines, nil, "Sockets carried the packets, because %s. Frames past the sockets (the xdp engine) send and receive many times as much.", why)
		}
	case len(names) == 1 && names[0] == "xdp":
		a.add(KindEngines, nil, "XDP frames carried the packets, past the two hosts' own stacks: what their packet filters, queues and sockets would lose is not in here; --engine udp has it.")
	case len(names) > 1:
		var parts []string
		why := ""
		for _, name := range names {
			parts = append(parts, fmt.Sprintf("%s by %s", payloads(uses[name].sizes), name))
			why = cmp.Or(why, refused(uses[name].why))
		}
		if why != "" {
			why = " (" + why + ")"
		}
		a.add(KindEngines, nil, "Not all sizes were carried alike: %s%s. Rates of different engines differ by what the hosts spend on a packet; compare sizes of one, or ask for --engine udp.", strings.Join(parts, ", "), why)
	}
}

// refused is why sockets were taken, without the ends' names; "" if that is not said.
func refused(reason string) string {
	for part := range strings.SplitSeq(reason, "; ") {
		if _, why, found := strings.Cut(part, "udp sockets, because "); found && why != "they were asked for" {
			return why
		}
	}
	return ""
}

func payloads(sizes map[int]bool) string {
	var words []string
	for _, n := range slices.Sorted(maps.Keys(sizes)) {
		words = append(words, fmt.Sprint(n))
	}
	return and(words) + " B"
}
