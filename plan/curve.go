package plan

import (
	"cmp"

	"pelt/model"
)

// Default sizes in payload bytes. 18 B makes the smallest Ethernet frame of 64 B, 1472 B fills
// the usual MTU of 1500 B. Between them the sizes about double, as rates do where frames are the
// limit. Writes of TCP are far below a segment, and one that about fills it.
const (
	udpPayloads = "18,64,100,200,400,800,1472"
	tcpPayloads = "64,1460"
)

const ofCurve = "payload frame rate interval profile proto direction streams count bytes time warmup repeats " +
	"max-loss family dev dscp df drops burst source-port source-address send-buffer receive-buffer gro gso bulk " +
	"control mss window engine seed"

// Curve is a packet-size curve. 2 s a trial is long against scheduling noise and bursts of
// interrupts, and 14 trials of it end within a minute.
var Curve = Preset{
	Command:  "curve",
	Knobs:    ofCurve + " receivers loss-free goal",
	Defaults: map[string]string{"time": "2s", "warmup": "500ms"},
	Factors:  "direction payload! frame!",
	build:    (*draft).buildCurve,
}

func (d *draft) buildCurve() error {
	tcp := d.word("proto") == string(model.TCP)
	if d.given("count", "bytes") { // which end a trial; its time is the longest
		d.setDefault("warmup", "0")
		d.setDefault("time", "2m")
	}
	if tcp && d.given("bytes") {
		d.setDefault("bulk", "true")
		d.setDefault("payload", bulkPayload)
	}
	switch {
	case d.given("bytes") && (len(d.values["direction"]) > 1 || d.word("direction") == "both"):
		return flagError("direction", "want up or down: one transfer at a time")
	case tcp && d.given("frame"):
		return flagError("frame", "is for --proto udp: TCP makes its own segments")
	case !d.given("frame") && tcp:
		d.sizes(tcpPayloads)
	case !d.given("frame"):
		d.sizes(udpPayloads)
	}
	for _, v := range d.values["payload"] {
		if tcp && v.Text != "" {
			return flagError("payload", "mtu is for --proto udp: TCP makes its own segments")
		}
	}
	if d.given("burst") && !d.given("rate", "interval") {
		return flagError("burst", "needs --rate or --interval: without one, packets leave as fast as they can")
	}
	if err := cmp.Or(d.start(), d.addLossFree()); err != nil {
		return err
	}
	return d.fill()
}

// sizes gives the payloads, as text, if neither a flag nor the preset gives any.
func (d *draft) sizes(text string) {
	if len(d.values["payload"]) == 0 {
		d.setDefault("payload", text)
	}
}

// Demo is the plan of pelt demo: a home router in the lab, whose far side is a link of 1 Gbit/s:
// one shaped link is what two cores keep up with. Its sizes show both sides of the knee.
func Demo() (model.Plan, error) {
	p, err := Curve.Of("lab:router", "node-link=receiver:rate=1gbit", "payload=18,100,400,800,1472", "time=1s",
		"warmup=100ms", "loss-free=true")
	if err != nil {
		return p, err
	}
	p.Command = "demo"
	goal := &p.Design.Search.Goals[0] // one trial decides, so that all ends within a minute
	goal.Name, goal.WidthRatio, goal.FinalSeconds, goal.SumSeconds = "demo", 0.1, 0.5, 0.5
	p.Timing.DrainSeconds = 1 // the lab's queue holds 50 ms
	return p, err
}
