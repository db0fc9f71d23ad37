(function () {
  "use strict";
  document.documentElement.classList.add("js");
  const data = JSON.parse(document.getElementById("data").textContent);
  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const hue = i => css("--hue" + i % 7);
  const dashes = [6, 4];

  // The same figures in the same words as package unit.
  function human(v, names) {
    if (v === null || !isFinite(v)) return "–";
    let i = 0;
    while (Math.abs(v) >= 999.5 && i < names.length - 1) { v /= 1000; i++; }
    const a = Math.abs(v);
    const text = a >= 99.95 ? v.toFixed(0) : a >= 9.995 ? v.toFixed(1) : Number.isInteger(v) ? String(v) : v.toFixed(2);
    return text + " " + names[i];
  }
  // Axis labels lose zeros that mean nothing: 10 kpps, not 10.0 kpps.
  function bare(text) {
    const [number, ...rest] = text.split(" ");
    const short = number.includes(".") ? number.replace(/\.?0+$/, "") : number;
    return short === "0" ? "0" : [short, ...rest].join(" ");
  }
  const packets = v => human(v, ["pps", "kpps", "Mpps", "Gpps"]);
  const rate = v => data.rate === "pps" ? packets(v) : human(v, ["/s", "k/s", "M/s", "G/s"]);
  const bits = v => human(v, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]);
  const nanos = v => Math.abs(v) >= 1e9 ? human(v / 1e9, ["s"]) : human(v, ["ns", "µs", "ms"]);
  const share = v => v === null ? "–" : +(v * 100).toFixed(v < 0.1 ? 1 : 0) + " %";

  // The axis has a tick at each measured level and nowhere else.
  const levels = new Map((data.axis.levels || []).map(l => [l.x, l.text]));
  const level = v => levels.get(v) || "";

  function element(tag, className, text) {
    const e = document.createElement(tag);
    if (className) e.className = className;
    if (text !== undefined) e.textContent = text;
    return e;
  }

  function legend(series) {
    const list = element("ul", "legend"), ns = "http://www.w3.org/2000/svg";
    for (const s of series) {
      const item = element("li"), svg = document.createElementNS(ns, "svg"), line = document.createElementNS(ns, "line");
      const set = (e, attributes) => Object.entries(attributes).forEach(([k, v]) => e.setAttribute(k, v));
      set(svg, { width: 26, height: 10, "aria-hidden": "true" });
      set(line, { x1: 1, x2: 25, y1: 5, y2: 5, stroke: s.colour, "stroke-width": s.dash ? 1.6 : 2.6 });
      if (s.dash) line.setAttribute("stroke-dasharray", s.dash.join(" "));
      svg.append(line);
      item.append(svg, s.label);
      list.append(item);
    }
    return list;
  }

  // A tip that follows the pointer, or the finger, and stays inside the plot.
  function tips(spec) {
    const tip = element("div", "tip");
    const hide = () => { tip.style.display = "none"; };
    function fill(u, i) {
      tip.replaceChildren(element("b", "", spec.tipTitle(u.data[0][i])));
      spec.series.forEach((s, n) => {
        const v = u.data[n + 1][i];
        if (v === null || v === undefined) return;
        const row = element("div", "row"), dot = element("span", s.dash ? "dot" : "dot solid");
        dot.style.color = s.colour;
        let text = s.label + ": " + spec.format(v);
        if (s.low && s.high && s.high[i] > s.low[i]) text += " (" + spec.format(s.low[i]) + " to " + spec.format(s.high[i]) + ")";
        if (s.invalid && s.invalid[i]) text += ", " + s.invalid[i];
        row.append(dot, element("span", "", text));
        tip.append(row);
      });
      for (const m of spec.marks || [])
        if (u.data[0][i] <= m.at && !(u.data[0][i + 1] <= m.at)) tip.append(element("div", "row", m.made ? "changed as planned: " + m.text : "change found: " + m.text));
    }
    function place(u) {
      const room = u.over.clientWidth - tip.offsetWidth, right = u.cursor.left + 14;
      const left = right > room ? u.cursor.left - tip.offsetWidth - 14 : right;
      tip.style.left = Math.max(0, Math.min(left, room)) + "px";
      tip.style.top = Math.max(0, Math.min(u.cursor.top + 10, u.over.clientHeight - tip.offsetHeight)) + "px";
    }
    return {
      hooks: {
        init: u => { u.over.append(tip); u.over.addEventListener("mouseleave", hide); },
        setCursor: u => {
          const i = u.cursor.idx;
          if (i === null || i === undefined || u.cursor.left < 0) return hide();
          fill(u, i);
          tip.style.display = "block";
          place(u);
        },
      },
    };
  }

  // The spread of repeats as bars, and hollow marks where a point is not valid.
  function mark(u, s, i, x, v) {
    const c = u.ctx, r = devicePixelRatio || 1;
    const px = u.valToPos(x, "x", true), at = y => u.valToPos(y, "y", true);
    c.strokeStyle = s.colour;
    c.lineWidth = 1.5 * r;
    if (s.low && s.high[i] > s.low[i]) {
      c.beginPath();
      c.moveTo(px, at(s.low[i]));
      c.lineTo(px, at(s.high[i]));
      for (const y of [s.low[i], s.high[i]]) { c.moveTo(px - 5 * r, at(y)); c.lineTo(px + 5 * r, at(y)); }
      c.stroke();
    }
    c.beginPath();
    c.arc(px, at(v), (s.dash ? 2.6 : 3.8) * r, 0, 2 * Math.PI);
    c.fillStyle = s.dash || (s.invalid && s.invalid[i]) ? css("--card") : s.colour;
    c.fill();
    c.stroke();
  }
  const marks = series => ({
    hooks: {
      draw: u => {
        u.ctx.save();
        u.ctx.setLineDash([]);
        // What arrived lies above what was sent.
        series.map((s, n) => ({ s, n })).sort((a, b) => !a.s.dash - !b.s.dash).forEach(({ s, n }) => {
          if (s.point) u.data[0].forEach((x, i) => { const v = u.data[n + 1][i]; if (v !== null && v !== undefined) mark(u, s, i, x, v); });
        });
        u.ctx.restore();
      },
    },
  });

  // When something changed, as lines with their labels above the plot, with a pale band
  // over when it may have been, and when nothing was heard, as shades. A label with no room
  // among its neighbours is left out.
  const markRows = spec => Math.min(3, (spec.marks || []).length);
  const rowHeight = 15;
  function shade(u, spans, colour, opacity) {
    const c = u.ctx, b = u.bbox;
    c.save();
    c.globalAlpha = opacity;
    c.fillStyle = css(colour);
    for (const g of spans) {
      const from = Math.max(b.left, u.valToPos(g.from, "x", true)), to = Math.min(b.left + b.width, u.valToPos(g.to, "x", true));
      if (to > from) c.fillRect(from, b.top, Math.max(to - from, 1), b.height);
    }
    c.restore();
  }
  // A mark's line leads up to its words and crosses nobody else's: those that come first
  // have the upper rows.
  function flag(u, list, rows) {
    const c = u.ctx, b = u.bbox, r = devicePixelRatio || 1, gap = 10 * r, aside = Math.round(3 * r);
    const ends = new Array(rows).fill(-Infinity), flags = [];
    let last = -Infinity, used = 0;
    c.save();
    c.font = 11.5 * r + "px system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif";
    c.textBaseline = "alphabetic";
    c.textAlign = "left";
    c.lineWidth = r;
    for (const m of list) {
      let x = Math.round(u.valToPos(m.at, "x", true)) + 0.5;
      if (x < last + aside) x = Math.min(last, x + aside) + aside; // each line is to be seen, near its time
      if (x < b.left - 1 || x > b.left + b.width + 1 + 2 * aside) continue;
      last = Math.max(last, x);
      const width = c.measureText(m.text).width, left = Math.max(b.left, Math.min(x, b.left + b.width - width));
      const row = width <= b.width ? ends.findIndex((end, i) => left > end + gap && ends.every((e, k) => k <= i || x > e)) : -1;
      flags.push({ m, x, left, row });
      if (row < 0) continue;
      used = Math.max(used, row + 1);
      ends[row] = left + width;
      for (let k = row + 1; k < rows; k++) ends[k] = Math.max(ends[k], x + 1 - gap);
    }
    for (const { m, x, left, row } of flags) {
      const under = (used - 1 - row) * rowHeight * r;
      c.strokeStyle = c.fillStyle = css(m.made ? "--quiet" : "--ink");
      c.setLineDash(m.made ? [4 * r, 3 * r] : []);
      c.beginPath();
      c.moveTo(x, b.top - (row < 0 ? 0 : under + 3 * r));
      c.lineTo(x, b.top + b.height);
      c.stroke();
      if (row >= 0) c.fillText(m.text, left, b.top - under - 5 * r);
    }
    c.restore();
  }
  const moments = spec => ({
    hooks: {
      drawAxes: u => {
        shade(u, spec.gaps || [], "--rest", 0.3);
        shade(u, (spec.marks || []).map(m => ({ from: m.low, to: m.high })), "--hue4", 0.2);
      },
      draw: u => flag(u, spec.marks || [], markRows(spec)),
    },
  });

  // Round steps from 0, about five of them.
  function upward(top) {
    const raw = top / 5, unit = Math.pow(10, Math.floor(Math.log10(raw)));
    const step = unit * [1, 2, 2.5, 5, 10].find(m => unit * m >= raw * 0.999);
    const out = [];
    for (let n = 0; n * step <= top; n++) out.push(n * step);
    return out;
  }

  // 1, 2 and 5 of each decade; the decades alone when those crowd.
  function decades(low, high) {
    const of = multiples => {
      const out = [];
      for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++)
        for (const m of multiples) { const v = m * Math.pow(10, e); if (v >= low && v <= high) out.push(v); }
      return out;
    };
    const fine = of([1, 2, 5]);
    return fine.length > 8 ? of([1]) : fine;
  }

  // Labels that would touch their neighbour are left out; their ticks stay.
  function apart(u, splits, text) {
    const width = t => t.length * 7 + 8, final = splits[splits.length - 1];
    const end = splits.length ? u.valToPos(final, "x") - width(text(final)) / 2 : 0;
    let last = -Infinity;
    return splits.map((v, i) => {
      const label = text(v), at = u.valToPos(v, "x"), half = width(label) / 2;
      if (i < splits.length - 1 && (at - half < last || at + half > end)) return "";
      last = at + half;
      return label;
    });
  }

  const height = width => Math.round(Math.max(220, Math.min(320, width * 0.56)));

  function options(spec, width) {
    const font = "12px system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif";
    const look = { stroke: css("--quiet"), font, labelFont: font, ticks: { stroke: css("--rule"), size: 5 }, filter: (u, splits) => splits };
    const values = spec.series.flatMap(s => s.values.concat(s.high || [])).filter(v => v !== null && isFinite(v));
    // Value by value: no function takes as many arguments as long runs of many flows have.
    const most = values.reduce((a, v) => v > a ? v : a, 0), top = spec.top || (most > 1e-15 ? most * 1.07 : 1);
    const positive = values.filter(v => v > 0);
    const low = positive.reduce((a, v) => v < a ? v : a, Infinity) / 1.4, high = most * 1.4;
    const log = spec.yLog && positive.length > 0;
    return {
      width, height: height(width) + markRows(spec) * rowHeight, padding: [10 + markRows(spec) * rowHeight, 12, null, null], legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 9 } },
      scales: {
        x: { time: false, distr: spec.xLog ? 3 : 1, range: () => spec.xRange },
        y: log ? { distr: 3, range: () => [low, high] } : { range: () => [0, top] },
      },
      axes: [
        Object.assign({}, look, { label: spec.xLabel, labelSize: 20, size: 30, grid: { show: false }, splits: spec.xSplits ? () => spec.xSplits : undefined, values: (u, splits) => apart(u, splits, spec.xValue) }),
        Object.assign({}, look, {
          grid: { stroke: css("--rule"), width: 1 }, splits: () => log ? decades(low, high) : upward(top),
          values: (u, splits) => splits.map(v => bare(spec.format(v))), size: (u, texts) => Math.max(3, ...(texts || []).map(t => t.length)) * 6.8 + 16,
        }),
      ],
      series: [{}].concat(spec.series.map(s => ({
        label: s.label, stroke: s.colour, width: s.dash ? 1.4 : spec.stairs ? 1.6 : 2.4, dash: s.dash, spanGaps: !spec.stairs, points: { show: false },
        paths: spec.stairs ? uPlot.paths.stepped({ align: 1 }) : undefined,
      }))),
      plugins: [marks(spec.series), moments(spec), tips(spec)],
    };
  }

  // chart fills one box with what make returns, now and whenever colours or width change.
  const redraws = [];
  function chart(id, make) {
    const box = document.getElementById(id);
    if (!box) return () => {};
    let plot = null, width = 0, above = 0;
    function draw() {
      if (plot) plot.destroy();
      plot = null;
      box.replaceChildren();
      const spec = make();
      if (!spec) return;
      const stage = element("div");
      if (spec.title) box.append(element("p", "quiet", spec.title));
      box.append(legend(spec.series), stage);
      width = box.clientWidth;
      above = markRows(spec) * rowHeight;
      plot = new uPlot(options(spec, width), [spec.x].concat(spec.series.map(s => s.values)), stage);
    }
    redraws.push(draw);
    draw();
    new ResizeObserver(() => {
      if (!plot || !box.clientWidth || box.clientWidth === width) return;
      width = box.clientWidth;
      plot.setSize({ width, height: height(width) + above });
    }).observe(box);
    return draw;
  }

  // One x for all lines: uPlot wants its columns aligned.
  function curve(fields, format, extra) {
    const x = [...new Set(data.lines.flatMap(l => l.x))].sort((a, b) => a - b);
    const series = [];
    data.lines.forEach((l, i) => {
      const on = from => x.map(v => { const n = l.x.indexOf(v); return n < 0 ? null : from[n]; });
      fields.forEach((f, n) => {
        const values = on(l[f.field]);
        if (values.every(v => v === null)) return;
        const name = f.name === "offered" || f.name === "carried" ? l[f.name] : f.name;
        series.push({
          label: [l.name, name].filter(Boolean).join(" "), values, colour: hue(f.own ? i * fields.length + n : i), dash: f.dash ? dashes : undefined,
          low: f.low && on(l[f.low]), high: f.high && on(l[f.high]), invalid: on(l.invalid), point: true,
        });
      });
    });
    if (!series.length) return null;
    const a = x[0], b = x[x.length - 1], pad = (b - a) * 0.06 || 1;
    return Object.assign({
      x, series, format, xLog: data.axis.log, xRange: data.axis.log ? [a / 1.3, b * 1.3] : [a - pad, b + pad],
      xSplits: x, xValue: level, xLabel: data.axis.label + (data.axis.log ? " (log scale)" : ""),
      tipTitle: v => level(v) + (/^\w+_bytes$/.test(data.axis.key) ? " B" : ""), // a link's bytes have their unit
    }, extra);
  }

  // The unit in which a time that ends then is told, and about eight round steps of it.
  function clockOf(end) {
    const [name, div] = end > 4 * 3600 ? ["hours", 3600] : end > 600 ? ["minutes", 60] : ["seconds", 1];
    if (div === 1) return { name, div };
    let step = [1, 2, 5, 10, 15, 20, 30, 60].find(s => end / div / s <= 9) || 60;
    while (end / div / step > 9) step *= 2;
    const splits = [];
    for (let i = 0; i * step * div <= end; i++) splits.push(i * step * div);
    return { name, div, splits };
  }
  const two = n => String(n).padStart(2, "0");
  const moment = (v, end) => end <= 600 ? +v.toFixed(3) + " s" : (end >= 3600 ? Math.floor(v / 3600) + ":" + two(Math.floor(v / 60) % 60) : Math.floor(v / 60)) + ":" + two(Math.floor(v) % 60);

  // A value holds for its whole step, so a series is drawn as stairs.
  function overTime(list, format, title, extra) {
    if (!list.length) return null;
    const edges = new Set();
    for (const s of list) for (let i = 0; i <= s.values.length; i++) edges.add(+(s.start + i * s.step).toFixed(6));
    const x = [...edges].sort((a, b) => a - b);
    const series = list.map((s, n) => ({
      label: s.name, colour: s.hue < 0 ? css("--rest") : hue(s.hue === undefined ? n : s.hue), dash: s.sent ? dashes : undefined,
      values: x.map(v => {
        const i = Math.floor((v - s.start) / s.step + 1e-6);
        return i < 0 || i > s.values.length ? null : s.values[Math.min(i, s.values.length - 1)]; // the last one to its far edge
      }),
    }));
    const end = x[x.length - 1], clock = clockOf(end);
    return Object.assign({
      x, series, format, title, stairs: true, xRange: [Math.min(0, x[0]), end],
      xSplits: clock.splits, xValue: v => String(+(v / clock.div).toFixed(3)), xLabel: clock.name, tipTitle: v => "from " + moment(v, end),
    }, extra);
  }

  chart("rate", () => curve([{ field: "got", name: "carried", low: "got_low", high: "got_high" }, { field: "sent", name: "offered", dash: true }], rate));
  chart("bits", () => curve([{ field: "bits", name: "goodput", low: "bits_low", high: "bits_high" }], bits));
  chart("share", () => curve([{ field: "share", name: "of the best" }], share, { top: 1.07 }));
  const delayTitle = document.getElementById("delay-title");
  if (delayTitle) delayTitle.textContent = data.delay.charAt(0).toUpperCase() + data.delay.slice(1);
  chart("delay", () => curve([
    { field: "p50", name: "50 %", own: true }, { field: "p90", name: "90 %", own: true }, { field: "p99", name: "99 %", own: true }, { field: "p999", name: "99.9 %", own: true },
  ], nanos, { yLog: true }));

  const select = document.getElementById("trial");
  if (select && data.trials.length) {
    data.trials.forEach((t, i) => { const o = element("option", "", t.name); o.value = i; select.append(o); });
    const trial = () => data.trials[+select.value || 0], marked = () => ({ marks: trial().marks, gaps: trial().gaps });
    const draws = [
      chart("time-rate", () => overTime(trial().rate, packets, "Packet rate", marked())),
      chart("time-loss", () => overTime(trial().loss, packets, "Packets lost, by where and why", marked())),
      chart("time-cpu", () => overTime(trial().cpu, share, "Processor time", Object.assign({ top: 1.05 }, marked()))),
    ];
    select.addEventListener("change", () => draws.forEach(draw => draw()));
  }
  // A click on a head sorts a sweep's table by it, the other way round the second
  // time; what is unknown, and settings that are not valid, stay last.
  function sortBy(table, column, up) {
    const body = table.tBodies[0], sign = up ? 1 : -1;
    const rank = row => {
      const cell = row.cells[column], v = cell.dataset.v;
      return { row, bad: row.classList.contains("invalid"), none: v === undefined && !cell.classList.contains("words"), v: v === undefined ? cell.textContent : +v };
    };
    const order = (a, b) => a.bad - b.bad || a.none - b.none || (a.v < b.v ? -sign : a.v > b.v ? sign : 0);
    body.append(...[...body.rows].map(rank).sort(order).map(r => r.row));
    [...table.tHead.rows[0].cells].forEach((th, i) => i === column ? th.setAttribute("aria-sort", up ? "ascending" : "descending") : th.removeAttribute("aria-sort"));
  }
  for (const table of document.querySelectorAll("table.sweep"))
    [...table.tHead.rows[0].cells].forEach((th, i) => {
      const button = element("button", "", th.textContent);
      button.type = "button";
      if (!th.textContent) button.setAttribute("aria-label", "best first");
      button.addEventListener("click", () => sortBy(table, i, th.getAttribute("aria-sort") === "descending"));
      th.replaceChildren(button);
    });

  // What the script of another kind of run draws with.
  globalThis.pelt = { data, css, element, packets, bits, nanos, redraws, chart, overTime };

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraws.forEach(draw => draw()));
})();
