// Colours, light and dark, and the width of the window.
"use strict";
const theme = (() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  // Each colour, and the font, is computed once: to ask anew after each change of the page would compute the styles of the whole page.
  let known = {};
  const colour = (name) => known[name] ??= getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  dark.addEventListener("change", () => { known = {}; });
  let family;
  const font = () => family ??= getComputedStyle(document.body).fontFamily;
  const narrow = () => innerWidth < 640;
  const pick = (light, other) => () => dark.matches ? other : light;
  // Of different brightness, too, so that they survive colour blindness and print.
  const series = pick(
    ["#b3420d", "#1f5fae", "#e0a040", "#7fb0e3", "#e58a5b", "#2f6e55", "#6c56a3", "#9cc7b0", "#a9a69f"],
    ["#f2915a", "#7fb2f0", "#f5c978", "#4f7fbf", "#c65f2c", "#a9cdb8", "#9a86c9", "#5f8f78", "#6d6c69"]);
  // From cold to hot.
  const heat = pick(
    ["#fbf0dc", "#f8d7a0", "#f0a55e", "#dc6a32", "#aa3320", "#5c1420"],
    ["#2a2130", "#5a2340", "#9c3038", "#d9602e", "#f6a94a", "#fdf0b0"]);
  // Frames of code by what they are, and those that a search found.
  const frames = pick(
    { all: "#e7e3da", function: ["#f4c7a6", "#efb58d", "#f8d8bd", "#eaa87c"], line: "#fae6d6", data: "#c4dbf3", rest: "#dedbd3", found: "#6a3fb5" },
    { all: "#36373b", function: ["#6e3c22", "#7d4829", "#5d321d", "#8a5433"], line: "#4b3023", data: "#264a72", rest: "#36373b", found: "#c9a8ff" });
  return { dark, colour, font, narrow, series, heat, frames };
})();
