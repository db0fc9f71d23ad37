package metrics

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/common/expfmt"
	prom "github.com/prometheus/common/model"

	"pelt/model"
	"pelt/store"
	"pelt/test/sample"
)

// TestMetrics: of each target its newest run that says something of it stands in an answer, and a run that has grown is
// read again.
func TestMetrics(t *testing.T) {
	st, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := Handler(st)
	if got := scrape(t, h)("pelt_up", "one"); got != absent {
		t.Errorf("without runs pelt_up is %v", got)
	}
	results := sample.Router().Results
	kept(t, st, "one", nil, results[:2]...)
	kept(t, st, "one", nil, results[:1]...)
	kept(t, st, "two", nil, results...)
	kept(t, st, "two", model.Doubts{{Code: model.Unreached}})
	kept(t, st, "one", nil) // its user stopped it before it sent
	d := sample.Router()
	d.Plan.Target = "one"
	running, err := st.Create(d)
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range []map[string]float64{{"pelt_run_trials": 1}, {"pelt_run_trials": 1}, {"pelt_run_trials": 2}} {
		if n > 0 {
			if err := running.Append(results[n]); err != nil {
				t.Fatal(err)
			}
		}
		got := scrape(t, h)
		want["pelt_up"] = 1
		for name, want := range want {
			if is := got(name, "one"); is != want {
				t.Errorf("after %d trials %s of one is %v, want %v", n, name, is, want)
			}
		}
		if up, trials := got("pelt_up", "two"), got("pelt_run_trials", "two"); up != 0 || trials != absent {
			t.Errorf("two did not answer, and pelt_up is %v after %v trials", up, trials)
		}
	}
	if err := running.Close(); err != nil {
		t.Fatal(err)
	}
}

// kept stores a run that has ended.
func kept(t *testing.T, st *store.Store, target string, warnings model.Doubts, results ...model.Result) {
	t.Helper()
	d := sample.Router()
	d.Plan.Target, d.Results, d.Warnings = target, results, warnings
	run, err := st.Create(d)
	for _, r := range results {
		if err == nil {
			err = run.Append(r)
		}
	}
	if err == nil {
		err = run.End(d)
	}
	if err == nil {
		err = run.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

const absent = -1

// scrape returns the figures of an answer by name and target, of several the last.
func scrape(t *testing.T, h http.Handler) func(name, target string) float64 {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if kind := w.Header().Get("Content-Type"); w.Code != 200 || kind != "text/plain; version=0.0.4; charset=utf-8" {
		t.Fatalf("%d %s: %s", w.Code, kind, w.Body)
	}
	text := w.Body.String()
	parser := expfmt.NewTextParser(prom.LegacyValidation)
	families, err := parser.TextToMetricFamilies(w.Body)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return func(name, target string) float64 {
		found := float64(absent)
		for _, m := range families[name].GetMetric() {
			for _, l := range m.Label {
				if l.GetName() == "target" && l.GetValue() == target {
					found = m.Gauge.GetValue()
				}
			}
		}
		return found
	}
}
