package test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"golang.org/x/sys/unix"

	"pelt/internal/peltproc"
	"pelt/internal/testenv"
	"pelt/test/browser"
)

// pages starts a pelt that serves pages, and returns their address.
func pages(t *testing.T, args ...string) (p *peltproc.Process, address string) {
	t.Helper()
	p = peltproc.Host{T: t, Data: t.TempDir()}.Start(args...)
	return p, p.Match(regexp.MustCompile(`(?m)^(http://.*)$`))
}

// A test is started from the form, watched, stopped, and found in the list of runs; another one does not outlive the
// server.
func TestNightlyWebStartsTests(t *testing.T) {
	testenv.Nightly(t)
	testenv.Root(t)
	server, address := pages(t, "web")
	tab := browser.Start(t)
	form := []chromedp.Action[chromedp.Void]{chromedp.SendKeys("#target", "lab:direct"),
		chromedp.SendKeys("#rate", "5kpps"),
		chromedp.SendKeys("#payload", "64,128,512"), chromedp.SendKeys("#time", "2s"), chromedp.SendKeys("#repeats",
			"50"),
		chromedp.Click("form button")}
	tab.Open(address)
	tab.Do(append([]chromedp.Action[chromedp.Void]{chromedp.Click(`a[href="/new"]`), chromedp.WaitVisible("#target")},
		form...)...)
	tab.Until(`document.querySelectorAll("#trials li").length > 0 && document.querySelectorAll(".plot canvas").length === 2`)
	tab.Until(`document.querySelector("#report table") !== null`) // the run's own page
	tab.Press("#stop button")
	tab.Until(`document.getElementById("run") && !document.getElementById("run").hidden`)
	run := browser.Evaluate[string](tab, `document.getElementById("run").getAttribute("href")`)
	tab.Do(chromedp.Click(`nav a[href="/"]`))
	tab.Until(fmt.Sprintf(`document.querySelector('a[href="%s"]') !== null`, run))
	tab.Do(chromedp.Click(`nav a[href="/new"]`), chromedp.WaitVisible("#target"))
	tab.Do(form...)
	tab.Until(`document.querySelectorAll("#trials li").length > 0`)
	children := childrenOf(server.Cmd.Process.Pid)
	if len(children) == 0 {
		t.Fatal("no child carries the test out")
	}
	server.Kill()
	for _, pid := range children {
		for deadline := time.Now().Add(testenv.Patience); unix.Kill(pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
			state, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if strings.Contains(string(state), ") Z ") { // ended, and nobody asked how
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("process %d outlives the server", pid)
			}
		}
	}
}

// childrenOf lists the processes that a process started.
func childrenOf(pid int) (list []int) {
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, thread := range threads {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, thread.Name()))
		for _, child := range strings.Fields(string(text)) {
			if id, err := strconv.Atoi(child); err == nil {
				list = append(list, id)
			}
		}
	}
	return list
}
