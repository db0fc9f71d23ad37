package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"pelt/analysis/compare"
	"pelt/model"
	"pelt/report/internal/sample"
)

// comparisons are those of the sample runs.
func comparisons(t *testing.T) map[string]model.Comparison {
	t.Helper()
	all, err := compare.ParseMetrics(compare.DefaultMetrics)
	if err != nil {
		t.Fatal(err)
	}
	limits := []string{"goodput < -5%", "delay_p99 > 20%"}
	finish := func(c model.Comparison, err error) model.Comparison {
		if err != nil {
			t.Fatal(err)
		}
		var list []compare.Limit
		for _, text := range limits {
			l, err := compare.ParseLimit(text)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, l)
		}
		c.Limits = compare.Judge(c, list)
		return c
	}
	out := map[string]model.Comparison{
		"variants": finish(compare.Levels(sample.Variants(), "variant", "", all)),
		"routers":  finish(compare.Runs(sample.Routers(), all)),
	}
	limits = nil
	nasty := finish(compare.Levels(sample.Variants(), "variant", "log", all))
	nasty.Sides[0].Name, nasty.Sides[1].Name = "\x1b[31m<script>alert(1)</script>", "=1+1\u202e"
	nasty.Sides[1].Router.Model = "<img src=x>\x00"
	nasty.Verdict, nasty.LeftOut = "<b>\x1b[2J\n", []string{"</style><script>\r"}
	out["nasty"] = nasty
	return out
}

func TestCompareGolden(t *testing.T) {
	all := comparisons(t)
	for _, c := range []struct {
		name  string
		width int
	}{{"variants", 80}, {"variants", 120}, {"routers", 80}} {
		var b bytes.Buffer
		if err := CompareText(&b, all[c.name], c.width, false); err != nil {
			t.Fatal(err)
		}
		golden(t, fmt.Sprintf("compare-%s-%d.txt", c.name, c.width), b.Bytes())
		for i, line := range bytes.Split(b.Bytes(), []byte("\n")) {
			if n := len([]rune(string(line))); n > c.width {
				t.Errorf("%s: line %d has %d characters of %d: %s", c.name, i+1, n, c.width, line)
			}
		}
	}
	for _, name := range []string{"routers"} {
		var b bytes.Buffer
		if err := CompareCSV(&b, all[name]); err != nil {
			t.Fatal(err)
		}
		golden(t, "compare-"+name+".csv", b.Bytes())
	}
}

func TestCompareIsSafe(t *testing.T) {
	nasty := comparisons(t)["nasty"]
	var text, page, table, document bytes.Buffer
	if err := errors.Join(CompareText(&text, nasty, 80, false), CompareHTML(&page, nasty), CompareCSV(&table, nasty), CompareJSON(&document, nasty)); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"\x1b", "\u202e", "\x00", "\r"} {
		if strings.Contains(text.String(), bad) || strings.Contains(page.String(), bad) || strings.Contains(table.String(), bad) {
			t.Errorf("%q comes through", bad)
		}
	}
	for _, bad := range []string{"<script", "<img", "<b>\x1b", "<b>·"} {
		if strings.Contains(page.String(), bad) {
			t.Errorf("%q comes through to the page", bad)
		}
	}
	if strings.Contains(table.String(), "\n=") {
		t.Error("a spreadsheet would take a name for a formula")
	}
	var back model.Comparison
	if err := json.Unmarshal(document.Bytes(), &back); err != nil || back.Format != model.CompareFormat || len(back.Effects) != len(nasty.Effects) {
		t.Errorf("read back: %v, format %q, %d effects", err, back.Format, len(back.Effects))
	}
	if strings.Contains(document.String(), "null") {
		t.Error("a list of the document is null")
	}
}

// A comparison of nothing, and numbers that are none, print all the same.
func TestCompareOddNumbers(t *testing.T) {
	for _, c := range []model.Comparison{{}, {Sides: []model.ComparedSide{{}, {}}, Effects: []model.Effect{{Side: 1, Change: math.NaN(), Low: math.Inf(-1), High: math.Inf(1), Baseline: model.Sampled{Mean: math.NaN()}}}}} {
		var b bytes.Buffer
		if err := errors.Join(CompareText(&b, c, 40, true), CompareHTML(&b, c), CompareCSV(&b, c), CompareJSON(&b, c)); err != nil {
			t.Error(err)
		}
	}
}

// TestCompareInBrowser opens pages of comparisons where nothing runs and nothing is fetched.
func TestCompareInBrowser(t *testing.T) {
	ctx := browser(t)
	all := comparisons(t)
	for _, c := range []struct {
		name  string
		width int64
		bars  int // that are drawn: of rates and of processors
	}{{"variants", 1280, 48}, {"routers", 360, 24}, {"nasty", 360, 48}} {
		t.Run(fmt.Sprintf("%s/%d", c.name, c.width), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "compare.html")
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(CompareHTML(f, all[c.name]), f.Close()); err != nil {
				t.Fatal(err)
			}
			page := (&url.URL{Scheme: "file", Path: path}).String()
			got, v, err := look(ctx, page, c.width, "light")
			if err != nil {
				t.Fatal(err)
			}
			v.mu.Lock()
			defer v.mu.Unlock()
			if len(v.problems) > 0 || !slices.Equal(v.requests, []string{page}) {
				t.Errorf("the browser complained %q and fetched %q; want the page alone", v.problems, v.requests)
			}
			if got.Overflow > 0 || len(got.Wide) > 0 || got.Scripts != 0 || got.Images != 0 || got.Heading == "" {
				t.Errorf("wider by %v px: %q; %d scripts, %d images, heading %q", got.Overflow, got.Wide, got.Scripts, got.Images, got.Heading)
			}
			tab, closeTab := chromedp.NewContext(ctx)
			defer closeTab()
			if err := chromedp.Do(tab, chromedp.EmulateViewport(c.width, 900), chromedp.Navigate(page)); err != nil {
				t.Fatal(err)
			}
			bars, err := chromedp.Run(tab, chromedp.Evaluate[int](`[...document.querySelectorAll("svg.gauge")].filter(s => s.getBoundingClientRect().width > 50 && s.querySelector("rect").getBoundingClientRect().width > 0).length`))
			if err != nil {
				t.Fatal(err)
			}
			if bars != c.bars {
				t.Errorf("%d bars drawn; want %d", bars, c.bars)
			}
		})
	}
}

// A loss of one packet in a million is not told as none.
func TestCompareHTMLOfTinyLoss(t *testing.T) {
	d := sample.Variants()
	for i := range d.Results {
		for j := range d.Results[i].Flows {
			d.Results[i].Flows[j].LossRatio = 1e-6
		}
	}
	all, err := compare.ParseMetrics(compare.DefaultMetrics)
	if err != nil {
		t.Fatal(err)
	}
	c, err := compare.Levels(d, "variant", "", all)
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := CompareHTML(&page, c); err != nil {
		t.Fatal(err)
	}
	if s := page.String(); strings.Contains(s, ">0 % lost") || !strings.Contains(s, "&lt;0.001 % lost") {
		t.Errorf("%d times 0 %% lost, %d times less than 0.001 %%", strings.Count(s, ">0 % lost"), strings.Count(s, "&lt;0.001 % lost"))
	}
}
