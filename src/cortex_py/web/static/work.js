// Lines of work: where each stands.

import { get } from "./api.js";
import { counted, fill, h, time } from "./dom.js";
import { walk } from "./keys.js";
import { fail } from "./notices.js";

export async function start(main) {
  const list = h("ul", { class: "results lines" });
  const count = h("p", { class: "count", role: "status" });
  main.append(count, list);
  walk(() => list, (item) => item?.querySelector("summary").click());
  try {
    const found = await get("/lines");
    fill(count, found.total ? counted(found.total, "line of work", "lines of work") : "There is no line of work yet. `cortex branch create` begins one.");
    fill(list, found.lines.map(line));
    const active = list.querySelector("details[open]");
    if (active) load(active);
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
      h("details", {}, h("summary", {}, "As an agent gets it"), h("p", { class: "injected" }, found.text)));
  } catch (error) {
    fail(error);
  }
}
