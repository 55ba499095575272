// Draws each figure of the page from the specification of its kind and its csv. Names from runs reach the page as text or
// as data only, never as markup or as a part of an expression.
"use strict";
(() => {
  const {runs, clairvoyant, figures, kinds} = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const few = 8; // runs that are shown at first, and colours
  const colours = Array.from({length: few}, (_, i) => `var(--s${i})`);
  const dashes = [[1, 0], [7, 3], [2, 2], [9, 3, 2, 3]];
  const shapes = ["circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "triangle-right", "triangle-left"];
  const every = (list, count) => Array.from({length: count}, (_, i) => list[i % list.length]);
  let shown = runs.slice(0, few);

  // ---- what the specifications call ----

  const spans = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const spanText = seconds => {
    const [unit, name] = spans.find(([least]) => seconds >= least) || spans[3];
    return `${+(seconds / unit).toPrecision(3)} ${name}`;
  };
  const within = ([low, high], ticks) => ticks.filter(tick => tick >= low * 0.999 && tick <= high * 1.001);
  const powers = (factors, [low, high]) => {
    const ticks = [];
    for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) ticks.push(...factors.map(f => f * power));
    return within([low, high], ticks);
  };
  const spanTicks = domain =>
    within(domain, [1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10, 60, 600, 3600, 21600, 86400, 864000, 8640000, 86400000, 864000000]);
  // Where a domain is too narrow for round numbers: equal steps.
  const enough = (ticks, [low, high]) =>
    ticks.length > 2 ? ticks : [1, 3, 5, 7].map(i => +(low + ((high - low) * i) / 8).toPrecision(3));
  const fineSpanTicks = domain => {
    const hours = domain[1] / domain[0] < 2 ? Array.from({length: 24}, (_, i) => i + 1) : [1, 2, 4, 6, 8, 12, 18];
    const parts = [[1, [1, 2, 5, 10, 20, 30]], [60, [1, 2, 5, 10, 20, 30]], [3600, hours],
      [86400, [1, 1.5, 2, 3, 4, 5, 7, 10, 20, 30, 50, 100, 200, 500, 1000]]];
    return enough(within(domain, parts.flatMap(([unit, counts]) => counts.map(count => count * unit))), domain);
  };
  const logTicks = domain => {
    const factors = domain[1] / domain[0] > 1000 ? [1] : domain[1] / domain[0] > 8 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9];
    return enough(powers(factors, domain), domain);
  };
  for (const f of [spanText, spanTicks, fineSpanTicks, logTicks]) vega.expressionFunction(f.name, f);

  // ---- one specification from a kind and a figure ----

  const ink = "currentColor";
  const text = {labelColor: ink, titleColor: ink, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal"};
  const config = {
    background: "var(--ground)",
    axis: {...text, domainColor: ink, tickColor: ink, gridColor: "var(--grid)", labelLimit: 200, labelOverlap: true},
    legend: {...text, orient: "top", direction: "horizontal", columns: {signal: "legendColumns"}, labelLimit: 240,
      symbolType: "stroke", symbolSize: 400, symbolStrokeWidth: 2, padding: 0, offset: 8, columnPadding: 16},
  };

  function specification(figure, width) {
    const spec = structuredClone(kinds[figure.kind]);
    const own = figure.settings.runs || runs;
    const signals = {
      clairvoyant, ...figure.settings, runs: own, shown: figure.settings.every_run ? own : shown, colours, width,
      colour_of: every(colours, own.length), dash_of: every(dashes, own.length), shape_of: every(shapes, own.length),
    };
    spec.signals = spec.signals || [];
    for (const [name, value] of Object.entries(signals)) {
      const known = spec.signals.find(signal => signal.name === name);
      known ? (known.value = value) : spec.signals.push({name, value});
    }
    // Legends have as many columns as their longest name leaves room for.
    spec.signals.push({name: "legendColumns",
      update: "max(1, floor(width / (46 + 7 * min(34, reduceLength(shown)))))"});
    spec.signals = spec.signals.filter(signal => signal.name !== "width");
    const ordinal = (name, range) => ({name, type: "ordinal", domain: {signal: "runs"}, range: {signal: range}});
    spec.scales.push(ordinal("colour", "colour_of"), ordinal("dash", "dash_of"), ordinal("shape", "shape_of"));
    for (const legend of spec.legends || []) {
      legend.values = {signal: "shown"};
      // A star marks what knows true run times.
      legend.encode = {labels: {update: {text: {signal: "datum.value + (indexof(clairvoyant, datum.value) < 0 ? '' : '*')"}}}};
      if (legend.shape) Object.assign(legend, {symbolSize: 80, symbolStrokeWidth: 0});
    }
    for (const scale of spec.scales) {
      if ((figure.settings.linear || []).includes(scale.name)) scale.type = "linear";
    }
    spec.data[0].values = figure.csv;
    return {...spec, config, width, padding: 4, autosize: {type: "fit-x", contains: "padding"}};
  }
  vega.expressionFunction("reduceLength", names => Math.max(1, ...names.map(name => name.length)));

  // ---- drawing ----

  const charts = new Map(); // of figures that could be drawn, by id
  const place = id => document.getElementById("figure-" + id);
  const widthOf = id => Math.max(260, place(id).querySelector(".chart").clientWidth);

  // Vega draws in what a promise does later, before the page has loaded: nothing is fetched.
  async function draw(figure) {
    const element = place(figure.id);
    const box = element.querySelector(".chart");
    box.replaceChildren();
    if (figure.settings.gantt_runs) figure.settings.run = figure.settings.gantt_runs[0];
    const view = new vega.View(vega.parse(specification(figure, widthOf(figure.id))), {renderer: "svg", container: box});
    await view.runAsync();
    charts.set(figure.id, view);
    if (figure.settings.whole) addZoom(element, view, figure);
    if (figure.settings.gantt_runs) addRunChoice(element, view, figure.settings.gantt_runs);
  }

  function resize() {
    for (const [id, view] of charts) view.width(widthOf(id)).run();
  }

  // ---- tools ----

  function button(label, hint, act) {
    const made = document.createElement("button");
    Object.assign(made, {type: "button", textContent: label, title: hint, onclick: act});
    made.setAttribute("aria-label", hint);
    return made;
  }

  function addZoom(element, view, figure) {
    const [first, last] = figure.settings.whole;
    const show = (low, high) => {
      const span = Math.min(high - low, last - first);
      low = Math.min(Math.max(low, first), last - span);
      view.signal("domain", [low, low + span]).run();
    };
    const zoom = (factor, at = 0.5) => {
      const [low, high] = view.signal("domain");
      const middle = low + (high - low) * at;
      show(middle - (middle - low) * factor, middle + (high - middle) * factor);
    };
    const move = share => {
      const [low, high] = view.signal("domain");
      show(low + share * (high - low), high + share * (high - low));
    };
    const all = () => show(first, last);
    element.querySelector(".tools").prepend(
      button("\u2212", "zoom out", () => zoom(2)), button("+", "zoom in", () => zoom(0.5)),
      button("\u2190", "earlier", () => move(-0.25)), button("\u2192", "later", () => move(0.25)),
      button("all", "show the whole time", all));
    const keys = {"+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), ArrowLeft: () => move(-0.25),
      ArrowRight: () => move(0.25), "0": all};
    element.addEventListener("keydown", event => {
      if (event.target !== element || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
    // The wheel scrolls the page, unless the figure was chosen.
    element.addEventListener("wheel", event => {
      if (document.activeElement !== element) return;
      event.preventDefault();
      const plot = element.querySelector(".chart").getBoundingClientRect();
      zoom(event.deltaY < 0 ? 0.8 : 1.25, Math.min(1, Math.max(0, (event.clientX - plot.left) / plot.width)));
    }, {passive: false});
  }

  function addRunChoice(element, view, names) {
    const choice = document.createElement("select");
    choice.setAttribute("aria-label", "run");
    choice.append(...names.map(name => new Option(name, name)));
    choice.onchange = () => view.signal("run", choice.value).run();
    element.querySelector(".tools").prepend(choice);
  }

  // A picture that stands alone: with the colours of the page, for light and dark.
  async function pictureOf(id) {
    const svg = (await charts.get(id).toSVG()).replace(/ d="[^"]*"/g,
      path => path.replace(/\d+\.\d{2,}/g, number => +(+number).toFixed(2)));
    const style = document.getElementById("colours").textContent.replace(/:root/g, "svg");
    return svg.replace(/<svg[^>]*>/, start => `${start}<style>${style}svg{color:var(--ink);font-family:sans-serif}</style>`);
  }

  function save(name, type, content) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], {type}));
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
  }

  function addChoiceOfRuns() {
    const box = document.getElementById("runs");
    if (!box || runs.length < 2) return box && box.remove();
    const chosen = new Set(shown);
    runs.forEach((name, i) => {
      const label = document.createElement("label");
      const check = document.createElement("input");
      const swatch = document.createElement("span");
      Object.assign(check, {type: "checkbox", checked: chosen.has(name)});
      swatch.className = "swatch";
      swatch.style.background = colours[i % few];
      check.onchange = () => {
        if (!check.checked && chosen.size === 1) check.checked = true; // charts of nothing have no scale
        check.checked ? chosen.add(name) : chosen.delete(name);
        shown = runs.filter(run => chosen.has(run));
        for (const figure of figures) {
          const view = charts.get(figure.id);
          if (view && !figure.settings.every_run) view.signal("shown", shown).run();
        }
      };
      label.append(check, swatch, name + (clairvoyant.includes(name) ? "*" : ""));
      box.append(label);
    });
  }

  // ---- the page ----

  async function drawOrSay(figure) {
    const tools = place(figure.id).querySelector(".tools");
    try {
      await draw(figure);
      tools.append(button("SVG", "save as SVG", async () => save(figure.id + ".svg", "image/svg+xml", await pictureOf(figure.id))));
    } catch (error) {
      place(figure.id).querySelector(".chart").textContent = "could not be drawn: " + error.message;
      console.error(figure.id, error);
    }
    tools.append(button("csv", "save the data as csv", () => save(figure.id + ".csv", "text/csv", figure.csv)));
  }

  // For scripts/report_svg.py, which opens the page at #svg=WIDTH and reads the pictures from it.
  async function writePictures(width) {
    for (const [id, view] of charts) {
      await view.width(width).runAsync();
      const text = document.createElement("pre");
      text.dataset.picture = id;
      text.textContent = await pictureOf(id);
      document.body.append(text);
    }
  }

  (async () => {
    addChoiceOfRuns();
    for (const figure of figures) await drawOrSay(figure);
    root.dataset.drawn = charts.size;
    root.dataset.failed = figures.length - charts.size;
    root.dataset.drawnMs = Math.round(performance.now());
    const wanted = location.hash.match(/^#svg=(\d+)$/);
    if (wanted) await writePictures(+wanted[1]);
  })();
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(resize, 100);
  });
  matchMedia("print").addEventListener("change", resize);
})();
