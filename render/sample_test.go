package render

import (
	"fmt"
	"math"
	"math/rand/v2"

	"pelt/unit"
	"pelt/view"
)

// samplePages are pages as views make them, one for each form of test.
func samplePages() map[string]view.Page {
	return map[string]view.Page{"curve": curvePage(), "sweep": sweepPage(20, 10), "soak": soakPage(86400),
		"router": routerPage(), "nasty": nastyPage(), "empty": {Title: "Size curve", Verdict: "No usable result."}}
}

func text(s string) view.Cell         { return view.Cell{Text: s, Value: math.NaN()} }
func plainFigure(v float64) view.Cell { return view.Cell{Value: v} }
func lossCell(v float64) view.Cell    { return view.Cell{Value: v, Tone: lossTone(v)} }
func spread(v, by float64) view.Cell {
	return view.Cell{Value: v, Low: v * (1 - by), High: v * (1 + by)}
}
func lossTone(v float64) (t view.Tone) { // a thousandth is not worth a colour
	if v >= 0.001 {
		return view.Bad
	}
	return view.Plain
}

func curvePage() view.Page {
	sizes := []float64{16, 64, 128, 256, 512, 768, 1024, 1280, 1400, 1472}
	received := []float64{412e3, 408e3, 405e3, 391e3, 228e3, 153e3, 115e3, 92.4e3, 84.6e3, 80.4e3}
	sent := []float64{1.21e6, 1.18e6, 1.1e6, 980e3, 720e3, 505e3, 388e3, 310e3, 284e3, 271e3}
	var down, up, guest, bits, losses []view.Point
	table := view.Table{Title: "By payload size", Columns: []view.Column{
		{Name: "payload_bytes", Label: "Payload", Unit: unit.Bytes}, {Name: "receive_pps", Label: "Received",
			Unit: unit.PPS},
		{Name: "goodput_bps", Label: "Goodput", Unit: unit.BPS}, {Name: "loss_ratio", Label: "Lost", Unit: unit.Ratio},
		{Name: "send_pps", Label: "Sent", Unit: unit.PPS}, {Name: "delay_p50_s", Label: "Delay, median",
			Unit: unit.Seconds}, {Name: "delay_p99_s", Label: "Delay, p99", Unit: unit.Seconds},
		{Name: "sender_thread_ratio", Label: "Sender CPU", Unit: unit.Ratio},
	}}
	var categories []string
	for i, size := range sizes {
		r, s := received[i], sent[i]
		loss := 1 - r/s
		name := fmt.Sprintf("%.0f B: %s received of %s", size, unit.PPS.Format(r), unit.PPS.Format(s))
		up = append(up, view.Point{X: size, Y: r, Low: r * 0.97, High: r * 1.02, Name: name})
		down = append(down, view.Point{X: size, Y: r * 0.62, Name: name})
		guest = append(guest, view.Point{X: size, Y: s, Name: name})
		bits = append(bits, view.Point{X: size, Y: r * size * 8, Name: name})
		losses = append(losses, view.Point{X: float64(i), Y: loss, Name: name})
		categories = append(categories, fmt.Sprintf("%.0f B", size))
		table.Rows = append(table.Rows, []view.Cell{plainFigure(size), spread(r, 0.02), plainFigure(r * size * 8),
			lossCell(loss), plainFigure(s), plainFigure(180e-6), plainFigure(2.4e-3), plainFigure(0.98)})
	}
	x := view.Axis{Label: "UDP payload", Unit: unit.Bytes, Log: true, Ticks: sizes}
	knee := view.Mark{At: 256, Text: "knee, 256 B"}
	return view.Page{
		Title: "Size curve", Subject: "lab:router · 23 November 2026, 16:40 UTC",
		Verdict: "The path carries up to 412 kpps of small packets and 947 Mbit/s of large ones; below about 256 B the limit is packets per second, above it bits per second.",
		Facts: []string{"66 % of the small packets were lost, all at the router: NIC ring full.",
			"The sender offered up to 1.21 Mpps."},
		Doubts: []string{"Measured 3 times: the intervals are the lowest and highest values.",
			"In a lab all nodes share one machine: a limit in packets is that machine's."},
		Next: []view.Step{{Text: "Every size was sent as fast as possible. Find the highest rate without loss:",
			Command: "pelt curve --find-rate lab:router"}},
		Sections: []view.Section{
			view.Tiles{{Label: "Saturates at", Value: "412 kpps", Note: "947 Mbit/s with large packets"},
				{Label: "Loss-free to", Note: "all sizes were sent at full speed"}, {Label: "Knee", Value: "256 B",
					Note: "packets below, bits above"}, {Label: "Limited by", Value: "the router", Note: "NIC ring full", Tone: view.Bad}},
			view.Chart{Title: "Packets received by payload size", Hero: true, X: x,
				Y: view.Axis{Label: "Received", Unit: unit.PPS},
				Series: []view.Series{{Name: "up", Points: up}, {Name: "down", Points: down},
					{Name: "sent", Points: guest, Guest: true, Tone: view.Muted}}, Marks: []view.Mark{knee}},
			view.Chart{Title: "Packets lost by payload size", Kind: view.Stack, X: view.Axis{Categories: categories},
				Y:      view.Axis{Label: "Lost, of those sent", Unit: unit.Ratio},
				Series: []view.Series{{Name: "router, NIC ring full", Points: losses, Tone: view.Bad}}},
			view.Chart{Title: "Goodput by payload size", X: x, Y: view.Axis{Label: "Goodput", Unit: unit.BPS},
				Series: []view.Series{{Name: "goodput", Points: bits}},
				Marks:  []view.Mark{knee, {At: 1e9, OnY: true, Text: "link, 1 Gbit/s"}}},
			view.Path{Title: "Where the packets went", Nodes: []string{"sender", "router", "receiver"}, Sent: 12104033,
				Received: 6403204, Losses: []view.Loss{
					{Node: 1, Packets: 5600829, Text: "NIC ring full"}, {Node: 0, Link: true, Packets: 90000,
						Text: "queue of the link from sender to router"}, {Node: 2, Packets: 10000, Text: "socket buffer full"}}},
			table,
		},
	}
}

