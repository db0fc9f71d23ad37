"use strict";
// The page of a test while it goes on. The server sends events and how the test stands in words; this script draws them.

// human prints a figure as the other outputs do: three digits, in the unit that fits.
const human = (v, names) => {
  if (!Number.isFinite(v)) return "–";
  let i = 0;
  for (; Math.abs(v) >= 999.5 && i < names.length - 1; i++) v /= 1000;
  // Half a last digit goes to the even one.
  const fixed = digits => {
    const shifted = Math.abs(v) * 10 ** digits, below = Math.floor(shifted);
    const half = shifted - below === 0.5 && Number.isInteger(v * 2 ** (digits + 1)) && below % 2 === 0;
    return half ? (Math.sign(v) * below / 10 ** digits).toFixed(digits) : v.toFixed(digits);
  };
  const a = Math.abs(v);
  let text;
  if (a >= 99.95) text = fixed(0);
  else if (a >= 9.995) text = fixed(1);
  else if (a === Math.trunc(a)) text = fixed(i > 0 ? 2 : 0);
  else if (a < 1e-4) text = v.toExponential(1).replace(".0e", "e").replace(/e-(\d)$/, "e-0$1");
  else if (a < 0.01) text = String(+v.toPrecision(2));
  else text = fixed(2);
  return text + " " + names[i];
};
const pps = v => human(v, ["pps", "kpps", "Mpps", "Gpps"]);
const bps = v => human(v, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"]);
// count prints whole packets; an axis has other values, too.
const count = v => Number.isInteger(v) ? v.toString().replace(/\B(?=(\d{3})+$)/g, " ") : "";
const share = v => (100 * v).toFixed(0) + " %";

// Names of nodes and flows.
const names = {sender: T("sender"), receiver: T("receiver"), router: T("router"), up: T("up"), down: T("down")};
const named = name => names[name] || name;

const clock = v => new Date(1000 * v).toTimeString().slice(0, 8);

// Chart is lines over time: of the newest moments, drawn at most once a frame.
class Chart {
  static most = 3000; // moments, of ten a second; twice as many are kept at times
  static lines = 12;
  constructor(id, format) {
    this.box = document.getElementById(id);
    this.format = format;
    this.names = [];
    this.data = [[]];
    new ResizeObserver(() => { if (this.plot) this.plot.setSize(this.size()); }).observe(this.box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.rebuild());
  }
  size() { return {width: this.box.clientWidth, height: innerWidth < 760 ? 180 : 240}; }
  // at finds the place of a moment, in seconds, and makes one where there is none.
  at(x) {
    const moments = this.data[0];
    let i = moments.length;
    while (i > 0 && moments[i - 1] > x) i--;
    if (i > 0 && moments[i - 1] === x) return i - 1;
    for (const [n, list] of this.data.entries()) list.splice(i, 0, n ? undefined : x);
    return i;
  }
  // add takes a value of a line. null is a gap.
  add(name, x, value) {
    let line = this.names.indexOf(name) + 1;
    if (!line) {
      if (this.names.length === Chart.lines) return;
      line = this.names.push(name);
      this.data.push(new Array(this.data[0].length).fill(undefined));
      this.changed = true;
    }
    this.data[line][this.at(x)] = value;
    if (this.data[0].length >= 2 * Chart.most) this.data = this.data.map(list => list.slice(-Chart.most));
    this.draw();
  }
  gap(x) {
    if (!this.names.length) return;
    const i = this.at(x);
    for (const list of this.data.slice(1)) list[i] = null;
  }
  draw() {
    if (this.waits) return;
    this.waits = true;
    requestAnimationFrame(() => {
      this.waits = false;
      if (this.changed || !this.plot) this.rebuild();
      else this.plot.setData(this.data);
    });
  }
  rebuild() {
    if (!this.names.length) return;
    this.changed = false;
    this.box.closest("figure").hidden = false;
    if (this.plot) this.plot.destroy();
    const style = getComputedStyle(document.documentElement), ink = name => style.getPropertyValue("--" + name).trim();
    const axis = {stroke: ink("soft"), grid: {stroke: ink("rule"), width: 1}, ticks: {stroke: ink("rule"), width: 1}};
    const lines = this.names.map((label, i) => ({label, stroke: ink("s" + (i % 6 + 1)), width: 2, dash: i % 2 ? [] : [6, 4],
      points: {show: false}, value: (_, v) => v == null ? "" : this.format(v)}));
    this.plot = new uPlot({...this.size(), series: [{label: T("Time"), value: (_, v) => v == null ? "" : clock(v)}, ...lines], cursor: {y: false},
      axes: [{...axis, space: 80, values: (_, all) => all.map(clock)}, {...axis, size: 76, values: (_, all) => all.map(this.format)}],
      scales: {x: {range: (_, low, high) => [low, Math.max(high, low + 10)]}, y: {range: (_, low, high) => [Math.min(0, low), high > 0 ? high * 1.05 : 1]}}}, this.data, this.box);
  }
}

(() => {
  const root = document.getElementById("test");
  if (!root) return;
  const element = id => document.getElementById(id), id = root.dataset.id;
  const say = (at, text) => { if (at.textContent !== text) at.textContent = text; };
  const rates = new Chart("rates", pps), bits = new Chart("bits", bps), losses = new Chart("losses", count);
  const mostTold = 200, told = (list, text) => {
    const item = document.createElement("li");
    item.textContent = text;
    list.prepend(item);
    list.closest("section").hidden = false;
    if (list.children.length > mostTold) list.lastChild.remove();
  };
  let next, began = 0, counted = false, run = "", reported = 0, wait = 0;

  // report fetches what the run's page shows by now, at most once in ten seconds.
  const report = () => {
    if (!run || wait) return;
    wait = setTimeout(async () => {
      if (!document.hidden) {
        reported = Date.now();
        await grow(element("report"), run).catch(() => {});
      }
      wait = 0;
    }, Math.max(0, reported + 10000 - Date.now()));
  };
  document.addEventListener("visibilitychange", report);

  const cores = new Map(); // "node core" to its bar
  const core = s => {
    const key = s.core === undefined ? named(s.at) : named(s.at) + T(" core ") + s.core;
    let bar = cores.get(key);
    if (!bar) {
      if (cores.size === 512) return;
      const row = document.createElement("label"), text = document.createElement("span");
      bar = {meter: document.createElement("meter"), text};
      row.append(key + " ", bar.meter, " ", text);
      element("cores").append(row);
      element("cores").hidden = false;
      cores.set(key, bar);
    }
    bar.meter.value = s.value;
    say(bar.text, share(s.value));
  };

  // moment is a time of the measured part of the trial, as seconds of the clock.
  const moment = at => Math.round(10 * (began + next.warmup_s + at)) / 10;
  const sample = s => {
    if (s.metric === "cpu_busy_ratio") return core(s);
    const [end, kind] = s.metric.split("_"), line = {send: T("sent"), receive: T("received")}[end];
    if (!line || !next) return;
    (kind === "bps" ? bits : rates).add((s.flow ? named(s.flow) + T(", ") : "") + line, moment(s.at_s), s.value);
  };

  const take = e => {
    const now = Date.parse(e.time) / 1000;
    if (e.started) run = e.started.run || "";
    else if (e.next) {
      next = e.next;
      began = now;
      counted = false;
      rates.gap(began);
      bits.gap(began);
      losses.gap(began);
    } else if (e.sample) sample(e.sample);
    else if (e.account && next) {
      for (const [flow, lost] of Object.entries(e.lost || {})) {
        if (!counted) losses.add(named(flow), moment(0), 0); // a line has two ends, also of a trial of a second
        losses.add(named(flow), moment(e.account.elapsed_s), lost);
      }
      counted = true;
    }
    else if (e.trial) {
      told(element("trials"), e.trial.number + "  " + e.trial.text);
      next = undefined;
      report();
    } else if (e.note) told(element("notes"), e.note);
    else if (e.done) end(e.done);
    return now;
  };

  const source = new EventSource("/test/" + id + "/events");
  const end = done => {
    source.close();
    next = undefined;
    say(element("status"), done.error === "stopped" ? T("The test was stopped") : done.error || T("The test has ended"));
    element("stop").hidden = true;
    if (element("again")) element("again").hidden = false;
    if (!done.run) return;
    run = done.run;
    reported = 0;
    clearTimeout(wait);
    wait = 0;
    report();
    element("run").href = "/run/" + run;
    element("run").hidden = false;
  };
  source.onmessage = message => {
    const {events, now} = JSON.parse(message.data);
    say(element("problem"), "");
    let at = 0;
    for (const e of events) at = take(e);
    root.dataset.last = events.at(-1).id;
    if (now.verdict) say(element("verdict"), now.verdict);
    if (now.status) say(element("status"), now.status.join(" · "));
    say(element("places"), now.losses);
    element("progress").value = next ? Math.min(1, (at - began) / (next.warmup_s + next.measured_s)) : 0;
  };
  source.addEventListener("slow", e => say(element("problem"), T(e.data)));
  source.onerror = () => say(element("problem"), source.readyState === EventSource.CLOSED ?
    T("The connection is lost; reload the page") : T("The connection is lost; it is tried again"));
  for (const name of ["stop", "again"]) if (element(name)) element(name).addEventListener("submit", e => {
    e.submitter.disabled = true;
  });
})();
