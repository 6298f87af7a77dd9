// Timeline: everything on one axis. Only the rows in sight exist; what they show is read in pieces when it is needed.

import { get } from "./api.js";
import { counted, fill, h } from "./dom.js";
import { key } from "./keys.js";
import { follow } from "./live.js";
import { fail } from "./notices.js";

const KINDS = { memory: "Memories", line: "Lines of work", commit: "Commits", merge: "Merges", snapshot: "Snapshots" };
const ROW = 44;
const HEAD = 56;
const PIECE = 100;
const KEPT = 60;
const BEYOND = 10;

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const dates = new Intl.DateTimeFormat(undefined, { weekday: "short", year: "numeric", month: "long", day: "numeric", timeZone: "UTC" });
const months = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", timeZone: "UTC" });

export async function start(main) {
  const zone = -new Date().getTimezoneOffset();
  const count = h("p", { class: "count", role: "status" });
  const chips = h("div", { class: "chips", role: "group", "aria-label": "Kinds" });
  const jump = h("input", { type: "date", id: "day" });
  const overview = h("canvas", { class: "overview", role: "img", "aria-label": "How much happened over time" });
  const space = h("div", { class: "space", role: "list" });
  const scroller = h("div", { class: "axis", tabindex: 0, role: "region", "aria-label": "Events, newest first" }, space);
  main.append(h("div", { class: "tools" }, chips, h("form", { onsubmit: (event) => { event.preventDefault(); go(jump.value); } }, h("label", { for: "day" }, "Go to"), jump)), overview, count, scroller);
  main.classList.add("broad");

  const chosen = new Set(Object.keys(KINDS));
  let days = [];
  let [tops, firsts, total] = [[], [], 0];
  let counts = {};
  const pieces = new Map();
  const rows = new Map();
  let [at, asked, turn] = [-1, false, 0];

  // -- where things are ----------------------------------------------------------------------------

  const size = (day) => Object.values(day.counts).reduce((sum, one) => sum + one, 0);

  function measure() {
    [tops, firsts] = [[], []];
    let [top, first] = [0, 0];
    for (const day of days) {
      tops.push(top);
      firsts.push(first);
      first += day.size;
      top += HEAD + ROW * day.size;
    }
    total = first;
    space.style.height = `${top}px`;
  }

  // The last of some rising numbers that is not above a value.
  function floor(values, value) {
    let [low, high] = [0, values.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (values[middle] <= value) low = middle; else high = middle - 1;
    }
    return low;
  }

  const topOf = (n) => { const d = floor(firsts, n); return tops[d] + HEAD + ROW * (n - firsts[d]); };

  // -- what they show ------------------------------------------------------------------------------

  function piece(d, number) {
    const name = `${days[d].day} ${number}`;
    const known = pieces.get(name);
    if (known) {
      pieces.delete(name);
      pieces.set(name, known);
      return known;
    }
    const fresh = { events: null, away: new AbortController() };
    pieces.set(name, fresh);
    while (pieces.size > KEPT) {
      const [oldest, gone] = pieces.entries().next().value;
      gone.away.abort();
      pieces.delete(oldest);
    }
    const started = turn;
    get(`/timeline/${days[d].day}`, { zone, kinds: [...chosen].join(), limit: PIECE, offset: number * PIECE }, fresh.away.signal).then((found) => {
      if (started !== turn) return;
      fresh.events = found.events;
      redraw();
    }).catch((error) => { pieces.delete(name); fail(error); });
    return fresh;
  }

  function draw() {
    const [top, height] = [scroller.scrollTop, scroller.clientHeight];
    const wanted = new Set();
    if (days.length) {
      let d = floor(tops, Math.max(0, top - BEYOND * ROW));
      for (; d < days.length && tops[d] < top + height + BEYOND * ROW; d += 1) {
        put(wanted, `day ${d}`, tops[d], () => heading(d));
        const begin = Math.max(0, Math.floor((top - BEYOND * ROW - tops[d] - HEAD) / ROW));
        const end = Math.min(days[d].size, Math.ceil((top + height + BEYOND * ROW - tops[d] - HEAD) / ROW));
        for (let n = begin; n < end; n += 1) {
          const event = piece(d, Math.floor(n / PIECE)).events?.[n % PIECE];
          const number = firsts[d] + n;
          put(wanted, `${event ? "row" : "wait"} ${number}`, tops[d] + HEAD + n * ROW, () => (event ? row(event, number) : waiting()));
        }
      }
    }
    for (const [name, node] of rows) {
      if (wanted.has(name)) continue;
      node.remove();
      rows.delete(name);
    }
    mark();
    overviewMark();
  }

  function put(wanted, name, top, make) {
    wanted.add(name);
    if (rows.has(name)) return;
    const node = make();
    node.style.transform = `translateY(${top}px)`;
    rows.set(name, node);
    space.append(node);
  }

  function redraw() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; draw(); });
  }

  const heading = (d) => h("div", { class: "day", role: "listitem" }, h("h2", {}, dates.format(new Date(`${days[d].day}T00:00:00Z`))), h("span", { class: "hint" }, counted(days[d].size, "event", "events")));
  const waiting = () => h("div", { class: "event waiting", role: "listitem" }, h("span", { class: "hint" }, "…"));

  function row(one, number) {
    const title = { memory: () => h("a", { href: `/memories/${encodeURIComponent(one.id)}` }, one.title), line: () => h("a", { href: `/lines#${encodeURIComponent(one.id)}` }, one.title),
      snapshot: () => h("a", { href: "/doctor#snapshots" }, one.title) }[one.kind]?.() ?? h("span", {}, one.title);
    return h("div", { class: `event kind-${one.kind}`, role: "listitem", "aria-setsize": total, "aria-posinset": number + 1, "data-number": number },
      h("time", { datetime: one.at }, clock.format(new Date(one.at))), h("span", { class: "sign", title: KINDS[one.kind] }),
      h("span", { class: "title" }, title), h("span", { class: "detail" }, ["commit", "merge"].includes(one.kind) ? `${one.detail} ${one.id.slice(0, 8)}` : one.detail));
  }

  // -- the overview --------------------------------------------------------------------------------

  let bars = [];

  function drawOverview() {
    const box = overview.getBoundingClientRect();
    const ratio = devicePixelRatio || 1;
    Object.assign(overview, { width: Math.max(1, box.width * ratio), height: Math.max(1, box.height * ratio) });
    bars = [];
    if (!days.length) return;
    const style = getComputedStyle(document.documentElement);
    const brush = overview.getContext("2d");
    brush.scale(ratio, ratio);
    const stamp = (day) => Date.parse(`${day}T00:00:00Z`) / 864e5;
    const [last, first] = [stamp(days[0].day), stamp(days.at(-1).day)];
    const wide = Math.max(1, Math.floor(box.width / 6));
    const step = Math.max(1, Math.ceil((last - first + 1) / wide));
    days.forEach((day, d) => {
      const slot = Math.floor((last - stamp(day.day)) / step);
      const bar = (bars[slot] ??= { first: d, memories: 0, others: 0 });
      bar.memories += day.counts.memory ?? 0;
      bar.others += day.size - (day.counts.memory ?? 0);
    });
    const slots = Math.ceil((last - first + 1) / step);
    const width = Math.min(14, box.width / slots);
    const most = Math.max(...bars.filter(Boolean).map((one) => Math.sqrt(one.memories + one.others)));
    bars.forEach((bar, slot) => {
      const tall = ((box.height - 16) * Math.sqrt(bar.memories + bar.others)) / most;
      const share = bar.memories / (bar.memories + bar.others);
      const x = box.width - (slot + 1) * width;
      Object.assign(bar, { x, width });
      brush.fillStyle = style.getPropertyValue("--accent");
      brush.fillRect(x, box.height - 14 - tall * share, width - 1, tall * share);
      brush.fillStyle = style.getPropertyValue("--edge");
      brush.fillRect(x, box.height - 14 - tall, width - 1, tall * (1 - share));
    });
    brush.fillStyle = style.getPropertyValue("--muted");
    brush.font = "11px system-ui, sans-serif";
    brush.fillText(months.format(last * 864e5), Math.max(0, box.width - 60), box.height - 2);
    if (slots * width > 140) brush.fillText(months.format(first * 864e5), box.width - slots * width, box.height - 2);
  }

  function overviewMark() {
    const d = days.length ? floor(tops, scroller.scrollTop + 1) : 0;
    if (days[d]) jump.value = document.activeElement === jump ? jump.value : days[d].day;
  }

  overview.addEventListener("click", (event) => {
    const x = event.clientX - overview.getBoundingClientRect().left;
    const near = bars.filter(Boolean).sort((a, b) => Math.abs(a.x + a.width / 2 - x) - Math.abs(b.x + b.width / 2 - x))[0];
    if (near) scroller.scrollTop = tops[near.first];
  });

  function go(day) {
    if (!days.length || !day) return;
    const d = days.findIndex((one) => one.day <= day);
    scroller.scrollTop = tops[d < 0 ? days.length - 1 : d];
    scroller.focus();
  }

  // -- reading -------------------------------------------------------------------------------------

  // Somebody who looks at the past is not moved.
  const past = () => scroller.scrollTop >= ROW;

  async function load() {
    try {
      const found = await get("/timeline", { zone });
      if (past()) return;
      turn += 1;
      counts = {};
      for (const day of found.days) for (const [kind, n] of Object.entries(day.counts)) counts[kind] = (counts[kind] ?? 0) + n;
      all = found.days;
      filter();
    } catch (error) {
      fail(error);
    }
  }

  let all = [];
  function filter() {
    turn += 1;
    for (const { away } of pieces.values()) away.abort();
    pieces.clear();
    for (const node of rows.values()) node.remove();
    rows.clear();
    days = all.map((day) => ({ day: day.day, counts: Object.fromEntries(Object.entries(day.counts).filter(([kind]) => chosen.has(kind))) }))
      .map((day) => ({ ...day, size: size(day) })).filter((day) => day.size);
    fill(chips, Object.keys(KINDS).filter((kind) => counts[kind]).map((kind) => h("button", { type: "button", class: `chip kind-${kind}`, "aria-pressed": String(chosen.has(kind)), onclick: () => {
      if (!chosen.delete(kind)) chosen.add(kind);
      filter();
    } }, h("span", { class: "sign" }), `${KINDS[kind]} `, h("span", { class: "hint" }, counts[kind].toLocaleString()))));
    measure();
    fill(count, total ? `${counted(total, "event", "events")} on ${counted(days.length, "day", "days")}` : "Nothing has happened yet.");
    drawOverview();
    draw();
  }

  function mark() {
    for (const node of space.querySelectorAll(".chosen")) node.classList.remove("chosen");
    space.querySelector(`[data-number="${at}"]`)?.classList.add("chosen");
  }

  function move(by) {
    if (!total) return;
    at = Math.max(0, Math.min(total - 1, at + by));
    const top = topOf(at);
    if (top < scroller.scrollTop + HEAD) scroller.scrollTop = top - HEAD;
    if (top + ROW > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = top + ROW - scroller.clientHeight;
    draw();
  }

  key("j", "Next", () => move(1));
  key("k", "Previous", () => move(-1));
  key("Enter", "Open", () => space.querySelector(`[data-number="${at}"] a`)?.click());
  key("g", "Go to a day", () => jump.focus());
  scroller.addEventListener("scroll", redraw, { passive: true });
  new ResizeObserver(() => { drawOverview(); redraw(); }).observe(scroller);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawOverview);
  await load();
  follow(() => { if (!past()) load(); });
}
