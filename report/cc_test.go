package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"pelt/model"
	"pelt/report/internal/sample"
)

// cutTransfer is a trial whose time was over before all bytes were there.
func cutTransfer() model.Result {
	all := sample.Controls().Results
	i := slices.IndexFunc(all, func(r model.Result) bool {
		return !r.Flows[0].TCP.Completion.Done && r.Cell["control"].Text == "reno" && r.Repeat == 0
	})
	return all[i]
}

func TestControlPlansAreSound(t *testing.T) {
	for _, d := range []model.Document{sample.Controls(), sample.ControlMix()} {
		if err := d.Plan.Check(); err != nil {
			t.Errorf("the sample's plan cannot be run: %v", err)
		}
	}
}

func TestControlCSV(t *testing.T) {
	for _, c := range []struct {
		name string
		doc  model.Document
		keep []int
	}{{"cc", sample.Controls(), []int{0, 40, 60, 81, 85}}, {"ccmix", sample.ControlMix(), []int{3, 25}}} {
		var kept []model.Result
		for _, i := range c.keep {
			kept = append(kept, c.doc.Results[i])
		}
		c.doc.Results = kept
		var b bytes.Buffer
		if err := CSV(&b, c.doc); err != nil {
			t.Fatal(err)
		}
		golden(t, c.name+".csv", b.Bytes())
	}
	if b := (bytes.Buffer{}); CSV(&b, sample.TCP()) != nil || strings.Contains(b.String(), "completion") {
		t.Error("columns of a comparison in a run that is none")
	}
}

// What a spreadsheet needs of a trial, and of a stream, stands in its row; what is
// known of the whole trial only does not stand in a stream's.
func TestControlCSVSays(t *testing.T) {
	records := func(d model.Document) []map[string]string {
		var b bytes.Buffer
		if err := CSV(&b, d); err != nil {
			t.Fatal(err)
		}
		all, err := csv.NewReader(&b).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		var out []map[string]string
		for _, r := range all[1:] {
			m := map[string]string{}
			for i, h := range all[0] {
				m[h] = r[i]
			}
			out = append(out, m)
		}
		return out
	}
	cut := sample.Controls()
	cut.Results = []model.Result{cutTransfer()}
	got := records(cut)[0]
	for name, want := range map[string]string{"control": "reno", "condition": "10 % loss", "completion_s": "60", "completion_done": "false", "completion_by": "read", "stream": "", "tcp_min_rtt_ns": "40200000", "state": "valid"} {
		if got[name] != want {
			t.Errorf("%s = %q; want %q", name, got[name], want)
		}
	}
	mix := sample.ControlMix()
	mix.Results = mix.Results[len(mix.Results)-1:]
	rows := records(mix)
	if len(rows) != 3 {
		t.Fatalf("%d rows; want one of the trial and two of its streams", len(rows))
	}
	for n, want := range []string{"cubic", "bbr"} {
		r := rows[n+1]
		if r["stream"] != fmt.Sprint(n) || r["tcp_control"] != want || r["control"] != "cubic+bbr" || r["goodput_bps"] == rows[0]["goodput_bps"] || r["goodput_bps"] == "" || r["tcp_busy_s"] != "" || r["state"] != "valid" {
			t.Errorf("stream %d: %v", n, r)
		}
	}
}

func TestControlTextFits(t *testing.T) {
	for _, d := range []model.Document{sample.Controls(), sample.ControlMix()} {
		for _, width := range []int{40, 60, 80, 132} {
			var b bytes.Buffer
			if err := Text(&b, d, width, false); err != nil {
				t.Fatal(err)
			}
			for _, line := range strings.Split(b.String(), "\n") {
				if n := utf8.RuneCountInString(line); n > width {
					t.Errorf("at %d: line of %d characters: %q", width, n, line)
				}
			}
		}
	}
}

// A comparison without its table shows what any run shows.
func TestControlWithoutTable(t *testing.T) {
	d := sample.Controls()
	d.Control = nil
	var text, page, table bytes.Buffer
	if err := errors.Join(Text(&text, d, 120, false), HTML(&page, d), CSV(&table, d)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "up: sender to receiver, TCP") || !strings.Contains(page.String(), "up: sender to receiver, TCP") || strings.Contains(page.String(), "class=\"strips") {
		t.Errorf("no usual table of the flow:\n%s", text.String())
	}
}

