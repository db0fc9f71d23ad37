package web

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"pelt/internal/testenv"
	"pelt/live"
	"pelt/model"
	"pelt/plan"
	"pelt/test/browser"
	"pelt/test/sample"
	"pelt/unit"
)

// samples publishes a moment of a trial.
func samples(stream *live.Stream, at float64, send, receive float64) {
	stream.Publish(live.Event{Sample: &live.Sample{Metric: "send_pps", Flow: "up", At: "sender", AtS: at, Value: send}})
	stream.Publish(live.Event{Sample: &live.Sample{Metric: "receive_pps", Flow: "up", At: "receiver", AtS: at,
		Value: receive}})
}

// busy publishes a run with losses.
func busy(stream *live.Stream) {
	stream.Publish(live.Event{Started: &live.Started{Text: "curve lab:direct"}})
	stream.Publish(live.Event{Trial: &live.Trial{Number: 1, Trials: 14, Text: "18 B  12 kpps sent, 11 kpps received"}})
	stream.Publish(live.Event{Findings: &[]model.Finding{{Level: "answer", Code: "latency.none"}}})
	stream.Publish(live.Event{Note: "the link at sender was measured first"})
	stream.Publish(live.Event{Next: &live.Next{Number: 2, Trials: 14, Setting: "64 B", WarmupSeconds: 1,
		MeasuredSeconds: 30}})
	line := model.Line{Layer: model.LayerReceiverBuffer, Host: "receiver", Cause: "SOCKET_RCVBUFF"}
	for i := range 200 {
		at := float64(i) / 10
		samples(stream, at, 100_000, 100_000-float64(i*i))
		line.Packets += uint64(i * i / 10)
		n := uint64(10_000 * (i + 1))
		stream.Publish(live.Event{Account: &live.Account{ElapsedS: at,
			Flows: []model.FlowSoFar{{Name: "up", Protocol: model.UDP,
				From: "sender", To: "receiver", Attempted: n,
				Received: n - line.Packets, Lines: []model.Line{line}}}}})
	}
	for core := range 4 {
		stream.Publish(live.Event{Sample: &live.Sample{Metric: "cpu_busy_ratio", At: "receiver", Core: &core, AtS: 20,
			Value: 0.31 * float64(core)}})
	}
}

func TestNightlyLivePage(t *testing.T) {
	testenv.Nightly(t)
	stream := &live.Stream{}
	s, test, h := watched(t, stream)
	busy(stream)
	tab := browser.Start(t)
	tab.Open(h.URL + "/test/" + test.ID + "?token=" + s.Token)
	tab.Until(`document.querySelectorAll(".plot canvas").length === 2`)
	text := browser.Evaluate[string](tab, `document.body.innerText`)
	for _, want := range []string{"No rate without loss was found, so no load was measured.", "2/14",
		"up: 100 kpps sent, 60.4 kpps received",
		"receiver socket buffer full",
		"receiver core 3 93 %", "the link at sender was measured first", "1 18 B 12 kpps sent, 11 kpps received"} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("the page does not say %q:\n%s", want, text)
		}
	}
	tab.Look("live")
	checkFigures(t, tab)
	h.CloseClientConnections()
	tab.Until(`document.getElementById("problem").textContent !== ""`)
	samples(stream, 21, 99_000, 98_000)
	tab.Until(`document.getElementById("status").textContent.includes("98.0\u00a0kpps") && document.getElementById("problem").textContent === ""`)
	stream.Publish(live.Event{Done: &live.Done{}})
	tab.Until(`document.getElementById("stop").hidden && document.getElementById("status").textContent === "The test has ended"`)
	if list := tab.Problems(); len(list) > 0 &&
		!strings.Contains(fmt.Sprint(list), "ERR_INCOMPLETE_CHUNKED_ENCODING") || len(list) > 1 {
		t.Errorf("the browser complained: %q", list)
	}
	if n := browser.Evaluate[int](tab, `document.querySelectorAll("#trials li").length`); n != 1 {
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
	tab.Open(h.URL + "/test/" + test.ID + "?token=" + s.Token)
	tab.Until(`document.querySelectorAll("#trials li").length === 1`)
	s.tests.mu.Lock()
	s.tests.list = nil
	s.tests.mu.Unlock()
	h.CloseClientConnections()
	tab.Until(`document.getElementById("problem").textContent === "The connection is lost; reload the page"`)
}

