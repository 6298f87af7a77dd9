// One memory: its text, where it comes from, what it was before, what it is linked to; and its changes.

import { change, get } from "./api.js";
import { counted, difference, fill, h, memoryLink, quoted, time } from "./dom.js";
import { key } from "./keys.js";
import { open } from "./excerpt.js";
import { marker, markdown } from "./markdown.js";
import { ask, fail, notify } from "./notices.js";

const MARKS = { pinned: ["Pin", "Pinned", "Every session begins with it", "No longer pinned."], "never-inject": ["Never inject", "Never injected", "No session is given it", "Sessions may be given it again."] };

export async function start(main) {
  const id = decodeURIComponent(location.pathname.split("/")[2]);
  const place = `/memories/${encodeURIComponent(id)}`;
  const q = new URLSearchParams(location.search).get("q") ?? "";
  let page = null;

  async function load() {
    try {
      page = await get(place, { q });
      const past = await get(`${place}/history`);
      show(past.versions);
    } catch (error) {
      fill(main, h("p", { class: "error", role: "alert" }, error.message));
    }
  }

  async function run(work, text, undo = null) {
    try {
      await work();
      notify(text, undo && { name: "Undo", run: () => run(undo, "Undone.") });
      await load();
    } catch (error) {
      fail(error);
    }
  }

  function show(versions) {
    const { memory } = page;
    const article = h("article", { class: "memory" },
      memory.superseded_by && h("p", { class: "hint" }, "Replaced by ", link(memory.superseded_by, "a newer memory"), "."),
      h("div", { class: "text" }, markdown(memory.content, marker(page.text))),
      page.may_change && h("div", { class: "actions" },
        h("button", { type: "button", class: "edit", onclick: edit }, "Edit"),
        memory.status === "pending" && h("button", { type: "button", class: "primary accept", onclick: accept }, "Accept"),
        Object.entries(MARKS).map(([tag, [off, on, about]]) => {
          const set = memory.tags.includes(tag);
          return h("button", { type: "button", class: tag, "aria-pressed": String(set), title: about, onclick: () => toggle(tag, set) }, set ? on : off);
        }),
        ["active", "pending"].includes(memory.status) && h("button", { type: "button", class: "supersede", onclick: supersede }, "Replace by…"),
        memory.superseded_by && h("button", { type: "button", class: "reinstate", onclick: reinstate }, "Use again"),
        h("button", { type: "button", class: "delete", onclick: remove }, "Delete"),
        h("button", { type: "button", class: "danger purge", onclick: purge }, "Delete for good…")),
      facts(memory),
      page.conflicts.length > 0 && section("Contradicts", briefs(page.conflicts)),
      page.check && section(`Check: ${Math.round(page.check.score * 100)} % grounded, ${page.check.status.toLowerCase()}`, h("ul", { class: "plain-list" }, page.check.claims.map((one) =>
        h("li", {}, h("p", {}, one.text), h("p", { class: "evidence" }, `${one.verdict}. ${one.evidence}`))))),
      page.chain.length > 1 && section("Replaced and replacing", briefs(page.chain)),
      page.entities.length > 0 && section("Names", h("p", { class: "tags" }, page.entities.map((one) =>
        h("a", { href: `/graph?${new URLSearchParams({ centre: one.name })}`, title: `${one.type}, in ${one.mentions}; opens the graph` }, one.name)))),
      section("Used", uses(page.uses)),
      versions.length > 1 && section("History", h("ol", { class: "versions" }, versions.map(version))));
    fill(main, h("h1", { class: "quiet" }, q ? h("a", { href: `/?${new URLSearchParams({ q })}` }, `Results for ${q}`) : "Memory"), article);
  }

  function edit() {
    const { memory } = page;
    const text = h("textarea", { id: "content", rows: 12 });
    text.value = memory.content;
    const tags = h("input", { id: "tags", type: "text", value: memory.tags.join(", "), autocomplete: "off" });
    const namespace = h("input", { id: "namespace", type: "text", value: memory.namespace, autocomplete: "off" });
    const save = (event) => {
      event?.preventDefault();
      const before = { content: memory.content, tags: memory.tags, namespace: memory.namespace };
      const now = { content: text.value, tags: tags.value.split(",").map((one) => one.trim()).filter(Boolean), namespace: namespace.value.trim() };
      run(() => change("PATCH", place, { ...now, version: memory.version }), "Saved.", () => change("PATCH", place, before));
    };
    fill(main, h("h1", {}, "Edit"), h("form", { class: "memory editor", onsubmit: save },
      h("div", { class: "field" }, h("label", { for: "content" }, "Text"), text),
      h("div", { class: "field" }, h("label", { for: "tags" }, "Tags, with commas between them"), tags),
      h("div", { class: "field" }, h("label", { for: "namespace" }, "Namespace"), namespace),
      h("div", { class: "actions" }, h("button", { class: "primary save" }, "Save"),
        h("button", { type: "button", onclick: load }, "Cancel"))));
    text.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save(); });
    text.focus();
  }

  const accept = () => run(() => change("PATCH", place, { status: "active" }), "Accepted.", () => change("PATCH", place, { status: "pending" }));

  async function remove() {
    try {
      await change("DELETE", place);
    } catch (error) {
      fail(error);
      return;
    }
    fill(main, h("h1", {}, "Deleted"), h("p", { class: "hint" }, "It can be brought back."));
    notify("Deleted.", { name: "Undo", run: () => run(() => change("POST", `${place}/restore`, {}), "Brought back.") });
  }

  async function purge() {
    if (!await ask("Delete for good?", "The text, its history and its links are removed from this store. This cannot be undone.", "Delete for good")) return;
    try {
      await change("POST", `/memories/${page.memory.id}/purge`, { confirm: page.memory.id });
      fill(main, h("h1", {}, "Deleted for good"));
    } catch (error) {
      fail(error);
    }
  }

  function toggle(tag, set) {
    const before = page.memory.tags;
    const now = set ? before.filter((one) => one !== tag) : [...before, tag];
    run(() => change("PATCH", place, { tags: now, version: page.memory.version }), set ? MARKS[tag][3] : `${MARKS[tag][1]}.`, () => change("PATCH", place, { tags: before }));
  }

  const reinstate = () => {
    const by = page.memory.superseded_by;
    run(() => change("PATCH", place, { status: "active" }), "In use again.", () => change("POST", `${place}/supersede`, { by }));
  };

  // The memory that takes its place is found by words, among others than itself.
  function supersede() {
    const words = h("input", { type: "text", id: "other", autocomplete: "off", placeholder: "Words of the newer memory" });
    const list = h("ul", { class: "plain-list choices" });
    const dialog = h("dialog", { "aria-labelledby": "supersede-title" }, h("h1", { id: "supersede-title" }, "Replace by which memory?"),
      h("div", { class: "field" }, h("label", { for: "other" }, "Search"), words), list, h("form", { method: "dialog" }, h("button", {}, "Cancel")));
    let asked = null;
    const look = async () => {
      asked?.abort();
      asked = new AbortController();
      try {
        const found = await get("/search", { q: words.value.trim(), limit: 6 }, asked.signal);
        fill(list, found.results.filter((one) => one.memory.id !== page.memory.id && one.memory.kind === "note").map((one) => h("li", {}, h("button", { type: "button", class: "link", onclick: () => {
          dialog.close();
          const { status } = page.memory;
          run(() => change("POST", `${place}/supersede`, { by: one.memory.id }), "Replaced.", () => change("PATCH", place, { status }));
        } }, one.memory.content.slice(0, 140)))));
      } catch (error) {
        fail(error);
      }
    };
    words.addEventListener("input", look);
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
    look();
  }

  key("e", "Edit", () => main.querySelector(".edit")?.click());
  key("a", "Accept", () => main.querySelector(".accept")?.click());
  key("d", "Delete", () => main.querySelector(".delete")?.click());
  key("p", "Pin", () => main.querySelector(".pinned")?.click());
  key("n", "Never inject", () => main.querySelector(".never-inject")?.click());
  key("s", "Replace by another", () => main.querySelector(".supersede")?.click());
  await load();
}

