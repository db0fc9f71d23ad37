package render_test

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/prometheus/common/expfmt"
	prom "github.com/prometheus/common/model"

	"pelt/model"
	"pelt/render"
	"pelt/test/sample"
	"pelt/view"
)

// TestPrometheus: Prometheus reads what is written of every sample: each gauge once, no two samples of the same labels.
func TestPrometheus(t *testing.T) {
	for _, s := range sample.All() {
		text := written(t, s.Doc)
		parser := expfmt.NewTextParser(prom.LegacyValidation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v in\n%s", s.Name, err, text)
			continue
		}
		for name, f := range families {
			seen := map[string]bool{}
			for _, m := range f.Metric {
				if m.Gauge == nil {
					t.Errorf("%s: %s is no gauge", s.Name, name)
				}
				labels := map[string]string{}
				for _, l := range m.Label {
					labels[l.GetName()] = l.GetValue()
				}
				key := ""
				for _, k := range slices.Sorted(maps.Keys(labels)) {
					key += k + "=" + labels[k] + ";"
				}
				if len(labels) != len(m.Label) || seen[key] {
					t.Errorf("%s: %s has two samples or labels alike: %s", s.Name, name, key)
				}
				seen[key] = true
			}
		}
		if up := families["pelt_up"]; up == nil || len(s.Doc.Results) == 0 && up.Metric[0].Gauge.GetValue() != 0 {
			t.Errorf("%s: pelt_up is %v", s.Name, up)
		}
	}
}

// TestPrometheusBalances: of UDP the lost packets by layer add up to what was sent and did not arrive.
func TestPrometheusBalances(t *testing.T) {
	for _, name := range []string{"loss", "router", "bench", "mesh"} {
		at := slices.IndexFunc(sample.All(), func(s sample.Named) bool { return s.Name == name })
		doc := sample.All()[at].Doc
		for i := range doc.Results {
			doc.Results[i].Flows = slices.DeleteFunc(doc.Results[i].Flows,
				func(f model.FlowResult) bool { return f.Protocol != model.UDP })
		}
		sums := map[string]float64{}
		for _, g := range view.Gauges(&doc) {
			for _, s := range g.Samples {
				sums[g.Name] += s.Value
			}
		}
		sent, received, lost := sums["pelt_sent_packets"], sums["pelt_received_packets"], sums["pelt_lost_packets"]
		if sent == 0 || lost == 0 || sent-received != lost {
			t.Errorf("%s: %v sent, %v received, and %v lost", name, sent, received, lost)
		}
	}
}

// TestPrometheusEscapes: a name from outside stays within its label.
func TestPrometheusEscapes(t *testing.T) {
	nasty := "a\"} 1\nb\\"
	text := written(t, model.Document{Plan: model.Plan{Target: nasty}})
	parser := expfmt.NewTextParser(prom.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil || len(families) != 1 {
		t.Fatalf("%v, %d gauges in\n%s", err, len(families), text)
	}
	if got := families["pelt_up"].Metric[0].Label[0].GetValue(); got != "a\"} 1 b\\" {
		t.Errorf("target %q", got)
	}
}

func written(t *testing.T, doc model.Document) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := render.Prometheus(&b, view.Gauges(&doc)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