// hide makes a page take itself for one in the background, or not any more.
func hide(tab *browser.Tab, hidden bool) {
	tab.Run(fmt.Sprintf(`Object.defineProperty(document, "hidden", {value: %v, configurable: true});
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
	tab.Open(h.URL + "/test/" + test.ID + "?token=" + s.Token)
	hide(tab, true)
	stream.Publish(live.Event{Done: &live.Done{Run: id}})
	tab.Until(`!document.getElementById("run").hidden`)
	tab.Paint()
	hide(tab, false)
	tab.Until(`document.querySelector("#report th[aria-sort]") !== null`)
}

// The report of a run that goes on grows, but not under the keyboard; what was opened stays open, columns sort, and
// what came while the page was in the background is not missed.
func TestNightlyGrowingReport(t *testing.T) {
	testenv.Nightly(t)
	st, _ := storeOf(t)
	d := sample.SmallSweep()
	r, err := st.Create(d)
	testenv.Must(t, err)
	last := len(d.Results) - 1
	for _, x := range d.Results[:last] {
		testenv.Must(t, r.Append(x))
	}
	s := serverOf(t, Options{Store: st})
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	tab := browser.Start(t)
	fetches := func(end string) string {
		return fmt.Sprintf(`performance.getEntriesByType("resource").filter(e => e.name.endsWith(%q)).length`, end)
	}
	fetched := func(end string, least int) {
		t.Helper()
		tab.Until(fmt.Sprintf("%s >= %d", fetches(end), least))
		tab.Paint()
	}
	tab.Open(h.URL + "/run/" + r.ID() + "?token=" + s.Token)
	fetched("/size", 1)
	const report = `document.querySelector("[data-growing]")`
	tab.Run(report + `.firstElementChild.old = true, ` + report + `.querySelector("details").open = true`)
	tab.Run(report + `.querySelector("summary").focus() === undefined`)
	testenv.Must(t, r.Append(d.Results[last]))
	fetched("/report", 1)
	if !browser.Evaluate[bool](tab, report+`.firstElementChild.old && document.activeElement.tagName === "SUMMARY"`) {
		t.Error("the report grew under the keyboard")
	}
	tab.Run(`document.activeElement.blur() === undefined`)
	tab.Until(`!` + report + `.firstElementChild.old`)
	if !browser.Evaluate[bool](tab,
		report+`.querySelector("details").open && !!`+report+`.querySelector("th[aria-sort]")`) {
		t.Error("the report that has grown is closed, or does not sort")
	}
	hide(tab, true)
	tab.Run(report + `.firstElementChild.old = true`)
	testenv.Must(t, r.Close())
	fetched("/size", browser.Evaluate[int](tab, fetches("/size"))+2)
	hide(tab, false)
	tab.Until(`!` + report + `.firstElementChild.old`)
	if list := tab.Problems(); len(list) > 0 {
		t.Errorf("the browser complained: %q", list)
	}
}

// checkFigures: the page prints figures as package unit does.
func checkFigures(t *testing.T, tab *browser.Tab) {
	for _, v := range []float64{0, 0.004, 0.0123, 0.5, 1, 1.005, 2.5, 9.99, 9.995, 12.25, 12.35, 99.94, 99.95, 100.5,
		101.5, 999.4, 999.5, 1234, 122_500,
		262_000, 14_880_952, 2e9, 5e12, 0.00001234, -3.25} {
		if got, want := browser.Evaluate[string](tab, fmt.Sprintf("pps(%v)", v)), unit.FormatPPS(v); got != want {
			t.Errorf("%v is printed as %q, want %q", v, got, want)
		}
	}
	for _, v := range []uint64{0, 999, 1000, 287_920_000} {
		if got, want := browser.Evaluate[string](tab, fmt.Sprintf("count(%d)", v)), unit.FormatCount(v); got != want {
			t.Errorf("%d is printed as %q, want %q", v, got, want)
		}
	}
	if got := browser.Evaluate[string](tab, "count(0.5)"); got != "" {
		t.Errorf("half a packet is printed as %q", got)
	}
	want, _ := unit.FormatNamed("cpu_busy_ratio", 0.934)
	if got := browser.Evaluate[string](tab, "share(0.934)"); got != want {
		t.Errorf("a share is printed as %q, want %q", got, want)
	}
}

func TestNightlyFormPage(t *testing.T) {
	testenv.Nightly(t)
	s := serverOf(t, Options{Offers: offersOf(plan.Curve, plan.Ndr, plan.Latency, plan.Sweep, plan.Soak, plan.Router,
		plan.Control)})
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	tab := browser.Start(t)
	tab.Open(h.URL + "/new?test=soak&token=" + s.Token)
	tab.Do(chromedp.SendKeys("#target", "nas"), chromedp.SendKeys("#rate", "fast"))
	tab.Until(`document.getElementById("line").textContent === "pelt soak nas --rate=fast" && document.getElementById("problem").textContent.startsWith("--rate: ")`)
	tab.Look("form")
	if list := tab.Problems(); len(list) > 0 {
		t.Errorf("the browser complained: %q", list)
	}
}
