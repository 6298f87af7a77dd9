// Review: what was staged, one by one or many at once.

import { change, get } from "./api.js";
import { counted, fill, h, parts, time } from "./dom.js";
import { key, walk } from "./keys.js";
import { follow } from "./live.js";
import { fail, notify } from "./notices.js";

const AT_ONCE = 50;

export function start(main) {
  const list = h("ul", { class: "results" });
  const count = h("p", { class: "count", role: "status" });
  const all = h("input", { type: "checkbox", id: "all" });
  const actions = h("div", { class: "actions" },
    h("button", { type: "button", class: "primary accept", onclick: () => decide("accept", picked()) }, "Accept"),
    h("button", { type: "button", class: "drop", onclick: () => decide("drop", picked()) }, "Drop"),
    h("label", { class: "button", for: "all" }, all, "Choose all"));
  main.append(count, actions, list);
  const rows = walk(() => list);

  const boxes = () => [...list.querySelectorAll("input[type=checkbox]")];
  const picked = () => boxes().filter((box) => box.checked).map((box) => box.value);
  const current = () => rows.chosen()?.querySelector("input").value;

  // A person who has chosen something is not interrupted by what happens elsewhere.
  const busy = () => deciding || rows.chosen() || picked().length > 0;
  let deciding = false;

  async function load(unasked = false) {
    try {
      const found = await get("/search", { q: "status:pending", limit: AT_ONCE });
      if (unasked && busy()) return;
      fill(count, found.total ? `${counted(found.total, "memory waits", "memories wait")}.` : "Nothing waits for you.");
      actions.hidden = !found.total;
      all.checked = false;
      fill(list, found.results.map(({ memory, snippet }) => h("li", { class: "pick" },
        h("input", { type: "checkbox", value: memory.id, id: `pick-${memory.id}`, "aria-label": "Choose this memory" }),
        h("div", {},
          h("label", { class: "snippet", for: `pick-${memory.id}` }, parts(snippet)),
          h("p", { class: "facts" }, h("span", { class: "namespace" }, memory.namespace), memory.tags.map((tag) => h("span", {}, `#${tag}`)),
            time(memory.created_at), h("a", { href: `/memories/${encodeURIComponent(memory.id)}` }, "Open"))))));
      rows.reset();
    } catch (error) {
      fail(error);
    }
  }

  async function decide(action, ids) {
    if (!ids.length) {
      notify("Choose a memory first: x chooses the current one.");
      return;
    }
    deciding = true;
    try {
      const { done, failed } = await change("POST", "/review", { action, ids });
      const text = `${counted(done.length, "memory", "memories")} ${action === "accept" ? "accepted" : "dropped"}.`;
      const trouble = Object.values(failed)[0];
      notify(trouble ? `${text} ${trouble}` : text, done.length > 0 && { name: "Undo", run: () => undo(action, done) });
      await load();
    } catch (error) {
      fail(error);
    } finally {
      deciding = false;
    }
  }

  async function undo(action, ids) {
    deciding = true;
    try {
      if (action === "accept") await change("POST", "/review", { action: "stage", ids });
      else for (const id of ids) await change("POST", `/memories/${encodeURIComponent(id)}/restore`, {});
      notify("Undone.");
      await load();
    } catch (error) {
      fail(error);
    } finally {
      deciding = false;
    }
  }

  const chosen = () => (picked().length ? picked() : [current()].filter(Boolean));
  all.addEventListener("change", () => boxes().forEach((box) => { box.checked = all.checked; }));
  key("x", "Choose or leave out", () => { const box = rows.chosen()?.querySelector("input"); if (box) box.checked = !box.checked; });
  key("a", "Accept", () => decide("accept", chosen()));
  key("d", "Drop", () => decide("drop", chosen()));
  key("e", "Open to edit", () => rows.chosen()?.querySelector("a").click());
  return load().then(() => follow(() => busy() || load(true)));
}
