// Tips: the title of a shape, beside the pointer. The page reads well without.
(() => {
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);
  document.addEventListener("pointermove", e => {
    const at = e.target.closest ? e.target.closest("[data-tip]") : null;
    tip.hidden = !at;
    if (!at) return;
    tip.textContent = at.dataset.tip;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(e.clientX + 12, innerWidth - box.width - 4)) + "px";
    tip.style.top = Math.max(4, e.clientY - box.height - 12) + "px";
  });
  document.addEventListener("scroll", () => { tip.hidden = true; }, {passive: true});
})();
// enliven gives tips and sorting to a part of the page.
const enliven = root => {
  for (const title of root.querySelectorAll("figure svg title")) {
    title.parentNode.dataset.tip = title.textContent;
    title.parentNode.setAttribute("aria-label", title.textContent);
    title.remove();
  }

  // Sorting: a click on the head of a column, the greatest first.
  const figure = (row, i) => row.cells[i].dataset.v;
  for (const head of root.querySelectorAll("th")) {
    const row = head.parentNode, body = row.parentNode.nextElementSibling, i = head.cellIndex;
    if (body.rows.length < 3) continue;
    head.setAttribute("aria-sort", "none");
    head.tabIndex = 0;
    const sort = () => {
      const up = head.getAttribute("aria-sort") === "descending";
      for (const other of row.cells) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const order = (a, b) => {
        const x = figure(a, i), y = figure(b, i);
        if (x === undefined || y === undefined) {
          if (x !== y) return x === undefined ? 1 : -1;
          return a.cells[i].textContent.localeCompare(b.cells[i].textContent) * (up ? 1 : -1);
        }
        return (up ? 1 : -1) * (x - y);
      };
      body.append(...[...body.rows].sort(order));
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", e => { if (e.key === "Enter") sort(); });
  }
};
enliven(document);