func sweepPage(columns, rows int) view.Page {
	heat := view.Chart{Title: "Goodput by size and pause", Hero: true, Kind: view.Heat,
		X: view.Axis{Label: "Pause between packets"}, Y: view.Axis{Label: "Payload"}, Z: view.Axis{Label: "Goodput",
			Unit: unit.BPS, Log: true}, Series: []view.Series{{}}}
	table := view.Table{Title: "All settings, best first", Lead: 5,
		Columns: []view.Column{{Name: "setting", Label: "Setting"},
			{Name: "goodput_bps", Label: "Goodput", Unit: unit.BPS}, {Name: "loss_ratio", Label: "Lost",
				Unit: unit.Ratio}, {Name: "verdict", Label: "Beside the best"}}}
	for j := range columns {
		heat.X.Categories = append(heat.X.Categories, unit.Seconds.Exact(float64(j)*0.5e-3))
	}
	for i := range rows {
		size := float64(1472 - 140*i)
		heat.Y.Categories = append(heat.Y.Categories, unit.Bytes.Exact(size))
		for j := range columns {
			v := size * 8 / (15e-6 + float64(j)*0.5e-3)
			loss := max(0, 0.6-0.1*float64(j))
			name := heat.Y.Categories[i] + ", " + heat.X.Categories[j]
			heat.Series[0].Points = append(heat.Series[0].Points,
				view.Point{X: float64(j), Y: float64(i), Z: v, Name: name + ": " + unit.BPS.Format(v)})
			verdict := view.Cell{Text: "worse", Note: "0.4×", Value: math.NaN(), Tone: view.Bad}
			if i+j == 0 {
				verdict = view.Cell{Text: "baseline", Value: math.NaN(), Tone: view.Muted}
			}
			table.Rows = append(table.Rows, []view.Cell{text(name), spread(v, 0.01), lossCell(loss), verdict})
		}
	}
	return view.Page{Title: "Sweep", Subject: "192.0.2.7 · 23 November 2026",
		Verdict: "Of 200 settings, 1472 B without pauses is the best: 95.0 Mbit/s arrive and no packet is lost. 4 others are tied with it.",
		Doubts:  []string{"Measured once: 2 more repeats would tell the best from those tied with it."}, Next: []view.Step{{Text: "Repeat the best settings:", Command: "pelt sweep 192.0.2.7 --repeats 3"}},
		Sections: []view.Section{view.Tiles{{Label: "Best", Value: "1472 B", Note: "without pauses"},
			{Label: "Goodput", Value: "95.0 Mbit/s"}, {Label: "Lost", Value: "0 %", Tone: view.Good}, {Label: "Tied with it",
				Value: "4 settings"}}, heat, table}}
}

