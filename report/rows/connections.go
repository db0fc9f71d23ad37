package rows

import "pelt/model"

// Connections are the figures only a flow of connections has.
type Connections struct {
	Mode      string
	PerSecond Stat   // established
	OpenMax   Stat   // most at one time
	Failed    uint64 // of all trials of the row
	SetUp     *Delays
	Ended     string // why no more were kept, the last one's
}

func connections(ms []member) *Connections {
	if ms[0].flow.Connections == nil {
		return nil
	}
	c := Connections{Mode: ms[0].flow.Connections.Mode}
	var per, open []float64
	for _, m := range ms {
		f := m.flow
		if f.Connections == nil || !Measured(*f) {
			continue
		}
		per, open = append(per, f.ReceivePPS), append(open, float64(f.Connections.OpenMax))
		for _, n := range f.Connections.Failed {
			c.Failed += n
		}
		c.Ended = f.Connections.Ended
	}
	c.PerSecond, c.OpenMax = stat(per), stat(open)
	c.SetUp = delays(ms, func(f *model.FlowResult) *model.Percentiles {
		if f.Connections == nil {
			return nil
		}
		return f.Connections.SetUp
	})
	return &c
}
