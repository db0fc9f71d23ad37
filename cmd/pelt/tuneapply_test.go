package main

import (
	"fmt"
	"testing"

	"pelt/model"
)

// Two nodes of one host may call for one setting, which is made once.
func TestWanted(t *testing.T) {
	of := func(host, knob, value string, apply bool) model.Advised {
		return model.Advised{Advice: model.Advice{Host: host, Knob: knob, Present: "1000", Value: value}, Apply: apply}
	}
	changes, told, others := wanted([]model.Advised{
		of("sender", "net.core.netdev_max_backlog", "2000", true),
		of("receiver", "net.core.netdev_max_backlog", "4000", true),
		of("router", "net.core.netdev_max_backlog", "3000", true),
		of("receiver", "net.core.rmem_max", "", true),
		of("far", "eth0.rx_ring", "4096", false),
	})
	const want = "[{net.core.netdev_max_backlog 4000}] [net.core.netdev_max_backlog 1000 -> 4000] [eth0.rx_ring of the far: 1000 -> 4096]"
	if got := fmt.Sprint(changes, told, others); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
