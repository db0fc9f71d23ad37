package report

import (
	"bytes"
	"encoding/csv"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"pelt/model"
	"pelt/report/bench"
	"pelt/report/internal/sample"
)

// few keeps some trials of a bench: plain, both at once, not valid, never seen,
// seen in part.
func few() model.Document {
	d := sample.Bench()
	var kept []model.Result
	for _, i := range []int{0, 6, 10, 20, 38} {
		kept = append(kept, d.Results[i])
	}
	d.Results = kept
	return d
}

func TestBenchPlansAreSound(t *testing.T) {
	for _, d := range []model.Document{sample.Bench(), sample.BenchLab()} {
		if err := d.Plan.Check(); err != nil {
			t.Errorf("the sample's plan cannot be run: %v", err)
		}
	}
}

func TestBenchCSV(t *testing.T) {
	var b bytes.Buffer
	if err := CSV(&b, few()); err != nil {
		t.Fatal(err)
	}
	golden(t, "bench.csv", b.Bytes())
	records, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) int { return slices.Index(records[0], name) }
	seen := 0
	for _, r := range records[1:] {
		if r[at("protocol")] == "tcp" && r[at("frame_bytes")] != "1518" {
			t.Errorf("TCP: frame_bytes %q; want the flow's where the cell sets none", r[at("frame_bytes")])
		}
		if r[at("router_softirq_ratio")] != "" {
			seen++
		} else if r[at("router_gaps")] == "" || r[at("router_busiest_core")] != "" {
			t.Errorf("a router that nobody saw: gaps %q, busiest core %q", r[at("router_gaps")], r[at("router_busiest_core")])
		}
	}
	if seen != 5 || at("variant") < 0 || at("set_protocol") >= 0 {
		t.Errorf("%d rows with the router's time; want 5. Columns %q", seen, records[0])
	}
	if b.Reset(); CSV(&b, sample.Both()) != nil || strings.Contains(b.String(), "router_") {
		t.Error("columns of a router in a run without one")
	}
}

// A run whose router told nothing still has its rates, and says so once.
func TestBenchWithoutRouter(t *testing.T) {
	d := few()
	d.Router = nil
	for i := range d.Results {
		d.Results[i].Router = nil
	}
	var text, page bytes.Buffer
	if err := errors.Join(Text(&text, d, 120, false), HTML(&page, d)); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), "not observed"); n != 1 || strings.Contains(text.String(), "sirq") || !strings.Contains(text.String(), "42.1") {
		t.Errorf("says %d times that the router was not observed; want once, no column of its time, and the rates:\n%s", n, text.String())
	}
}

// A setting whose trials are all not valid is marked, and one without the router
// has dashes.
func TestBenchTextMarks(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"not valid", `(?m)^WAN→LAN +256 B! .*`}, {"why", `(?m)^  ! WAN→LAN, 256 B, plain, trial 1: invalid: flow down`},
		{"never seen", `(?m)^WAN→LAN +1518 B .*–   –    –    –    –$`}, {"gap", `(?m)^  ! LAN→WAN, 512 B, log, trial 2: router not observed from t=6.0 s to t=9.0 s:$`},
	} {
		var b bytes.Buffer
		if err := Text(&b, few(), 80, false); err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(c.want).MatchString(b.String()) {
			t.Errorf("%s: no line like %s in\n%s", c.name, c.want, b.String())
		}
	}
}

// The wide table has every column that top has; the narrow one keeps those that
// tell whether the router or the link was the limit.
func TestBenchColumnsByWidth(t *testing.T) {
	heads := func(width int) []string {
		var b bytes.Buffer
		if err := Text(&b, sample.Bench(), width, false); err != nil {
			t.Fatal(err)
		}
		for _, l := range strings.Split(b.String(), "\n") {
			if strings.HasPrefix(l, "path ") {
				return strings.Fields(l)
			}
		}
		t.Fatalf("no table at %d", width)
		return nil
	}
	for _, c := range []struct {
		width int
		want  []string
	}{{80, []string{"kpps", "Mbit/s", "loss", "RTT", "sys", "idle", "sirq", "core"}}, {140, []string{"usr", "sys", "nic", "idle", "io", "irq", "sirq", "core", "Mbit/%", "/packet"}}} {
		got := heads(c.width)
		for _, h := range c.want {
			if !slices.Contains(got, h) {
				t.Errorf("at %d: no column %q in %q", c.width, h, got)
			}
		}
	}
}

