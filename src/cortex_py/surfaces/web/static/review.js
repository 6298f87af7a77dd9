// Review: what was staged, one by one or many at once.

import { change, get, mayChange } from "./api.js";
import { counted, difference, fill, h, memoryLink, parts, time } from "./dom.js";
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
  const busy = () => deciding || rows.chosen() || picked().length > 0 || list.querySelector("[aria-expanded=true]");
  let deciding = false;

  async function load(unasked = false) {
    try {
      const found = await get("/search", { q: "status:pending", limit: AT_ONCE });
      if (unasked && busy()) return;
      fill(count, found.total ? `${counted(found.total, "memory waits", "memories wait")}.` : "Nothing waits for you.");
      actions.hidden = !found.total || !mayChange;
      all.checked = false;
      fill(list, found.results.map(({ memory, snippet }) => h("li", { class: "pick" },
        h("input", { type: "checkbox", value: memory.id, id: `pick-${memory.id}`, "aria-label": "Choose this memory" }),
        h("div", {},
          h("label", { class: "snippet", for: `pick-${memory.id}` }, parts(snippet)),
          h("p", { class: "facts" }, h("span", { class: "namespace" }, memory.namespace), memory.tags.map((tag) => h("span", {}, `#${tag}`)),
            time(memory.created_at), memoryLink(memory.id, "Open"), h("button", { type: "button", class: "link compare", "aria-expanded": "false", onclick: (event) => compare(event.currentTarget, memory) }, "Compare")),
          h("div", { class: "sides" })))));
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

  // The memories that it repeats or contradicts, side by side with it.
  async function compare(button, staged) {
    const place = button.closest("li").querySelector(".sides");
    const open = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!open));
    if (open) {
      fill(place);
      return;
    }
    try {
      const found = await get(`/review/${encodeURIComponent(staged.id)}`);
      fill(place, found.counterparts.length ? found.counterparts.map((one) => side(staged, one)) : h("p", { class: "hint" }, "Nothing that is remembered repeats or contradicts it."));
    } catch (error) {
      fail(error);
    }
  }

  function side(staged, one) {
    const into = one.memory;
    const act = (name, primary, text, work, back) => h("button", { type: "button", class: primary ? "primary" : null, onclick: () => settle(text, work, back) }, name);
    const reopen = (id, fields) => change("PATCH", `/memories/${encodeURIComponent(id)}`, fields);
    return h("section", { class: "pair", "aria-label": one.relation },
      h("p", { class: one.relation === "contradicts" ? "bad" : "hint" }, `${one.relation === "contradicts" ? "Contradicts" : "Repeats"}: ${one.reason}`),
      h("div", { class: "columns" },
        h("div", {}, h("h3", {}, "Remembered"), h("p", { class: "difference" }, into.content), h("p", { class: "facts" }, time(into.created_at), memoryLink(into.id, "Open"))),
        h("div", {}, h("h3", {}, "New"), difference(one.difference))),
      one.merged && h("div", { class: "merged" }, h("h3", {}, "Merged"), difference(one.merged_difference)),
      mayChange && h("div", { class: "actions" },
        one.merged && act("Merge", true, "Merged.", () => change("POST", `/review/${encodeURIComponent(staged.id)}/merge`, { into: into.id, content: one.merged, version: into.version }),
          async () => { await reopen(into.id, { content: into.content }); await reopen(staged.id, { status: "pending" }); }),
        act("Keep the new one", !one.merged, "The new one took its place.", async () => { await reopen(staged.id, { status: "active" }); await change("POST", `/memories/${encodeURIComponent(into.id)}/supersede`, { by: staged.id }); },
          async () => { await reopen(into.id, { status: into.status }); await reopen(staged.id, { status: "pending" }); }),
        act("Keep the old one", false, "The new one was dropped.", () => change("POST", "/review", { action: "drop", ids: [staged.id] }), () => change("POST", `/memories/${encodeURIComponent(staged.id)}/restore`, {}))));
  }

  async function settle(text, work, back) {
    deciding = true;
    try {
      await work();
      notify(text, back && { name: "Undo", run: () => settle("Undone.", back) });
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
  if (mayChange) {
    key("a", "Accept", () => decide("accept", chosen()));
    key("d", "Drop", () => decide("drop", chosen()));
  }
  key("c", "Compare with what is remembered", () => rows.chosen()?.querySelector(".compare").click());
  key("m", "Merge", () => [...(rows.chosen()?.querySelectorAll(".sides button") ?? [])].find((one) => one.textContent === "Merge")?.click());
  key("A", "Choose all", () => all.click());
  key("e", "Open to edit", () => rows.chosen()?.querySelector("a").click());
  return load().then(() => follow(() => busy() || load(true)));
}
