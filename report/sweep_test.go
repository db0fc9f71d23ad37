package report

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"pgregory.net/rapid"

	"pelt/model"
	"pelt/report/internal/sample"
	"pelt/report/rows"
)

func TestSweepTableGolden(t *testing.T) {
	d := sample.Sweep()
	for _, c := range []struct {
		name  string
		width int
		o     SweepOptions
	}{
		{"sweep-many-80", 80, SweepOptions{}},
		{"sweep-many-160", 160, SweepOptions{}},
		{"sweep-many-kib", 120, SweepOptions{Unit: KiBPerSecond}},
		{"sweep-many-delta", 100, SweepOptions{Sort: "delta", Ascending: true}},
	} {
		var b bytes.Buffer
		if err := SweepTable(&b, d, c.width, false, c.o); err != nil {
			t.Fatal(err)
		}
		golden(t, c.name+".txt", b.Bytes())
	}
}

// Every column sorts both ways, and settings that are not valid stay last.
func TestSweepSorts(t *testing.T) {
	d := sample.SmallSweep()
	table := rows.Fold(d)
	columns := sweepColumns(d.Plan, table.Keys, "")
	var names []string
	for _, c := range columns {
		names = append(names, c.key)
	}
	for _, want := range append(SweepColumns(), "receive_buffer_bytes") {
		if !slices.Contains(names, want) {
			t.Errorf("no column %q in %q", want, names)
		}
	}
	for _, name := range append(names, "payload", "payload_bytes", "interval_ns", "goodput", "send pps") {
		for _, up := range []bool{false, true} {
			of, err := sortSweep(table.Rows, columns, SweepOptions{Sort: name, Ascending: up})
			if err != nil {
				t.Fatal(err)
			}
			at, _ := findColumn(columns, name)
			for i := 1; i < len(of); i++ {
				a, b := of[i-1], of[i]
				x, y := columns[at].value(a), columns[at].value(b)
				if a.State != model.Valid && b.State == model.Valid {
					t.Errorf("by %s: a setting that is not valid stands before a valid one", name)
				}
				if a.State == b.State && (up && x > y || !up && x < y) {
					t.Errorf("by %s, ascending %v: %v stands before %v", name, up, x, y)
				}
			}
		}
	}
}

func TestSweepOptionsRefused(t *testing.T) {
	for _, c := range []struct {
		o    SweepOptions
		want string
	}{
		{SweepOptions{Sort: "beauty"}, `cannot sort by "beauty"; want one of receive_buffer_bytes, count, interval, size, loss, send, receive, delta, send-pps, receive-pps, range, delay, receivers`},
		{SweepOptions{Sort: "\x1b[31m"}, `cannot sort by "·[31m"`},
		{SweepOptions{Unit: "MiB/s"}, `unit of speeds "MiB/s": want KiB/s or none`},
	} {
		for _, write := range []func(io.Writer, model.Document, int, bool, SweepOptions) error{SweepTable, SweepText} {
			var b bytes.Buffer
			err := write(&b, sample.SmallSweep(), 80, false, c.o)
			var ask *AskError
			if !errors.As(err, &ask) || !strings.HasPrefix(err.Error(), c.want) || b.Len() > 0 {
				t.Errorf("%+v: error %v and %d bytes; want %q and none", c.o, err, b.Len(), c.want)
			}
		}
	}
}

