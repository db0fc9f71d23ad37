package sample

import (
	"fmt"
	"math"
	"time"

	"pelt/model"
	"pelt/unit"
)

// Again is a soak of 10 s at 1 kpps that ran so many times, once every five minutes. From a run on the path loses a
// share of the packets; from another one on the round trip is 20 ms longer. Runs of which away is true reached no host.
func Again(times, lossy int, share float64, far int, away func(run int) bool) (runs []*model.Document) {
	for n := range times {
		d := Base("192.168.1.5", []int{200}, 1, 10)
		d.Plan.Command, d.Plan.Factors = "soak", nil
		d.Plan.Flows[0].Rate = unit.PacketRate(1000)
		d.Started = start().Add(time.Duration(n) * 5 * time.Minute)
		d.ID = fmt.Sprintf("%s-%03d", d.Started.Format("20060102-1504"), n)
		if away(n) {
			d.Host, d.Warnings = nil, model.Doubts{{Code: model.Unreached, Of: fault("no route to host")}}
			runs = append(runs, &d)
			continue
		}
		trip := 8e6 * (1 + 0.03*noise(n))
		if n >= far {
			trip += 20e6
		}
		lost := math.Floor(0.6 + 0.5*noise(3*n)) // now and then one packet
		if n >= lossy {
			lost += math.Round(1e4 * share * (1 + 0.1*noise(7*n)))
		}
		f := UDP("up", 200, 1000, 1000-lost/10, 10, 0)
		f.RoundTrip = quantiles(200, trip)
		Line(&f, model.LayerReceiverBuffer, model.Receiver, "SOCKET_RCVBUFF", 1, "exact-seq")
		r := Result(200, 0, f)
		r.Cell, r.Started = model.Cell{}, d.Started
		d.Results = []model.Result{r}
		runs = append(runs, &d)
	}
	return runs
}
