package run

import (
	"testing"

	"pelt/fleet"
	"pelt/model"
)

func placedFlows(flows []model.Flow) (list []fleet.PlacedFlow) {
	for _, f := range flows {
		list = append(list, fleet.PlacedFlow{Flow: f})
	}
	return list
}

func TestPorts(t *testing.T) {
	up, down := model.Flow{From: model.Sender, To: model.Receiver}, model.Flow{From: model.Receiver, To: model.Sender}
	counted := func(figures map[string]uint64) *model.Observation {
		o := &model.Observation{}
		for name, n := range figures {
			o.Counters = append(o.Counters, model.Counter{Name: "dev." + name, Whole: n})
		}
		return o
	}
	oneWay := counted(map[string]uint64{"lo.rx_packets": 1e6, "eth1.rx_packets": 207045, "eth1.tx_packets": 125,
		"eth2.rx_packets": 84, "eth2.tx_packets": 5062, "eth3.rx_packets": 3})
	for name, c := range map[string]struct {
		flows []model.Flow
		seen  *model.Observation
		want  ports
	}{
		"up":           {[]model.Flow{up}, oneWay, ports{"eth1", "eth2"}},
		"down":         {[]model.Flow{down}, oneWay, ports{"eth2", "eth1"}},
		"both at once": {[]model.Flow{up, down}, oneWay, ports{}},
		"not observed": {[]model.Flow{up}, &model.Observation{}, ports{}},
		"a port and a trunk": {[]model.Flow{up},
			counted(map[string]uint64{"eth0.rx_packets": 2000, "lan1.rx_packets": 1000, "wan.tx_packets": 1000}),
			ports{}},
		"too few": {[]model.Flow{up},
			counted(map[string]uint64{"lan.rx_packets": 90, "wan.tx_packets": 90}), ports{}},
		"one port does both": {[]model.Flow{up},
			counted(map[string]uint64{"eth0.rx_packets": 5000, "eth0.tx_packets": 5000}), ports{}},
		"a counter went back": {[]model.Flow{up},
			&model.Observation{Counters: []model.Counter{{Name: "dev.lan.rx_packets", Whole: 5000, Reset: true},
				{Name: "dev.wan.tx_packets", Whole: 5000}}}, ports{}},
	} {
		t.Run(name, func(t *testing.T) {
			var p ports
			p.learn(placedFlows(c.flows), c.seen)
			if p != c.want {
				t.Errorf("got %+v, want %+v", p, c.want)
			}
			if p.learn(placedFlows([]model.Flow{down}), oneWay); c.want != (ports{}) && p != c.want {
				t.Errorf("later it became %+v", p)
			}
		})
	}
}
