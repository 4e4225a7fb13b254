// The flame graph: stacks of a report, drawn by d3-flame-graph with the outermost call on top, for the mouse and the keyboard.
"use strict";
const flame = (() => {
  const CELL = 22;
  const at = (id) => document.getElementById(id);
  const place = at("flame");
  // What is drawn: the graph of d3-flame-graph, its frames as d3 nests them, and the part of the state that they show.
  let figures, chart, root, shown;
  // True while the state is shown, so that a zoom which it asked for does not change it.
  let following = false;

  const graph = () => figures.graphs[selection.state.flame];
  const isCode = () => selection.state.flame === "code";

  // Accesses for each MiB by their logarithm, cold 0 to hot 1, over three orders of magnitude at most; null where no frame has bytes. The
  // ends are those of frames that can be seen: a page with one sample would be the hottest of most programs.
  function hotness(frames) {
    const [all] = frames;
    const rate = ({ heat, bytes }) => heat / bytes * 2 ** 20;
    const isSeen = ({ heat, bytes }) => heat >= all.heat / 100 || bytes >= all.bytes / 100;
    const known = frames.filter((frame) => frame.heat > 0 && frame.bytes > 0 && isSeen(frame)).map(rate);
    if (known.length === 0) return null;
    const high = known.reduce((a, b) => Math.max(a, b)), low = Math.max(known.reduce((a, b) => Math.min(a, b)), high / 1000);
    const colours = theme.heat();
    const ramp = d3.scaleLinear().domain(colours.map((_, i) => i / (colours.length - 1))).range(colours).clamp(true);
    const share = (frame) => high > low ? Math.log(Math.max(rate(frame), low) / low) / Math.log(high / low) : 1;
    return { low, high, colours, colour: (frame) => ramp(frame.bytes > 0 ? share(frame) : Number(frame.heat > 0)) };
  }
  // The colour of a frame: by hotness, and in code, which has no bytes, by what it is.
  function painter(hot) {
    const colours = theme.frames();
    const hash = (name) => [...name].reduce((sum, c) => (sum * 31 + c.codePointAt(0)) % 9973, 7);
    return ({ data, highlight }) => {
      if (highlight) return colours.found;
      if (hot && data.kind !== "rest" && data.kind !== "all") return hot.colour(data);
      return data.kind === "function" ? colours.function[hash(data.name) % colours.function.length] : colours[data.kind];
    };
  }
  function legend(hot) {
    const colours = theme.frames();
    const entry = ([colour, label]) => {
      const item = document.createElement("li"), swatch = document.createElement("i");
      swatch.style.background = colour;
      swatch.classList.toggle("ramp", colour.startsWith("linear"));
      item.append(swatch, label);
      return item;
    };
    const kinds = [[colours.function[0], "function"], [colours.line, "line"], [colours.data, "data that it accesses"]];
    const ramp = hot && [`linear-gradient(90deg, ${hot.colours.join(", ")})`, `hotness: ${words.rate(hot.low)} to ${words.rate(hot.high)} ${figures.units} for each MiB`];
    at("flame-legend").replaceChildren(...(isCode() ? kinds : ramp ? [ramp] : []).map(entry));
  }
  // Black or white, whichever stands out more.
  const inks = new Map();
  const ink = (fill) => inks.get(fill) ?? inks.set(fill, inkOf(fill)).get(fill);
  function inkOf(fill) {
    const [r, g, b] = fill.startsWith("#") ? [1, 3, 5].map((i) => parseInt(fill.slice(i, i + 2), 16)) : fill.match(/[\d.]+/g).map(Number);
    const linear = (v) => (v / 255) <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4;
    return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b) > 0.179 ? "#000" : "#fff";
  }

  function describe({ data }) {
    const share = (key) => words.percent(data[key] / Math.max(graph()[0][key], 1));
    const bytes = isCode() ? "" : `, ${words.bytes(data.bytes)} (${share("bytes")} of the bytes)`;
    return `${data.name}${data.file ? ` in ${data.file}` : ""}: ${share("heat")} of the ${figures.counted}${bytes}`;
  }
  // The frame that fills the width, unless another is pointed at or has the focus.
  function details(text) {
    at("flame-details").textContent = text ?? (root ? describe(node(selection.state.zoom) ?? root) : "");
  }

  const node = (number) => root.descendants().find(({ data }) => data.number === number);
  // The frames within each other, as d3-flame-graph reads them.
  function nested() {
    const by = selection.state.width;
    const frames = graph().map((frame, number) => ({ ...frame, number, value: frame[by], children: [] }));
    frames.forEach((frame, number) => { if (number > 0 && frame.value > 0) frames[frame.parent].children.push(frame); });
    return frames[0];
  }

  function draw() {
    if (!figures) return;
    const { flame: kind, width } = selection.state, data = nested();
    place.replaceChildren();
    root = null;
    shown = { kind, width, zoom: 0, find: "" };
    at("flame-empty").hidden = data.value > 0;
    place.hidden = data.value === 0;
    const hot = isCode() ? null : hotness(graph());
    legend(hot);
    if (data.value > 0) {
      const levels = (frame) => 1 + frame.children.reduce((most, child) => Math.max(most, levels(child)), 0);
      chart = d3.flamegraph().width(place.clientWidth).height(levels(data) * CELL).cellHeight(CELL).inverted(true)
        .transitionDuration(0).minFrameSize(1).sort((a, b) => (a.data.kind === "rest") - (b.data.kind === "rest") || b.data.value - a.data.value)
        .setColorMapper(painter(hot)).setLabelHandler(describe).setDetailsHandler(details)
        .setSearchMatch(({ data: { name, file } }, term) => `${name} ${file ?? ""}`.toLowerCase().includes(term))
        .setSearchHandler((found, sum, all) => {
          at("flame-found").textContent = `${words.counted(found.length, "frame")}, ${words.percent(sum / all)} of the width`;
        })
        .onClick(({ data: { number } }) => pick(number));
      d3.select(place).datum(data).call(chart);
      root = d3.select(place).datum();
      // Frames grow in a quarter of a second, whatever the duration of transitions; another update draws them as they are to be.
      chart.update();
    }
    show();
  }
  // A frame was clicked, or Enter pressed in it: it fills the width already.
  function pick(number) {
    shown.zoom = number;
    if (!following) selection.change({ zoom: number, site: "", frame: number > 0 ? `${shown.kind}.${number}` : "" });
  }

  // Makes the graph show the state.
  function show() {
    const { flame: kind, width, zoom, find } = selection.state;
    if (kind !== shown.kind || width !== shown.width) return draw();
    controls();
    if (!root) return;
    following = true;
    if (zoom !== shown.zoom) chart.zoomTo(node(zoom) ?? root);
    if (find !== shown.find) search(find);
    following = false;
    // Transitions of no duration begin with the next frame of the screen and end with the one after.
    d3.timerFlush();
    d3.timerFlush();
    decorate();
    details();
  }
  function search(find) {
    shown.find = find;
    if (find.trim()) return chart.search(find.trim().toLowerCase());
    at("flame-found").textContent = "";
    chart.clear();
  }
  function controls() {
    const { flame: kind, width, zoom, find } = selection.state;
    for (const input of document.querySelectorAll("#flame-controls input[type=radio]")) {
      input.checked = input.value === (input.name === "flame-kind" ? kind : width);
      input.disabled = input.value === "bytes" && isCode();
      input.parentElement.classList.toggle("off", input.disabled);
    }
    const field = at("flame-find");
    if (field.value !== find) field.value = find;
    at("flame-whole").hidden = zoom === 0;
  }

  // The frames that the selection is in: in its own graph what is within the selected frame and around it, else those of its sites.
  function lit(frames) {
    const marks = new Array(frames.length).fill(selection.sites === null);
    if (selection.sites === null) return marks;
    const frame = selection.selectedFrame(), isOwn = frame?.graph === shown.kind;
    const end = isOwn ? selection.end(frames, frame.at) : 0;
    for (let number = frames.length - 1; number >= 0; number -= 1) {
      if (isOwn) marks[number] ||= number >= frame.at && number < end;
      else marks[number] ||= frames[number].sites.some((site) => selection.sites.has(figures.sites[site].site));
      if (marks[number]) marks[frames[number].parent] = true;
    }
    return marks;
  }
  // Drawn frames that have their name, and the colour of the text of each: what is written again costs as much as what changes.
  const described = new WeakSet(), colours = new WeakMap();
  function set(element, name, value) {
    if (element.getAttribute(name) !== value) element.setAttribute(name, value);
  }
  function name(g, frame) {
    g.dataset.number = frame.data.number;
    g.setAttribute("role", "treeitem");
    g.setAttribute("aria-level", frame.depth + 1);
    g.setAttribute("aria-label", describe(frame));
    described.add(g);
  }
  // What d3-flame-graph does not do: names and levels for screen readers, one stop of the tab key, text that stands out, the selection.
  function decorate() {
    const { zoom } = selection.state, marks = lit(graph()), picked = selection.selectedFrame();
    const stop = place.querySelector("g:focus")?.dataset.number ?? `${zoom}`;
    for (const g of place.querySelectorAll("g.frame")) {
      const frame = d3.select(g).datum(), { number } = frame.data;
      if (!described.has(g)) name(g, frame);
      set(g, "aria-selected", `${picked?.graph === shown.kind && picked.at === number}`);
      set(g, "tabindex", `${number}` === stop ? "0" : "-1");
      g.classList.toggle("dim", !marks[number]);
      g.classList.toggle("lit", marks[number] && selection.sites !== null);
      const [rect, text] = [g.querySelector("rect"), g.querySelector("div")];
      const colour = marks[number] ? ink(rect.getAttribute("fill")) : "";
      if (colours.get(g) !== colour) text.style.color = colour;
      colours.set(g, colour);
    }
    place.querySelector("svg").setAttribute("role", "presentation");
  }

  // The frame that a key leads to from another.
  function beside(frame, key) {
    const drawn = (list) => list.filter(({ data: { number } }) => place.querySelector(`g[data-number="${number}"]`));
    const row = drawn(root.descendants().filter(({ depth }) => depth === frame.depth)).sort((a, b) => a.x0 - b.x0);
    switch (key) {
      case "ArrowDown": return drawn(frame.children ?? [])[0];
      case "ArrowUp": return frame.parent;
      case "ArrowLeft": return row[row.indexOf(frame) - 1];
      case "ArrowRight": return row[row.indexOf(frame) + 1];
      case "Home": return root;
      default: return undefined;
    }
  }
  function focus(number) {
    const next = place.querySelector(`g[data-number="${number}"]`);
    if (!next) return;
    place.querySelectorAll("g[tabindex='0']").forEach((g) => g.setAttribute("tabindex", -1));
    next.setAttribute("tabindex", 0);
    next.focus();
  }
  function keys(event) {
    const g = event.target.closest("g.frame");
    if (!g || event.ctrlKey || event.altKey || event.metaKey) return;
    const frame = d3.select(g).datum();
    if (event.key === "Enter" || event.key === " ") {
      chart.zoomTo(frame);
      focus(frame.data.number);
    } else if (event.key === "Escape") {
      selection.clear();
      focus(0);
    } else {
      const next = beside(frame, event.key);
      if (!next) return;
      focus(next.data.number);
    }
    event.preventDefault();
  }

  function start(of) {
    figures = of;
    place.setAttribute("role", "tree");
    at("flame-controls").hidden = false;
    at("flame-controls").addEventListener("change", ({ target }) => {
      if (target.name === "flame-kind") selection.change({ flame: target.value, zoom: 0 });
      if (target.name === "flame-width") selection.change({ width: target.value });
    });
    at("flame-find").addEventListener("input", ({ target }) => selection.change({ find: target.value }, true));
    at("flame-whole").addEventListener("click", () => selection.change({ zoom: 0, ...(selection.state.frame && { frame: "" }) }));
    place.addEventListener("keydown", keys);
    place.addEventListener("focusin", ({ target }) => { if (target.closest("g.frame")) details(describe(d3.select(target).datum())); });
    place.addEventListener("focusout", () => details());
    selection.onChange(show);
  }
  return { start, draw };
})();
