package report

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"pelt/model"
	"pelt/report/internal/sample"
)

// patience is how long Chromium may take to start, or to show a page: it has
// only the processor time that the rest of the machine leaves.
const patience = 5 * time.Minute

// browser starts one headless Chromium for a test. Without it the test fails
// where CI=true, and is skipped elsewhere: a developer may not have one.
func browser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the report must be opened in a browser: %v (Debian: apt install chromium)", err)
		}
		t.Skipf("no chromium to open the report in: %v (Debian: apt install chromium)", err)
	}
	allocator, stop := chromedp.NewExecAllocator(t.Context(), chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(patience),
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true))
	t.Cleanup(stop)
	ctx, closeBrowser := chromedp.NewContext(allocator)
	t.Cleanup(closeBrowser) // waits for the process, so that its directory can go
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("starting %s: %v", path, err)
	}
	return ctx
}

// visit is what a page did beside showing itself.
type visit struct {
	mu       sync.Mutex
	problems []string
	requests []string
}

func (v *visit) listen(ctx context.Context) error {
	return chromedp.Listen(ctx, func(event any) {
		v.mu.Lock()
		defer v.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			v.problems = append(v.problems, fmt.Sprintf("console.%s", e.Type))
		case *runtime.EventExceptionThrown:
			v.problems = append(v.problems, e.ExceptionDetails.Text+" "+e.ExceptionDetails.Exception.Description)
		case *log.EventEntryAdded:
			v.problems = append(v.problems, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
		case *network.EventRequestWillBeSent:
			v.requests = append(v.requests, e.Request.URL)
		}
	})
}

// writePage puts a report where a browser can open it.
func writePage(t *testing.T, doc model.Document) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := HTML(f, doc); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// facts is what the page says of itself: see pageFacts.
type facts struct {
	Charts   int      `json:"charts"`
	Blank    []string `json:"blank"`
	Overflow float64  `json:"overflow"`
	Wide     []string `json:"wide"`
	Scripts  int      `json:"scripts"`
	Images   int      `json:"images"`
	Heading  string   `json:"heading"`
	Back     string   `json:"back"`
	Tip      string   `json:"tip"`
}

// pageFacts looks at the finished page: a canvas is blank if all its pixels are alike.
const pageFacts = `(() => {
  const out = {charts: 0, blank: [], wide: []};
  for (const c of document.querySelectorAll("canvas")) {
    out.charts++;
    const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
    const seen = new Set();
    for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 200) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
    if (seen.size < 3) out.blank.push(c.closest(".chart").id);
  }
  const root = document.documentElement;
  out.overflow = root.scrollWidth - root.clientWidth;
  for (const e of document.querySelectorAll("body *"))
    if (!e.closest(".scroll") && !e.closest(".u-wrap") && e.getBoundingClientRect().right > root.clientWidth + 0.5) out.wide.push(e.tagName + "." + e.className);
  out.scripts = document.scripts.length;
  out.images = document.images.length;
  out.heading = document.querySelector("h1").textContent;
  out.back = getComputedStyle(document.body).backgroundColor;
  return out;
})()`

// middleOfChart scrolls the first chart into view and says where its middle is.
const middleOfChart = `(() => {
  const over = document.querySelector(".u-over");
  over.scrollIntoView({block: "center"});
  const r = over.getBoundingClientRect();
  return [r.left + r.width / 2, r.top + r.height / 2];
})()`

const tipText = `(() => { const t = document.querySelector(".tip"); return t && t.style.display === "block" ? t.textContent : ""; })()`

// settled waits for the frame after the next, when every canvas is painted.
const settled = `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0))))`

