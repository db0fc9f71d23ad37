package run

import (
	"math"
	"slices"

	"pelt/engine"
	"pelt/lab"
	"pelt/model"
)

// oneReceiver refuses what is measured to one receiver only where there are several; 0 is a path to one.
func oneReceiver(p model.Plan, receivers int) error {
	switch {
	case receivers == 0:
		return nil
	case p.Design.Search != nil:
		return refuse("target",
			"a star has many receivers, and a search is of a path to one; want another, as lab:direct")
	case p.Sends(model.TCP):
		return refuse("target",
			"a star has many receivers, and TCP is measured to one; want another path, as lab:direct")
	}
	return nil
}

// completion returns when a transfer was complete, by the best account of it; nil for a flow
// without a size.
func completion(f model.Flow, oneClock bool, sent engine.SendReport, in engine.ReceiveReport) *model.Completion {
	if f.Bytes == 0 || sent.TCP == nil || sent.TCP.Completion == nil {
		return nil
	}
	c := *sent.TCP.Completion
	c.Bytes, c.By = f.Bytes, model.ByAcknowledged
	if answer := in.TCP; f.HTTP && answer != nil && answer.Completion != nil && answer.Completion.Done {
		c.Done, c.Seconds, c.By = true, answer.Completion.Seconds, model.ByAnswer
	} else if took := float64(in.Tally.LastNanos-sent.BeginNanos) / 1e9; oneClock && !f.HTTP &&
		in.Tally.Bytes >= f.Bytes && took > 0 && took <= c.Seconds+1 {
		c.Done, c.Seconds, c.By = true, took, model.ByRead
	}
	return &c
}

// heldShare is the part of its busy time that TCP may be held by its windows before
// the figure is no longer its congestion control's; busyHost and fullLink the share of
// all cores, and of a link's rate, from which on they are full.
const (
	heldShare = 0.05
	heldLeast = 0.1 // s: every connection's windows are small at its begin
	busyHost  = 0.97
	fullLink  = 0.9
)

// transferDoubt says why a transfer that did not fill its slowest link does not show its
// congestion control: its windows limited it, or this machine was busy. ways are the slowest links of its path.
func transferDoubt(f model.FlowResult, asked model.Flow, ways [2]float64) model.Reasons {
	slowest := ways[0]
	if asked.From != model.Sender {
		slowest = ways[1]
	}
	if asked.InfoSeconds == 0 || f.TCP == nil || slowest == 0 || f.GoodputBPS >= fullLink*slowest {
		return nil
	}
	if held := f.TCP.RwndLimitedS + f.TCP.SndbufLimitedS; held > max(heldShare*f.TCP.BusyS, heldLeast) {
		return model.Reasons{{Code: model.TCPWindow, Flow: f.Name, Numbers: map[string]float64{
			"held_ratio": held / f.TCP.BusyS, "receive_window_s": f.TCP.RwndLimitedS,
			"send_buffer_s": f.TCP.SndbufLimitedS,
		}}}
	}
	if f.SenderCPU.HostRatio > busyHost {
		return model.Reasons{model.NewReason(model.HostBusy, "flow", f.Name, "busy_ratio", f.SenderCPU.HostRatio)}
	}
	return nil
}

// slowest is the least rate of a lab's links up and down in bit/s; 0 where none has one.
func (s *site) slowest() (least [2]float64) {
	if s.lab == nil {
		return least
	}
	ways, err := s.lab.Links()
	if err != nil {
		return least
	}
	var nodes []string
	for _, n := range s.lab.Nodes() {
		nodes = append(nodes, n.Name())
	}
	return slowestWays(ways, nodes)
}

// slowestWays is the same for the links of a path of nodes.
func slowestWays(ways []lab.LinkWay, nodes []string) (least [2]float64) {
	for _, w := range ways {
		way := &least[0]
		if slices.Index(nodes, w.From) > slices.Index(nodes, w.To) {
			way = &least[1]
		}
		if r := float64(w.Settings.Rate); r > 0 && (*way == 0 || r < *way) {
			*way = r
		}
	}
	return least
}

// tcpSeries are the series of a TCP sender, without its warm-up.
func tcpSeries(f model.Flow, t model.Timing, sent engine.SendReport) (list []model.Series) {
	for _, s := range sent.Series {
		before := int(math.Ceil(t.WarmupSeconds / s.StepSeconds))
		if s.Values = s.Values[min(before, len(s.Values)):]; len(s.Values) == 0 {
			continue
		}
		s.Flow, s.At, s.Core, s.StartSeconds = f.Name, f.From, nil, float64(before)*s.StepSeconds-t.WarmupSeconds
		list = append(list, s)
	}
	return list
}

// hostsOf returns the hosts for the document, with TCP settings only where transfers are
// compared.
func hostsOf(p model.Plan, hosts []model.Host) []model.Host {
	if !slices.ContainsFunc(p.Flows, func(f model.Flow) bool { return f.InfoSeconds > 0 }) {
		for i := range hosts {
			hosts[i].TCPSettings = nil
		}
	}
	return hosts
}
