package web

import (
	"context"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"pelt/internal/testenv"
	"pelt/live"
	"pelt/model"
	"pelt/plan"
	"pelt/test/browser"
	"pelt/test/sample"
	"pelt/unit"
)

var pictures = flag.String("pictures", "", "directory to write pictures of pages to")

// complaints are what a browser finds wrong with a page.
func complaints(t testing.TB, tab context.Context) func() []string {
	t.Helper()
	var mu sync.Mutex
	var list []string
	add := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, text)
	}
	err := chromedp.Listen(tab, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			add(e.ExceptionDetails.Text + " " + e.ExceptionDetails.Exception.Description)
		case *log.EventEntryAdded:
			add(e.Entry.Text + " " + e.Entry.URL)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return list
	}
}

func do(t testing.TB, tab context.Context, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(tab, actions...); err != nil {
		t.Fatal(err)
	}
}

func evaluate[T any](t testing.TB, tab context.Context, script string) T {
	t.Helper()
	v, err := chromedp.Run(tab, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return v
}

// until waits for a condition of the page.
func until(t testing.TB, tab context.Context, condition string) {
	t.Helper()
	for deadline := time.Now().Add(testenv.Patience); !evaluate[bool](t, tab, condition); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s does not come true; the page says\n%s", condition, evaluate[string](t, tab, "document.body.innerText"))
		}
	}
}

const painted = `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(true), 0))))`

// look checks a page in each window, and takes pictures of it.
func look(t *testing.T, tab context.Context, name string) {
	t.Helper()
	for _, w := range []struct {
		name   string
		width  int64
		scheme string
	}{{"wide", 1280, "light"}, {"dark", 1280, "dark"}, {"narrow", 390, "light"}} {
		scheme := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: w.scheme}}}
		if _, err := chromedp.Call(tab, emulation.SetEmulatedMedia, scheme); err != nil {
			t.Fatal(err)
		}
		do(t, tab, chromedp.EmulateViewport(w.width, 900))
		evaluate[bool](t, tab, painted)
		if over := evaluate[[]string](t, tab, `[...document.querySelectorAll("body *")].filter(e => !e.closest(".scroll, svg") &&
			e.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5).map(e => e.tagName + "." + e.className)`); len(over) > 0 {
			t.Errorf("%s %s: wider than the window: %q", name, w.name, over)
		}
		if bare := evaluate[[]string](t, tab, `[...document.querySelectorAll("input, textarea, select, button, meter, progress")]
			.filter(e => e.type !== "hidden" && !(e.labels && e.labels.length) && !e.ariaLabel && !e.textContent.trim())
			.map(e => e.outerHTML)`); len(bare) > 0 {
			t.Errorf("%s: without a label: %q", name, bare)
		}
		if *pictures == "" {
			continue
		}
		pixels, err := chromedp.Run(tab, chromedp.FullScreenshot(100))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(*pictures, name+"-"+w.name+".png"), pixels, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// samples publishes a moment of a trial.
func samples(stream *live.Stream, at float64, send, receive float64) {
	stream.Publish(live.Event{Sample: &live.Sample{Metric: "send_pps", Flow: "up", At: "sender", AtS: at, Value: send}})
	stream.Publish(live.Event{Sample: &live.Sample{Metric: "receive_pps", Flow: "up", At: "receiver", AtS: at, Value: receive}})
}

// busy publishes a run with losses.
func busy(stream *live.Stream) {
	stream.Publish(live.Event{Started: &live.Started{Text: "curve lab:direct"}})
	stream.Publish(live.Event{Trial: &live.Trial{Number: 1, Trials: 14, Text: "18 B  12 kpps sent, 11 kpps received"}})
	stream.Publish(live.Event{Findings: &[]model.Finding{{Level: "answer", Text: "Carries 11 kpps at 18 B."}}})
	stream.Publish(live.Event{Note: "the link at sender was measured first"})
	stream.Publish(live.Event{Next: &live.Next{Number: 2, Trials: 14, Setting: "64 B", WarmupSeconds: 1, MeasuredSeconds: 30}})
	line := model.Line{Layer: model.LayerReceiverBuffer, Host: "receiver", Cause: "SOCKET_RCVBUFF"}
	for i := range 200 {
		at := float64(i) / 10
		samples(stream, at, 100_000, 100_000-float64(i*i))
		line.Packets += uint64(i * i / 10)
		n := uint64(10_000 * (i + 1))
		stream.Publish(live.Event{Account: &live.Account{ElapsedS: at, Flows: []model.FlowSoFar{{Name: "up", Protocol: model.UDP,
			From: "sender", To: "receiver", Attempted: n,
			Received: n - line.Packets, Lines: []model.Line{line}}}}})
	}
	for core := range 4 {
		stream.Publish(live.Event{Sample: &live.Sample{Metric: "cpu_busy_ratio", At: "receiver", Core: &core, AtS: 20, Value: 0.31 * float64(core)}})
	}
}