// look opens the page as a reader would and reports what it shows and does.
func look(ctx context.Context, page string, width int64, scheme string) (facts, *visit, error) {
	ctx, closeTab := chromedp.NewContext(ctx)
	defer closeTab()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	v := &visit{}
	if err := v.listen(ctx); err != nil {
		return facts{}, v, err
	}
	dress := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, dress); err != nil {
		return facts{}, v, err
	}
	paint := chromedp.Evaluate[chromedp.Void](settled, chromedp.EvalAwaitPromise)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(width, 900, chromedp.EmulateScale(2)), chromedp.Navigate(page), paint); err != nil {
		return facts{}, v, err
	}
	got, err := chromedp.Run(ctx, chromedp.Evaluate[facts](pageFacts))
	if err != nil || got.Charts == 0 {
		return got, v, err
	}
	at, err := chromedp.Run(ctx, chromedp.Evaluate[[]float64](middleOfChart))
	if err != nil {
		return got, v, err
	}
	point := chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at[0], at[1])
	if err := chromedp.Do(ctx, paint, point, paint); err != nil {
		return got, v, err
	}
	got.Tip, err = chromedp.Run(ctx, chromedp.Evaluate[string](tipText))
	return got, v, err
}

func TestHTMLInBrowser(t *testing.T) {
	ctx := browser(t)
	views := []struct {
		name   string
		width  int64
		scheme string
		back   string
	}{
		{"desktop light", 1280, "light", "rgb(246, 247, 249)"},
		{"desktop dark", 1280, "dark", "rgb(15, 19, 23)"},
		{"phone", 360, "light", "rgb(246, 247, 249)"},
	}
	charts := map[string]int{"router": 6, "single": 2, "tcp": 6, "invalid": 6, "aborted": 6, "streams": 6, "bench": 6, "benchlab": 4, "cc": 3, "ccmix": 3, "soak": 3, "empty": 0}
	for _, d := range sample.All() {
		if slices.Contains([]string{"both", "loss", "roundtrip", "ipv6", "rates", "ledger", "unwatched", "chain", "soaklong", "soakcut", "zero"}, d.Name) {
			continue // their pages are built of the same parts as the others'
		}
		page := writePage(t, d.Doc)
		for i, view := range views {
			if i < len(views)-1 && d.Name != "router" && d.Name != "nasty" && d.Name != "numbers" {
				continue // the phone is the hardest view; colours are the same for all
			}
			t.Run(d.Name+"/"+view.name, func(t *testing.T) {
				got, v, err := look(ctx, page, view.width, view.scheme)
				if err != nil {
					t.Fatal(err)
				}
				v.mu.Lock()
				defer v.mu.Unlock()
				if len(v.problems) > 0 {
					t.Errorf("the browser complained: %q", v.problems)
				}
				for _, r := range v.requests {
					if r != page && !strings.HasPrefix(r, "data:") {
						t.Errorf("the page fetched %s", r)
					}
				}
				if len(v.requests) == 0 {
					t.Error("no request seen, not even of the page itself: the test is blind")
				}
				if want, known := charts[d.Name]; known && got.Charts != want {
					t.Errorf("%d charts drawn; want %d", got.Charts, want)
				}
				if len(got.Blank) > 0 {
					t.Errorf("blank charts: %q", got.Blank)
				}
				if got.Overflow > 0 || len(got.Wide) > 0 {
					t.Errorf("wider than the window by %v px: %q", got.Overflow, got.Wide)
				}
				if got.Scripts != 2 || got.Images != 0 || got.Heading == "" {
					t.Errorf("%d scripts, %d images, heading %q; want 2, 0 and some", got.Scripts, got.Images, got.Heading)
				}
				if got.Back != view.back {
					t.Errorf("background %s; want %s", got.Back, view.back)
				}
				if got.Charts > 0 && got.Tip == "" {
					t.Error("no tip under the pointer")
				}
			})
		}
	}
}

