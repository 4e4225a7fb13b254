// What is selected and how the flame graph is shown: one state of the whole page, kept in the fragment of its address, so that a link or a
// reload shows the same.
//
//   #flame=code&width=heat&zoom=12&find=grow     stacks, width, number of the frame that fills the width, search
//   #site=ea63f6d42c7dfa69                       a site is selected
//   #frame=allocation.12                         the sites of a frame are selected
//   #time=5.2-12                                 the charts over time show these seconds of the run
"use strict";
const selection = (() => {
  const initial = { flame: "allocation", width: "heat", zoom: 0, find: "", site: "", frame: "", time: "" };
  const followers = [];
  // Of a report: its sites, which frames name by number, and its graphs: frames, each before those within it.
  let sites = [], graphs = {};
  // Seconds of the run; 0 of a page without a selection.
  let span = 0;
  let state = { ...initial };

  // The first frame behind `at` that is not within it.
  const end = (frames, at) => {
    let to = at + 1;
    while (to < frames.length && frames[to].depth > frames[at].depth) to += 1;
    return to;
  };
  const sitesOf = (graph, at) => {
    const frames = graphs[graph];
    return new Set(frames.slice(at, end(frames, at)).flatMap((frame) => frame.sites.map((site) => sites[site].site)));
  };
  // The graph and the number of the selected frame.
  const selectedFrame = (of = state) => {
    const [graph, at] = of.frame.split(".");
    return of.frame ? { graph, at: +at } : null;
  };
  // The ids of the selected sites; null where nothing is selected.
  let chosen = null;
  const choose = () => {
    const frame = selectedFrame();
    chosen = state.site ? new Set([state.site]) : frame ? sitesOf(frame.graph, frame.at) : null;
  };

  // First and last second that are shown; of the whole run where no others are chosen.
  const timeOf = ({ time }) => time ? time.split("-").map(Number) : [0, span];
  const isTime = (time) => {
    const [from, to] = timeOf({ time });
    return /^[\d.]+-[\d.]+$/.test(time) && from < to && to <= span && (from > 0 || to < span);
  };

  // What another page or an old link says and this page does not have is left out.
  function checked(wanted) {
    const next = { ...wanted };
    const has = (graph, at) => Object.hasOwn(graphs, graph) && Number.isInteger(at) && at >= 0 && at < graphs[graph].length;
    if (!has(next.flame, 0)) next.flame = Object.keys(graphs)[0] ?? initial.flame;
    if (next.width !== "bytes" || next.flame === "code") next.width = "heat";
    if (!has(next.flame, next.zoom)) next.zoom = 0;
    if (!sites.some(({ site }) => site === next.site)) next.site = "";
    if (!isTime(next.time)) next.time = "";
    const frame = selectedFrame(next);
    if (next.site || (frame && !has(frame.graph, frame.at))) next.frame = "";
    return next;
  }
  function read() {
    const fragment = location.hash.slice(1);
    // A link to a section leaves the state as it is.
    if (fragment && !fragment.includes("=")) return state;
    const said = new URLSearchParams(fragment);
    const of = (key) => said.get(key) ?? initial[key];
    return checked({ flame: of("flame"), width: of("width"), zoom: +of("zoom"), find: of("find"), site: of("site"), frame: of("frame"), time: of("time") });
  }
  function fragment() {
    const said = Object.entries(state).filter(([key, value]) => value !== initial[key]);
    return `#${new URLSearchParams(said)}`;
  }
  function follow(next) {
    if (Object.keys(initial).every((key) => next[key] === state[key])) return false;
    state = next;
    choose();
    followers.forEach((follower) => follower());
    return true;
  }

  // Changes part of the state. `quiet` leaves no entry in the history, for what changes with each key.
  function change(part, quiet = false) {
    const changed = follow(checked({ ...state, ...part }));
    if (changed) history[quiet ? "replaceState" : "pushState"](null, "", fragment());
  }
  // Selects a site, or nothing where it is the selected one.
  const toggle = (site) => change({ site: site === state.site ? "" : site, frame: "" });
  const clear = () => change({ site: "", frame: "", zoom: 0 });

  function start(figures, seconds) {
    ({ sites, graphs } = figures);
    span = seconds;
    state = read();
    choose();
    addEventListener("popstate", () => follow(read()));
  }
  return {
    start, change, toggle, clear, selectedFrame, end,
    get state() { return state; },
    get sites() { return chosen; },
    get time() { return timeOf(state); },
    get span() { return span; },
    // True where a site is selected, or nothing is.
    has: (site) => chosen === null || chosen.has(site),
    onChange: (follower) => followers.push(follower),
  };
})();
