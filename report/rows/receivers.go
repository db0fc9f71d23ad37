package rows

import (
	"math"

	"pelt/model"
)

// Receivers are how the receivers of a flow to many compare: middles over
// repeats of the least, the middle and the largest goodput among them.
type Receivers struct {
	Count               int // the most of any trial
	Least, Middle, Most Stat
}

// Among is the spread of goodput over the receivers of one flow; N is 0 if it
// went to one.
func Among(f model.FlowResult) Stat {
	var v []float64
	for _, r := range f.Receivers {
		v = append(v, r.GoodputBPS)
	}
	return stat(v)
}

// spreadOver compares the receivers of a row's trials; nil if each had one.
func spreadOver(ms []member) *Receivers {
	var r Receivers
	var least, middle, most []float64
	for _, m := range ms {
		s := Among(*m.flow)
		if s.N == 0 || !Measured(*m.flow) {
			continue
		}
		r.Count = max(r.Count, len(m.flow.Receivers))
		least, middle, most = append(least, s.Min), append(middle, s.Median), append(most, s.Max)
	}
	if r.Count == 0 {
		return nil
	}
	r.Least, r.Middle, r.Most = stat(least), stat(middle), stat(most)
	return &r
}

// Share is what one receiver got in all trials of a row.
type Share struct {
	Node                string
	Attempted, Received uint64
	GoodputBPS          Stat
}

// LossRatio is the share lost on the way to this receiver; ok is false when
// nothing was sent to it.
func (s Share) LossRatio() (ratio float64, ok bool) {
	if s.Attempted == 0 {
		return 0, false
	}
	return float64(s.Attempted-min(s.Received, s.Attempted)) / float64(s.Attempted), true
}

// Shares are the receivers of a row's trials, in the order in which the trials name them.
func (r Row) Shares(doc model.Document) []Share {
	var out []Share
	at := map[string]int{}
	goodput := map[string][]float64{}
	for _, i := range r.Trials {
		for _, f := range doc.Results[i].Flows {
			if f.Name != r.Flow {
				continue
			}
			for _, x := range f.Receivers {
				n, known := at[x.Node]
				if !known {
					n = len(out)
					at[x.Node] = n
					out = append(out, Share{Node: x.Node})
				}
				out[n].Attempted += x.Attempted
				out[n].Received += x.Received
				goodput[x.Node] = append(goodput[x.Node], x.GoodputBPS)
			}
		}
	}
	for i := range out {
		out[i].GoodputBPS = stat(goodput[out[i].Node])
	}
	return out
}

// PacketsEach is how many packets a trial sent to each receiver, the middle of
// the row's trials.
func packetsEach(ms []member) Stat {
	var v []float64
	for _, m := range ms {
		if Measured(*m.flow) {
			v = append(v, math.Round(float64(m.flow.Attempted)/float64(max(1, len(m.flow.Receivers)))))
		}
	}
	return stat(v)
}
