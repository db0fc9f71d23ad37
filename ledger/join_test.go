package ledger

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pelt/model"
)

// sequences makes a list of marks from a map.
func sequences(m map[uint64]uint16) model.Marks {
	var w model.MarksWriter
	for _, s := range slices.Sorted(maps.Keys(m)) {
		w.Add(s, 1, m[s])
	}
	return w.Marks()
}

// someSequences draws sequences below n, each with a mark below marks.
func someSequences(t *rapid.T, n uint64, marks int, label string) map[uint64]uint16 {
	if marks == 0 {
		return nil
	}
	return rapid.MapOfN(rapid.Uint64Range(0, n-1), rapid.Uint16Range(0, uint16(marks-1)), 0, int(n)).Draw(t, label)
}

var drawnSites = []model.Site{
	{Reason: "QDISC_DROP", Function: "__dev_queue_xmit", Namespace: 1},
	{Reason: "NETFILTER_DROP", Function: "nft_do_chain", Namespace: 2, Received: true},
	{Reason: "SOCKET_RCVBUFF", Function: "udp_queue_rcv_one_skb", Namespace: 2, Received: true},
	{Reason: "NETFILTER_DROP", Function: "nft_do_chain", Namespace: 3, Received: true},
	{Reason: "NOT_SPECIFIED", Function: "veth_xmit", Namespace: 2},
	{Reason: "PACKET_SOCK_ERROR", Function: "packet_rcv", Namespace: 2, Received: true},
}

// Each exact line holds just the sequences that a look at every single one finds.
func TestExactLinesMatchEverySequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const attempted = 60
		errnos := []string{"EPERM", "ENOBUFS"}
		streams := rapid.IntRange(1, 3).Draw(t, "streams")
		in := Input{Sender: "sender", Receiver: "receiver", Flow: "up", MissingKnown: true, Errnos: errnos,
			SendErrors: map[string]uint64{}, Segments: 1, DurationS: 1}
		var drops [2]*model.Drops
		for i := range drops {
			drops[i] = &model.Drops{Sites: slices.Clone(drawnSites), Flows: []model.FlowDrops{{Flow: "up"}}}
		}
		oracle := map[string]uint64{}
		for s := range streams {
			name := func(what string) string { return fmt.Sprint(what, s) }
			missing := someSequences(t, attempted, 1, name("missing"))
			refused := someSequences(t, attempted, len(errnos), name("refused"))
			maps.DeleteFunc(refused, func(q uint64, _ uint16) bool { _, m := missing[q]; return !m })
			verdicts := [2]map[uint64]uint16{}
			for i := range verdicts {
				verdicts[i] = someSequences(t, attempted, len(drawnSites), name("verdicts"))
				drops[i].Flows[0].Streams = append(drops[i].Flows[0].Streams, sequences(verdicts[i]))
			}
			in.Streams = append(in.Streams, attempted)
			in.Attempted += attempted
			in.Received += attempted - uint64(len(missing))
			in.Missing, in.Refused = append(in.Missing, sequences(missing)), append(in.Refused, sequences(refused))
			for _, e := range refused {
				in.SendErrors[errnos[e]]++
			}
			for q := range missing {
				site := -1
				best := -1
				for _, v := range verdicts {
					mark, ok := v[q]
					if !ok || drawnSites[mark].Reason == "PACKET_SOCK_ERROR" {
						continue
					}
					layer, _ := Classify(drawnSites[mark].Reason, drawnSites[mark].Function,
						sideOf(drawnSites[mark].Namespace), drawnSites[mark].Received)
					if r := layerPlace(layer); r > best {
						best, site = r, int(mark)
					}
				}
				errno, isRefused := refused[q]
				switch {
				case isRefused && errnos[errno] == "EPERM":
					oracle["EPERM"]++
				case site >= 0 && drawnSites[site].Namespace != 3:
					oracle[fmt.Sprint(drawnSites[site].Reason, drawnSites[site].Namespace)]++
				case site >= 0:
					oracle["elsewhere"]++
				case isRefused:
					oracle["ENOBUFS"]++
				}
			}
		}
		in.Accepted = in.Attempted - in.SendErrors["EPERM"] - in.SendErrors["ENOBUFS"]
		for i, name := range []string{"sender", "receiver"} {
			in.Nodes = append(in.Nodes, Node{Name: name,
				Observation: &model.Observation{Boot: "one", Namespace: uint64(i + 1), Mode: model.DropsSeq,
					Drops: drops[i]}})
		}
		l := Balance(in)
		agree(t, in, l)
		got := map[string]uint64{}
		for _, x := range l.Lines {
			switch {
			case x.Cause == "EPERM", x.Cause == "ENOBUFS":
				got[x.Cause] += x.Packets
				continue
			case x.Layer == model.LayerNetwork:
				got["elsewhere"] += x.Packets
			case x.Cause == "ring-full":
				got["NOT_SPECIFIED2"] += x.Packets
			default:
				got[x.Cause+map[bool]string{true: "1", false: "2"}[x.Host == "sender"]] += x.Packets
			}
			if x.Confidence != ExactSeq {
				t.Fatalf("%s/%s is %s", x.Layer, x.Cause, x.Confidence)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(oracle) {
			t.Fatalf("got %v, want %v\n%s", got, oracle, inWords(l))
		}
	})
}

func sideOf(namespace uint64) Side {
	return map[uint64]Side{1: SideSender, 2: SideReceiver, 3: SideOther}[namespace]
}

// twoHosts is a trial between two kernels that lost the first n of 1000 packets.
func twoHosts(n uint64) Input {
	in := Input{Sender: "sender", Receiver: "receiver", Flow: "up", Attempted: 1000, Accepted: 1000,
		Received: 1000 - n, Streams: []uint64{1000},
		Missing: []model.Marks{marks(0, n, 0)}, MissingKnown: true, DurationS: 1}
	for i, name := range []string{"sender", "receiver"} {
		in.Nodes = append(in.Nodes, Node{Name: name,
			Observation: &model.Observation{Boot: fmt.Sprint(i), Namespace: 1, Mode: model.DropsSeq,
				Drops: &model.Drops{}}})
	}
	return in
}

// A host that names as many places as it may, all of them with packets, costs
// little more than one with few.
func TestVeryManyPlaces(t *testing.T) {
	in := twoHosts(100)
	d := &model.Drops{Flows: []model.FlowDrops{{Flow: "up"}}}
	for i := range 4096 { // as many as an account may name
		d.Sites = append(d.Sites, model.Site{Reason: "FRAG_REASM_TIMEOUT", Offset: uint64(i), Namespace: 1,
			Received: true})
		d.Flows[0].Counts = append(d.Flows[0].Counts, model.SiteCount{Site: i, Packets: 1, Fragments: 1})
	}
	in.Fragments, in.Nodes[1].Observation.Drops, in.Nodes[1].Observation.Mode = 2, d, model.DropsCount
	l := Balance(in)
	agree(t, in, l)
	if len(l.Lines) != 1 || l.Unattributed != 0 {
		t.Errorf("got %s", inWords(l))
	}
}
