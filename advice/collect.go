package advice

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"pelt/model"
)

// Ask says of which lines advice is wanted, and what is known of this host.
type Ask struct {
	RatePPS  float64 // to size settings for; 0: the rate of each flow
	Role     string  // sender, receiver or router; "" all
	Device   string  // interface of settings that are one's; "" all
	This     model.Host
	Knobs    []model.HostSetting // of this host, as they are now
	CanApply func(string) bool   // a knob that can be set on this host; nil: none
	HostWide func(string) bool   // ... and holds for all its namespaces; nil: none
	// Addresses are those of this process's network namespace, where settings are read and set; none: not known.
	Addresses []netip.Addr
}

// roleOf is what a node of a line does on a path.
func roleOf(node string) string {
	switch node {
	case model.Sender:
		return "sender"
	case model.Receiver, "receivers":
		return "receiver"
	}
	return "router"
}

// Here reports which nodes of a run are on this host: those of its boot, or, after it
// started again, of its name, unless several hosts of the run have that. All nodes of a
// lab are on the host of its ends.
func Here(doc model.Document, this model.Host) []string {
	same := func(h model.Host) bool { return h.Boot != "" && h.Boot == this.Boot }
	if !slices.ContainsFunc(doc.Host, same) {
		alike := func(h model.Host) bool {
			return h.Name != "" && h.Name == this.Name && h.OS == this.OS && h.CPU == this.CPU
		}
		boots := map[string]bool{}
		for _, h := range doc.Host {
			if alike(h) {
				boots[h.Boot] = true
			}
		}
		if same = alike; len(boots) > 1 {
			return nil
		}
	}
	var list []string
	for _, h := range doc.Host {
		if same(h) {
			list = append(list, h.Node)
		}
	}
	if doc.Lab != nil && len(list) > 0 {
		for _, n := range doc.Lab.Nodes {
			if !slices.Contains(list, n) {
				list = append(list, n)
			}
		}
	}
	return list
}

// apart reports whether a node of this host has a network namespace that is not this process's: each node of a lab, and
// one whose address is none of this namespace. Loopback addresses are in each.
func (ask Ask) apart(doc model.Document, node string) bool {
	return doc.Lab != nil || len(ask.Addresses) > 0 && slices.ContainsFunc(doc.Host, func(h model.Host) bool {
		a, err := netip.ParseAddr(h.Address)
		return err == nil && h.Node == node && h.Boot == ask.This.Boot && !a.IsLoopback() &&
			!slices.Contains(ask.Addresses, a.Unmap().WithZone(""))
	})
}

// Collect gathers the advice of all valid trials of a run, one for each host and knob, the one for the most packets
// first, and last what is not the limit where nothing is proposed. Of several values it takes the largest. Settings
// of this host are judged as they are now; those of another as they were in the run.
func Collect(doc model.Document, ask Ask) []model.Advised {
	here := Here(doc, ask.This)
	var list []model.Advised
	for _, r := range doc.Results {
		if r.State != model.Valid {
			continue
		}
		for _, f := range r.Flows {
			// attempted packets are the flow's, of which several lines may call for one setting
			counted := map[int]bool{}
			for _, line := range f.Ledger.Lines {
				for _, a := range ask.ofLine(doc, f, line, slices.Contains(here, line.Host)) {
					i := slices.IndexFunc(list, func(o model.Advised) bool {
						return o.Host == a.Host && o.Knob == a.Knob && o.Proposes() == a.Proposes()
					})
					if i < 0 {
						i, list = len(list), append(list, a)
					}
					a.Packets, a.Attempted = list[i].Packets+line.Packets, list[i].Attempted
					if !counted[i] {
						a.Attempted += f.Attempted
					}
					if counted[i] = true; !Larger(a.Value, list[i].Value) {
						a.Advice, a.Apply = list[i].Advice, list[i].Apply
						a.Layer, a.Cause = list[i].Layer, list[i].Cause
					}
					list[i] = a
				}
			}
		}
	}
	proposed := slices.DeleteFunc(slices.Clone(list), func(a model.Advised) bool { return !a.Proposes() })
	list = slices.DeleteFunc(list, func(a model.Advised) bool { // another trial or setting may yet help there
		return a.Proposes() || slices.ContainsFunc(proposed, func(o model.Advised) bool {
			return o.Host == a.Host && o.Layer == a.Layer && o.Cause == a.Cause
		})
	})
	most := func(a, b model.Advised) int { return cmp.Compare(b.Packets, a.Packets) }
	slices.SortStableFunc(proposed, most)
	slices.SortStableFunc(list, most)
	return append(proposed, list...)
}

