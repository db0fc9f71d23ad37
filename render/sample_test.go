package render

import (
	"math"

	"pelt/unit"
	"pelt/view"
)

func text(s string) view.Cell         { return view.Cell{Text: s, Value: math.NaN()} }
func plainFigure(v float64) view.Cell { return view.Cell{Value: v} }

// smallPage has a section of each kind; the golden files of view have whole pages.
func smallPage() view.Page {
	x := view.Axis{Label: "UDP payload", Unit: unit.Bytes, Log: true, Ticks: []float64{64, 1472}}
	points := []view.Point{{X: 64, Y: 412e3, Low: 400e3, High: 420e3, Name: "64 B: 412 kpps"},
		{X: 1472, Y: 80e3, Name: "1472 B: 80 kpps"}}
	return view.Page{Title: "Size curve", Subject: "lab:router · 23 November 2026, 16:40 UTC",
		Verdict: "The path carries up to 412 kpps of small packets and 947 Mbit/s of large ones.",
		Facts:   []string{"66 % of the small packets were lost, all at the router: NIC ring full."},
		Doubts:  []string{"Measured 3 times: the intervals are the lowest and highest values."},
		Next: []view.Step{{Text: "Find the highest rate without loss:",
			Command: "pelt curve --find-rate lab:router"}},
		SetUp: []view.Section{view.Heading{Text: "How it was measured"}},
		Sections: []view.Section{
			view.Tiles{{Label: "Saturates at", Value: "412 kpps", Note: "947 Mbit/s with large packets"},
				{Label: "Loss-free to"}},
			view.Chart{Title: "Packets received by payload size", Hero: true, X: x,
				Y:      view.Axis{Label: "Received", Unit: unit.PPS},
				Series: []view.Series{{Name: "up", Points: points}}, Marks: []view.Mark{{At: 256,
					Text: "knee, 256 B"}}},
			view.Path{Title: "Where the packets went", Nodes: []string{"sender", "router", "receiver"}, Sent: 12104033,
				Received: 6403204, Losses: []view.Loss{{Node: 1, Packets: 5700829, Text: "NIC ring full"}}},
			view.Table{Title: "By payload size",
				Columns: []view.Column{{Name: "payload_bytes", Label: "Payload", Unit: unit.Bytes},
					{Name: "receive_pps", Label: "Received", Unit: unit.PPS}, {Name: "verdict", Label: "Beside stock"}},
				Rows: [][]view.Cell{{plainFigure(64), {Value: 412e3, Low: 400e3, High: 420e3},
					{Text: "faster", Note: "2.03×",
						Value: math.NaN(), Tone: view.Good}}, {plainFigure(1472), {Value: 80e3, Tone: view.Bad}, text("")}}},
		}}
}
