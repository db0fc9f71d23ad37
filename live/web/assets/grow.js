"use strict";
// grow shows the report of a run in an element, as far as the run has come.
const grow = async (element, run) => {
  const answer = await fetch("/run/" + run + "/report");
  if (answer.ok) element.innerHTML = await answer.text(); // of package render, which trusts no words of a run
};
// The report of a run that another process writes is read again when its file has grown.
(() => {
  const report = document.querySelector("[data-growing]");
  if (!report) return;
  const run = report.dataset.growing;
  let before = 0, over = false;
  const look = async () => {
    try {
      const {size, running} = await (await fetch("/run/" + run + "/size")).json();
      if (!document.hidden && (size !== before && before || !running)) await grow(report, run);
      if (!document.hidden) before = size;
      over = !running;
    } catch { /* the server is gone, and may come back */ }
    if (!over) setTimeout(look, 3000);
  };
  look();
})();