// benchShown is what a reader sees of the charts: see benchFacts.
type benchShown struct {
	Trial  string `json:"trial"`
	Chosen int    `json:"chosen"` // rows marked
	Note   string `json:"note"`
	Legend string `json:"legend"`
	Charts int    `json:"charts"`
	Gap    bool   `json:"gap"` // the pile is there before and behind the gap, and not in it
}

// benchFacts looks at the chosen trial. In the sample's gap, from 6 to 9 of 10 s,
// the canvas must not show the colour that the foot of the pile has elsewhere.
const benchFacts = `(() => {
  const whole = document.querySelector("#bench-whole canvas"), select = document.getElementById("bench-trial"), over = document.querySelector("#bench-whole .u-over");
  const box = whole.getBoundingClientRect(), o = over.getBoundingClientRect(), r = whole.width / box.width, wide = Math.round(o.width * r);
  const line = whole.getContext("2d").getImageData(Math.round((o.left - box.left) * r), Math.round((o.bottom - box.top - 6) * r), wide, 1).data;
  const seen = s => { const found = new Set(); for (let x = Math.round(wide * s / 10), n = 0; n < 12; n++, x++) found.add(line.slice(4 * x, 4 * x + 3).join()); return [...found].sort().join(" "); };
  return {
    trial: select.selectedOptions[0].textContent, chosen: document.querySelectorAll("table.bench tr.chosen").length, note: document.getElementById("bench-note").textContent,
    legend: document.getElementById("bench-legend").textContent, charts: document.querySelectorAll(".benchtime canvas").length,
    gap: [6.05, 7.5, 8.8].every(x => !seen(x).includes(seen(2.5))) && [0.1, 5.8, 9.1, 9.8].every(x => seen(x) === seen(2.5)),
  };
})()`

func TestBenchInBrowser(t *testing.T) {
	ctx := browser(t)
	v := &visit{}
	if err := v.listen(ctx); err != nil {
		t.Fatal(err)
	}
	page := writePage(t, sample.Bench())
	paint := chromedp.Evaluate[chromedp.Void](settled, chromedp.EvalAwaitPromise)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(page), paint); err != nil {
		t.Fatal(err)
	}
	after := func(script string) benchShown {
		t.Helper()
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](script+"; true")); err != nil {
			t.Fatal(err)
		}
		if err := chromedp.Do(ctx, paint); err != nil {
			t.Fatal(err)
		}
		got, err := chromedp.Run(ctx, chromedp.Evaluate[benchShown](benchFacts))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	data := newBenchData(sample.Bench())
	first := after("0")
	if want := data.Trials[data.Chosen].Name; first.Trial != want || first.Chosen != 1 || first.Charts != 6 || first.Gap {
		t.Errorf("at first %+v; want trial %q, its row marked, 6 charts, no gap", first, want)
	}
	gap := slices.IndexFunc(data.Trials, func(b benchTrial) bool { return strings.Contains(b.Note, "t=6.0 s") })
	row := data.Trials[gap].Row
	after(`document.querySelector('table.bench tr[data-row="` + strconv.Itoa(row) + `"]').click()`)
	got := after(`(() => { const s = document.getElementById("bench-trial"); s.value = ` + strconv.Itoa(gap) + `; s.dispatchEvent(new Event("change")); })()`)
	if got.Trial != "LAN→WAN, 512 B, log, trial 2" || !strings.Contains(got.Note, "not observed from t=6.0 s to t=9.0 s") || !got.Gap {
		t.Errorf("the trial with a gap: %+v", got)
	}
	never := slices.IndexFunc(data.Trials, func(b benchTrial) bool { return b.Row != row && len(b.Note) > 0 })
	got = after(`(() => { const s = document.getElementById("bench-trial"); s.value = ` + strconv.Itoa(never) + `; s.dispatchEvent(new Event("change")); })()`)
	if !strings.Contains(got.Note, "the connection was closed") {
		t.Errorf("the trial that never saw the router: %+v", got)
	}
	if got = after(`document.getElementById("bench-packets").click()`); !strings.Contains(got.Legend, "kpps (left)") {
		t.Errorf("after kpps: legend %q", got.Legend)
	}
	columns := bench.Fold(sample.Bench()).Columns()
	idle := slices.IndexFunc(columns, func(c bench.Column) bool { return c.Key == "idle" }) + 2
	sorted, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.querySelectorAll("table.bench th button")[`+strconv.Itoa(idle)+`].click(), document.querySelector("table.bench tbody td").textContent`))
	if err != nil || !strings.Contains(sorted, "64 B, 1 kpps") {
		t.Errorf("sorted by idle: %q stands first, %v; want the idle path", sorted, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.problems) > 0 {
		t.Errorf("the browser complained: %q", v.problems)
	}
}
