// Search: results as you type, and what they have in common.

import { get } from "./api.js";
import { complete } from "./complete.js";
import { fill, h, parts, quoted, time } from "./dom.js";
import { key, walk } from "./keys.js";
import { follow } from "./live.js";
import { notify } from "./notices.js";

const NAMES = { ns: "Namespace", tag: "Tag", project: "Project", branch: "Branch", user: "Person", agent: "Client", status: "Status", grounded: "Check", since: "Age" };
const AGES = { "1d": "last day", "7d": "last week", "30d": "last month", "1y": "last year" };
const PAUSE = 120;
const AT_ONCE = 20;
const SHOWN = 8;

export function start(main) {
  const section = main.querySelector(".search");
  const form = section.querySelector("form");
  const box = form.querySelector("input");
  const count = section.querySelector(".count");
  const results = section.querySelector(".results");
  const trouble = section.querySelector(".error") ?? h("p", { class: "error", role: "alert", hidden: true });
  const more = h("button", { type: "button", class: "more", hidden: true }, "Show more");
  const facets = h("details", { class: "facets" }, h("summary", {}, "Narrow down"));
  const values = h("div");
  facets.append(values);
  facets.open = matchMedia("(min-width: 60rem)").matches;
  form.after(trouble);
  results.after(more);
  section.append(facets);
  section.classList.add("wide");

  let running = null;
  let shown = 0;
  const rows = walk(() => results, (item) => item?.querySelector("a").click());

  async function search(offset = 0) {
    running?.abort();
    const asked = (running = new AbortController());
    const q = box.value.trim();
    try {
      const found = await get("/search", { q, limit: AT_ONCE, offset }, asked.signal);
      if (asked.signal.aborted) return;
      trouble.hidden = true;
      const items = found.results.map((one) => result(one, q));
      if (offset) results.append(...items);
      else {
        if (!same(items, [...results.children])) {
          fill(results, items);
          rows.reset();
        }
        narrow(q, asked.signal);
        history.replaceState(null, "", q ? `/?${new URLSearchParams({ q })}` : "/");
      }
      shown = offset + items.length;
      if (!offset) fill(count, [found.found, ...found.warnings].join(" · "));
      more.hidden = shown >= found.total || !items.length;
    } catch (error) {
      if (error.name === "AbortError") return;
      trouble.hidden = false;
      fill(trouble, error.message);
    }
  }

  // What the results have in common takes longer to count; nobody waits for it.
  function narrow(q, signal) {
    get("/facets", { q }, signal).then((common) => fill(values, lists(common.facets, box.value))).catch(() => {});
  }

  // A key that all results share says nothing, unless it was chosen.
  function lists(found, query) {
    const telling = ([name]) => found[name]?.length > 1 || (found[name] && query.includes(`${name}:`));
    return Object.entries(NAMES).filter(telling).map(([name, title]) => [
      h("h2", {}, title),
      h("ul", {}, found[name].slice(0, SHOWN).map(({ value, count }) => {
        const term = `${name}:${quoted(value)}`;
        const on = query.includes(term);
        const toggle = () => {
          box.value = (on ? query.replace(term, "") : `${query} ${term}`).replace(/\s+/g, " ").trim();
          search();
        };
        return h("li", {}, h("button", { type: "button", "aria-pressed": String(on), onclick: toggle },
          h("span", {}, name === "since" ? AGES[value] ?? value : value), h("span", {}, count.toLocaleString())));
      })),
    ]);
  }

  let waiting = null;
  box.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(search, PAUSE);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    box.dispatchEvent(new Event("done"));
    clearTimeout(waiting);
    search();
    results.querySelector("a")?.focus();
  });
  more.addEventListener("click", () => search(shown));
  key("/", "Search", () => { box.focus(); box.select(); });

  // Somebody who is at a result is not interrupted.
  follow((certain) => {
    if (!rows.chosen()) search();
    else if (certain) notify("The memory has changed.", { name: "Show", run: () => search() });
  });

  // The server has sent the results of this query already; only what a script adds is missing.
  for (const moment of results.querySelectorAll("time")) moment.replaceWith(time(moment.dateTime));
  shown = results.children.length;
  more.hidden = shown >= Number(results.dataset.total);
  narrow(box.value.trim());
  // Something may have been typed before this began to listen.
  if (box.value !== box.defaultValue) search();
  complete(box, () => { clearTimeout(waiting); search(); });
}

const shape = (item) => `${item.querySelector("a").getAttribute("href")} ${item.querySelector("a").textContent}`;
const same = (some, others) => some.length === others.length && some.every((one, at) => shape(one) === shape(others[at]));

export function result(one, q = "") {
  const { memory } = one;
  const asked = q ? `?${new URLSearchParams({ q })}` : "";
  return h("li", {},
    h("a", { class: "snippet", href: `/memories/${encodeURIComponent(memory.id)}${asked}` }, parts(one.snippet)),
    h("p", { class: "facts" },
      h("span", { class: "namespace" }, memory.namespace),
      memory.status !== "active" && h("span", { class: "status" }, memory.status),
      memory.tags.map((tag) => h("span", { class: "tag" }, `#${tag}`)),
      h("span", {}, time(memory.created_at)),
      one.score > 0 && h("span", { class: "score", title: "How likely this answers the query" }, `${Math.round(one.score * 100)} %`),
      one.signals && h("span", { class: "why" }, why(one.signals))));
}

// Which signals gave the score.
function why({ meaning, words, near, named }) {
  const meter = (name, value) => {
    const percent = Math.round(100 * Math.max(0, Math.min(1, value)));
    return h("span", { class: "signal", title: `${name}: ${percent} of 100` }, `${name} `,
      h("span", { class: "bar", role: "meter", "aria-label": name, "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": percent },
        [10, 30, 50, 70, 90].map((step) => h("i", { class: percent >= step && "on" }))));
  };
  return [meter("meaning", meaning), meter("words", words), near && h("span", { class: "signal" }, "this line of work"), named && h("span", { class: "signal" }, "names somebody")];
}
