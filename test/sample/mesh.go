package sample

import (
	"math"
	"slices"
	"strings"
	"time"

	"pelt/model"
	"pelt/unit"
)

// Lost is what befell the packets of one host of a mesh to another: so many were lost at a layer of a host.
type Lost struct {
	Packets            uint64
	Layer, Host, Cause string
}

// Mesh has six hosts: one filters what comes to it, one reads slowly, a path loses one way, one host is gone.
func Mesh() model.Document {
	return MeshOf([]string{"fra-1", "fra-2", "ams-1", "lon-1", "nyc-1", "sgp-1"}, 1,
		func(from, to string, _ int, sent uint64) Lost {
			n := float64(sent) * (1 + 0.1*noise(len(from)+int(to[0])))
			switch {
			case to == "ams-1":
				return Lost{uint64(0.021 * n), model.LayerReceiverBuffer, to, "SOCKET_RCVBUFF"}
			case from == "nyc-1" && to == "fra-2":
				return Lost{uint64(0.006 * n), model.LayerNetwork, "", model.CauseElimination}
			}
			return Lost{}
		}, func(pair string, _ int) string {
			if strings.Contains(pair, "sgp-1") {
				return "sgp-1 does not answer"
			}
			return ""
		})
}

// MeshCycles is a mesh of six hosts over four hours: a path begins to lose, a host becomes far away, and one is gone.
func MeshCycles() model.Document {
	d := MeshOf([]string{"fra-1", "fra-2", "ams-1", "lon-1", "nyc-1", "sgp-1"}, 48,
		func(from, to string, cycle int, sent uint64) Lost {
			switch {
			case from == "lon-1" && to == "fra-1" && cycle >= 30:
				return Lost{uint64(40 + 5*noise(cycle)), model.LayerNetwork, "", model.CauseElimination}
			case noise(cycle*31+int(from[0])+2*int(to[0])+int(to[4])) > 0.97:
				return Lost{1, model.LayerNetwork, "", model.CauseElimination}
			}
			return Lost{}
		}, func(pair string, cycle int) string {
			if cycle >= 44 && strings.Contains(pair, "sgp-1") {
				return "sgp-1 does not answer"
			}
			return ""
		})
	for i := range d.Results {
		if r := &d.Results[i]; r.Repeat >= 20 && strings.Contains(r.Cell["pair"].Text, "nyc-1") {
			for j := range r.Flows {
				r.Flows[j].RoundTrip = quantiles(200, r.Flows[j].RoundTrip.P50+25e6)
			}
		}
	}
	return d
}

// MeshOf is a mesh of hosts: 10 s at 1 kpps for each pair in so many cycles, one every five minutes. A pair for
// which why has a text was not measured.
func MeshOf(hosts []string, cycles int, lose func(from, to string, cycle int, sent uint64) Lost,
	why func(pair string, cycle int) string) model.Document {
	d := Base("fleet:", []int{200}, 1, 10)
	var pairs []model.Value
	for i, a := range hosts {
		for _, b := range hosts[i+1:] {
			pairs = append(pairs, model.Word(a+model.PairSeparator+b))
		}
	}
	d.Plan.Command, d.Plan.Hosts, d.Plan.Design.Ordered = "mesh", hosts, true
	d.Plan.Factors = []model.Factor{{Knob: "pair", Levels: pairs}}
	d.Plan.Flows[0].Rate = unit.PacketRate(1000)
	down := d.Plan.Flows[0]
	down.Name, down.From, down.To = "down", down.To, down.From
	d.Plan.Flows = append(d.Plan.Flows, down)
	if cycles > 1 {
		d.Plan.AtOnce = true
	}
	host := d.Host[0]
	d.Host = nil
	for _, name := range hosts {
		host.Node, host.Name = name, name+".example.net"
		d.Host = append(d.Host, host)
	}
	for n := range cycles * len(pairs) {
		cycle, pair := n/len(pairs), pairs[n%len(pairs)]
		r := Result(200, cycle)
		r.Cell, r.Started = model.Cell{"pair": pair}, start().Add(time.Duration(cycle)*5*time.Minute)
		if text := why(pair.Text, cycle); text != "" {
			r.State, r.Why = model.Invalid, model.Reasons{{Code: model.PairUnmeasured, Of: fault(text)}}
		} else {
			a, b, _ := model.PairHosts(pair.Text)
			trip := (2 + 11*math.Abs(float64(slices.Index(hosts, a)-slices.Index(hosts, b)))) * 1e6 * (1 +
				0.02*noise(n))
			r.Flows = []model.FlowResult{meshFlow("up", trip,
				func(sent uint64) Lost { return lose(a, b, cycle, sent) }, a, b),
				meshFlow("down", trip, func(sent uint64) Lost { return lose(b, a, cycle, sent) }, a, b)}
		}
		d.Results = append(d.Results, r)
	}
	return d
}

func meshFlow(name string, trip float64, lose func(sent uint64) Lost, sender, receiver string) model.FlowResult {
	f := UDP(name, 200, 1000, 1000, 10, 0)
	l := lose(f.Attempted)
	f.Received, f.Lost, f.LossRatio = f.Attempted-l.Packets, l.Packets, float64(l.Packets)/float64(f.Attempted)
	f.ReceivePPS = float64(f.Received) / f.DurationS
	f.GoodputBPS = f.ReceivePPS * 8 * 200
	f.Ledger.Lost, f.Ledger.Unattributed = l.Packets, l.Packets
	switch l.Host {
	case sender:
		l.Host = model.Sender
	case receiver:
		l.Host = model.Receiver
	}
	if l.Packets > 0 && l.Layer != "" {
		Line(&f, l.Layer, l.Host, l.Cause, 1, "exact-seq")
	}
	f.RoundTrip, f.JitterNS = quantiles(200, trip), trip/200
	f.SenderCPU = model.CPU{ThreadRatio: 0.04, HostRatio: 0.02}
	f.ReceiverCPU = f.SenderCPU
	return f
}
