// The curve and the heat map by the keyboard: arrow keys lead from point to point and from cell to cell, Enter selects the site there. Screen readers say the
// tooltip of the place.
"use strict";
const chartKeys = (() => {
  const ARROWS = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 };

  // The cell that an arrow key leads to: the next one of the row, or the closest one of the next row that has any.
  function beside(cells, at, key) {
    const [column, row] = cells[at], isAlong = key === "ArrowLeft" || key === "ArrowRight";
    let best = at, least = Infinity;
    cells.forEach(([otherColumn, otherRow], other) => {
      const [ahead, aside] = isAlong ? [otherColumn - column, otherRow - row] : [otherRow - row, otherColumn - column];
      const steps = ahead * ARROWS[key];
      if (steps <= 0 || (isAlong && aside !== 0)) return;
      const distance = steps * 1e6 + Math.abs(aside);
      if (distance < least) [best, least] = [other, distance];
    });
    return best;
  }

  // Of each kind of chart: how many places it has, the place that a key leads to, the site there, and the datum of the drawn chart.
  const kinds = {
    curve: {
      count: ({ sites }) => sites.length,
      // Up is further along the curve.
      next: ({ sites }, at, key) => Math.min(sites.length - 1, Math.max(0, at + (key === "ArrowUp" || key === "ArrowRight" ? 1 : -1))),
      site: ({ sites }, at) => sites[at].site,
      datum: (_, at) => ({ seriesIndex: 2, dataIndex: at }),
    },
    heat: {
      count: ({ cells }) => cells.length,
      next: ({ cells }, at, key) => beside(cells, at, key),
      site: ({ rows, cells }, at) => rows[cells[at][1]].site,
      // Cells of sites that are not selected are a series of their own.
      datum: ({ rows, cells }, at) => {
        const isLit = ([, row]) => selection.has(rows[row].site);
        const lit = isLit(cells[at]);
        return { seriesIndex: lit ? 0 : 1, dataIndex: cells.slice(0, at).filter((cell) => isLit(cell) === lit).length };
      },
    },
  };

  // The text of a tooltip, a line after the other.
  function plain(markup) {
    const holder = document.createElement("template");
    holder.innerHTML = markup.replaceAll("<br>", ", ");
    return holder.content.textContent;
  }

  // Lets the keys work in a chart. `drawn` gives what echarts draws there, `tip` the tooltip of a place.
  function start(place, figures, drawn, tip) {
    const kind = kinds[figures.kind];
    if (!kind || kind.count(figures) === 0) return;
    const said = document.createElement("p");
    said.className = "said";
    said.setAttribute("aria-live", "polite");
    place.after(said);
    place.setAttribute("role", "application");
    place.setAttribute("aria-roledescription", "chart; arrow keys lead through it, Enter selects");
    place.tabIndex = 0;
    let at = null;
    const show = () => {
      drawn().dispatchAction({ type: "showTip", ...kind.datum(figures, at) });
      said.textContent = plain(tip(at));
    };
    place.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      if (event.key in ARROWS) {
        at = at === null ? 0 : kind.next(figures, at, event.key);
        show();
      } else if (event.key === "Enter" && at !== null) {
        const site = kind.site(figures, at);
        if (site) selection.toggle(site);
      } else if (event.key === "Escape") {
        if (selection.sites) selection.clear();
      } else {
        return;
      }
      event.preventDefault();
    });
    place.addEventListener("blur", () => drawn().dispatchAction({ type: "hideTip" }));
  }
  return { start };
})();