func TestNightlyLivePage(t *testing.T) {
	testenv.Nightly(t)
	stream := &live.Stream{}
	s, test, h := watched(t, stream)
	busy(stream)
	tab := browser.Start(t)
	wrong := complaints(t, tab)
	do(t, tab, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(h.URL+"/test/"+test.ID+"?token="+s.Token))
	until(t, tab, `document.querySelectorAll(".plot canvas").length === 2`)
	text := evaluate[string](t, tab, `document.body.innerText`)
	for _, want := range []string{"Carries 11 kpps at 18 B.", "2/14", "up: 100 kpps sent, 60.4 kpps received", "receiver socket buffer full",
		"receiver core 3 93 %", "the link at sender was measured first", "1 18 B 12 kpps sent, 11 kpps received"} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("the page does not say %q:\n%s", want, text)
		}
	}
	look(t, tab, "live")
	checkFigures(t, tab)
	h.CloseClientConnections()
	until(t, tab, `document.getElementById("problem").textContent !== ""`)
	samples(stream, 21, 99_000, 98_000)
	until(t, tab, `document.getElementById("status").textContent.includes("98.0 kpps") && document.getElementById("problem").textContent === ""`)
	stream.Publish(live.Event{Done: &live.Done{}})
	until(t, tab, `document.getElementById("stop").hidden && document.getElementById("status").textContent === "The test has ended"`)
	if list := wrong(); len(list) > 0 && !strings.Contains(fmt.Sprint(list), "ERR_INCOMPLETE_CHUNKED_ENCODING") || len(list) > 1 {
		t.Errorf("the browser complained: %q", list)
	}
	if n := evaluate[int](t, tab, `document.querySelectorAll("#trials li").length`); n != 1 {
		t.Errorf("%d trials are listed after the connection was lost, want 1", n)
	}
}

// A test that the server does not know any more is not asked for again.
func TestNightlyLostTestPage(t *testing.T) {
	testenv.Nightly(t)
	stream := &live.Stream{}
	s, test, h := watched(t, stream)
	busy(stream)
	tab := browser.Start(t)
	do(t, tab, chromedp.Navigate(h.URL+"/test/"+test.ID+"?token="+s.Token))
	until(t, tab, `document.querySelectorAll("#trials li").length === 1`)
	s.tests.mu.Lock()
	s.tests.list = nil
	s.tests.mu.Unlock()
	h.CloseClientConnections()
	until(t, tab, `document.getElementById("problem").textContent === "The connection is lost; reload the page"`)
}

// hide makes a page take itself for one in the background, or not any more.
func hide(t *testing.T, tab context.Context, hidden bool) {
	t.Helper()
	evaluate[bool](t, tab, fmt.Sprintf(`Object.defineProperty(document, "hidden", {value: %v, configurable: true});
		document.dispatchEvent(new Event("visibilitychange"))`, hidden))
}

// A test that ends while its page is in the background is reported once the page is seen.
func TestNightlyReportAfterBackground(t *testing.T) {
	testenv.Nightly(t)
	st, _ := storeOf(t)
	id, stream := keep(t, st, sample.SmallSweep()), &live.Stream{}
	test := Watch([]string{"sweep"}, stream, func() {})
	s := serverOf(t, Options{Store: st, Watch: test})
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	tab := browser.Start(t)
	do(t, tab, chromedp.Navigate(h.URL+"/test/"+test.ID+"?token="+s.Token))
	hide(t, tab, true)
	stream.Publish(live.Event{Done: &live.Done{Run: id}})
	until(t, tab, `!document.getElementById("run").hidden`)
	evaluate[bool](t, tab, painted)
	hide(t, tab, false)
	until(t, tab, `document.querySelector("#report th[aria-sort]") !== null`)
}

// The report of a run that goes on grows, but not under the keyboard; what was opened stays open, columns sort, and
// what came while the page was in the background is not missed.
func TestNightlyGrowingReport(t *testing.T) {
	testenv.Nightly(t)
	st, _ := storeOf(t)
	d := sample.SmallSweep()
	r, err := st.Create(d)
	if err != nil {
		t.Fatal(err)
	}
	last := len(d.Results) - 1
	for _, x := range d.Results[:last] {
		if err := r.Append(x); err != nil {
			t.Fatal(err)
		}
	}
	s := serverOf(t, Options{Store: st})
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	tab := browser.Start(t)
	wrong := complaints(t, tab)
	fetches := func(end string) string {
		return fmt.Sprintf(`performance.getEntriesByType("resource").filter(e => e.name.endsWith(%q)).length`, end)
	}
	fetched := func(end string, least int) {
		t.Helper()
		until(t, tab, fmt.Sprintf("%s >= %d", fetches(end), least))
		evaluate[bool](t, tab, painted)
	}
	do(t, tab, chromedp.Navigate(h.URL+"/run/"+r.ID()+"?token="+s.Token))
	fetched("/size", 1)
	const report = `document.querySelector("[data-growing]")`
	evaluate[bool](t, tab, report+`.firstElementChild.old = true, `+report+`.querySelector("details").open = true`)
	evaluate[bool](t, tab, report+`.querySelector("summary").focus() === undefined`)
	if err := r.Append(d.Results[last]); err != nil {
		t.Fatal(err)
	}
	fetched("/report", 1)
	if !evaluate[bool](t, tab, report+`.firstElementChild.old && document.activeElement.tagName === "SUMMARY"`) {
		t.Error("the report grew under the keyboard")
	}
	evaluate[bool](t, tab, `document.activeElement.blur() === undefined`)
	until(t, tab, `!`+report+`.firstElementChild.old`)
	if !evaluate[bool](t, tab, report+`.querySelector("details").open && !!`+report+`.querySelector("th[aria-sort]")`) {
		t.Error("the report that has grown is closed, or does not sort")
	}
	hide(t, tab, true)
	evaluate[bool](t, tab, report+`.firstElementChild.old = true`)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	fetched("/size", evaluate[int](t, tab, fetches("/size"))+2)
	hide(t, tab, false)
	until(t, tab, `!`+report+`.firstElementChild.old`)
	if list := wrong(); len(list) > 0 {
		t.Errorf("the browser complained: %q", list)
	}
}

