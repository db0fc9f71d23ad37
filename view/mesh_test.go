package view_test

import (
	"fmt"

	"pelt/model"
	"pelt/test/sample"
)

// bigMesh is a mesh of so many hosts; the last one reads slowly.
func bigMesh(n int) model.Document {
	var hosts []string
	for i := range n {
		hosts = append(hosts, fmt.Sprintf("host-%d", i+1))
	}
	return sample.MeshOf(hosts, 1, func(_, to string, _ int, sent uint64) sample.Lost {
		if to == hosts[n-1] {
			return sample.Lost{Packets: sent / 50, Layer: model.LayerReceiverBuffer, Host: to, Cause: "SOCKET_RCVBUFF"}
		}
		return sample.Lost{}
	}, func(string, int) string { return "" })
}
