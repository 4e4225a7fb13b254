// The charts of every page; sorting, filtering, selecting and copying.
"use strict";
(() => {
  const root = document.documentElement;
  // By the id of the chart: its kind, and the figures that this kind draws.
  const charts = JSON.parse(document.getElementById("data").textContent);
  const problems = [];
  const report = (problem) => { problems.push(String(problem)); root.dataset.problems = problems.join("\n"); };
  addEventListener("error", (event) => report(event.message));

  const { text, percent, bytes, time, rate, cut } = words;
  const { dark, colour, font, narrow, series } = theme;
  // Of a chart whose data is of sites: full colour where a site is selected, or nothing is.
  const opacity = (site) => selection.has(site) ? 1 : 0.15;

  const base = () => ({
    animation: false,
    textStyle: { fontFamily: font(), color: colour("--ink"), fontSize: 13 },
    aria: { enabled: false },
    tooltip: {
      backgroundColor: colour("--card"), borderColor: colour("--line"), confine: true,
      extraCssText: "max-width:340px;white-space:normal;overflow-wrap:anywhere",
      textStyle: { color: colour("--ink"), fontSize: 13 },
    },
  });
  const label = (more) => ({ color: colour("--soft"), fontSize: 13, ...more });
  const axis = (more) => ({
    axisLine: { lineStyle: { color: colour("--line") } }, axisTick: { show: false },
    axisLabel: label(), splitLine: { lineStyle: { color: colour("--line"), opacity: 0.6 } },
    nameTextStyle: label(), ...more,
  });

  const whole = (share) => `${Math.round(share * 100)} %`;
  // An axis of shares, 0 to 1, with its name above it.
  const shares = (name) => axis({ type: "value", min: 0, max: 1, interval: 0.25, name, nameLocation: "end", nameGap: 10,
    nameTextStyle: label({ align: "left" }), axisLabel: label({ formatter: whole }) });

  // Steps of a power of two, because bytes are labelled in binary units.
  const binary = (peak) => {
    const interval = 2 ** Math.max(0, Math.ceil(Math.log2(peak / 6)));
    return { interval, max: Math.max(1, Math.ceil(peak / interval)) * interval };
  };
  // Beside the chart and not in it, so that long names wrap instead of covering something.
  function legend(id, entries) {
    const place = document.getElementById(id);
    place.parentElement.querySelector(".legend")?.remove();
    const list = document.createElement("ul");
    list.className = "legend";
    for (const [color, label] of entries) {
      const entry = document.createElement("li"), swatch = document.createElement("i");
      swatch.style.background = color;
      entry.append(swatch, label);
      list.append(entry);
    }
    place.after(list);
  }

  // The slider below a chart over time, from and to these values of its axis; none of a page that keeps no state.
  const slider = (bottom, startValue, endValue, labelFormatter) => selection.span === 0 ? undefined : [{
    type: "slider", bottom, height: 18, startValue, endValue, labelFormatter, filterMode: "none", realtime: false, showDataShadow: false, brushSelect: false,
    borderColor: colour("--line"), backgroundColor: colour("--page"), fillerColor: colour("--accent-soft"), textStyle: label(),
    handleStyle: { color: colour("--card"), borderColor: colour("--accent") }, moveHandleSize: 0, handleSize: "110%",
    emphasis: { handleStyle: { color: colour("--accent-soft"), borderColor: colour("--accent") } },
  }];
  // The columns that have any of the shown time; ends that are equal but for rounding touch and do not overlap.
  const shownColumns = (columns) => {
    const [from, to] = selection.time, end = ({ start_ns: start, span_ns: length }) => (start + length) / 1e9;
    return [columns.findIndex((column) => end(column) > from + 1e-6), columns.findLastIndex(({ start_ns: start }) => start / 1e9 < to - 1e-6)];
  };

  function curve(data) {
    if (data.sites.length === 0) return null;
    const fast = colour("--accent"), slow = colour("--cool");
    const end = Math.max(1, ...data.sites.map((site) => site.capacity));
    const mark = data.plan ? data.plan.fast_capacity_share : data.hot_capacity_share;
    const words = data.plan ? `plan: ${percent(mark)} fast` : `${percent(mark)}: ${percent(data.hot_accesses_share)} of the ${data.counted}`;
    if (data.plan) legend("curve", [[fast, `planned for ${data.plan.tiers[0].name}`], [slow, "planned for a slower tier"]]);
    const points = data.sites.map((site) => ({
      value: [site.capacity, site.accesses], site,
      itemStyle: { color: data.plan ? (site.fast ? fast : slow) : fast, borderColor: colour("--card"), borderWidth: 1.5, opacity: opacity(site.site) },
    }));
    return {
      ...base(),
      grid: { left: 8, right: 20, top: 24, bottom: 34, containLabel: true },
      tooltip: {
        ...base().tooltip, trigger: "item",
        formatter: ({ seriesIndex, dataIndex }) => seriesIndex === 2 ? tips.curve(data, dataIndex) : "",
      },
      xAxis: axis({ type: "value", min: 0, max: end, ...(end < 2 && { interval: 0.25 }), name: narrow() ? "capacity, share of footprint" : "cumulative capacity, share of the footprint", nameLocation: "middle", nameGap: 30,
        axisLabel: label({ formatter: (v) => v === end && end !== 1 ? "" : whole(v) }) }),
      yAxis: shares(`share of the ${data.counted}`),
      series: [
        { type: "line", silent: true, symbol: "none", data: [[0, 0], [end, 1]], lineStyle: { color: colour("--soft"), type: "dashed", width: 1, opacity: 0.7 } },
        { type: "line", silent: true, symbol: "none", data: [[0, 0], ...points.map((p) => p.value)],
          lineStyle: { color: colour("--accent"), width: 2 }, areaStyle: { color: colour("--accent"), opacity: 0.08 },
          markLine: mark > 0 && mark <= end ? { symbol: "none", silent: true, lineStyle: { color: colour("--ink"), type: "solid", width: 1 },
            label: { formatter: words, color: colour("--ink"), fontSize: 13, position: "insideEndBottom", rotate: 0, align: mark > end * 0.6 ? "right" : "left", verticalAlign: "bottom",
              padding: [0, 8, 14, 8] }, data: [[{ coord: [mark, 1] }, { coord: [mark, 0] }]] } : undefined },
        { type: "scatter", symbolSize: (_, p) => 8 + 14 * Math.sqrt(p.data.site.accesses_share), data: points },
      ],
    };
  }

  function standing({ plan }) {
    const rows = [["bound", plan.bound_share, colour("--soft")], ["this plan", plan.planned_share, colour("--accent")], ["first touch", plan.first_touch_share, colour("--cool")]];
    return {
      ...base(),
      grid: { left: 8, right: 56, top: 8, bottom: 8, containLabel: true },
      tooltip: { ...base().tooltip, formatter: ({ name, value }) => `${text(name)}: ${percent(value)} of the ${text(plan.valued)}` },
      xAxis: axis({ type: "value", min: 0, max: 1, interval: 0.25, axisLabel: label({ formatter: whole }) }),
      yAxis: axis({ type: "category", data: rows.map((row) => row[0]), axisLabel: { color: colour("--ink"), fontSize: 14 } }),
      series: [{ type: "bar", barWidth: "58%", data: rows.map(([, value, color]) => ({ value, itemStyle: { color, borderRadius: 3 } })),
        label: { show: true, position: "right", formatter: ({ value }) => percent(value), color: colour("--ink"), fontSize: 14 } }],
    };
  }

  // Cells are [column, row, count, value]: the value, which spreads over orders of magnitude, is the colour, by its logarithm.
  function heat(figures) {
    const { columns, rows, cells } = figures;
    if (cells.length === 0) return null;
    const room = narrow() ? 14 : 30;
    const all = cells.map((cell, i) => [cell[0], cell[1], 0, i]), isLit = ([, row]) => selection.has(rows[row].site);
    const values = cells.map((cell) => Math.log10(Math.max(cell[3], 1e-9)));
    const low = values.reduce((a, b) => Math.min(a, b)), high = values.reduce((a, b) => Math.max(a, b));
    all.forEach((cell, i) => { cell[2] = values[i]; });
    const part = (data, more) => ({ type: "heatmap", progressive: 0, data, itemStyle: { borderWidth: 0, ...more }, emphasis: { itemStyle: { borderColor: colour("--ink"), borderWidth: 1, opacity: 1 } } });
    const extra = selection.span > 0 ? 34 : 0;
    return {
      ...base(),
      grid: { left: 8, right: 8, top: 8, bottom: 92 + extra, containLabel: true },
      dataZoom: slider(54, ...shownColumns(columns), (at) => time(columns[at]?.start_ns ?? 0)),
      tooltip: {
        ...base().tooltip,
        formatter: ({ value: [, , , at] }) => tips.heat(figures, at),
      },
      xAxis: axis({ type: "category", data: columns.map((c) => time(c.start_ns)), splitLine: { show: false }, name: "time since start", nameLocation: "middle", nameGap: 28 }),
      yAxis: axis({ type: "category", inverse: true, data: rows.map((row, i) => `${i}`), triggerEvent: true, splitLine: { show: false },
        axisLabel: label({ fontSize: 12, interval: 0, hideOverlap: true, formatter: (v) => cut(rows[+v].label, room) }) }),
      visualMap: { type: "continuous", min: low, max: high > low ? high : low + 1, dimension: 2, orient: "horizontal", left: "center", bottom: 0, itemHeight: narrow() ? 120 : 220, itemWidth: 12,
        inRange: { color: theme.heat() }, textStyle: label(), text: [`${rate(10 ** high)}`, `${rate(10 ** low)}`] },
      series: [part(all.filter(isLit)), part(all.filter((cell) => !isLit(cell)), { opacity: 0.15 })],
    };
  }

  // Shares of something by share of memory, or by the capacities that `categories` names.
  function lines({ categories, x, y, series: list }, id) {
    if (list.length === 0) return null;
    const colours = series();
    const colourOf = (i) => colours[i % colours.length];
    legend(id, list.map((one, i) => [colourOf(i), one.name]));
    const at = (value) => categories ? categories[value] : percent(value);
    return {
      ...base(),
      grid: { left: 8, right: 28, top: 34, bottom: 34, containLabel: true },
      tooltip: {
        ...base().tooltip, trigger: "axis",
        formatter: (points) => `<b>${text(at(points[0].value[0]))}</b>` +
          points.map((p) => `<br>${p.marker}${text(list[+p.seriesName].name)}: ${percent(p.value[1])}`).join(""),
      },
      xAxis: axis({ ...(categories ? { type: "category", data: categories } : { type: "value", min: 0, max: 1 }),
        name: x, nameLocation: "middle", nameGap: 30, axisLabel: label(categories ? {} : { formatter: whole }) }),
      yAxis: shares(y),
      series: list.map((one, i) => ({ name: `${i}`, type: "line", color: colourOf(i), showSymbol: Boolean(categories), symbol: "circle", symbolSize: 7, data: one.points })),
    };
  }

  // Bars side by side for each category. A bar is [value, least, most]; the latter two are in the tooltip where they differ.
  function bars({ categories, x, series: list }, id) {
    if (categories.length === 0 || list.length === 0) return null;
    const colours = series();
    legend(id, list.map((one, i) => [colours[i], one.name]));
    const all = list.flatMap((one) => one.bars.map((bar) => bar ? bar[0] : 0));
    const room = narrow() ? 14 : 36, low = Math.min(0, ...all), high = Math.max(1, ...all);
    const interval = 0.2 * Math.ceil((high - low) / 2);
    return {
      ...base(),
      grid: { left: 8, right: 28, top: 8, bottom: 34, containLabel: true },
      tooltip: {
        ...base().tooltip, trigger: "axis", axisPointer: { type: "none" },
        formatter: (points) => `<b>${text(categories[points[0].dataIndex])}</b>` + list.map((one, i) => {
          const bar = one.bars[points[0].dataIndex];
          const span = bar && bar[1] < bar[2] ? ` (${bar[1].toFixed(2)} to ${bar[2].toFixed(2)})` : "";
          return bar ? `<br><span style="color:${colours[i]}">■</span> ${text(one.name)}: ${bar[0].toFixed(2)}${span}` : "";
        }).join(""),
      },
      xAxis: axis({ type: "value", interval, min: interval * Math.floor(low / interval), max: interval * Math.ceil(high / interval), name: x, nameLocation: "middle", nameGap: 30, axisLabel: label({ hideOverlap: true, formatter: (v) => `${+v.toFixed(2)}` }) }),
      yAxis: axis({ type: "category", inverse: true, data: categories, axisLabel: { color: colour("--ink"), fontSize: 13, formatter: (v) => cut(v, room) } }),
      series: list.map((one, i) => ({ name: `${i}`, type: "bar", barWidth: 16, barGap: "10%", color: colours[i], data: one.bars.map((bar) => bar ? bar[0] : null) })),
    };
  }

  function resident({ times_ns: times, series: list }) {
    if (times.length === 0 || list.length === 0) return null;
    const colours = series();
    const colourOf = (i) => list[i].site === "" ? colours[8] : colours[i % 8];
    legend("resident", list.map((s, i) => [colourOf(i), s.location]));
    const peak = Math.max(...times.map((_, at) => list.reduce((sum, s) => sum + s.bytes[at], 0)));
    return {
      ...base(),
      grid: { left: 8, right: 20, top: 16, bottom: selection.span > 0 ? 44 : 8, containLabel: true },
      dataZoom: slider(8, ...selection.time.map((seconds) => seconds * 1e9), time),
      tooltip: {
        ...base().tooltip, trigger: "axis",
        formatter: (points) => `<b>${time(points[0].value[0])}</b>` + points.filter((p) => p.value[1] > 0).reverse()
          .map((p) => `<br>${p.marker}${text(cut(list[+p.seriesName].location, 40))}: ${bytes(p.value[1])}`).join(""),
      },
      xAxis: axis({ type: "value", min: 0, max: times[times.length - 1], splitLine: { show: false }, axisLabel: label({ hideOverlap: true, formatter: time, showMaxLabel: false }) }),
      yAxis: axis({ type: "value", ...binary(peak), axisLabel: label({ formatter: (n) => bytes(n, 2) }) }),
      series: list.map((s, i) => ({
        name: `${i}`, type: "line", stack: "all", symbol: "none", lineStyle: { width: 0 }, areaStyle: { opacity: opacity(s.site) }, emphasis: { disabled: true },
        color: colourOf(i), data: s.bytes.map((b, at) => [times[at], b]),
      })),
    };
  }

  // The tooltips of the charts that the keyboard leads through, by the place there.
  const tips = {
    curve({ sites, counted }, at) {
      const site = sites[at];
      return `<b>${text(site.location)}</b><br>${percent(site.accesses_share)} of the ${counted}, ${bytes(site.peak_rss_bytes)}` +
        `${site.tier ? `, ${text(site.tier)}` : ""}<br>with all hotter: ${percent(site.accesses)} of the ${counted} in ${percent(site.capacity)} of the footprint`;
    },
    heat({ columns, rows, cells, counted, valued }, at) {
      const [column, row, count, value] = cells[at], { start_ns: start, span_ns: span } = columns[column];
      return `<b>${text(rows[row].title)}</b><br>${time(start)} to ${time(start + span)}<br>` +
        `${text(counted)}: ${count.toLocaleString("en")}${valued ? `, ${rate(value)} ${text(valued)}` : ""}`;
    },
  };
  // The site of what was clicked.
  const clicked = {
    curve: (_, { data }) => data?.site?.site,
    heat: ({ rows }, { componentType, value }) => rows[componentType === "yAxis" ? +value : value[1]]?.site,
  };
  const kinds = { curve, standing, heat, lines, bars, resident };
  const drawn = {};
  function draw() {
    try { flame.draw(); } catch (problem) { report(`flame: ${problem}`); }
    for (const [id, chart] of Object.entries(charts)) {
      if (chart.kind === "flame") continue;
      const place = document.getElementById(id);
      try {
        const options = kinds[chart.kind](chart, id);
        drawn[id]?.dispose();
        delete drawn[id];
        if (!options) {
          place.style.height = "auto";
          place.textContent = "Nothing was seen to draw.";
          continue;
        }
        if (chart.kind === "heat") place.style.height = `${Math.max(300, 154 + 16 * chart.rows.length)}px`;
        if (chart.kind === "bars") place.style.height = `${60 + 48 * Math.max(2, chart.categories.length)}px`;
        drawn[id] = echarts.init(place, null, { renderer: chart.kind === "heat" ? "canvas" : "svg" });
        drawn[id].setOption(options);
        drawn[id].on("click", (event) => {
          const site = clicked[chart.kind]?.(chart, event);
          if (site) selection.toggle(site);
        });
        drawn[id].on("datazoom", () => zoomed(chart, drawn[id].getOption().dataZoom[0]));
      } catch (problem) { report(`${id}: ${problem}`); }
    }
    root.dataset.charts = Object.keys(drawn).length;
  }

  // A slider was moved: of a heat map over columns, else over nanoseconds.
  function zoomed(chart, { startValue: from, endValue: to }) {
    const first = chart.columns?.[from], last = chart.columns?.[to];
    const ends = chart.kind === "heat" ? [first.start_ns, last.start_ns + last.span_ns] : [from, to];
    showTime(...ends.map((ns) => ns / 1e9));
  }
  const showTime = (from, to) => selection.change({ time: `${Math.max(0, +from.toFixed(6))}-${Math.min(selection.span, +to.toFixed(6))}` });

  // The same by the keyboard: two numbers.
  function timing() {
    const at = (id) => document.getElementById(id), ends = [at("time-from"), at("time-to")];
    at("time-controls").hidden = false;
    const show = () => {
      selection.time.forEach((seconds, i) => { ends[i].value = +seconds.toFixed(3); });
      at("time-whole").hidden = selection.state.time === "";
    };
    for (const input of ends) {
      input.max = +selection.span.toFixed(3);
      input.addEventListener("change", () => {
        const [from, to] = ends.map(({ value, max }) => Math.min(+value, +max));
        if (from < to) showTime(from, to);
        // What is no part of the run is put right.
        show();
      });
    }
    at("time-whole").addEventListener("click", () => selection.change({ time: "" }));
    selection.onChange(show);
    show();
  }

  // Draws the selection in the charts that show sites or time: in those that are seen, one in each frame of the screen, so that the flame graph
  // and the table do not wait for them; in the others when they are scrolled to.
  const stale = new Set(), seen = new Set();
  const watch = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) seen[isIntersecting ? "add" : "delete"](target.id);
    freshen();
  });
  function follow() {
    Object.keys(drawn).filter((id) => ["curve", "heat", "resident"].includes(charts[id].kind)).forEach((id) => stale.add(id));
    freshen();
  }
  let isWaiting = false;
  function freshen() {
    const next = () => [...stale].find((id) => seen.has(id));
    if (isWaiting || !next()) return;
    isWaiting = true;
    requestAnimationFrame(() => {
      isWaiting = false;
      const id = next();
      if (id) redraw(id);
      freshen();
    });
  }
  function redraw(id) {
    stale.delete(id);
    drawn[id]?.setOption(kinds[charts[id].kind](charts[id], id));
  }

  function sorting() {
    const table = document.getElementById("site-table");
    if (!table) return;
    const body = table.tBodies[0];
    const titles = [...table.tHead.rows[0].cells];
    const key = (row, at) => row.cells[at].dataset.v ?? row.cells[at].textContent;
    titles.forEach((title, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = title.textContent;
      title.replaceChildren(button);
      button.addEventListener("click", () => {
        const numbers = title.dataset.kind === "number";
        const now = title.getAttribute("aria-sort");
        const down = now ? now === "ascending" : numbers;
        const order = (a, b) => numbers ? key(a, at) - key(b, at) : key(a, at).localeCompare(key(b, at));
        body.append(...[...body.rows].sort((a, b) => (down ? -1 : 1) * order(a, b)));
        titles.forEach((other) => other.removeAttribute("aria-sort"));
        title.setAttribute("aria-sort", down ? "descending" : "ascending");
      });
    });
    const filter = document.getElementById("filter");
    filter.closest(".filter").hidden = body.rows.length < 2;
    filter.addEventListener("input", matching);
  }

  // What a row says in small letters, read once: reading all rows takes longer than all else that a selection does here.
  const said = new WeakMap();
  const saying = (row) => said.get(row) ?? said.set(row, row.textContent.toLowerCase()).get(row);
  // The rows that the filter names; of the sites of a frame or function, only those. A site that is selected by itself is marked among the others.
  function matching() {
    const body = document.getElementById("site-table").tBodies[0];
    const wanted = document.getElementById("filter").value.toLowerCase(), isFrame = selection.selectedFrame() !== null;
    let shown = 0;
    for (const row of body.rows) {
      const { site } = row.dataset, isChosen = selection.sites?.has(site) ?? false;
      const isHidden = (wanted !== "" && !saying(row).includes(wanted)) || (isFrame && !isChosen);
      if (row.hidden !== isHidden) row.hidden = isHidden;
      row.classList.toggle("chosen", isChosen && !isFrame);
      row.querySelector(".choose")?.setAttribute("aria-pressed", site === selection.state.site);
      shown += !row.hidden;
    }
    document.getElementById("matches").textContent = wanted || isFrame ? `${shown} of ${body.rows.length}` : "";
  }

  // A button in each row of the site table, and the words that say what is selected.
  function selecting(figures) {
    for (const row of document.getElementById("site-table")?.tBodies[0].rows ?? []) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "choose";
      button.setAttribute("aria-label", `Select ${row.cells[0].dataset.v}`);
      button.addEventListener("click", () => selection.toggle(row.dataset.site));
      row.cells[0].prepend(button);
    }
    const bar = document.getElementById("selected");
    bar.querySelector(".clear").addEventListener("click", selection.clear);
    for (const to of bar.querySelectorAll("[data-to]")) {
      to.addEventListener("click", () => document.getElementById(to.dataset.to).scrollIntoView());
    }
    const show = () => {
      matching();
      bar.hidden = selection.sites === null;
      if (bar.hidden) return;
      const frame = selection.selectedFrame(), chosen = figures.sites.filter(({ site }) => selection.sites.has(site));
      const sum = (key) => chosen.reduce((all, site) => all + site[key], 0);
      bar.querySelector("b").textContent = frame ? figures.graphs[frame.graph][frame.at].name : chosen[0].location;
      bar.querySelector("span").textContent = `${frame ? `${words.counted(chosen.length, "site")}, ` : ""}${percent(sum("accesses_share"))} of the ${figures.counted}, ${bytes(sum("peak_rss_bytes"))}`;
    };
    selection.onChange(show);
    show();
  }

  function copying() {
    for (const button of document.querySelectorAll(".copy")) {
      button.hidden = false;
      button.addEventListener("click", async () => {
        const code = button.previousElementSibling;
        try {
          await navigator.clipboard.writeText(code.textContent);
        } catch {
          // A page from a file may have no clipboard: select it, so that Ctrl-C copies.
          getSelection().selectAllChildren(code);
          button.textContent = "Selected";
          return;
        }
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 2000);
      });
    }
  }

  // A section with more elements than this is laid out only near the window. Pictures of a whole page lack it elsewhere, so shorter sections,
  // which are laid out quickly, stay as they are.
  const LONG = 1000;
  for (const id of ["sites", "code"]) {
    const section = document.getElementById(id);
    section?.classList.toggle("long", section.getElementsByTagName("*").length > LONG);
  }
  sorting();
  copying();
  if (charts.flame) {
    const { start_ns: start, span_ns: length } = charts.heat.columns.at(-1) ?? { start_ns: 0, span_ns: 0 };
    selection.start(charts.flame, (start + length) / 1e9);
    selecting(charts.flame);
    if (selection.span > 0) timing();
    flame.start(charts.flame);
    selection.onChange(follow);
    Object.keys(charts).forEach((id) => watch.observe(document.getElementById(id)));
  }
  draw();
  for (const id of Object.keys(drawn)) {
    const chart = charts[id];
    chartKeys.start(document.getElementById(id), chart, () => drawn[id], (at) => tips[chart.kind](chart, at));
  }
  dark.addEventListener("change", draw);
  addEventListener("beforeprint", () => stale.forEach(redraw));
  addEventListener("beforeprint", () => Object.values(drawn).forEach((chart) => chart.resize()));
  let width = innerWidth;
  addEventListener("resize", () => {
    const crossed = (width < 640) !== narrow();
    width = innerWidth;
    if (crossed) {
      draw();
      return;
    }
    flame.draw();
    Object.values(drawn).forEach((chart) => chart.resize());
  });
  root.dataset.ready = "yes";
})();
