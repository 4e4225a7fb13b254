// Every visible text whose contrast with the background behind it is below WCAG 2's AA.
const channel = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const parse = (text) => text.match(/[\d.]+/g).map(Number);
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const colour = parse(getComputedStyle(at).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
};
const weak = [];
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  if (!own || element.closest("script, style, noscript, svg") || element.getClientRects().length === 0) continue;
  const style = getComputedStyle(element);
  const [a, b] = [light(parse(style.color)), light(behind(element))];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const large = parseFloat(style.fontSize) >= 24;
  if (contrast < (large ? 3 : 4.5)) weak.push(`${element.textContent.trim().slice(0, 40)}: ${contrast.toFixed(2)}`);
}
// Frames of a flame graph: their text is on the rectangle beside it.
for (const label of document.querySelectorAll("g.frame div")) {
  if (label.textContent === "" || label.getClientRects().length === 0) continue;
  const fill = getComputedStyle(label.closest("g").querySelector("rect")).fill;
  const [a, b] = [light(parse(getComputedStyle(label).color)), light(parse(fill))];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < 4.5) weak.push(`frame ${label.textContent}: ${contrast.toFixed(2)}`);
}
return weak;