// A change of a trial stands under the pointer at its second, and as a line.
func TestChangeInBrowser(t *testing.T) {
	tab, closeTab := chromedp.NewContext(browser(t))
	defer closeTab()
	v := &visit{}
	if err := v.listen(tab); err != nil {
		t.Fatal(err)
	}
	const at80 = `(() => {
  const over = document.querySelector("#time-rate .u-over");
  over.scrollIntoView({block: "center"});
  const r = over.getBoundingClientRect();
  return [r.left + r.width * 80.4 / 120, r.top + r.height / 2];
})()`
	// Pixels of the column at 80 s that are less transparent than those two seconds before.
	const dotted = `(() => {
  const c = document.querySelector("#time-rate canvas"), over = document.querySelector("#time-rate .u-over"), r = devicePixelRatio;
  const box = over.getBoundingClientRect(), own = c.getBoundingClientRect();
  const x = s => Math.round((box.left - own.left + box.width * s / 120) * r) - 1, width = x(80) - x(78) + 3, height = Math.round(box.height * r);
  const all = c.getContext("2d").getImageData(x(78), Math.round((box.top - own.top) * r), width, height).data;
  let n = 0;
  for (let y = 0; y < height; y++) for (let i = 0; i < 3; i++) {
    const there = (y * width + i) * 4 + 3, here = (y * width + width - 3 + i) * 4 + 3;
    if (all[here] - all[there] > 60) n++;
  }
  return n;
})()`
	paint := chromedp.Evaluate[chromedp.Void](settled, chromedp.EvalAwaitPromise)
	if err := chromedp.Do(tab, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(writePage(t, sample.Single())), paint); err != nil {
		t.Fatal(err)
	}
	at, err := chromedp.Run(tab, chromedp.Evaluate[[]float64](at80))
	if err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(tab, paint, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at[0], at[1]), paint); err != nil {
		t.Fatal(err)
	}
	tip, err := chromedp.Run(tab, chromedp.Evaluate[string](tipText))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(tip, "change found: received 262 → 100 kpps") {
		t.Errorf("the tip at 80 s says %q", tip)
	}
	dots, err := chromedp.Run(tab, chromedp.Evaluate[int](dotted))
	if err != nil {
		t.Fatal(err)
	}
	if dots < 20 {
		t.Errorf("%d pixels at 80 s differ from those beside; want a line", dots)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.problems) > 0 {
		t.Errorf("the browser complained: %q", v.problems)
	}
}

// The levels of a link are told with their digits and units, under the pointer as on the axis.
func TestLevelsInBrowser(t *testing.T) {
	d := sample.Rates()
	levels := []model.Value{model.Number(0.0001), model.Number(0.0005), model.Number(0.001)}
	d.Plan.Factors = []model.Factor{{Knob: "link.loss_ratio", Levels: levels}}
	d.Results = d.Results[:len(levels)]
	for i, v := range levels {
		d.Results[i].Cell = model.Cell{"link.loss_ratio": v}
	}
	got, v, err := look(browser(t), writePage(t, d), 1280, "light")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got.Tip, "0.05 %") {
		t.Errorf("the tip in the middle of 0.01, 0.05 and 0.1 %% says %q", got.Tip)
	}
	if len(v.problems) > 0 {
		t.Errorf("the browser complained: %q", v.problems)
	}
}

// drawn is what the pictures of the path look like: see pictureFacts.
type drawn struct {
	Shown   []string `json:"shown"`
	Touch   []string `json:"touch"`
	Outside []string `json:"outside"`
	Texts   int      `json:"texts"`
	Small   float64  `json:"small"`
	Falls   int      `json:"falls"`
}