func soakPage(seconds int) view.Page {
	random := rand.New(rand.NewPCG(1, 2))
	rate, loss, delay, tail := make([]float64, seconds), make([]float64, seconds), make([]float64,
		seconds), make([]float64, seconds)
	for i := range seconds {
		rate[i], loss[i] = 50e3*(1-0.02*random.Float64()), 0
		if i > seconds*6/10 {
			rate[i], loss[i] = 28.5e3*(1-0.05*random.Float64()), 0.43+0.02*random.Float64()
		}
		if i == seconds/4 {
			rate[i], loss[i] = 0, 1
		}
		delay[i] = 180e-6 * (1 + 0.2*random.Float64() + 0.5*math.Sin(float64(i)/float64(seconds)*12))
		tail[i] = delay[i] * (3 + random.ExpFloat64())
		if i > seconds*8/10 && i < seconds*82/100 {
			rate[i], loss[i], delay[i], tail[i] = math.NaN(), math.NaN(), math.NaN(), math.NaN()
		}
	}
	trace := func(name string, values []float64, tone view.Tone) view.Trace {
		return view.Trace{Name: name, Step: 1, Values: values, Tone: tone}
	}
	n := float64(seconds)
	return view.Page{Title: "Soak", Subject: "lab:router · 24 h",
		Verdict: "From 14.4 h on, 43 % of the packets were lost; before that, one second lost all and the others none.",
		Doubts:  []string{"No samples from 19.2 h to 19.7 h: the receiver was away."}, Next: []view.Step{{Text: "See what dropped them:", Command: "pelt explain last"}},
		Sections: []view.Section{
			view.Tiles{{Label: "Lost", Value: "17.2 %", Note: "743 million packets", Tone: view.Bad},
				{Label: "Worst second", Value: "100 %", Note: "at 6 h"}, {Label: "Delay, median",
					Value: "201 µs"}, {Label: "Changes", Value: "2"}},
			view.Times{Title: "24 hours, second by second", Lanes: []view.Lane{
				{Label: "Received", Unit: unit.PPS, Traces: []view.Trace{trace("received", rate, view.Plain)}},
				{Label: "Lost", Unit: unit.Ratio, Traces: []view.Trace{trace("lost", loss, view.Bad)}},
				{Label: "Delay", Unit: unit.Seconds, Traces: []view.Trace{trace("median", delay, view.Plain),
					trace("99th percentile", tail, view.Plain)}},
			}, Changes: []view.Change{{At: 0.6 * n, Text: "received 50.0 → 28.5 kpps", Tone: view.Bad}, {At: 0.4 * n,
				Text: "router limited to 50 Mbit/s"}}, Gaps: []view.Gap{{From: 0.8 * n, To: 0.82 * n, Text: "receiver away"}}},
			view.Table{Title: "By parts of the time",
				Columns: []view.Column{{Name: "from_s", Label: "From", Unit: unit.Seconds},
					{Name: "receive_pps", Label: "Received", Unit: unit.PPS}, {Name: "loss_ratio", Label: "Lost",
						Unit: unit.Ratio}},
				Rows: [][]view.Cell{{plainFigure(0), spread(49.5e3, 0.01), lossCell(0.00003)},
					{plainFigure(0.6 * n), spread(27.8e3, 0.02), lossCell(0.43)}}},
		}}
}

