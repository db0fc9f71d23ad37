package web

import (
	"net/http/httptest"
	"strings"
	"testing"

	"pelt/internal/testenv"
	"pelt/test/browser"
	"pelt/test/sample"
)

// TestNightlyRunsInBrowser finds a run, names it, compares two, deletes one and takes it back.
func TestNightlyRunsInBrowser(t *testing.T) {
	testenv.Nightly(t)
	st, _ := storeOf(t)
	a, b := keep(t, st, sample.Router()), keep(t, st, sample.Router())
	keep(t, st, sample.SmallSweep())
	s := serverOf(t, Options{Store: st})
	h := httptest.NewServer(s)
	defer h.Close()
	tab := browser.Start(t)
	tab.Open(h.URL + "/?token=" + s.Token)
	tab.Until(`location.search === "" && document.querySelectorAll(".runs li").length === 3`)
	tab.Look("list")

	tab.Run(`rows.firstElementChild.same = true; q.dispatchEvent(new Event("input"))`)
	tab.Until(`location.search === "?q=" && rows.firstElementChild.same`)
	tab.Run(`q.value = "sweep"; q.dispatchEvent(new Event("input"))`)
	tab.Until(`count.textContent === "1 of 3 runs match." && rows.children.length === 1`)
	tab.Run(`document.querySelector(".runs a").click()`)
	tab.Until(`document.readyState === "complete" && document.querySelector("h1") && document.querySelector("#name")`)
	tab.Run(`document.querySelector("details").open = true; document.querySelector("#name").value = "the old switch";
	  document.querySelector("#tags").value = "lan"; document.querySelector("#name").form.querySelector("button").click()`)
	tab.Until(`document.title.startsWith("the old switch")`)
	tab.Look("run")
	tab.Until(`document.querySelector("a[download]") !== null`)
	shared := browser.Evaluate[string](tab, `fetch(document.querySelector("a[download]").href).then(r => r.text())`)
	if !strings.HasPrefix(shared, "<!doctype html>") || strings.Contains(shared, "/assets/") {
		t.Errorf("the file to share: %.200s", shared)
	}

	// The first chosen is the baseline, though it stands below the other.
	tab.Run(`location.href = "/"`)
	tab.Until(`document.readyState === "complete" && document.querySelector("#tray") !== null && rows.children.length === 3`)
	tab.Run(`document.querySelector('input[value="` + a + `"]').click(); document.querySelector('input[value="` + b +
		`"]').click()`)
	tab.Until(`tray.textContent.includes("(baseline); 2.")`)
	tab.Run(`document.querySelector(".tray button").click()`)
	tab.Until(`location.search === "?run=` + a + `&run=` + b + `" && document.querySelectorAll("figure").length > 1`)
	tab.Look("compare")

	tab.Run(`location.href = "/run/` + b + `"`)
	tab.Until(`document.readyState === "complete" && location.pathname.endsWith("` + b +
		`") && document.querySelector(".tools") !== null`)
	tab.Run(`document.querySelector('form[action="/delete"] button').click()`)
	tab.Until(`location.pathname === "/" && rows.children.length === 2 && removals.textContent.includes("Undo")`)
	tab.Look("undo")
	tab.Run(`removals.querySelector("button").click()`)
	tab.Until(`rows.children.length === 3 && !removals.textContent.includes("Undo")`)
}