func TestSweepSays(t *testing.T) {
	text := func(d model.Document, o SweepOptions) string {
		var b bytes.Buffer
		if err := SweepTable(&b, d, 160, false, o); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	all := text(sample.Sweep(), SweepOptions{All: true})
	if n := strings.Count(all, "\n"); n < 410 || strings.Contains(all, "more settings") {
		t.Errorf("%d lines of all 410 settings", n)
	}
	best := strings.Split(text(sample.Sweep(), SweepOptions{}), "\n")
	if len(best) < 2+mostSweepRows || !strings.HasPrefix(best[2+mostSweepRows], "… and 378 more settings; ") {
		t.Errorf("below %d rows stands %q", mostSweepRows, best[min(len(best)-1, 2+mostSweepRows)])
	}
	// Of many that are not valid, the last line says how many are not seen.
	d := sample.Sweep()
	for i := range d.Results {
		if d.Results[i].Cell["interval_ns"].Number == 0 {
			d.Results[i].State, d.Results[i].Why = model.Invalid, "the sender was too slow"
		}
	}
	if got := text(d, SweepOptions{}); !strings.Contains(got, "378 more settings, 41 of them not valid;") {
		t.Errorf("the settings that are not valid are not told of:\n%s", got)
	}
	if got := text(sample.SmallSweep(), SweepOptions{}); !strings.Contains(got, "1 of the 18 planned settings have no finished trial") || strings.Count(got, "1472!") != 2 {
		t.Errorf("missing settings, or those that are not valid, are not told of:\n%s", got)
	}
	kib := text(sample.Sweep(), SweepOptions{Unit: KiBPerSecond})
	for _, want := range []string{"send KiB/s", "receive KiB/s", "delta KiB/s", "11796", "117..118..119"} {
		if !strings.Contains(kib, want) {
			t.Errorf("the table in KiB/s lacks %q:\n%s", want, kib)
		}
	}
}

// The columns are those that people made by hand: interval, count and speeds
// are right for whatever sets the pace.
func TestSweepFigures(t *testing.T) {
	d := sample.SmallSweep()
	at := func(p model.Plan, r rows.Row, key string) float64 {
		columns := sweepFigures(p, "")
		i, err := findColumn(columns, key)
		if err != nil {
			t.Fatal(err)
		}
		return columns[i].value(r)
	}
	r := rows.Row{Flow: "up", Payload: 1280, Cell: model.Cell{"interval_ns": model.Number(7e6)},
		SendBPS: rows.Stat{Median: 13134 * 8192, N: 1}, GoodputBPS: rows.Stat{Median: 11705 * 8192, N: 1}, PacketsEach: rows.Stat{Median: 900, N: 1}}
	for _, c := range []struct {
		name string
		plan model.Plan
		cell model.Cell
		key  string
		want float64
	}{
		{"interval", d.Plan, r.Cell, "interval", 7e6},
		{"interval of a rate", model.Plan{}, model.Cell{"rate_pps": model.Number(1e4)}, "interval", 1e5},
		{"unpaced", model.Plan{}, model.Cell{"rate_pps": model.Word("max")}, "interval", 0},
		{"pace of the flow", model.Plan{Flows: []model.Flow{{Name: "up"}}}, nil, "interval", 0},
		{"no such flow", model.Plan{}, nil, "interval", math.NaN()},
		{"count as planned", d.Plan, r.Cell, "count", 1000},
		{"count as it came out", model.Plan{}, r.Cell, "count", 900},
		{"delta", d.Plan, r.Cell, "delta", 1429 * 8192},
	} {
		r.Cell = c.cell
		if got := at(c.plan, r, c.key); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%s: %v; want %v", c.name, got, c.want)
		}
	}
}

func TestSweepCSV(t *testing.T) {
	var b bytes.Buffer
	if err := CSV(&b, sample.SmallSweep()); err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"payload_bytes", "interval_ns", "receive_buffer_bytes", "receivers", "receiver_goodput_min_bps", "receiver_goodput_median_bps", "receiver_goodput_max_bps"} {
		if n := slices.Index(records[0], name); n < 0 || records[1][n] == "" {
			t.Errorf("column %q is not there, or empty", name)
		}
	}
	at := func(name string) float64 {
		v, _ := strconv.ParseFloat(records[1][slices.Index(records[0], name)], 64)
		return v
	}
	least, middle, most := at("receiver_goodput_min_bps"), at("receiver_goodput_median_bps"), at("receiver_goodput_max_bps")
	if !(0 < least && least < middle && middle < most) || at("receivers") != 4 {
		t.Errorf("receivers %v: %v, %v, %v; want 4 in ascending order", at("receivers"), least, middle, most)
	}
}

