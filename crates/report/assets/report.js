// Charts, sorting, filtering and copying. All names come from strangers: they are only ever set as
// text (textContent, chart labels) or pass `text` before they become markup of a tooltip.
"use strict";
(() => {
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("data").textContent);
  const problems = [];
  const report = (problem) => { problems.push(String(problem)); root.dataset.problems = problems.join("\n"); };
  addEventListener("error", (event) => report(event.message));

  const text = (value) => String(value).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
  const percent = (share) => {
    const p = share * 100;
    return p > 0 && p < 0.05 ? "<0.1 %" : p > 0 && p < 9.95 ? `${p.toFixed(1)} %` : `${p.toFixed(0)} %`;
  };
  const bytes = (n, decimals = 1) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let i = 0;
    while (n >= 1024 && i < 5) { n /= 1024; i += 1; }
    return `${+n.toFixed(decimals)} ${units[i]}`;
  };
  const time = (ns) => ns >= 1e9 ? `${+(ns / 1e9).toFixed(1)} s` : `${+(ns / 1e6).toFixed(1)} ms`;
  const rate = (n) => n >= 100 ? Math.round(n).toLocaleString("en") : n.toPrecision(2);
  const cut = (label, n) => label.length > n ? `${label.slice(0, n - 1)}…` : label;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const narrow = () => innerWidth < 640;
  // Told apart by brightness too, so that they survive colour blindness and print.
  const series = () => dark.matches
    ? ["#f2915a", "#7fb2f0", "#f5c978", "#4f7fbf", "#c65f2c", "#a9cdb8", "#9a86c9", "#5f8f78", "#6d6c69"]
    : ["#b3420d", "#1f5fae", "#e0a040", "#7fb0e3", "#e58a5b", "#2f6e55", "#6c56a3", "#9cc7b0", "#a9a69f"];
  const heatColours = () => dark.matches
    ? ["#2a2130", "#5a2340", "#9c3038", "#d9602e", "#f6a94a", "#fdf0b0"]
    : ["#fbf0dc", "#f8d7a0", "#f0a55e", "#dc6a32", "#aa3320", "#5c1420"];

  const base = () => ({
    animation: false,
    textStyle: { fontFamily: getComputedStyle(document.body).fontFamily, color: colour("--ink"), fontSize: 13 },
    aria: { enabled: false },
    tooltip: {
      backgroundColor: colour("--card"), borderColor: colour("--line"), confine: true,
      extraCssText: "max-width:340px;white-space:normal;overflow-wrap:anywhere",
      textStyle: { color: colour("--ink"), fontSize: 13 },
    },
  });
  const axis = (more) => ({
    axisLine: { lineStyle: { color: colour("--line") } }, axisTick: { show: false },
    axisLabel: { color: colour("--soft"), fontSize: 13 }, splitLine: { lineStyle: { color: colour("--line"), opacity: 0.6 } },
    nameTextStyle: { color: colour("--soft"), fontSize: 13 }, ...more,
  });

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

  function curve() {
    if (data.sites.length === 0) return null;
    const fast = colour("--accent"), slow = colour("--cool");
    const end = Math.max(1, ...data.sites.map((site) => site.capacity));
    const mark = data.plan ? data.plan.fast_capacity_share : data.hot_capacity_share;
    const label = data.plan ? `plan: ${percent(mark)} fast` : `${percent(mark)}: ${percent(data.hot_accesses_share)} of the ${data.counted}`;
    if (data.plan) legend("curve", [[fast, `planned for ${data.plan.tiers[0].name}`], [slow, "planned for a slower tier"]]);
    const points = data.sites.map((site) => ({
      value: [site.capacity, site.accesses], site,
      itemStyle: { color: data.plan ? (site.fast ? fast : slow) : fast, borderColor: colour("--card"), borderWidth: 1.5 },
    }));
    return {
      ...base(),
      grid: { left: 8, right: 20, top: 24, bottom: 34, containLabel: true },
      tooltip: {
        ...base().tooltip, trigger: "item",
        formatter: ({ data: { site } }) => !site ? "" :
          `<b>${text(site.location)}</b><br>${percent(site.accesses_share)} of the ${data.counted}, ${bytes(site.peak_rss_bytes)}` +
          `${site.tier ? `, ${text(site.tier)}` : ""}<br>with all hotter: ${percent(site.accesses)} of the ${data.counted} in ${percent(site.capacity)} of the footprint`,
      },
      xAxis: axis({ type: "value", min: 0, max: end, ...(end < 2 && { interval: 0.25 }), name: narrow() ? "capacity, share of footprint" : "cumulative capacity, share of the footprint", nameLocation: "middle", nameGap: 30,
        axisLabel: { color: colour("--soft"), fontSize: 13, formatter: (v) => v === end && end !== 1 ? "" : `${Math.round(v * 100)} %` } }),
      yAxis: axis({ type: "value", min: 0, max: 1, interval: 0.25, name: `share of the ${data.counted}`, nameLocation: "end", nameGap: 10,
        nameTextStyle: { align: "left", color: colour("--soft"), fontSize: 13 }, axisLabel: { color: colour("--soft"), fontSize: 13, formatter: (v) => `${Math.round(v * 100)} %` } }),
      series: [
        { type: "line", silent: true, symbol: "none", data: [[0, 0], [end, 1]], lineStyle: { color: colour("--soft"), type: "dashed", width: 1, opacity: 0.7 } },
        { type: "line", silent: true, symbol: "none", data: [[0, 0], ...points.map((p) => p.value)],
          lineStyle: { color: colour("--accent"), width: 2 }, areaStyle: { color: colour("--accent"), opacity: 0.08 },
          markLine: mark > 0 && mark <= end ? { symbol: "none", silent: true, lineStyle: { color: colour("--ink"), type: "solid", width: 1 },
            label: { formatter: label, color: colour("--ink"), fontSize: 13, position: "insideEndBottom", rotate: 0, align: mark > end * 0.6 ? "right" : "left", verticalAlign: "bottom",
              padding: [0, 8, 14, 8] }, data: [[{ coord: [mark, 1] }, { coord: [mark, 0] }]] } : undefined },
        { type: "scatter", symbolSize: (_, p) => 8 + 14 * Math.sqrt(p.data.site.accesses_share), data: points, cursor: "default" },
      ],
    };
  }

  function standing() {
    const plan = data.plan;
    if (!plan) return null;
    const rows = [["bound", plan.bound_share, colour("--soft")], ["this plan", plan.planned_share, colour("--accent")], ["first touch", plan.first_touch_share, colour("--cool")]];
    return {
      ...base(),
      grid: { left: 8, right: 56, top: 8, bottom: 8, containLabel: true },
      tooltip: { ...base().tooltip, formatter: ({ name, value }) => `${text(name)}: ${percent(value)} of the ${text(plan.valued)}` },
      xAxis: axis({ type: "value", min: 0, max: 1, interval: 0.25, axisLabel: { color: colour("--soft"), fontSize: 13, formatter: (v) => `${v * 100} %` } }),
      yAxis: axis({ type: "category", data: rows.map((row) => row[0]), axisLabel: { color: colour("--ink"), fontSize: 14 } }),
      series: [{ type: "bar", barWidth: "58%", data: rows.map(([, value, color]) => ({ value, itemStyle: { color, borderRadius: 3 } })),
        label: { show: true, position: "right", formatter: ({ value }) => percent(value), color: colour("--ink"), fontSize: 14 } }],
    };
  }

  function heat() {
    const { columns, rows, cells } = data.heat;
    if (cells.length === 0) return null;
    const room = narrow() ? 14 : 30;
    const name = (row) => row.parts > 1 ? (row.part === 1 ? row.location : "") : row.location;
    // Rates spread over orders of magnitude, so colour follows the logarithm.
    const value = (cell) => Math.log10(Math.max(cell.accesses_per_mib_second, 1e-9));
    const values = cells.map(value);
    const low = Math.min(...values), high = Math.max(...values);
    return {
      ...base(),
      grid: { left: 8, right: 8, top: 8, bottom: 92, containLabel: true },
      tooltip: {
        ...base().tooltip,
        formatter: ({ value: [c, r, , cell] }) => {
          const column = columns[c], row = rows[r], found = cells[cell];
          return `<b>${text(row.location)}</b>${row.parts > 1 ? ` part ${row.part} of ${row.parts}` : ""}<br>` +
            `${time(column.start_ns)} to ${time(column.start_ns + column.span_ns)}<br>` +
            `${data.counted}: ${found.accesses.toLocaleString("en")}, ${rate(found.accesses_per_mib_second)} for each MiB and second`;
        },
      },
      xAxis: axis({ type: "category", data: columns.map((c) => time(c.start_ns)), splitLine: { show: false }, name: "time since start", nameLocation: "middle", nameGap: 28 }),
      yAxis: axis({ type: "category", inverse: true, data: rows.map((row, i) => `${i}`), splitLine: { show: false },
        axisLabel: { color: colour("--soft"), fontSize: 12, interval: 0, formatter: (v) => cut(name(rows[+v]), room) } }),
      visualMap: { type: "continuous", min: low, max: high > low ? high : low + 1, dimension: 2, orient: "horizontal", left: "center", bottom: 0, itemHeight: narrow() ? 120 : 220, itemWidth: 12,
        inRange: { color: heatColours() }, textStyle: { color: colour("--soft"), fontSize: 13 }, text: [`${rate(10 ** high)}`, `${rate(10 ** low)}`] },
      series: [{ type: "heatmap", progressive: 0, data: cells.map((cell, i) => [cell.column, cell.row, value(cell), i]), itemStyle: { borderWidth: 0 }, emphasis: { itemStyle: { borderColor: colour("--ink"), borderWidth: 1 } } }],
    };
  }

  function resident() {
    const { times_ns: times, series: list } = data.resident;
    if (times.length === 0 || list.length === 0) return null;
    const colours = series();
    const colourOf = (i) => list[i].site === "" ? colours[8] : colours[i % 8];
    legend("resident", list.map((s, i) => [colourOf(i), s.location]));
    const peak = Math.max(...times.map((_, at) => list.reduce((sum, s) => sum + s.bytes[at], 0)));
    return {
      ...base(),
      grid: { left: 8, right: 20, top: 16, bottom: 8, containLabel: true },
      tooltip: {
        ...base().tooltip, trigger: "axis",
        formatter: (points) => `<b>${time(points[0].value[0])}</b>` + points.filter((p) => p.value[1] > 0).reverse()
          .map((p) => `<br>${p.marker}${text(cut(list[+p.seriesName].location, 40))}: ${bytes(p.value[1])}`).join(""),
      },
      xAxis: axis({ type: "value", min: 0, max: times[times.length - 1], splitLine: { show: false }, axisLabel: { color: colour("--soft"), fontSize: 13, hideOverlap: true, formatter: time, showMaxLabel: false } }),
      yAxis: axis({ type: "value", ...binary(peak), axisLabel: { color: colour("--soft"), fontSize: 13, formatter: (n) => bytes(n, 2) } }),
      series: list.map((s, i) => ({
        name: `${i}`, type: "line", stack: "all", symbol: "none", lineStyle: { width: 0 }, areaStyle: { opacity: 1 }, emphasis: { disabled: true },
        color: colourOf(i), data: s.bytes.map((b, at) => [times[at], b]),
      })),
    };
  }

  const charts = { curve, standing, heat, resident };
  const drawn = {};
  function draw() {
    for (const [id, make] of Object.entries(charts)) {
      const place = document.getElementById(id);
      if (!place) continue;
      try {
        const options = make();
        drawn[id]?.dispose();
        delete drawn[id];
        if (!options) {
          place.style.height = "auto";
          place.textContent = "Nothing was seen to draw.";
          continue;
        }
        if (id === "heat") place.style.height = `${Math.max(300, 120 + 16 * data.heat.rows.length)}px`;
        drawn[id] = echarts.init(place, null, { renderer: id === "heat" ? "canvas" : "svg" });
        drawn[id].setOption(options);
      } catch (problem) { report(`${id}: ${problem}`); }
    }
    root.dataset.charts = Object.keys(drawn).length;
  }

  function sorting() {
    const table = document.getElementById("site-table");
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
    const matches = document.getElementById("matches");
    filter.closest(".filter").hidden = body.rows.length < 2;
    filter.addEventListener("input", () => {
      const wanted = filter.value.toLowerCase();
      let shown = 0;
      for (const row of body.rows) {
        row.hidden = !row.textContent.toLowerCase().includes(wanted);
        shown += !row.hidden;
      }
      matches.textContent = wanted ? `${shown} of ${body.rows.length}` : "";
    });
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

  sorting();
  copying();
  draw();
  dark.addEventListener("change", draw);
  addEventListener("beforeprint", () => Object.values(drawn).forEach((chart) => chart.resize()));
  let width = innerWidth;
  addEventListener("resize", () => {
    const crossed = (width < 640) !== narrow();
    width = innerWidth;
    if (crossed) draw(); else Object.values(drawn).forEach((chart) => chart.resize());
  });
  root.dataset.ready = "yes";
})();
