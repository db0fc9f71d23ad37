package ledger

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pelt/model"
	"pelt/test/golden"
)

// unwatched takes the verdicts of all nodes away.
func unwatched(in *Input) {
	for _, n := range in.Nodes {
		n.Observation.Mode, n.Observation.Drops = model.DropsOff, nil
	}
}

// oneKernel has both ends on one kernel.
func oneKernel(in *Input) {
	for i, n := range in.Nodes {
		n.Observation.Boot, n.Observation.Namespace = "one", uint64(i+1)
	}
}

// add adds counters that moved by n.
func add(n *Node, moved uint64, names string) {
	n.Observation.Counters = append(n.Observation.Counters, counters(names, moved)...)
}

// devices gives the ends devices that sent and received so many.
func devices(in *Input, sent, received uint64) {
	for i := range in.Nodes {
		in.Nodes[i].In, in.Nodes[i].Out = []string{"eth0"}, []string{"eth0"}
	}
	add(&in.Nodes[0], sent, "dev.eth0.tx_packets")
	add(&in.Nodes[1], received, "dev.eth0.rx_packets")
}

// router puts one between the ends, which nobody watches.
func router(in *Input) *Node {
	unwatched(in)
	in.Nodes = []Node{in.Nodes[0], {Name: "router", In: []string{"lan"}, Out: []string{"wan"},
		Observation: &model.Observation{Boot: "router", Mode: model.DropsOff}}, in.Nodes[1]}
	return &in.Nodes[1]
}

// TestAccounts: each line of a file is what two hosts tell of 1000 packets, of which the first 100 are lost: changes of
// that, with ; between them. Below stands what the account makes of it, and checks but those that each account has,
// unless they do not hold; and of a fault that was made on purpose where the kernel let go of the packets.
func TestAccounts(t *testing.T) {
	for _, file := range []string{"accounts", "faults"} {
		places := map[string]model.Site{}
		golden.Table(t, "testdata/"+file+".txt", func(line string) string {
			if definition, is := strings.CutPrefix(line, "site "); is {
				name, text, _ := strings.Cut(definition, " ")
				site := model.Site{Namespace: 1}
				read(t, text, &site)
				places[name] = site
				return ""
			}
			in := twoHosts(100)
			for change := range strings.SplitSeq(line, "; ") {
				applies(t, &in, change, places)
			}
			l := Balance(in)
			agree(t, in, l)
			text := inWords(l) + "\n"
			ofEach := []string{"balance", "attempted", "received", "planned", "missing"}
			for _, check := range l.Checks {
				if !check.Held || !slices.Contains(ofEach, check.Name) {
					text += fmt.Sprintf("%s, held %v: %s\n", check.Name, check.Held, Law(check))
				}
			}
			if file == "faults" {
				text += ofFault(l)
			}
			return text
		})
	}
}

// ofFault is what an account says of a fault beside its causes: where the kernel let go of which packets, and what
// contradicts that.
func ofFault(l model.Ledger) (text string) {
	for _, x := range l.Lines {
		if len(x.Sequences) > 0 {
			text += fmt.Sprintf("by %s at %s: %v\n", x.Function, x.Interface, x.Sequences)
		}
		for _, e := range x.Evidence {
			if e.Role == "contradicts" {
				text += fmt.Sprintf("%s contradicts\n", e.Counter)
			}
		}
	}
	return text
}

// applies makes one change of an input. JSON stands for fields of it, or of what a host observed behind its name.
func applies(t *testing.T, in *Input, change string, places map[string]model.Site) {
	words := strings.Fields(change)
	number := func(text string) uint64 {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", change, err)
		}
		return n
	}
	switch rest := strings.Join(words[1:], " "); words[0] {
	case "two": // hosts, as they are
	case "fault": // between two namespaces of a machine
		oneKernel(in)
		in.Planned, in.SocketKnown, in.Fragments = 1000, true, 1
		in.Missing = []model.Marks{marks(50, 100, 0)}
		in.Nodes[0].Out, in.Nodes[1].In = []string{"eth0"}, []string{"eth1"}
		in.Nodes[0].Observation.Routes = []model.Route{{Flow: "up", Kind: model.RouteUsable, Interface: "eth0"}}
		add(&in.Nodes[0], 0, "softnet.dropped")
		add(&in.Nodes[1], 0, "softnet.dropped Udp.NoPorts Udp.InErrors Udp.MemErrors")
		add(&in.Nodes[1], 900, "Udp.InDatagrams")
	case "counted": // by the sender's UDP and device, and by the receiver's device and IP as come and as delivered
		add(&in.Nodes[0], number(words[1]), "Udp.OutDatagrams")
		add(&in.Nodes[0], number(words[2]), "dev.eth0.tx_packets")
		add(&in.Nodes[1], number(words[3]), "dev.eth1.rx_packets")
		add(&in.Nodes[1], number(words[4]), "Ip.InReceives")
		add(&in.Nodes[1], number(words[5]), "Ip.InDelivers")
	case "ends":
		*in = Input{Sender: "a", Receiver: "b"}
	case "meeting": // whose nine packets one way were lost; nothing was measured after it
		in.Way, in.Attempted, in.Accepted, in.Received = model.WayAsks, 9, 9, 0
		in.Streams, in.Missing, in.MissingKnown = nil, nil, false
	case "frames": // sent past the sockets, and taken off the device before IP: devices count the same packets
		*in = Input{Sender: "sender", Receiver: "receiver", Flow: "up", Planned: 100, Attempted: 100, Accepted: 60,
			DurationS: 1, PastSockets: true, Received: 60, TakenOff: 60, SocketKnown: true, Nodes: in.Nodes}
		unwatched(in)
		in.Nodes[0].Observation.Boot, in.Nodes[0].Out = "one", []string{"eth0"}
		in.Nodes[1].Observation.Namespace, in.Nodes[1].In = 2, []string{"eth0"}
		add(&in.Nodes[0], 60, "dev.eth0.tx_packets")
		add(&in.Nodes[0], 40, "dev.eth0.tx_dropped")
		add(&in.Nodes[1], 60, "dev.eth0.rx_packets ethtool.eth0.rx_queue_0_xdp_drops")
		add(&in.Nodes[1], 0, "Ip.InReceives")
	case "unwatched":
		unwatched(in)
	case "one-kernel":
		oneKernel(in)
	case "router":
		if len(words) == 1 {
			router(in)
			return
		}
		toldBy(t, &in.Nodes[1], words[1:], number, places)
	case "through": // a router
		in.Nodes[0].Out, in.Nodes[2].In = []string{"eth0"}, []string{"eth0"}
		add(&in.Nodes[0], number(words[1]), "dev.eth0.tx_packets")
		add(&in.Nodes[1], number(words[1]), "dev.lan.rx_packets")
		add(&in.Nodes[1], number(words[2]), "dev.wan.tx_packets")
		add(&in.Nodes[2], number(words[2]), "dev.eth0.rx_packets")
	case "devices":
		devices(in, number(words[1]), number(words[2]))
	case "tcp":
		in.TCP, in.Missing, in.MissingKnown = true, nil, false
	case "missing":
		in.Missing = listed(t, rest, number)
	case "refused":
		in.Refused = listed(t, rest, number)
	case "sender":
		toldBy(t, &in.Nodes[0], words[1:], number, places)
	case "receiver":
		toldBy(t, &in.Nodes[len(in.Nodes)-1], words[1:], number, places)
	default:
		read(t, change, in)
	}
}