// pictureFacts looks at the picture that is shown: words that lie over each
// other or beyond its edge, and how small they are.
const pictureFacts = `(() => {
  const out = {shown: [], touch: [], outside: [], texts: 0, small: 99, falls: 0};
  for (const svg of document.querySelectorAll("svg.route")) {
    const frame = svg.getBoundingClientRect();
    if (!frame.width) continue;
    out.shown.push(svg.getAttribute("class"));
    out.falls += svg.querySelectorAll(".fall").length;
    const boxes = [...svg.querySelectorAll("text")].map(e => ({words: e.textContent, r: e.getBoundingClientRect(), size: parseFloat(getComputedStyle(e).fontSize) * frame.width / svg.viewBox.baseVal.width}));
    for (const [i, a] of boxes.entries()) {
      out.texts++;
      out.small = Math.min(out.small, a.size);
      if (a.r.left < frame.left - 1 || a.r.right > frame.right + 1 || a.r.top < frame.top - 1 || a.r.bottom > frame.bottom + 1) out.outside.push(a.words);
      for (const b of boxes.slice(i + 1)) {
        const wide = Math.min(a.r.right, b.r.right) - Math.max(a.r.left, b.r.left), high = Math.min(a.r.bottom, b.r.bottom) - Math.max(a.r.top, b.r.top);
        if (wide > 0.5 && high > 0.3 * Math.min(a.r.height, b.r.height)) out.touch.push(a.words + " / " + b.words);
      }
    }
  }
  return out;
})()`

// TestPictures opens pages without script and chooses one setting after the other.
func TestPictures(t *testing.T) {
	ctx := browser(t)
	for _, c := range []struct {
		name  string
		doc   model.Document
		falls []int // by panel
	}{
		{"ledger", sample.Ledger(), []int{7, 3, 1, 0}}, {"unwatched", sample.Unwatched(), []int{2, 2}}, {"chain", sample.Chain(), []int{11}},
		{"router", sample.Router(), []int{3, 3}}, {"nasty", sample.Nasty(), []int{4}},
	} {
		page := filepath.Join(t.TempDir(), "explain.html")
		f, err := os.Create(page)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(ExplainHTML(f, c.doc, Ask{All: true}), f.Close()); err != nil {
			t.Fatal(err)
		}
		for _, width := range []int64{1280, 1040, 760, 360} {
			t.Run(fmt.Sprintf("%s/%d", c.name, width), func(t *testing.T) {
				tab, closeTab := chromedp.NewContext(ctx)
				defer closeTab()
				v := &visit{}
				if err := v.listen(tab); err != nil {
					t.Fatal(err)
				}
				if err := chromedp.Do(tab, chromedp.EmulateViewport(width, 900), chromedp.Navigate((&url.URL{Scheme: "file", Path: page}).String())); err != nil {
					t.Fatal(err)
				}
				for i, falls := range c.falls {
					choose := fmt.Sprintf(`(() => { const l = document.querySelector("label[for=path-%d]"); if (l) l.click(); return true; })()`, i)
					if _, err := chromedp.Run(tab, chromedp.Evaluate[bool](choose)); err != nil {
						t.Fatal(err)
					}
					got, err := chromedp.Run(tab, chromedp.Evaluate[drawn](pictureFacts))
					if err != nil {
						t.Fatal(err)
					}
					class := "route wide"
					if width < 1040 {
						class = "route tall"
					}
					if !slices.Equal(got.Shown, []string{class}) {
						t.Errorf("panel %d: pictures %q are shown; want one, %s", i, got.Shown, class)
					}
					if got.Falls != falls {
						t.Errorf("panel %d: %d losses drawn; want %d", i, got.Falls, falls)
					}
					if len(got.Touch)+len(got.Outside) > 0 || got.Texts < 6 {
						t.Errorf("panel %d: of %d texts these touch: %q; these lie outside: %q", i, got.Texts, got.Touch, got.Outside)
					}
					if got.Small < 9 {
						t.Errorf("panel %d: text of %.1f px", i, got.Small)
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

func TestHTMLWithoutScript(t *testing.T) {
	ctx := browser(t)
	page := writePage(t, sample.Router())
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
	for _, want := range []string{"The charts need JavaScript", "400 kpps", "953 Mbit/s", "Where packets were lost", "How it was measured", "pelt curve 192.168.2.5:7358 --code CODE"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page without script lacks %q; it says\n%s", want, text)
		}
	}
	if strings.Contains(text, "Second by second") {
		t.Error("an empty chart section is shown without script")
	}
}
