package ledger

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"pelt/model"
)

// fault is one row of what faults made on purpose did on Linux 6.18: where the
// kernel let go of the packet, and which counters moved by one for each.
type fault struct {
	reason, function string
	at               string // namespace of the verdict: snd, rcv, "" unknown
	received         bool
	snd, rcv         string // counters that moved; ! before one that is read and did not
	errno            string // that send() returned, with IP_RECVERR
	socket           bool   // SO_MEMINFO drops moved
	unread           bool
	silent           bool   // the sender's next hop answers no lookup
	on, off          string // layer/cause by the watch, and without it: the same if it is "", none if it is -
}

// faults reads the table, a row each line: a name, and words for the fields.
var faults = sync.OnceValue(func() map[string]fault {
	text, err := os.ReadFile("testdata/faults.txt")
	if err != nil {
		panic(err)
	}
	all := map[string]fault{}
	for line := range strings.Lines(string(text)) {
		name, words, ok := strings.Cut(line, ": ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		var f fault
		strs := map[string]*string{"reason": &f.reason, "function": &f.function, "at": &f.at, "snd": &f.snd,
			"rcv": &f.rcv, "errno": &f.errno, "on": &f.on, "off": &f.off}
		flags := map[string]*bool{"received": &f.received, "socket": &f.socket, "unread": &f.unread,
			"silent": &f.silent}
		for _, word := range strings.Fields(words) {
			key, value, text := strings.Cut(word, "=")
			if text {
				*strs[key] = strings.NewReplacer(",", " ", "~", " ").Replace(value)
			} else {
				*flags[key] = true
			}
		}
		all[name] = f
	}
	return all
})

const faultLost, faultSent = 100, 1000

// input is a trial between two namespaces of one machine with that fault.
func (f fault) input(watch bool) Input {
	in := Input{
		Sender: "sender", Receiver: "receiver", Flow: "up", Planned: faultSent, Attempted: faultSent,
		Accepted: faultSent, Streams: []uint64{faultSent}, Received: faultSent - faultLost, MissingKnown: true,
		Missing: []model.Marks{marks(50, faultLost, 0)}, SocketKnown: true, DurationS: 1, Fragments: 1,
	}
	if f.errno != "" {
		in.SendErrors = map[string]uint64{f.errno: faultLost}
		in.Accepted -= faultLost
		in.Errnos, in.Refused = []string{f.errno}, []model.Marks{marks(50, faultLost, 0)}
	}
	if f.socket {
		in.SocketDrops = faultLost
	}
	if f.unread {
		in.Unread = faultLost
	}
	node := func(namespace uint64, moved, zero string) *model.Observation {
		return &model.Observation{Boot: "one", Namespace: namespace, Mode: model.DropsOff,
			Counters: append(counters(zero, 0), counters(moved, faultLost)...)}
	}
	snd := node(1, f.snd, "softnet.dropped")
	snd.Routes = []model.Route{{Flow: "up", Kind: model.RouteUsable, Interface: "eth0", NoAnswer: f.silent}}
	rcv := node(2, f.rcv, "softnet.dropped Udp.NoPorts Udp.InErrors Udp.MemErrors")
	snd.Counters = append(snd.Counters, f.sent()...)
	rcv.Counters = append(rcv.Counters, f.came()...)
	if watch && f.reason != "" {
		namespaces := map[string]uint64{"snd": 1, "rcv": 2, "mid": 3}
		d := &model.Drops{
			Sites: []model.Site{{Reason: f.reason, Function: f.function, Namespace: namespaces[f.at],
				Interface: "veth7", Received: f.received}},
			Flows: []model.FlowDrops{{Flow: "up", Streams: []model.Marks{marks(50, faultLost, 0)},
				Counts: []model.SiteCount{{Site: 0, Packets: faultLost}}}},
		}
		snd.Mode, rcv.Mode, snd.Drops, rcv.Drops = model.DropsSeq, model.DropsSeq, d, d
	}
	in.Nodes = []Node{{Name: "sender", Observation: snd, Out: []string{"eth0"}},
		{Name: "receiver", Observation: rcv, In: []string{"eth1"}}}
	return in
}

// sent is what the sender counted of packets that got past each place.
func (f fault) sent() []model.Counter {
	udp, device := uint64(faultSent), uint64(faultSent)
	if f.errno != "" || strings.Contains(f.snd, "SndbufErrors") {
		udp -= faultLost
	}
	if layer, _, _ := strings.Cut(f.on, "/"); layerPlace(layer) < layerPlace(model.LayerNetwork) ||
		strings.Contains(f.snd, "tx_dropped") || strings.Contains(f.snd, "tx_packets") {
		device -= faultLost
	}
	return append(counters("Udp.OutDatagrams", udp), counters("dev.eth0.tx_packets", device)...)
}

// came is what the receiver counted of them.
func (f fault) came() (list []model.Counter) {
	device, ip, udp := uint64(faultSent-faultLost), uint64(faultSent-faultLost), uint64(faultSent-faultLost)
	switch layer, _, _ := strings.Cut(f.on, "/"); layer {
	case model.LayerReceiverBuffer, model.LayerReceiverMemory, model.LayerReceiverUDP, model.LayerApplication:
		device, ip, udp = faultSent, faultSent, faultSent
	case model.LayerReceiverFilter, model.LayerReceiverIP:
		device, ip = faultSent, faultSent
	case model.LayerReceiverTC, model.LayerReceiverXDP:
		device = faultSent
	}
	if strings.Contains(f.rcv, "rx_otherhost") {
		ip -= faultLost
	}
	for name, n := range map[string]uint64{"dev.eth1.rx_packets": device, "Ip.InReceives": ip, "Ip.InDelivers": udp,
		"Udp.InDatagrams": faultSent - faultLost} {
		list = append(list, counters(name, n)...)
	}
	return list
}

// counters makes counters of names in one line that moved by n, those with a !
// by nothing.
func counters(names string, n uint64) (list []model.Counter) {
	for _, name := range strings.Fields(names) {
		c := model.Counter{Name: name, Scope: "namespace", Unit: "skb", Before: 5, After: 5 + n, Whole: n, Measure: n}
		if zero, ok := strings.CutPrefix(name, "!"); ok {
			c.Name, c.After, c.Whole, c.Measure = zero, 5, 0, 0
		}
		switch kind, _, _ := strings.Cut(c.Name, "."); kind {
		case "dev", "qdisc", "ethtool":
			c.Scope = "device"
		case "softnet", "arp_cache":
			c.Scope = "host"
		}
		list = append(list, c)
	}
	return list
}

func TestEveryFaultIsNamed(t *testing.T) {
	for name, f := range faults() {
		for watch, want := range map[bool]string{true: f.on, false: cmp.Or(f.off, f.on)} {
			t.Run(fmt.Sprintf("%s, watched %v", name, watch), func(t *testing.T) {
				in := f.input(watch)
				l := Balance(in)
				agree(t, in, l)
				if want == "-" { // no counter tells
					if len(l.Lines) != 0 || l.Unattributed != faultLost {
						t.Fatalf("got %s, want all unattributed", inWords(l))
					}
					return
				}
				if len(l.Lines) != 1 || l.Unattributed != 0 || l.Lines[0].Layer+"/"+l.Lines[0].Cause != want {
					t.Fatalf("got %s, want one line %s", inWords(l), want)
				}
				line := l.Lines[0]
				if exact := line.Confidence == ExactSeq; watch &&
					(!exact || len(line.Sequences) != 1 ||
						line.Sequences[0] != (model.Span{From: 50, Count: faultLost})) {
					t.Errorf("got %+v, want exact-seq with its sequences", line)
				}
				if watch && f.reason != "" &&
					(line.Function != f.function || line.Interface != "veth7") {
					t.Errorf("got function %q at %q, want %q", line.Function, line.Interface, f.function)
				}
				host := map[string]string{"send": "sender", "rece": "receiver", "appl": "receiver",
					"netw": "another namespace"}[line.Layer[:4]]
				if line.Cause == model.CauseElimination {
					host = "" // somewhere between
				}
				if line.Host != host {
					t.Errorf("got host %q, want %q", line.Host, host)
				}
				for _, e := range line.Evidence {
					if e.Role == "contradicts" || e.Excess != 0 {
						t.Errorf("evidence %+v speaks against a true line", e)
					}
				}
				sockets := false
				for _, c := range l.Checks {
					if sockets = sockets || c.Law == "socket"; !c.Held {
						t.Errorf("check %+v", c)
					}
				}
				if watch && f.reason != "" && in.SocketKnown && !sockets { // they dropped more than the verdicts tell
					t.Errorf("the sockets are not checked: %+v", l.Checks)
				}
			})
		}
	}
}
