"use strict";
// grow shows the report of a run in an element, as far as the run has come.
const grow = async (element, run) => {
  const answer = await fetch("/run/" + run);
  if (!answer.ok) return false;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  element.replaceChildren(...page.getElementById("main").childNodes);
  return true;
};
// A page of a run that another process writes is read again when its file has grown.
(() => {
  const mark = document.querySelector("[data-growing]");
  if (!mark) return;
  const run = mark.dataset.growing, main = document.getElementById("main");
  let before = 0, over = false;
  const look = async () => {
    try {
      const size = await (await fetch("/run/" + run + "/size")).json();
      if (before && size !== before && !document.hidden) {
        await grow(main, run);
        over = !main.querySelector("[data-growing]");
      }
      if (!document.hidden) before = size;
    } catch { /* the server is gone, and may come back */ }
    if (!over) setTimeout(look, 3000);
  };
  look();
})();
