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

  function level(v) {
    const key = data.axis.key;
    if (/_pps$/.test(key)) return bare(packets(v));
    if (/_ns$/.test(key)) return bare(nanos(v));
    if (/_ratio$/.test(key)) return share(v);
    return String(v);
  }

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
    const top = spec.top || Math.max(...values, 0) * 1.07 || 1;
    const positive = values.filter(v => v > 0);
    const low = Math.min(...positive) / 1.4, high = Math.max(...positive) * 1.4;
    const log = spec.yLog && positive.length > 0;
    return {
      width, height: height(width), padding: [10, 12, null, null], legend: { show: false },
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
      plugins: [marks(spec.series), tips(spec)],
    };
  }

  // chart fills one box with what make returns, now and whenever colours or width change.
  const redraws = [];
  function chart(id, make) {
    const box = document.getElementById(id);
    if (!box) return () => {};
    let plot = null, width = 0;
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
      plot = new uPlot(options(spec, width), [spec.x].concat(spec.series.map(s => s.values)), stage);
    }
    redraws.push(draw);
    draw();
    new ResizeObserver(() => {
      if (!plot || !box.clientWidth || box.clientWidth === width) return;
      width = box.clientWidth;
      plot.setSize({ width, height: height(width) });
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
      tipTitle: v => level(v) + (/_bytes$/.test(data.axis.key) ? " B" : ""),
    }, extra);
  }

  // A value holds for its whole step, so a series is drawn as stairs.
  function overTime(list, format, title, extra) {
    if (!list.length) return null;
    const edges = new Set();
    for (const s of list) for (let i = 0; i <= s.values.length; i++) edges.add(+(s.start + i * s.step).toFixed(6));
    const x = [...edges].sort((a, b) => a - b);
    const series = list.map((s, n) => ({
      label: s.name, colour: hue(s.hue === undefined ? n : s.hue), dash: s.sent ? dashes : undefined,
      values: x.map(v => {
        const i = Math.floor((v - s.start) / s.step + 1e-6);
        return i < 0 || i > s.values.length ? null : s.values[Math.min(i, s.values.length - 1)]; // the last one to its far edge
      }),
    }));
    return Object.assign({
      x, series, format, title, stairs: true, xRange: [Math.min(0, x[0]), x[x.length - 1]],
      xValue: v => String(+v.toFixed(3)), xLabel: "seconds", tipTitle: v => "from " + +v.toFixed(3) + " s",
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
    const trial = () => data.trials[+select.value || 0];
    const draws = [
      chart("time-rate", () => overTime(trial().rate, packets, "Packet rate")),
      chart("time-cpu", () => overTime(trial().cpu, share, "Processor time", { top: 1.05 })),
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
  globalThis.pelt = { data, css, element, packets, bits, redraws };

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraws.forEach(draw => draw()));
})();