// Whatever a sweep's levels and figures are, every report of it can be written.
func TestNothingStopsASweep(t *testing.T) {
	odd := rapid.SampledFrom([]float64{0, -1, 1, 64, 1e6, 1e-300, 1e300, math.MaxFloat64, -math.MaxFloat64, math.NaN(), math.Inf(1), math.Inf(-1)})
	rapid.Check(t, func(t *rapid.T) {
		d := sample.SmallSweep()
		d.Results = d.Results[:rapid.IntRange(0, 14).Draw(t, "results")]
		for i := range d.Plan.Factors {
			d.Plan.Factors[i].Knob = rapid.SampledFrom([]string{"payload_bytes", "interval_ns", "rate_pps", "control", "", "x\x1b"}).Draw(t, "knob")
			d.Plan.Factors[i].Levels = []model.Value{model.Word("max"), model.Number(odd.Draw(t, "level"))}[:rapid.IntRange(0, 2).Draw(t, "levels")]
		}
		for i := range d.Results {
			r := &d.Results[i]
			for k := range r.Cell {
				if rapid.Bool().Draw(t, "change") {
					r.Cell[k] = model.Number(odd.Draw(t, k))
				}
			}
			for j := range r.Flows {
				f := &r.Flows[j]
				f.GoodputBPS, f.SendGoodputBPS, f.SendPPS = odd.Draw(t, "goodput"), odd.Draw(t, "sent"), odd.Draw(t, "pps")
				f.Receivers = slices.Clone(f.Receivers[:rapid.IntRange(0, len(f.Receivers)).Draw(t, "receivers")])
				for n := range f.Receivers {
					f.Receivers[n].GoodputBPS = odd.Draw(t, "share")
				}
				f.Delay = nil
			}
		}
		var b bytes.Buffer
		o := SweepOptions{Sort: rapid.SampledFrom(SweepColumns()).Draw(t, "sort"), Ascending: rapid.Bool().Draw(t, "up"), All: true, Unit: KiBPerSecond}
		if err := errors.Join(Text(&b, d, 80, true), SweepText(&b, d, 100, false, o), CSV(&b, d), JSON(&b, d), HTML(&b, d)); err != nil {
			t.Fatal(err)
		}
	})
}

// heatFacts is what the heat map looks like in a browser.
type heatFacts struct {
	Shown   int      `json:"shown"`
	Cells   int      `json:"cells"`
	Touch   []string `json:"touch"`
	Outside []string `json:"outside"`
	Sorted  []string `json:"sorted"`
	Last    string   `json:"last"`
	Hidden  bool     `json:"hidden"`
}

// lookAtHeat chooses one figure, sorts the table by a column, and says what is
// to be seen then.
const lookAtHeat = `((figure, head) => {
  document.querySelector("label[for=heat-" + figure + "]").click();
  const out = {shown: 0, cells: 0, touch: [], outside: [], sorted: [], hidden: getComputedStyle(document.querySelector(".script-inline")).display === "none"};
  for (const svg of document.querySelectorAll("svg.heatmap")) {
    const frame = svg.getBoundingClientRect();
    out.shown += [...svg.querySelectorAll(".layer")].filter(g => getComputedStyle(g).display !== "none").length;
    out.cells += svg.querySelectorAll(".over rect title").length;
    const boxes = [...svg.querySelectorAll("text")].filter(e => e.getBoundingClientRect().width > 0).map(e => ({words: e.textContent, r: e.getBoundingClientRect()}));
    for (const [i, a] of boxes.entries()) {
      if (a.r.left < frame.left - 1 || a.r.right > frame.right + 1 || a.r.top < frame.top - 1 || a.r.bottom > frame.bottom + 1) out.outside.push(a.words);
      for (const b of boxes.slice(i + 1)) {
        const wide = Math.min(a.r.right, b.r.right) - Math.max(a.r.left, b.r.left), high = Math.min(a.r.bottom, b.r.bottom) - Math.max(a.r.top, b.r.top);
        if (wide > 0.5 && high > 0.3 * Math.min(a.r.height, b.r.height)) out.touch.push(a.words + " / " + b.words);
      }
    }
  }
  const table = document.querySelector("table.sweep"), heads = [...table.tHead.rows[0].cells], at = heads.findIndex(h => h.textContent === head);
  const button = heads[at].querySelector("button");
  if (button) button.click();
  out.sorted = [...table.tBodies[0].rows].map(r => r.cells[at].textContent);
  out.last = table.tBodies[0].rows[table.tBodies[0].rows.length - 1].className;
  return out;
})`