func TestControlPageEscapes(t *testing.T) {
	var b bytes.Buffer
	if err := HTML(&b, sample.ControlHostile()); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if n := strings.Count(page, "<script"); n != 2 {
		t.Errorf("%d script tags; want 2", n)
	}
	for _, bad := range []string{"<svg onload", "\x1b", "\x00", "\u202e", "NaN", "Inf"} {
		if strings.Contains(strings.Split(page, "<script>")[0], bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
}

// Nothing in the page may point outside, nor be styled from within.
func TestControlPagePointsNowhere(t *testing.T) {
	var b bytes.Buffer
	if err := HTML(&b, sample.Controls()); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, bad := range []string{"src=", "@import", "url(", "fetch(", "XMLHttpRequest", "WebSocket", "<link rel=\"stylesheet", "//cdn", " style=", " onclick="} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if !strings.Contains(page, "default-src &#39;none&#39;") {
		t.Error("no content security policy that forbids fetching")
	}
}

// Every trial that counts is drawn once on each axis, those that were cut as such.
func TestControlStrips(t *testing.T) {
	v := newControlView(sample.Controls(), chartData{})
	for _, groups := range [][]stripGroup{v.Strips, v.Own} {
		if len(groups) != 3 {
			t.Fatalf("%d conditions; want 3", len(groups))
		}
		var open []int
		for _, g := range groups {
			for _, s := range g.Rows {
				n := 0
				for _, d := range s.Dots {
					if d.Open {
						n++
					}
				}
				open = append(open, n)
				if len(s.Dots) != 10 || s.BandX == "" || s.X == "" {
					t.Errorf("%s, %s: %d dots, band %q, interval %q; want 10 and both", g.Title, s.Name, len(s.Dots), s.BandX, s.X)
				}
			}
		}
		if want := []int{0, 0, 0, 0, 0, 0, 4, 0, 9}; !slices.Equal(open, want) {
			t.Errorf("trials drawn as cut: %v; want %v", open, want)
		}
	}
	if !v.Cut || len(v.Curves) != 3 || len(v.Scatter) != 3 || len(v.Contrasts) != 6 || len(v.Mathis) != 3 {
		t.Errorf("cut %v, %d curves, %d scatters, %d contrasts, %d checks with Mathis; want true, 3, 3, 6, 3", v.Cut, len(v.Curves), len(v.Scatter), len(v.Contrasts), len(v.Mathis))
	}
}

// What the findings say stands there only.
func TestControlSentencesStandOnce(t *testing.T) {
	d := sample.Controls()
	verdict, contrast := d.Control.Conditions[1].Verdict, d.Control.Contrasts[0].Text
	d.Findings = append(d.Findings, model.Finding{Text: verdict + " Beside it packets waited."}, model.Finding{Text: contrast})
	var text, page bytes.Buffer
	if err := errors.Join(Text(&text, d, 2000, false), HTML(&page, d)); err != nil {
		t.Fatal(err)
	}
	shown := newControlView(d, chartData{})
	if n := strings.Count(strings.Join(strings.Fields(text.String()), " "), verdict); n != 1 {
		t.Errorf("the text says %d times: %s", n, verdict)
	}
	if shown.Strips[1].Verdict != "" || shown.Strips[0].Verdict == "" || len(shown.Contrasts) != 5 {
		t.Errorf("verdicts %q and %q, %d contrasts; want the second left out, and 5", shown.Strips[0].Verdict, shown.Strips[1].Verdict, len(shown.Contrasts))
	}
}

// A curve of which trials were cut ends below the top; one that is whole goes on.
func TestControlCurvesStopShort(t *testing.T) {
	v := newControlView(sample.Controls(), chartData{})
	last := v.Curves[2]
	ends := regexp.MustCompile(`V([0-9.]+)H([0-9.]+)$`)
	for i, want := range [][]string{{"76.0", ""}, {"0.0", "1000"}, {"171.0", ""}} {
		got := ends.FindStringSubmatch(last.Curves[i].D)
		if got == nil || got[1] != want[0] || want[1] != "" && got[2] != want[1] || want[1] == "" && got[2] == "1000" {
			t.Errorf("curve %d ends with %q; want at height %s", i, got, want[0])
		}
	}
	if len(last.Marks) != 2 {
		t.Errorf("%d marks of curves that stop short; want 2", len(last.Marks))
	}
}

// The file holds one trial of each cell, and says how many it leaves out.
func TestControlDataIsBounded(t *testing.T) {
	d := sample.Controls()
	long := make([]float64, 40000)
	for i := range long {
		long[i] = float64(i)
	}
	for i := range d.Results {
		for j := range d.Results[i].Series {
			d.Results[i].Series[j].Values = long
		}
	}
	data := newControlData(d)
	if data.Left != 81 || len(data.Conditions) != 3 || data.Conditions[data.Chosen].Name != "10 % loss" {
		t.Errorf("%d trials left out, %d conditions, %q chosen; want 81, 3, that of 10 %% loss", data.Left, len(data.Conditions), data.Conditions[data.Chosen].Name)
	}
	for _, c := range data.Conditions {
		for _, l := range slices.Concat(c.Goodput, c.RTT, c.Window) {
			if len(l.Values) > maxChartPoints || len(l.Values) < 1000 {
				t.Errorf("%s, %s: %d points; want at most %d", c.Name, l.Name, len(l.Values), maxChartPoints)
			}
		}
		if len(c.Goodput) != 3 || len(c.RTT) != 3 || len(c.Window) != 3 {
			t.Errorf("%s: %d, %d and %d lines; want one a control", c.Name, len(c.Goodput), len(c.RTT), len(c.Window))
		}
	}
	if out, err := json.Marshal(data); err != nil || len(out) > 1<<20 {
		t.Errorf("%d bytes, %v; want less than 1 MiB", len(out), err)
	}
}

// controlFacts are words of a drawing that lie over each other or beyond the window.
const controlFacts = `(() => {
  const out = [], wide = document.documentElement.clientWidth;
  for (const svg of document.querySelectorAll("svg.xlabels, svg.ylabels")) {
    const all = [...svg.querySelectorAll("text")].map(e => ({words: e.textContent, r: e.getBoundingClientRect()})).filter(b => b.r.width);
    for (const [i, a] of all.entries()) {
      if (a.r.left < 0 || a.r.right > wide) out.push(a.words + " outside");
      for (const b of all.slice(i + 1))
        if (Math.min(a.r.right, b.r.right) - Math.max(a.r.left, b.r.left) > 0.5 && Math.min(a.r.bottom, b.r.bottom) - Math.max(a.r.top, b.r.top) > 4) out.push(a.words + " / " + b.words);
    }
  }
  return out;
})()`

func TestControlsInBrowser(t *testing.T) {
	ctx := browser(t)
	for _, d := range []model.Document{sample.Controls(), sample.ControlMix()} {
		page := writePage(t, d)
		for _, width := range []int64{1280, 400} {
			tab, closeTab := chromedp.NewContext(ctx)
			if err := chromedp.Do(tab, chromedp.EmulateViewport(width, 900), chromedp.Navigate(page)); err != nil {
				t.Fatal(err)
			}
			for _, axes := range []string{"axes-one", "axes-own"} {
				touch, err := chromedp.Run(tab, chromedp.Evaluate[[]string](`(() => { const a = document.getElementById("`+axes+`"); if (a) a.checked = true; })(), `+controlFacts))
				if err != nil || len(touch) > 0 {
					t.Errorf("%s at %d, %s: labels touch: %q, %v", filepath.Base(page), width, axes, touch, err)
				}
			}
			closeTab()
		}
	}
	tab, closeTab := chromedp.NewContext(ctx)
	defer closeTab()
	if err := chromedp.Do(tab, chromedp.Navigate(writePage(t, sample.Controls()))); err != nil {
		t.Fatal(err)
	}
	note, err := chromedp.Run(tab, chromedp.Evaluate[string](`(() => { const s = document.getElementById("cc-condition"); s.value = 1; s.dispatchEvent(new Event("change")); return s.selectedOptions[0].textContent + ": " + document.getElementById("cc-note").textContent + document.querySelectorAll(".cctime canvas").length; })()`))
	if want := regexp.MustCompile(`^1 % loss: Of each control the trial in the middle: cubic \d+, bbr \d+, reno \d+\.3$`); err != nil || !want.MatchString(note) {
		t.Errorf("after a choice: %q, %v; want it to match %s", note, err, want)
	}
}

// Without script all but the charts over time is there.
func TestControlsWithoutScript(t *testing.T) {
	ctx := browser(t)
	page := writePage(t, sample.Controls())
	if _, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(page)); err != nil {
		t.Fatal(err)
	}
	text, err := chromedp.Run(ctx, chromedp.Text("body"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"The charts over time need JavaScript", "7.18 s", "(2.24..2.67)", "not separable", "How many transfers had ended", "Goodput against delay", "bbr is 2.41 times as fast as cubic"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page without script lacks %q; it says\n%s", want, text)
		}
	}
	if strings.Contains(text, "Over time") {
		t.Error("an empty chart section is shown without script")
	}
}
