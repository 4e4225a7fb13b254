// Numbers and names as the pages show them. All names come from strangers: they are only ever set as text (textContent, chart labels) or pass
// `text` before they become markup of a tooltip.
"use strict";
const words = (() => {
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
  const counted = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
  return { text, percent, bytes, time, rate, cut, counted };
})();
