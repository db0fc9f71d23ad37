package view_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"pelt/internal/testenv"
	"pelt/test/sample"
	"pelt/view"
)

var (
	metricNames = regexp.MustCompile(`\bpelt_\w+`)
	labelNames  = regexp.MustCompile(`(\w+)=~?"`)
	groupedBy   = regexp.MustCompile(`\bby \(([^)]*)\)`)
	legendNames = regexp.MustCompile(`{{(\w+)}}`)
)

// TestGrafana: each figure and each label that the dashboard of packaging/grafana asks for is one that pelt exports.
func TestGrafana(t *testing.T) {
	labels := map[string]map[string]bool{} // by figure
	drops := view.NewDrops("", "", true)
	for _, d := range liveDrops() {
		drops.Add(d)
	}
	gauges := drops.Gauges()
	for _, s := range sample.All() {
		gauges = append(gauges, view.Gauges(&s.Doc)...)
	}
	for _, g := range gauges {
		if labels[g.Name] == nil {
			labels[g.Name] = map[string]bool{"instance": true} // Prometheus' own
		}
		for _, s := range g.Samples {
			for _, l := range s.Labels {
				labels[g.Name][l.Name] = true
			}
		}
	}
	text, err := os.ReadFile("../packaging/grafana/pelt.json")
	testenv.Must(t, err)
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	testenv.Must(t, json.Unmarshal(text, &board))
	asked := 0
	for _, p := range board.Panels {
		for _, q := range p.Targets {
			names := metricNames.FindAllString(q.Expr, -1)
			if len(names) != 1 || labels[names[0]] == nil {
				t.Errorf("%s: %s asks for %q, want one figure that pelt exports", p.Title, q.Expr, names)
				continue
			}
			asked++
			var used []string
			for _, expression := range []*regexp.Regexp{labelNames, groupedBy, legendNames} {
				for _, m := range expression.FindAllStringSubmatch(q.Expr+q.LegendFormat, -1) {
					used = append(used, strings.Split(m[1], ", ")...)
				}
			}
			for _, l := range used {
				if !labels[names[0]][l] {
					t.Errorf("%s: %s has no label %s", p.Title, names[0], l)
				}
			}
		}
	}
	if asked < len(board.Panels) || asked == 0 {
		t.Errorf("%d of %d panels ask for a figure", asked, len(board.Panels))
	}
}