// ofLine is the wanted advice for one line, without the packets.
func (ask Ask) ofLine(doc model.Document, f model.FlowResult, line model.Line, ours bool) (list []model.Advised) {
	role, apart := roleOf(line.Host), ours && ask.apart(doc, line.Host)
	if ask.Role != "" && ask.Role != role {
		return nil
	}
	for _, s := range ask.of(doc, f, line, ours) {
		if dev := deviceOf(s.Knob); ask.Device != "" && dev != "" && dev != ask.Device {
			continue
		}
		a := model.Advised{Advice: s, Role: role, Here: ours, Layer: line.Layer, Cause: line.Cause}
		a.Apply = ours && a.Proposes() && ask.CanApply != nil && ask.CanApply(a.Knob) &&
			(!apart || ask.hostWide(a.Knob))
		switch {
		case doc.Lab != nil && !a.Apply && a.Knob != bufferKnob:
			a.Command, a.Undo = "", "" // on this host they would change its own interface of that name
		case doc.Lab == nil && apart && a.Knob != bufferKnob && !ask.hostWide(a.Knob):
			a.Here = false
			a.Note = append(slices.Clip(a.Note), model.Reason{Code: model.NoteNamespace, Node: line.Host})
		}
		list = append(list, a)
	}
	return list
}

// of makes the advice for one line anew, where enough is known, or takes that of the run.
func (ask Ask) of(doc model.Document, f model.FlowResult, line model.Line, ours bool) []model.Advice {
	c := ContextOf(&f)
	if ask.RatePPS > 0 {
		c.RatePPS = ask.RatePPS
	}
	apart := ask.apart(doc, line.Host)
	for _, a := range line.Advice {
		if a.Knob == bufferKnob && c.BufferBytes == 0 {
			if n, ok := parse(a.Present); ok {
				c.BufferBytes = int(min(n, 1<<31-1))
			}
		}
		if !ours || apart && !ask.hostWide(a.Knob) {
			c.Knobs = append(c.Knobs, model.HostSetting{Name: a.Knob, Value: a.Present})
		}
	}
	if ours {
		for _, k := range ask.Knobs {
			if !apart || ask.hostWide(k.Name) || k.Name == "page_size_bytes" {
				c.Knobs = append(c.Knobs, k)
			}
		}
	}
	anew := For(line, c)
	for _, a := range line.Advice {
		own := apart && !ask.hostWide(a.Knob) // of a node whose settings are gone
		joined := len(line.Evidence) == 0     // of many receivers: each had its own, which is not kept
		again := slices.ContainsFunc(anew, func(n model.Advice) bool { return n.Knob == a.Knob })
		if ours && !own && !joined || again {
			continue
		}
		if ours && !own && ask.made(a) {
			continue
		}
		if ask.RatePPS > 0 {
			a.Note = append(slices.Clip(a.Note), model.Reason{Code: model.NoteOldRate})
		}
		anew = append(anew, a)
	}
	return anew
}

// made reports whether this host's setting already is what was advised, or more.
func (ask Ask) made(a model.Advice) bool {
	return slices.ContainsFunc(ask.Knobs, func(k model.HostSetting) bool {
		return k.Name == a.Knob && k.Value != a.Present && (k.Value == a.Value || Larger(k.Value, a.Value))
	})
}

func (ask Ask) hostWide(knob string) bool { return ask.HostWide != nil && ask.HostWide(knob) }

// bufferKnob is the receive buffer of a program's socket, which no setting of a host is.
const bufferKnob = "socket.receive_buffer"

// deviceOf is the interface whose setting a knob is, "" for none: eth0 of eth0.rx_ring.
func deviceOf(knob string) string {
	if strings.HasPrefix(knob, "net.") || strings.HasPrefix(knob, "socket.") || strings.HasPrefix(knob, "cpu.") {
		for _, before := range []string{"net.ipv4.conf.", "net.ipv4.neigh.", "net.ipv6.neigh."} {
			if rest, ok := strings.CutPrefix(knob, before); ok {
				dev, _, _ := strings.Cut(rest, ".")
				return strings.ReplaceAll(dev, "/", ".")
			}
		}
		return ""
	}
	if i := strings.LastIndexByte(knob, '.'); i > 0 {
		return knob[:i]
	}
	return ""
}

// Larger compares values by their first number.
func Larger(a, b string) bool {
	x, _ := parse(first(a))
	y, _ := parse(first(b))
	return x > y
}

func first(s string) string {
	s, _, _ = strings.Cut(s, " ")
	return s
}
