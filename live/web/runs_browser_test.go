package web

import (
	"context"
	"flag"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"pelt/internal/testenv"
	"pelt/test/sample"
)

var runPictures = flag.String("run-pictures", "", "directory to write pictures of the pages about runs to")

// TestNightlyRunsInBrowser finds a run, names it, compares two, deletes one and takes it back.
func TestNightlyRunsInBrowser(t *testing.T) {
	testenv.Nightly(t)
	testenv.Tool(t, "chromium")
	st, _ := storeOf(t)
	a, b := keep(t, st, sample.Router()), keep(t, st, sample.Router())
	keep(t, st, sample.SmallSweep())
	s := serverOf(t, Options{Store: st})
	h := httptest.NewServer(s)
	defer h.Close()
	allocator, stop := chromedp.NewExecAllocator(t.Context(), chromedp.UserDataDir(t.TempDir()),
		chromedp.WSURLReadTimeout(5*time.Minute), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Flag("disable-dev-shm-usage", true))
	defer stop()
	tab, closeTab := chromedp.NewContext(allocator)
	defer closeTab()
	if err := chromedp.Do(tab, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(h.URL+"/?token="+s.Token)); err != nil {
		t.Fatal(err)
	}
	until := func(what, condition string) {
		t.Helper()
		for end := time.Now().Add(testenv.Patience); ; time.Sleep(10 * time.Millisecond) {
			ok, err := chromedp.Run(tab, chromedp.Evaluate[bool]("!!("+condition+")"))
			if err == nil && ok {
				return
			}
			if time.Now().After(end) {
				text, _ := chromedp.Run(tab, chromedp.Evaluate[string]("location.href + document.body.innerText"))
				t.Fatalf("%s: not so after 10 s (%v): %.600s", what, err, text)
			}
		}
	}
	do := func(script string) {
		t.Helper()
		if err := chromedp.Do(tab, chromedp.Evaluate[chromedp.Void](script)); err != nil {
			t.Fatal(err)
		}
	}
	until("the token has left the address bar", `location.search === "" && document.querySelectorAll(".runs li").length === 3`)
	looks(t, tab, "list")

	do(`rows.firstElementChild.same = true; q.dispatchEvent(new Event("input"))`)
	until("a list that is as before stays", `location.search === "?q=" && rows.firstElementChild.same`)
	do(`q.value = "sweep"; q.dispatchEvent(new Event("input"))`)
	until("search as you type", `count.textContent === "1 of 3 runs match." && rows.children.length === 1`)
	do(`document.querySelector(".runs a").click()`)
	until("the page of the run", `document.readyState === "complete" && document.querySelector("h1") && document.querySelector("#name")`)
	do(`document.querySelector("details").open = true; document.querySelector("#name").value = "the old switch";
	  document.querySelector("#tags").value = "lan"; document.querySelector("#name").form.querySelector("button").click()`)
	until("the name", `document.title.startsWith("the old switch")`)
	looks(t, tab, "run")
	until("the file to share", `document.querySelector("a[download]") !== null`)
	shared, err := chromedp.Run(tab, chromedp.Evaluate[string](
		`fetch(document.querySelector("a[download]").href).then(r => r.text())`, chromedp.EvalAwaitPromise))
	if err != nil || !strings.HasPrefix(shared, "<!doctype html>") || strings.Contains(shared, "/assets/") {
		t.Errorf("the file to share: %v, %.200s", err, shared)
	}

	// The first chosen is the baseline, though it stands below the other.
	do(`location.href = "/"`)
	until("the list", `document.readyState === "complete" && document.querySelector("#tray") !== null && rows.children.length === 3`)
	do(`document.querySelector('input[value="` + a + `"]').click(); document.querySelector('input[value="` + b + `"]').click()`)
	until("what is chosen", `tray.textContent.includes("(baseline), 2.")`)
	do(`document.querySelector(".tray button").click()`)
	until("the comparison", `location.search === "?run=`+a+`&run=`+b+`" && document.querySelectorAll("figure").length > 1`)
	looks(t, tab, "compare")

	do(`location.href = "/run/` + b + `"`)
	until("the run to delete", `document.readyState === "complete" && location.pathname.endsWith("`+b+`") && document.querySelector(".tools") !== null`)
	do(`document.querySelector('form[action="/delete"] button').click()`)
	until("the run is gone", `location.pathname === "/" && rows.children.length === 2 && removals.textContent.includes("Undo")`)
	looks(t, tab, "undo")
	do(`removals.querySelector("button").click()`)
	until("the run is back", `rows.children.length === 3 && !removals.textContent.includes("Undo")`)
}

// looks checks that a page fits into windows, that all can be reached by name, and takes pictures where they are wanted.
func looks(t *testing.T, tab context.Context, name string) {
	t.Helper()
	for _, w := range []struct {
		name, scheme string
		width        int64
	}{{"wide", "light", 1280}, {"dark", "dark", 1280}, {"narrow", "light", 390}} {
		scheme := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: w.scheme}}}
		if _, err := chromedp.Call(tab, emulation.SetEmulatedMedia, scheme); err != nil {
			t.Fatal(err)
		}
		if err := chromedp.Do(tab, chromedp.EmulateViewport(w.width, 900)); err != nil {
			t.Fatal(err)
		}
		bad, err := chromedp.Run(tab, chromedp.Evaluate[[]string](`(() => {
  const wide = document.documentElement.clientWidth;
  const beyond = [...document.querySelectorAll("body *")].filter(e => !e.closest(".scroll,svg,.skip,#tip") &&
    e.getBoundingClientRect().right > wide + 0.5).map(e => "beyond the window: " + e.tagName + "." + e.className);
  const mute = [...document.querySelectorAll("a,button,input:not([type=hidden])")].filter(e => !e.textContent.trim() &&
    !e.labels?.length && !e.getAttribute("aria-label")).map(e => "without a name: " + e.outerHTML);
  return beyond.concat(mute);
})()`))
		if err != nil || len(bad) > 0 {
			t.Errorf("%s, %s: %v %q", name, w.name, err, bad)
		}
		if *runPictures == "" {
			continue
		}
		pixels, err := chromedp.Run(tab, chromedp.FullScreenshot(100))
		if err == nil {
			err = os.WriteFile(filepath.Join(*runPictures, name+"-"+w.name+".png"), pixels, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
