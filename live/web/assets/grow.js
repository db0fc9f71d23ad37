"use strict";
// grow shows the report of a run in an element, as far as the run has come. Who works in it is not disturbed.
const grow = async (element, run) => {
  const answer = await fetch("/run/" + run + "/report");
  if (!answer.ok) return;
  const text = await answer.text();
  while (element.contains(document.activeElement)) await new Promise(done => setTimeout(done, 300));
  const open = [...element.querySelectorAll("details")].map(part => part.open);
  element.innerHTML = text; // of package render, which trusts no words of a run
  for (const [i, part] of element.querySelectorAll("details").entries()) part.open = open[i] || part.open;
  enliven(element);
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
      over = !running && !document.hidden;
    } catch { /* the server is gone, and may come back */ }
    if (!over) setTimeout(look, 3000);
  };
  look();
})();
