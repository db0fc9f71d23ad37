(function () {
  "use strict";
  const { data, css, element, packets, bits, redraws } = globalThis.pelt;
  const bench = data.bench, select = document.getElementById("bench-trial");
  if (!bench || !bench.trials.length || !select) return;
  const state = { trial: bench.chosen, unit: "bps" };
  const names = { bps: bits, pps: packets };
  const percent = v => Math.round(v * 100) + " %";
  const rateColour = i => i ? css("--ink") : css("--hue0");

  // A value holds for its whole step: at(x) is the one of the step that x lies in.
  const at = (s, values, x) => {
    const i = Math.floor((x - s.start) / s.step + 1e-6);
    return i < 0 || i >= values.length ? null : values[i];
  };
  const steps = (s, values) => Array.from({ length: values.length ? values.length + 1 : 0 }, (_, i) => +(s.start + i * s.step).toFixed(6));
  const longest = s => s.layers.reduce((a, b) => b.length > a.length ? b : a, []);

  // columns lays rates and one pile of processor time on one time axis: x, the
  // pile from its top to its foot, then the rates. A value reaches to the far edge
  // of its step, before a gap and at the end.
  function columns(rates, stack, shift) {
    const x = [...new Set([...rates.flatMap(r => steps(r, r[state.unit])), ...(stack ? steps(stack, longest(stack)) : [])])].sort((a, b) => a - b);
    if (stack) {
      const known = longest(stack), out = [];
      x.forEach((v, i) => { if (i && at(stack, known, v) === null && at(stack, known, x[i - 1]) !== null) out.push(v - 1e-4); });
      x.push(...out);
      x.sort((a, b) => a - b);
    }
    const last = x.length - 1, edge = (s, values, v, i) => at(s, values, i === last ? v - 1e-4 : v);
    const pile = bench.layers.map((_, n) => x.map((v, i) => {
      if (!stack) return null;
      let sum = 0;
      for (let k = 0; k <= n; k++) {
        if (!stack.layers[k].length) continue;
        const y = edge(stack, stack.layers[k], v, i);
        if (y === null) return null;
        sum += y;
      }
      return Math.min(sum, 1);
    }));
    return { x: x.map(v => v + (shift || 0)), pile: pile.reverse(), rates: rates.map(r => x.map((v, i) => edge(r, r[state.unit], v, i))) };
  }

  // Four steps to a round top, so that both axes share their lines.
  function topOf(values) {
    const most = Math.max(0, ...values.filter(v => v !== null)) * 1.03 || 1, raw = most / 4, unit = Math.pow(10, Math.floor(Math.log10(raw)));
    return 4 * unit * [1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find(m => unit * m >= raw * 0.999);
  }
  const quarters = top => [0, 1, 2, 3, 4].map(i => top * i / 4);

  // The scale of a rate's axis: its unit stands in the legend.
  function scaleOf(top) {
    const text = names[state.unit](top * 0.999), unit = text.split(" ")[1], div = Math.pow(1000, "kMGT".indexOf(unit[0]) + 1);
    return { unit, value: v => String(+(v / div).toPrecision(4)) };
  }

  // Where nothing is known of the processor, stripes say so.
  function stripes(u, from, to, words) {
    const c = u.ctx, r = devicePixelRatio || 1, a = u.valToPos(from, "x", true), b = u.valToPos(to, "x", true), top = u.bbox.top, high = u.bbox.height;
    c.save();
    c.beginPath();
    c.rect(a, top, b - a, high);
    c.clip();
    c.strokeStyle = css("--rest");
    c.globalAlpha = 0.6;
    c.lineWidth = r;
    for (let x = a - high; x < b; x += 8 * r) { c.beginPath(); c.moveTo(x, top + high); c.lineTo(x + high, top); c.stroke(); }
    c.globalAlpha = 1;
    c.font = 12 * r + "px system-ui, sans-serif";
    const width = c.measureText(words).width;
    if (width + 12 * r < b - a) {
      c.fillStyle = css("--card");
      c.fillRect((a + b - width) / 2 - 5 * r, top + high / 2 - 10 * r, width + 10 * r, 20 * r);
      c.fillStyle = css("--quiet");
      c.textAlign = "center";
      c.textBaseline = "middle";
      c.fillText(words, (a + b) / 2, top + high / 2);
    }
    c.restore();
  }
  function unseen(x, pile, end) {
    const spans = [];
    for (let i = 0; i + 1 < x.length; i++) {
      if (pile[0][i] !== null || (end && x[i] >= end - 1e-6)) continue;
      const last = spans[spans.length - 1];
      if (last && last[1] === x[i]) last[1] = x[i + 1]; else spans.push([x[i], x[i + 1]]);
    }
    return spans;
  }

  function axisLook() {
    const font = "12px system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif";
    return { stroke: css("--quiet"), font, labelFont: font, ticks: { stroke: css("--rule"), size: 5 } };
  }
  function options(spec, width) {
    const look = axisLook(), layers = [...bench.layers].reverse();
    const stepped = uPlot.paths.stepped({ align: 1 });
    return {
      width, height: spec.height, padding: [8, 4, spec.foot ? 0 : 4, 0], legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false }, sync: spec.sync ? { key: "bench", scales: ["x", null] } : undefined },
      scales: { x: { time: false, range: () => spec.range }, cpu: { range: () => [0, 1] }, rate: { range: () => [0, spec.top] } },
      axes: [
        Object.assign({}, look, { show: true, size: spec.words ? spec.words : spec.foot ? 28 : 6, label: spec.foot ? spec.label : undefined, labelSize: 18, grid: { show: false }, ticks: { show: !!spec.foot && !spec.words, stroke: css("--rule"), size: 5 }, values: spec.foot && !spec.words ? (u, splits) => splits.map(v => String(+v.toFixed(3))) : () => [] }),
        Object.assign({}, look, { scale: "rate", size: 52, grid: { show: false }, ticks: { show: !!spec.rates, stroke: css("--rule"), size: 5 }, splits: () => quarters(spec.top), values: (u, splits) => spec.rates ? splits.map(scaleOf(spec.top).value) : [] }),
        Object.assign({}, look, { scale: "cpu", side: 1, size: 50, grid: { stroke: css("--rule"), width: 1 }, splits: () => spec.height < 150 ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1], values: (u, splits) => splits.map(percent) }),
      ],
      series: [{}]
        .concat(layers.map(name => ({ label: name, scale: "cpu", fill: css("--" + name), width: 0, spanGaps: false, points: { show: false }, paths: stepped })))
        .concat(spec.columns.rates.map((_, i) => ({ label: "rate", scale: "rate", stroke: rateColour(i), width: spec.thin ? 1.4 : 2.2, dash: i ? [6, 4] : undefined, spanGaps: false, points: { show: false }, paths: stepped }))),
      plugins: [{ hooks: { draw: spec.draw || [] } }, tip(spec)],
    };
  }

  function tip(spec) {
    const box = element("div", "tip");
    const hide = () => { box.style.display = "none"; };
    const line = (colour, text) => { const row = element("div", "row"), dot = element("span", "dot solid"); dot.style.color = colour; row.append(dot, element("span", "", text)); box.append(row); };
    function fill(u, i) {
      box.replaceChildren(element("b", "", spec.title(u.data[0][i])));
      const count = bench.layers.length;
      spec.columns.rates.forEach((values, n) => { if (values[i] !== null) line(rateColour(n), (spec.names[n] || "rate") + " " + names[state.unit](values[i])); });
      if (u.data[count][i] === null) return void box.append(element("div", "", "router not observed"));
      for (let n = count; n >= 1; n--) { // the pile is drawn from its top
        const below = n < count ? u.data[n + 1][i] : 0, own = u.data[n][i] - below;
        if (own > 0.0005) line(css("--" + bench.layers[count - n]), bench.layers[count - n] + " " + (own * 100).toFixed(own < 0.1 ? 1 : 0) + " %");
      }
      box.append(element("div", "", "busy " + percent(u.data[1][i])));
    }
    return { hooks: {
      init: u => { u.over.append(box); u.over.addEventListener("mouseleave", hide); },
      setCursor: u => {
        const i = u.cursor.idx;
        if (i === null || i === undefined || u.cursor.left < 0 || !u.over.matches(":hover")) return hide();
        fill(u, i);
        box.style.display = "block";
        const room = u.over.clientWidth - box.offsetWidth, right = u.cursor.left + 14;
        box.style.left = Math.max(0, Math.min(right > room ? u.cursor.left - box.offsetWidth - 14 : right, room)) + "px";
        box.style.top = Math.max(0, Math.min(u.cursor.top + 10, u.over.clientHeight - box.offsetHeight)) + "px";
      },
    } };
  }

  // plots draws charts into boxes, again whenever width or colours change.
  function plots(make) {
    let all = [], width = 0;
    function draw() {
      all.forEach(p => p.destroy());
      all = make().map(({ box, spec, corner }) => {
        const stage = element("div");
        box.replaceChildren();
        if (corner) box.append(element("div", "corner", corner));
        box.append(stage);
        width = box.clientWidth;
        const o = options(spec, width), p = new uPlot(o, [spec.columns.x, ...spec.columns.pile, ...spec.columns.rates], stage);
        if (spec.click) p.over.addEventListener("click", () => { if (p.cursor.left >= 0) spec.click(p.posToVal(p.cursor.left, "x")); });
        return p;
      });
    }
    redraws.push(draw);
    draw();
    const watched = document.getElementById("bench-whole");
    new ResizeObserver(() => { if (watched.clientWidth && watched.clientWidth !== width) draw(); }).observe(watched);
    return draw;
  }

  const trial = () => bench.trials[state.trial];
  function trialPlots() {
    const t = trial(), whole = document.getElementById("bench-whole"), cores = document.getElementById("bench-cores");
    const all = [t.stacks[0], ...t.stacks.slice(1)], ends = [], out = [];
    const boxes = all.map((s, i) => i ? element("div", "chart") : whole);
    cores.replaceChildren(...boxes.slice(1));
    const shared = columns(t.rates, t.stacks[0]);
    const range = [Math.min(0, shared.x[0] || 0), Math.max(shared.x[shared.x.length - 1] || 1, ...ends)];
    const top = topOf(shared.rates.flat());
    all.forEach((stack, i) => {
      const c = i ? columns([], stack) : shared, foot = i === all.length - 1;
      const lost = i || t.stacks.length ? unseen(c.x, c.pile) : [[range[0], range[1]]];
      out.push({ box: boxes[i], corner: i && stack ? stack.name : "", spec: {
        columns: c, names: t.rates.map(r => r.name), rates: !i, top, range, height: (i ? 84 : 270) + (foot ? 40 : 0), foot, label: "seconds", sync: true,
        title: v => (stack ? stack.name + ", " : "") + "from " + +v.toFixed(3) + " s",
        draw: [u => lost.forEach(([a, b]) => stripes(u, a, b, "router not observed"))],
      } });
    });
    return out;
  }

  // One trial after the other, each with its own place on one axis.
  function overview() {
    const box = document.getElementById("bench-all"), x = [], layers = bench.layers.map(() => []), rates = [[], []], places = [];
    let shift = 0;
    bench.trials.forEach((t, n) => {
      const c = columns(t.rates, t.stacks[0]), from = c.x[0] || 0, to = c.x[c.x.length - 1] || 0;
      places.push({ from: shift, to: shift + to - from, n });
      c.x.forEach((v, i) => {
        const last = i === c.x.length - 1; // the edge belongs to nobody: the next trial begins there
        x.push(shift + v - from - (last ? 1e-4 : 0));
        layers.forEach((l, k) => l.push(c.pile[k][i]));
        rates.forEach((l, k) => l.push(k < c.rates.length ? c.rates[k][i] : null));
      });
      x.push(shift + to - from - 5e-5);
      layers.forEach(l => l.push(null));
      rates.forEach(l => l.push(null));
      shift += to - from;
    });
    const top = topOf(rates.flat());
    document.getElementById("bench-scale").textContent = "In the order of the table, rates in " + scaleOf(top).unit + "; a click goes to a trial.";
    const used = rates.filter(l => l.some(v => v !== null));
    const where = v => places.find(p => v >= p.from - 1e-3 && v < p.to - 1e-3) || places[places.length - 1];
    const groups = [];
    places.forEach(p => { const row = bench.trials[p.n].row, g = groups[groups.length - 1]; if (g && g.row === row) g.to = p.to; else groups.push({ row, from: p.from, to: p.to }); });
    // What changes most often stands nearest to the axis.
    const changes = level => groups.filter((g, i) => i && bench.rows[g.row][level] !== bench.rows[groups[i - 1].row][level]).length;
    const levels = [...["traffic", "way"].sort((a, b) => changes(b) - changes(a)), "variant"];
    const edges = u => {
      const c = u.ctx, r = devicePixelRatio || 1;
      c.save();
      c.setLineDash([]);
      c.lineWidth = r;
      for (const g of groups) {
        const px = u.valToPos(g.to, "x", true);
        c.strokeStyle = css("--node-rule");
        c.beginPath(); c.moveTo(px, u.bbox.top); c.lineTo(px, u.bbox.top + u.bbox.height); c.stroke();
      }
      const now = places[state.trial], a = u.valToPos(now.from, "x", true), b = u.valToPos(now.to, "x", true);
      c.strokeStyle = css("--ink");
      c.lineWidth = 2 * r;
      c.strokeRect(a, u.bbox.top, b - a, u.bbox.height);
      // Below: traffic, direction and variant, wherever there is room.
      c.font = 11.5 * r + "px system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif";
      c.textAlign = "center";
      c.textBaseline = "middle";
      c.fillStyle = css("--quiet");
      c.strokeStyle = css("--node-rule");
      c.lineWidth = r;
      levels.forEach((level, n) => {
        const spans = [], y = u.bbox.top + u.bbox.height + (13 + n * 17) * r;
        for (const g of groups) {
          const of = bench.rows[g.row], key = levels.slice(n).map(l => of[l]).join("\n"), last = spans[spans.length - 1];
          if (last && last.key === key) last.to = g.to; else spans.push({ key, text: of[level], from: g.from, to: g.to });
        }
        for (const s of spans) {
          const a = u.valToPos(s.from, "x", true), b = u.valToPos(s.to, "x", true);
          if (!s.text || c.measureText(s.text).width + 2 * r > b - a) continue;
          c.fillText(s.text, (a + b) / 2, y);
          if (n) { c.beginPath(); c.moveTo(a + 2 * r, y - 8.5 * r); c.lineTo(b - 2 * r, y - 8.5 * r); c.stroke(); }
        }
      });
      c.restore();
    };
    const lost = places.filter(p => !bench.trials[p.n].stacks.length).map(p => [p.from, p.to]).concat(places.flatMap(p => {
      const t = bench.trials[p.n];
      if (!t.stacks.length) return [];
      const c = columns([], t.stacks[0]);
      return unseen(c.x, c.pile).map(([a, b]) => [p.from + a - c.x[0], p.from + b - c.x[0]]);
    }));
    return [{ box, spec: {
      columns: { x, pile: layers, rates: used }, names: ["", ""], rates: true, thin: true, top, range: [0, shift], height: 262, foot: true, words: bench.rows.some(r => r.variant) ? 60 : 44,
      title: v => bench.trials[where(v).n].name, draw: [u => lost.forEach(([a, b]) => stripes(u, a, b, "")), edges],
      click: v => choose(where(v).n),
    } }];
  }

  function legend() {
    const list = document.getElementById("bench-legend"), ns = "http://www.w3.org/2000/svg", t = trial(), shared = columns(t.rates, null);
    const item = (text, draw) => {
      const li = element("li"), svg = document.createElementNS(ns, "svg");
      Object.entries({ width: draw.width, height: 12, "aria-hidden": "true" }).forEach(([k, v]) => svg.setAttribute(k, v));
      const shape = document.createElementNS(ns, draw.tag);
      Object.entries(draw.of).forEach(([k, v]) => shape.setAttribute(k, v));
      svg.append(shape);
      li.append(svg, text);
      return li;
    };
    const seen = bench.layers.map((name, k) => ({ name, k })).filter(l => bench.trials.some(r => r.stacks.some(s => s.layers[l.k].some(v => v > 0.0005))));
    list.replaceChildren(
      ...t.rates.map((r, i) => item(r.name + (i === t.rates.length - 1 ? ", " + scaleOf(topOf(shared.rates.flat())).unit + " (left)" : ""), { tag: "line", width: 26, of: Object.assign({ x1: 1, x2: 25, y1: 6, y2: 6, stroke: rateColour(i), "stroke-width": 2.6 }, i ? { "stroke-dasharray": "6 4" } : {}) })),
      ...seen.map((l, i) => item(l.name + (i === seen.length - 1 ? " (right; all cores, then " + (t.left ? "the " + (t.stacks.length - 1) + " busiest)" : "each)") : ""), { tag: "rect", width: 12, of: { width: 12, height: 12, rx: 2, fill: css("--" + l.name) } })));
  }

  bench.trials.forEach((t, i) => { const o = element("option", "", t.name); o.value = i; select.append(o); });
  const rowsOf = document.querySelectorAll("table.bench tr[data-row]");
  function show() {
    const t = trial();
    select.value = state.trial;
    document.getElementById("bench-note").textContent = t.note || (t.stacks.length ? "" : "router not observed");
    document.getElementById("bench-bits").setAttribute("aria-pressed", state.unit === "bps");
    document.getElementById("bench-packets").setAttribute("aria-pressed", state.unit === "pps");
    rowsOf.forEach(r => r.classList.toggle("chosen", +r.dataset.row === t.row));
    legend();
  }
  redraws.push(legend);
  show();
  const draws = [plots(trialPlots), plots(overview)];
  function again() { show(); draws.forEach(draw => draw()); }
  function choose(n) { state.trial = n; again(); }
  select.addEventListener("change", () => choose(+select.value));
  document.getElementById("bench-bits").addEventListener("click", () => { state.unit = "bps"; again(); });
  document.getElementById("bench-packets").addEventListener("click", () => { state.unit = "pps"; again(); });
  rowsOf.forEach(r => r.addEventListener("click", () => {
    const n = bench.trials.findIndex(t => t.row === +r.dataset.row);
    if (n < 0) return;
    choose(n);
    document.querySelector(".benchtime").scrollIntoView({ block: "nearest", behavior: "smooth" });
  }));
})();
