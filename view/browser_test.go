package view_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pelt/internal/testenv"
	"pelt/render"
	"pelt/test/browser"
	"pelt/view"
	"pelt/words"
)

// facts is what a page says of itself: see pageFacts.
type facts struct {
	Overflow float64  `json:"overflow"`
	Beyond   []string `json:"beyond"`
	Outside  []string `json:"outside"`
	Touching []string `json:"touching"`
	Cut      []string `json:"cut"`
	Pictures int      `json:"pictures"`
	Small    float64  `json:"small"`
	Text     string   `json:"text"`
	Markup   string   `json:"markup"`
	Back     string   `json:"back"`
	Load     float64  `json:"load"`
}

// pageFacts finds elements beyond the window, tables that are cut where there is room, words beyond their pictures or
// on other words, and the smallest words.
const pageFacts = `(() => {
  const out = {beyond: [], outside: [], touching: [], cut: [], pictures: 0, small: 99};
  const root = document.documentElement;
  out.overflow = root.scrollWidth - root.clientWidth;
  for (const e of document.querySelectorAll("body *"))
    if (!e.closest(".scroll") && !e.closest("svg") && e.id !== "tip" &&
	e.getBoundingClientRect().right > root.clientWidth + 0.5) out.beyond.push(e.tagName + "." + e.className);
  for (const e of document.querySelectorAll(".scroll"))
    if (e.scrollWidth > e.clientWidth + 1 && e.getBoundingClientRect().right < root.clientWidth - 40)
      out.cut.push(e.textContent.slice(0, 40));
  for (const svg of document.querySelectorAll("figure svg")) {
    const frame = svg.getBoundingClientRect();
    if (!frame.width) continue;
    out.pictures++;
    const words = [...svg.querySelectorAll("text")].map(e => ({text: e.textContent, box: e.getBoundingClientRect(),
	size: parseFloat(e.getAttribute("font-size")) * frame.width / svg.viewBox.baseVal.width}));
    for (const [i, a] of words.entries()) {
      out.small = Math.min(out.small, a.size);
      if (a.box.left < frame.left - 1 || a.box.right > frame.right + 1 || a.box.top < frame.top - 2 ||
	a.box.bottom > frame.bottom + 2) out.outside.push(a.text);
      for (const b of words.slice(i + 1)) {
        const wide = Math.min(a.box.right, b.box.right) - Math.max(a.box.left,
	b.box.left), high = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
        if (wide > 1 && high > 0.3 * Math.min(a.box.height, b.box.height)) out.touching.push(a.text + " / " + b.text);
      }
    }
  }
  out.text = document.body.innerText;
  out.markup = document.documentElement.outerHTML;
  out.back = getComputedStyle(document.body).backgroundColor;
  out.load = performance.getEntriesByType("navigation")[0].loadEventEnd;
  return out;
})()`

// backs are the colours of pages.
var backs = map[string]string{"light": "rgb(255, 255, 255)", "dark": "rgb(17, 21, 27)"}

// TestNightlyPagesInBrowser opens the page of every golden file once, and looks at it in every window.
func TestNightlyPagesInBrowser(t *testing.T) {
	testenv.Nightly(t)
	first := browser.Start(t)
	all := allPages(t, words.English)
	t.Run("script", func(t *testing.T) { checkScript(t, first.Another(t), all["sweep"]) })
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			page, tab := htmlFile(t, all[name]), first.Another(t)
			tab.Open(page)
			tab.EachWindow(name, func(w browser.Window) {
				got := browser.Evaluate[facts](tab, pageFacts)
				check(t, w.Name, got)
				if got.Back != backs[w.Scheme] {
					t.Errorf("%s: background %s; want %s", w.Name, got.Back, backs[w.Scheme])
				}
			})
			if list := tab.Problems(); len(list) > 0 {
				t.Errorf("the browser complained: %q", list)
			}
			if list := tab.Requests(); !slices.Equal(list, []string{page}) {
				t.Errorf("requests %q; want the page alone", list)
			}
		})
	}
}

// htmlFile writes a page and returns its address.
func htmlFile(t testing.TB, p view.Page) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.html")
	var b bytes.Buffer
	testenv.Must(t, render.HTML(&b, p))
	testenv.Must(t, os.WriteFile(path, b.Bytes(), 0o644))
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// check rejects what no page may have.
func check(t *testing.T, window string, got facts) {
	t.Helper()
	if got.Overflow > 0 || len(got.Beyond) > 0 {
		t.Errorf("%s: wider than the window by %v px: %q", window, got.Overflow, got.Beyond)
	}
	if len(got.Cut) > 0 {
		t.Errorf("%s: tables cut where there is room: %q", window, got.Cut)
	}
	if len(got.Outside) > 0 {
		t.Errorf("%s: words outside their pictures: %q", window, got.Outside)
	}
	if len(got.Touching) > 0 {
		t.Errorf("%s: words on words: %q", window, got.Touching)
	}
	if got.Pictures > 0 && got.Small < 9 {
		t.Errorf("%s: words of %.1f px", window, got.Small)
	}
	for _, bad := range []string{"NaN", "ZgotmplZ", "Infinity", "undefined"} {
		if strings.Contains(got.Text, bad) || strings.Contains(got.Markup, `"`+bad) {
			t.Errorf("%s: the page says %s", window, bad)
		}
	}
}

// checkScript: the script shows what a shape is, and sorts tables by their figures.
func checkScript(t *testing.T, tab *browser.Tab, p view.Page) {
	tab.Open(htmlFile(t, p))
	const hover = `(() => {
  const cell = document.querySelector("svg.wide rect[data-tip]"), box = cell.getBoundingClientRect();
  cell.dispatchEvent(new PointerEvent("pointermove", {bubbles: true, clientX: box.left + 5, clientY: box.top + 5}));
  const tip = document.querySelector("#tip");
  return tip.hidden ? "" : tip.textContent;
})()`
	tip := browser.Evaluate[string](tab, hover)
	if want := "256 B, no pause: 85.4 Mbit/s"; !strings.HasPrefix(tip, want) {
		t.Errorf("the tip of the first cell says %q; want %q", tip, want)
	}
	const sorted = `(() => {
  const head = [...document.querySelectorAll("th")].find(h => h.textContent === "Lost"), i = head.cellIndex;
  const rows = () => [...head.closest("table").tBodies[0].rows].map(r => +r.cells[i].dataset.v);
  const falls = a => a.every((v, i) => !i || a[i-1] >= v);
  head.click();
  const down = rows();
  head.click();
  return [down.length, falls(down) && down[0] > down.at(-1), falls(rows().reverse())];
})()`
	got := browser.Evaluate[[]any](tab, sorted)
	if want := "[410 true true]"; fmt.Sprint(got) != want {
		t.Errorf("rows, sorted down after a click, up after two: %v; want %s", got, want)
	}
}
