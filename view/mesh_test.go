package view_test

import (
	"fmt"
	"strings"
	"testing"

	"pelt/finding"
	"pelt/model"
	"pelt/render"
	"pelt/test/sample"
	"pelt/view"
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

// TestBigMesh: the page of many hosts has a grid that can be read, with those that lose most in it.
func TestBigMesh(t *testing.T) {
	d := bigMesh(30)
	page := view.Run(&d)
	if want := "29 of 870 pairs lose more than 0.1 %; the worst is"; !strings.HasPrefix(page.Verdict, want) {
		t.Errorf("verdict %q, want %q", page.Verdict, want)
	}
	grid := page.Sections[1].(view.Chart)
	if n := len(grid.X.Categories); n != 24 || len(grid.Y.Categories) != n || grid.X.Categories[n-1] != "host-30" ||
		!strings.HasSuffix(grid.Title, ", the 24 of 30 hosts that lose most") {
		t.Errorf("%q: %d columns %v, %d rows", grid.Title, n, grid.X.Categories, len(grid.Y.Categories))
	}
	if pairs := page.Sections[2].(view.Table); len(pairs.Rows) != 40 || pairs.Title != "Pairs, the worst first (40 of 870)" {
		t.Errorf("%q: %d rows", pairs.Title, len(pairs.Rows))
	}
}

// TestMeshWithoutDelay: nobody timed anything, and every packet was lost.
func TestMeshWithoutDelay(t *testing.T) {
	d := bigMesh(3)
	for i := range d.Results {
		for j := range d.Results[i].Flows {
			f := &d.Results[i].Flows[j]
			f.RoundTrip, f.Received, f.Lost, f.LossRatio = nil, 0, f.Attempted, 1
		}
	}
	page := view.Run(&d)
	if want := "6 of 6 pairs lose more than 0.1 %"; !strings.HasPrefix(page.Verdict, want) || page.Sections[0].(view.Tiles)[3].Value != "" {
		t.Errorf("verdict %q, tiles %v", page.Verdict, page.Sections[0])
	}
}

// TestMeshFigures: CSV says from which host to which each row went, and which host lost packets.
func TestMeshFigures(t *testing.T) {
	d := sample.Mesh()
	var figures, ledgers strings.Builder
	if err := render.CSV(&figures, view.Figures(&d)); err != nil {
		t.Fatal(err)
	}
	if err := render.CSV(&ledgers, view.LedgerFigures(&d)); err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(figures.String(), "\n")
	for _, name := range []string{"pair", "from", "to"} {
		if strings.Count(","+head+",", ","+name+",") != 1 {
			t.Errorf("columns %s", head)
		}
	}
	if !strings.Contains(figures.String(), ",ams-1,fra-1,") || !strings.Contains(figures.String(), ",fra-1,ams-1,") {
		t.Errorf("no row of fra-1 to ams-1, or back:\n%s", figures.String())
	}
	if text := ledgers.String(); !strings.Contains(text, ",ams-1,SOCKET_RCVBUFF") || strings.Contains(text, ",receiver,") {
		t.Errorf("ledgers name no hosts:\n%s", text)
	}
	if page := explain(t, &d, finding.Ask{}); !strings.Contains(fmt.Sprint(page), "ams-1 socket buffer full") {
		t.Errorf("explain: %v", page)
	}
}