func routerPage() view.Page {
	variants := []string{"stock", "flow offload", "RPS on both cores, flow offload",
		"software flow offload without conntrack"}
	values := []float64{212e3, 431e3, 388e3, 540e3}
	interval := view.Chart{Title: "Carried by each variant", Hero: true, Kind: view.Interval,
		X: view.Axis{Label: "Received",
			Unit: unit.PPS}, Y: view.Axis{Categories: variants}, Series: []view.Series{{Name: "received"}},
		Note: "Green is better than stock; grey is not told apart from it yet."}
	cpu := view.Chart{Title: "CPU of the router at full load", Kind: view.Stack, X: view.Axis{Categories: variants},
		Y: view.Axis{Label: "Share of all cores", Unit: unit.Ratio}, Series: []view.Series{{Name: "softirq"},
			{Name: "system"}, {Name: "user"}}}
	heat := view.Chart{Title: "Loss by size and variant", Kind: view.Heat,
		X: view.Axis{Label: "Frame", Categories: []string{"64 B", "512 B",
			"1518 B"}}, Y: view.Axis{Categories: variants}, Z: view.Axis{Label: "Lost", Unit: unit.Ratio}, Series: []view.Series{{Tone: view.Bad}}}
	table := view.Table{Title: "By variant", Columns: []view.Column{{Name: "variant", Label: "Variant"},
		{Name: "receive_pps", Label: "Carried", Unit: unit.PPS}, {Name: "cpu_ratio", Label: "CPU",
			Unit: unit.Ratio}, {Name: "verdict", Label: "Beside stock"}}}
	for i, v := range values {
		tone := []view.Tone{view.Muted, view.Good, view.Good, view.Good}[i]
		interval.Series[0].Points = append(interval.Series[0].Points,
			view.Point{X: v, Y: float64(i), Low: v * 0.96, High: v * 1.03, Tone: tone,
				Name: variants[i] + ": " + unit.PPS.Format(v)})
		for j := range cpu.Series {
			cpu.Series[j].Points = append(cpu.Series[j].Points,
				view.Point{X: float64(i), Y: []float64{0.71, 0.18, 0.03}[j] * (1 - 0.15*float64(i)),
					Name: cpu.Series[j].Name})
		}
		for j := range 3 {
			heat.Series[0].Points = append(heat.Series[0].Points,
				view.Point{X: float64(j), Y: float64(i), Z: max(0, 0.8-0.2*float64(i)-0.3*float64(j))})
		}
		table.Rows = append(table.Rows, []view.Cell{text(variants[i]), spread(v, 0.03),
			plainFigure(0.92 - 0.1*float64(i)), {Text: "faster", Note: fmt.Sprintf("%.2f×", v/values[0]), Value: math.NaN(),
				Tone: tone}})
	}
	return view.Page{Title: "Router bench", Subject: "OpenWrt at 192.168.1.1",
		Verdict: "Software flow offload without conntrack carries 540 kpps of 64 B frames, 2.55 times stock.",
		Next: []view.Step{{Text: "Keep the setting:",
			Command: "pelt tune apply offload"}}, Sections: []view.Section{interval, cpu, heat, table}}
}

// nastyPage has names that attack the reader of each format.
func nastyPage() view.Page {
	name := "</script><script>alert(1)</script>\x1b[2J\u202egnp.exe\" onload=alert(1) \u0085 \xff 日本語ノード &amp; <b>"
	c := curvePage()
	c.Title, c.Subject, c.Verdict = name, name, name+" "+name
	c.Facts, c.Doubts, c.Next = []string{name}, []string{name}, []view.Step{{Text: name, Command: name}}
	c.Sections = append(c.Sections, view.Heading{Text: name}, view.Text{Text: name},
		view.Tiles{{Label: name, Value: name, Note: name}},
		view.Path{Title: name, Nodes: []string{name, name, name, name, name, name}, Sent: 5,
			Losses: []view.Loss{{Node: 9, Packets: 4, Text: name}, {Node: -3, Link: true, Packets: 9, Text: name}}},
		view.Table{Title: name, Note: name, Fold: true, Columns: []view.Column{{Name: name, Label: name},
			{Label: name, Unit: unit.PPS}}, Rows: [][]view.Cell{{text(name), {Text: name}}, {}, {{Note: name}}}},
		view.Times{Title: name,
			Lanes: []view.Lane{{Label: name, Traces: []view.Trace{{Name: name, Step: 1, Values: []float64{1, 2}},
				{Name: name, Step: 1, Values: []float64{1,
					2}}}}}, Changes: []view.Change{{At: 1, Text: name}}, Gaps: []view.Gap{{From: 0, To: 1, Text: name}}})
	for kind := view.Line; kind <= view.Heat; kind++ {
		point := view.Point{Name: name}
		c.Sections = append(c.Sections, view.Chart{Title: name, Note: name, Kind: kind,
			X: view.Axis{Label: name, Categories: []string{name, name}}, Y: view.Axis{Label: name,
				Categories: []string{name}}, Z: view.Axis{Label: name},
			Series: []view.Series{{Name: name, Points: []view.Point{point}},
				{Name: name, Points: []view.Point{point}}}, Marks: []view.Mark{{Text: name}}})
	}
	return c
}