// checkFigures: the page prints figures as package unit does.
func checkFigures(t *testing.T, tab context.Context) {
	for _, v := range []float64{0, 0.004, 0.0123, 0.5, 1, 1.005, 2.5, 9.99, 9.995, 12.25, 12.35, 99.94, 99.95, 100.5, 101.5, 999.4, 999.5, 1234, 122_500,
		262_000, 14_880_952, 2e9, 5e12, 0.00001234, -3.25} {
		if got, want := evaluate[string](t, tab, fmt.Sprintf("pps(%v)", v)), unit.FormatPPS(v); got != want {
			t.Errorf("%v is printed as %q, want %q", v, got, want)
		}
	}
	for _, v := range []uint64{0, 999, 1000, 287_920_000} {
		if got, want := evaluate[string](t, tab, fmt.Sprintf("count(%d)", v)), unit.FormatCount(v); got != want {
			t.Errorf("%d is printed as %q, want %q", v, got, want)
		}
	}
	if got := evaluate[string](t, tab, "count(0.5)"); got != "" {
		t.Errorf("half a packet is printed as %q", got)
	}
	want, _ := unit.FormatNamed("cpu_busy_ratio", 0.934)
	if got := evaluate[string](t, tab, "share(0.934)"); got != want {
		t.Errorf("a share is printed as %q, want %q", got, want)
	}
}

func TestNightlyFormPage(t *testing.T) {
	testenv.Nightly(t)
	s := serverOf(t, Options{Offers: offersOf(plan.Curve, plan.Ndr, plan.Latency, plan.Sweep, plan.Soak, plan.Router, plan.Control)})
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	tab := browser.Start(t)
	wrong := complaints(t, tab)
	do(t, tab, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(h.URL+"/new?test=soak&token="+s.Token),
		chromedp.SendKeys("#target", "nas"), chromedp.SendKeys("#rate", "fast"))
	until(t, tab, `document.getElementById("line").textContent === "pelt soak nas --rate=fast" && document.getElementById("problem").textContent.startsWith("--rate: ")`)
	look(t, tab, "form")
	if list := wrong(); len(list) > 0 {
		t.Errorf("the browser complained: %q", list)
	}
}

// BenchmarkDay prints how much memory a day of samples takes, ten a second of two series, as fast as the page takes them.
func BenchmarkDay(b *testing.B) {
	for b.Loop() {
		stream := &live.Stream{}
		test := Watch([]string{"soak", "lab:direct"}, stream, func() {})
		s := New(Options{Watch: test})
		h := httptest.NewServer(s)
		tab := browser.Start(b)
		do(b, tab, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(h.URL+"/test/"+test.ID+"?token="+s.Token))
		stream.Publish(live.Event{Started: &live.Started{}})
		stream.Publish(live.Event{Next: &live.Next{Number: 1, Trials: 1, MeasuredSeconds: 86400}})
		const day, step = 864_000, 24_000
		for i := 0; i < day; {
			for n := min(i+step, day); i < n; i++ {
				samples(stream, float64(i)/10, 40_000, 39_000+float64(i%1000))
				if i%200 == 0 {
					time.Sleep(time.Millisecond) // the connection is one of this host
				}
			}
			until(b, tab, fmt.Sprintf("+document.getElementById('test').dataset.last >= %d", 2*i))
			if i%(day/9) == 0 {
				browserMB, serverMB := memory(b, tab)
				b.Logf("after %2.0f h: browser %.1f MB, server %.1f MB", float64(i)/36000, browserMB, serverMB)
			}
		}
		stream.Publish(live.Event{Done: &live.Done{}}) // ends the connection
		until(b, tab, `document.getElementById("stop").hidden`)
		h.Close()
		s.Close()
	}
}

// memory is what is in use after garbage was collected, in MB: of the page's scripts and of this process.
func memory(b *testing.B, tab context.Context) (page, process float64) {
	b.Helper()
	if _, err := chromedp.Call(tab, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
		b.Fatal(err)
	}
	used, err := chromedp.Call(tab, runtime.GetHeapUsage, cdp.Empty{})
	if err != nil {
		b.Fatal(err)
	}
	page = used.UsedSize / 1e6
	var m goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&m)
	return page, float64(m.HeapAlloc) / 1e6
}
