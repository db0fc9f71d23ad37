// Package browser drives the browser of tests. Only tests import it.
package browser

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"pelt/internal/testenv"
)

var pictures = flag.String("pictures", "", "directory to write a picture of each page in each window to")

// startLimit is how long Chromium may take to start: it has only the processor time
// that the rest of the machine leaves.
const startLimit = 5 * time.Minute

// Tab is a tab of a browser. What goes wrong in it fails its test.
type Tab struct {
	context.Context
	t                  testing.TB
	mu                 sync.Mutex
	problems, requests []string
}

// Start starts one headless Chromium, which ends with the test, and returns its first tab.
func Start(t testing.TB) *Tab {
	t.Helper()
	testenv.Tool(t, "chromium")
	allocator, stop := chromedp.NewExecAllocator(t.Context(), chromedp.UserDataDir(t.TempDir()),
		chromedp.WSURLReadTimeout(startLimit),
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true))
	t.Cleanup(stop)
	return newTab(t, allocator)
}

// Another opens another tab of the browser, which is closed when t ends.
func (b *Tab) Another(t testing.TB) *Tab { return newTab(t, b) }

func newTab(t testing.TB, of context.Context) *Tab {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(of)
	t.Cleanup(closeTab) // of the first tab it waits for the process, so that its directory can go
	b := &Tab{Context: ctx, t: t}
	if err := chromedp.Listen(ctx, b.note); err != nil {
		t.Fatal(err)
	}
	b.Do()
	return b
}

func (b *Tab) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		b.problems = append(b.problems, "console."+string(e.Type))
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, e.ExceptionDetails.Text+" "+e.ExceptionDetails.Exception.Description)
	case *log.EventEntryAdded:
		b.problems = append(b.problems, e.Entry.Text+" "+e.Entry.URL)
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	}
}

// Problems are what the browser found wrong with its pages.
func (b *Tab) Problems() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.problems)
}

// Requests are the addresses that pages asked for.
func (b *Tab) Requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.requests)
}

func (b *Tab) Do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// Open opens an address in a wide window.
func (b *Tab) Open(address string) {
	b.t.Helper()
	b.Do(chromedp.EmulateViewport(windows[0].Width, 900), chromedp.Navigate(address))
}

// Press presses a button with the keyboard.
func (b *Tab) Press(button string) {
	b.t.Helper()
	b.Do(chromedp.Focus(button), chromedp.KeyEvent("\r"))
}

// Run runs a script whose value is not wanted.
func (b *Tab) Run(script string) {
	b.t.Helper()
	b.Do(chromedp.Evaluate[chromedp.Void](script))
}

// Evaluate returns the value of a script.
func Evaluate[T any](b *Tab, script string) T {
	b.t.Helper()
	v, err := chromedp.Run(b, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", script, err)
	}
	return v
}

// Until waits for a condition of the page, which may be about to be left for another.
func (b *Tab) Until(condition string) {
	b.t.Helper()
	for deadline := time.Now().Add(testenv.Patience); ; time.Sleep(20 * time.Millisecond) {
		ok, err := chromedp.Run(b, chromedp.Evaluate[bool]("!!("+condition+")"))
		if err == nil && ok {
			return
		}
		if time.Now().After(deadline) {
			text, _ := chromedp.Run(b, chromedp.Evaluate[string]("location.href + document.body.innerText"))
			b.t.Fatalf("%s does not come true (%v); the page says\n%s", condition, err, text)
		}
	}
}

// Paint waits for the frame after the next.
func (b *Tab) Paint() {
	b.t.Helper()
	const painted = `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0))))`
	b.Do(chromedp.Evaluate[chromedp.Void](painted, chromedp.EvalAwaitPromise))
}

// Window is a way in which readers see a page.
type Window struct {
	Name   string
	Width  int64
	Scheme string // of colours
}

var windows = []Window{{"wide", 1280, "light"}, {"dark", 1280, "dark"}, {"narrow", 390, "light"}}

// EachWindow shows the page in each window. With -pictures it takes a picture of each.
func (b *Tab) EachWindow(name string, check func(Window)) {
	b.t.Helper()
	for _, w := range windows {
		scheme := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme",
			Value: w.Scheme}}}
		if _, err := chromedp.Call(b, emulation.SetEmulatedMedia, scheme); err != nil {
			b.t.Fatal(err)
		}
		b.Do(chromedp.EmulateViewport(w.Width, 900))
		b.Paint()
		if *pictures != "" {
			pixels, err := chromedp.Run(b, chromedp.FullScreenshot(100))
			if err == nil {
				err = os.WriteFile(filepath.Join(*pictures, name+"-"+w.Name+".png"), pixels, 0o644)
			}
			if err != nil {
				b.t.Fatal(err)
			}
		}
		check(w)
	}
}

// looks are elements beyond the window, and those that a blind reader cannot tell.
const looks = `[...document.querySelectorAll("body *")].filter(e => !e.closest(".scroll, svg, .skip, #tip") &&
	e.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
	.map(e => "beyond the window: " + e.tagName + "." + e.className)
	.concat([...document.querySelectorAll("a, input, textarea, select, button, meter, progress")]
	.filter(e => e.type !== "hidden" && !e.labels?.length && !e.getAttribute("aria-label") && !e.textContent.trim())
	.map(e => "without a name: " + e.outerHTML))`

// Look checks that a page fits into each window, and that all can be reached by name.
func (b *Tab) Look(name string) {
	b.t.Helper()
	b.EachWindow(name, func(w Window) {
		if bad := Evaluate[[]string](b, looks); len(bad) > 0 {
			b.t.Errorf("%s, %s: %q", name, w.Name, bad)
		}
	})
}
