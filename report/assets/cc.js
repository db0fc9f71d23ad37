(function () {
  "use strict";
  const { data, chart, overTime, bits, nanos } = globalThis.pelt;
  const control = data.control, select = document.getElementById("cc-condition");
  if (!control || !control.conditions.length || !select) return;
  control.conditions.forEach((c, i) => { const o = document.createElement("option"); o.textContent = c.name; o.value = i; select.append(o); });
  select.value = control.chosen;
  const shown = () => control.conditions[+select.value] || control.conditions[0];
  const lines = list => list.map(l => Object.assign({ sent: l.dashed }, l));
  const segments = v => v === null ? "–" : String(Math.round(v));
  const draws = [
    chart("cc-goodput", () => overTime(lines(shown().goodput), bits, "Goodput")),
    chart("cc-rtt", () => overTime(lines(shown().rtt), nanos, "Round trip")),
    chart("cc-window", () => overTime(lines(shown().window), segments, "Congestion window, segments")),
  ];
  function show() {
    document.getElementById("cc-note").textContent = "Of each control the trial in the middle: " + shown().note + ".";
    select.parentElement.hidden = control.conditions.length < 2;
  }
  show();
  select.addEventListener("change", () => { show(); draws.forEach(draw => draw()); });
})();