func TestSweepInBrowser(t *testing.T) {
	ctx := browser(t)
	one := sample.Rates()
	one.Plan.Command = "sweep"
	for _, c := range []struct {
		name  string
		doc   model.Document
		maps  int
		cells int
		large string // sizes that stand first when sorted by size
		small string
	}{
		{"many", sample.Sweep(), 1, 410, "10240", "256"}, {"small", sample.SmallSweep(), 2, 17, "4096", "512"}, {"one row", one, 1, 4, "64", "64"},
	} {
		page := writePage(t, c.doc)
		for _, width := range []int64{1280, 800, 360} {
			t.Run(fmt.Sprintf("%s/%d", c.name, width), func(t *testing.T) {
				tab, closeTab := chromedp.NewContext(ctx)
				defer closeTab()
				v := &visit{}
				if err := v.listen(tab); err != nil {
					t.Fatal(err)
				}
				if err := chromedp.Do(tab, chromedp.EmulateViewport(width, 900), chromedp.Navigate(page)); err != nil {
					t.Fatal(err)
				}
				for figure := range 4 {
					got, err := chromedp.Run(tab, chromedp.Evaluate[heatFacts](fmt.Sprintf("%s(%d, 'size')", lookAtHeat, figure)))
					if err != nil {
						t.Fatal(err)
					}
					if got.Shown != c.maps || got.Cells != c.cells {
						t.Errorf("figure %d: %d layers with %d cells are shown; want %d with %d", figure, got.Shown, got.Cells, c.maps, c.cells)
					}
					if len(got.Touch)+len(got.Outside) > 0 {
						t.Errorf("figure %d: these texts touch: %q; these lie outside: %q", figure, got.Touch, got.Outside)
					}
					// Each look clicks the head again, which turns the order round.
					if first := []string{c.large, c.small}[figure%2]; got.Sorted[0] != first || c.name == "small" && got.Last != "invalid" || got.Hidden {
						t.Errorf("sorted by size: %q first, the last is %q; want %s", got.Sorted[0], got.Last, first)
					}
				}
				v.mu.Lock()
				defer v.mu.Unlock()
				if len(v.problems) > 0 {
					t.Errorf("the browser complained: %q", v.problems)
				}
			})
		}
	}
}

func TestSweepWithoutScript(t *testing.T) {
	ctx := browser(t)
	page := writePage(t, sample.SmallSweep())
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
	for _, want := range []string{"Every setting at a glance", "best: 1472 B, every 2 ms, receive buffer 212992 B: 3.87 Mbit/s", "not a valid trial", "1472!", "Each receiver at the best setting", "Sorted by receive speed."} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("the page without script lacks %q; it says\n%s", want, text)
		}
	}
}

// A knob of the plan that took one level is no column, and nothing to fail for.
func TestSortByOneLevel(t *testing.T) {
	doc := sample.SmallSweep()
	doc.Plan.Factors = append(doc.Plan.Factors, model.Factor{Knob: "link.loss_ratio", Levels: []model.Value{model.Number(0.01)}})
	var b strings.Builder
	if err := SweepText(&b, doc, 100, false, SweepOptions{Sort: "link.loss_ratio"}); err != nil || !strings.Contains(b.String(), "receive") {
		t.Errorf("%v: %s", err, b.String())
	}
}

// An explanation of a sweep tells of the losses of every setting, and has no map.
func TestExplainSweepPage(t *testing.T) {
	doc := sample.SmallSweep()
	p := newExplainPage(doc, nil)
	if !reflect.DeepEqual(p.Sweep, sweepView{}) {
		t.Error("it has the sweep's maps")
	}
	if whole := newPage(doc); len(p.Ledger.Panels) < len(whole.Ledger.Panels) || p.Ledger.Apart != 0 {
		t.Errorf("%d panels, %d apart; the report has %d", len(p.Ledger.Panels), p.Ledger.Apart, len(whole.Ledger.Panels))
	}
}

// The page tells settings of different numbers of receivers apart.
func TestPageKeepsTheNumberOfReceivers(t *testing.T) {
	d := sample.Sweep()
	d.Plan.Factors = append(slices.Clone(d.Plan.Factors), model.Factor{Knob: "receivers", Levels: []model.Value{model.Number(1), model.Number(10)}})
	columns := pageColumns(sweepColumns(d.Plan, []string{"payload_bytes", "receivers"}, ""))
	var heads []string
	for _, c := range columns {
		if c.key == "receivers" {
			heads = append(heads, c.head)
		}
	}
	if !slices.Equal(heads, []string{"receivers"}) {
		t.Errorf("columns of the key receivers: %q; want that of the factor alone", heads)
	}
}