function facts(memory) {
  const lines = memory.first_line ? `:${memory.first_line}${memory.last_line ? `–${memory.last_line}` : ""}` : "";
  const rows = {
    Namespace: h("a", { href: `/?q=ns:${encodeURIComponent(memory.namespace)}` }, memory.namespace),
    Status: memory.status !== "active" && h("span", { class: "badge" }, memory.status),
    Tags: memory.tags.length > 0 && h("span", { class: "tags" }, memory.tags.map((tag) => h("a", { href: `/?${new URLSearchParams({ q: `tag:${quoted(tag)}` })}` }, tag))),
    Captured: time(memory.created_at),
    Changed: memory.version > 1 && time(memory.updated_at),
    By: [memory.user_id, memory.agent_id].filter(Boolean).join(" through "),
    Role: memory.role,
    Branch: memory.git_branch,
    "Line of work": memory.branch_id,
    Source: memory.source,
    File: memory.path && h("button", { type: "button", class: "link", onclick: (event) => open(event.currentTarget.parentElement, memory.path, memory.first_line ?? 1) }, `${memory.path}${lines}`),
    Check: memory.grounding !== null && `${Math.round(memory.grounding * 100)} % grounded in the project`,
    Expires: memory.expires_at && time(memory.expires_at),
    Id: h("code", {}, memory.id),
  };
  return h("dl", { class: "details" }, Object.entries(rows).filter(([, value]) => value).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

const link = memoryLink;
const section = (title, content) => h("section", {}, h("h2", {}, title), content);
const briefs = (list) => h("ul", { class: "plain-list" }, list.map((one) => h("li", {}, link(one.id, one.text), h("p", { class: "facts" }, one.status, " ", time(one.created_at)))));
const version = (one) => h("li", {},
  h("p", { class: "facts" }, h("span", {}, `Version ${one.version}`), h("span", {}, one.operation), time(one.recorded_at)),
  difference(one.difference));
const uses = (one) => h("p", { class: "hint uses" }, one.recalls ? [`Recalled ${counted(one.recalls, "time", "times")}, last `, time(one.last_recalled_at), ". "] : "Never recalled. ",
  one.sessions ? [`Given to ${counted(one.sessions, "session", "sessions")} of the last two weeks, last `, time(one.last_given_at), "."] : "Given to no session of the last two weeks.");
