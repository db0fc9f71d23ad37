"use strict";
// Search as you type, and the runs that are chosen, in the order in which they were.
(() => {
  const $ = id => document.getElementById(id);
  const search = $("search"), q = $("q"), form = $("chosen"), tray = $("tray"), rows = $("rows");
  const [compare, remove, clear] = form.querySelectorAll(".tray button");
  const asked = tray.textContent, most = 6;
  let chosen = JSON.parse(sessionStorage.getItem("chosen") || "[]"); // {id, called}
  let asking = null, typed = 0, again = 0;

  const show = () => {
    sessionStorage.setItem("chosen", JSON.stringify(chosen));
    const text = chosen.map((c, i) => `${i + 1}. ${c.called}${i ? "" : T(" (baseline)")}`).join(T("; "));
    const now = chosen.length ? T("Chosen: ") + text + (chosen.length > most ? T(". At most six can be compared.") : "") : asked;
    if (tray.textContent !== now) tray.textContent = now;
    compare.disabled = chosen.length < 2 || chosen.length > most;
    remove.disabled = clear.hidden = !chosen.length;
    for (const box of rows.querySelectorAll("input[type=checkbox]")) {
      box.removeAttribute("name"); // what is sent is below, in order
      box.checked = chosen.some(c => c.id === box.value);
    }
    for (const old of form.querySelectorAll("input[type=hidden]")) old.remove();
    for (const c of chosen) {
      const sent = document.createElement("input");
      sent.type = "hidden";
      sent.name = "run";
      sent.value = c.id;
      form.append(sent);
    }
  };

  // load takes the parts of the page that change from the same page of another search.
  const load = async address => {
    if (asking) asking.abort();
    const mine = asking = new AbortController();
    try {
      const answer = await fetch(address, {signal: mine.signal});
      if (!answer.ok) throw new Error("the server answered " + answer.status);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const box of page.querySelectorAll("#rows input")) box.removeAttribute("name"); // as show does
      history.replaceState(null, "", address);
      for (const id of ["removals", "count", "rows"]) {
        const from = page.getElementById(id);
        if ($(id).innerHTML !== from.innerHTML) $(id).replaceChildren(...from.childNodes);
      }
      show();
      follow();
    } catch (e) {
      if (e.name !== "AbortError") $("count").textContent = T("The runs cannot be loaded: is pelt web still there? ") + e.message;
    }
  };

  // follow looks again when a run that waits has been deleted.
  const follow = () => {
    clearTimeout(again);
    if ($("removals").querySelector(".notice:not(.failed)")) again = setTimeout(() => load(location.pathname + location.search), 3000);
  };

  q.addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(() => load("/?q=" + encodeURIComponent(q.value)), 120);
  });
  search.addEventListener("submit", e => {
    e.preventDefault();
    load("/?q=" + encodeURIComponent(q.value));
  });
  rows.addEventListener("click", async e => {
    const more = e.target.closest("[data-more]");
    if (!more) return;
    e.preventDefault();
    const before = rows.children.length - 1;
    await load(more.getAttribute("href"));
    rows.children[before]?.querySelector("a").focus();
  });
  rows.addEventListener("change", e => {
    const id = e.target.value, item = e.target.closest("li");
    if (e.target.checked) chosen.push({id, called: item.querySelector("a").textContent + T(", ") + id});
    else chosen = chosen.filter(c => c.id !== id);
    show();
  });
  form.addEventListener("reset", e => {
    e.preventDefault();
    chosen = [];
    show();
    q.focus();
  });
  form.addEventListener("submit", e => {
    if (e.submitter === remove) sessionStorage.removeItem("chosen");
  });
  addEventListener("pageshow", show);
  show();
  follow();
})();
