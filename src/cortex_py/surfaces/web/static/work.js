// Lines of work: where each stands.

import { change, get, mayChange } from "./api.js";
import { counted, fill, h, memoryLink, time } from "./dom.js";
import { walk } from "./keys.js";
import { fail, notify } from "./notices.js";

export async function start(main) {
  const list = h("ul", { class: "results lines" });
  const count = h("p", { class: "count", role: "status" });
  main.append(count, list);
  walk(() => list, (item) => item?.querySelector("summary").click());
  try {
    const found = await get("/lines");
    fill(count, found.total ? counted(found.total, "line of work", "lines of work") : ["There is no line of work yet. ", h("code", {}, "cortex branch create"), " begins one."]);
    fill(list, found.lines.map(line));
    const asked = decodeURIComponent(location.hash.slice(1));
    const active = [...list.querySelectorAll("details")].find((one) => (asked ? one.dataset.id === asked : one.open));
    if (active) {
      active.open = true;
      load(active);
      if (asked) active.scrollIntoView();
    }
  } catch (error) {
    fail(error);
  }
}

const title = (name) => (name[0].toUpperCase() + name.slice(1)).replaceAll("_", " ");

function line(one) {
  const details = h("details", { open: one.active, "data-id": one.id },
    h("summary", {}, h("strong", {}, one.topic), " ", one.active && h("span", { class: "badge" }, "checked out")),
    h("p", { class: "facts" }, h("span", {}, one.id), one.git_branch && h("span", {}, one.git_branch), h("span", {}, one.status), time(one.updated_at)),
    h("div", { class: "summary" }));
  details.addEventListener("toggle", () => { if (details.open) load(details); });
  return h("li", {}, details);
}

async function load(details) {
  const place = details.querySelector(".summary");
  if (place.childElementCount) return;
  try {
    const found = await get(`/lines/${encodeURIComponent(details.dataset.id)}`);
    fill(place,
      h("p", { class: "hint" }, `${counted(found.entries, "turn", "turns")}, ${counted(found.tokens, "token", "tokens")} for an agent${found.left_out ? `, ${found.left_out} items left out` : ""}`),
      Object.entries(found.sections).map(([name, texts]) => [h("h3", {}, title(name)), h("ul", {}, texts.map((text) => h("li", {}, text)))]),
      staged("Staged until the branch is merged", found.staged, "Promote", (id) => promote(id, false), (id) => promote(id, true), details),
      staged("Waiting for your review", found.pending, "Accept", (id) => decide("accept", id), (id) => decide("stage", id), details),
      h("details", {}, h("summary", {}, "As an agent gets it"), h("p", { class: "injected" }, found.text)));
  } catch (error) {
    fail(error);
  }
}

const promote = (id, back) => done(change("POST", "/promote", { ids: [id], back }));
const decide = (action, id) => done(change("POST", "/review", { action, ids: [id] }));

async function done(answer) {
  const trouble = Object.values((await answer).failed)[0];
  if (trouble) throw new Error(trouble);
}

// Memories of the branch, each with a way to keep it for good or to drop it.
function staged(name, list, verb, keep, back, details) {
  async function run(work, text, undo) {
    try {
      await work();
      notify(text, undo && { name: "Undo", run: () => run(undo, "Undone.") });
      fill(details.querySelector(".summary"));
      await load(details);
    } catch (error) {
      fail(error);
    }
  }
  return list.length > 0 && h("section", { class: "staged" }, h("h3", {}, name), h("ul", { class: "plain-list" }, list.map((one) => h("li", { class: "with-switch" }, memoryLink(one.id, one.text), mayChange && h("span", { class: "switches" },
    h("button", { type: "button", class: "keep small", onclick: () => run(() => keep(one.id), verb === "Accept" ? "Accepted." : "Promoted.", () => back(one.id)) }, verb),
    h("button", { type: "button", class: "small", onclick: () => run(() => change("DELETE", `/memories/${encodeURIComponent(one.id)}`), "Dropped.", () => change("POST", `/memories/${encodeURIComponent(one.id)}/restore`, {})) }, "Drop"))))));
}