// toldBy changes what a host tells: none is nothing at all; +N that counters moved by so many; ways its interfaces; drops
// the verdicts, by place and in all streams.
func toldBy(t *testing.T, n *Node, words []string, number func(string) uint64, places map[string]model.Site) {
	counter := func(name string) *model.Counter {
		i := slices.IndexFunc(n.Observation.Counters, func(c model.Counter) bool { return c.Name == name })
		return &n.Observation.Counters[i]
	}
	switch what := words[0]; {
	case what == "none":
		n.Observation = nil
	case what[0] == '+':
		add(n, number(what[1:]), strings.Join(words[1:], " "))
	case what == "idle":
		counter(words[1]).IdleHz = float64(number(words[2]))
	case what == "measured":
		counter(words[1]).Measure = number(words[2])
	case what == "ways":
		for i, names := range []*[]string{&n.In, &n.Out} {
			if words[1+i] != "-" {
				*names = []string{words[1+i]}
			}
		}
	case what == "knob":
		n.Observation.Knobs = append(n.Observation.Knobs, model.HostSetting{Name: words[1],
			Value: strings.Join(words[2:], " ")})
	case what == "drops":
		counts, lists, _ := strings.Cut(strings.Join(words[1:], " "), ":")
		flow := model.FlowDrops{Flow: "up", Streams: listed(t, lists, number)}
		var sites []model.Site
		for _, word := range strings.Fields(counts) {
			name, count, counted := strings.Cut(word, "=")
			c := model.SiteCount{Site: len(sites)}
			if index, is := strings.CutPrefix(name, "#"); is {
				c.Site, _ = strconv.Atoi(index)
			} else {
				name, namespace, elsewhere := strings.Cut(name, "@")
				site, known := places[name]
				if !known {
					t.Fatalf("no place is named %s", name)
				}
				if elsewhere {
					site.Namespace = number(namespace)
				}
				sites = append(sites, site)
			}
			if !counted {
				continue
			}
			for i, of := range siteCounts.FindStringSubmatch(count) {
				if i > 0 && of != "" {
					*[]*uint64{&c.Packets, &c.Unreadable, &c.Warmup, &c.Fragments}[i-1] = number(of)
				}
			}
			flow.Counts = append(flow.Counts, c)
		}
		n.Observation.Drops = &model.Drops{Sites: sites, Flows: []model.FlowDrops{flow}}
	default:
		read(t, strings.Join(words, " "), n.Observation)
	}
}

// siteCounts are packets, and of them unreadable ones; then those of the warm-up, and fragments.
var siteCounts = regexp.MustCompile(`^(\d+)(?:u(\d+))?(?:w(\d+))?(?:f(\d+))?$`)

// listed reads a list of FROM+COUNT@MARK for each stream, with / between them. It may lie: cut takes bytes off its end,
// packets boasts.
func listed(t *testing.T, text string, number func(string) uint64) (lists []model.Marks) {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	for stream := range strings.SplitSeq(text, "/") {
		var w model.MarksWriter
		var lies []string
		for _, word := range strings.Fields(stream) {
			from, of, is := strings.Cut(word, "+")
			if !is {
				lies = append(lies, word)
				continue
			}
			count, mark, _ := strings.Cut(of, "@")
			w.Add(number(from), number(count), uint16(number(cmp.Or(mark, "0"))))
		}
		m := w.Marks()
		for _, lie := range lies {
			what, value, _ := strings.Cut(lie, "=")
			switch n := number(value); what {
			case "cut":
				m.Data = m.Data[:len(m.Data)-int(n)]
			case "packets":
				m.Packets = n
			case "unlisted":
				m.Unlisted = n
			default:
				t.Fatalf("%s: a list has no %s", text, what)
			}
		}
		lists = append(lists, m)
	}
	return lists
}

// read reads known fields from JSON.
func read(t *testing.T, text string, into any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}
