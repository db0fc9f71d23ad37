package model

import (
	"slices"
	"testing"
)

func TestFlowsOfTransfers(t *testing.T) {
	good := Flow{Name: "up", Protocol: TCP, From: Sender, To: Receiver, PayloadBytes: 1000, Streams: 3, Bulk: true,
		Bytes: 8, Control: "cubic+bbr", StaggerSeconds: 2}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	var parts []uint64
	var controls []string
	for i := range good.Streams {
		parts, controls = append(parts, good.StreamBytes(i)), append(controls, good.StreamControl(i))
	}
	if !slices.Equal(parts, []uint64{3, 3, 2}) || !slices.Equal(controls, []string{"cubic", "bbr", "cubic"}) {
		t.Errorf("streams carry %v with %v", parts, controls)
	}
}
