// One memory: its text, where it comes from, what it was before, what it is linked to; and its changes.

import { change, get } from "./api.js";
import { fill, h, time } from "./dom.js";
import { key } from "./keys.js";
import { marker, markdown } from "./markdown.js";
import { fail, notify } from "./notices.js";

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
        h("button", { type: "button", class: "delete", onclick: remove }, "Delete"),
        h("button", { type: "button", class: "danger purge", onclick: purge }, "Delete for good…")),
      facts(memory),
      page.conflicts.length > 0 && section("Contradicts", briefs(page.conflicts)),
      page.chain.length > 1 && section("Replaced and replacing", briefs(page.chain)),
      page.entities.length > 0 && section("Names", h("p", { class: "tags" }, page.entities.map((one) =>
        h("a", { href: `/?${new URLSearchParams({ q: `entity:${quoted(one.name)}` })}`, title: `${one.type}, in ${one.mentions}` }, one.name)))),
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

  function purge() {
    const dialog = h("dialog", { "aria-labelledby": "purge-title" },
      h("h1", { id: "purge-title" }, "Delete for good?"),
      h("p", {}, "The text, its history and its links are removed from this store. This cannot be undone."),
      h("form", { method: "dialog", class: "actions" },
        h("button", { value: "no", autofocus: true }, "Keep it"), h("button", { value: "yes", class: "danger confirm" }, "Delete for good")));
    dialog.addEventListener("close", async () => {
      dialog.remove();
      if (dialog.returnValue !== "yes") return;
      try {
        await change("POST", `/memories/${page.memory.id}/purge`, { confirm: page.memory.id });
        fill(main, h("h1", {}, "Deleted for good"));
      } catch (error) {
        fail(error);
      }
    });
    document.body.append(dialog);
    dialog.showModal();
  }

  key("e", "Edit", () => main.querySelector(".edit")?.click());
  key("a", "Accept", () => main.querySelector(".accept")?.click());
  key("d", "Delete", () => main.querySelector(".delete")?.click());
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
    File: memory.path && `${memory.path}${lines}`,
    Check: memory.grounding !== null && `${Math.round(memory.grounding * 100)} % grounded in the project`,
    Expires: memory.expires_at && time(memory.expires_at),
    Id: h("code", {}, memory.id),
  };
  return h("dl", { class: "details" }, Object.entries(rows).filter(([, value]) => value).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

const quoted = (value) => (/[\s,"]/.test(value) ? `"${value.replace(/[\\"]/g, "\\$&")}"` : value);
const link = (id, text) => h("a", { href: `/memories/${encodeURIComponent(id)}` }, text);
const section = (title, content) => h("section", {}, h("h2", {}, title), content);
const briefs = (list) => h("ul", { class: "plain-list" }, list.map((one) => h("li", {}, link(one.id, one.text), h("p", { class: "facts" }, one.status, " ", time(one.created_at)))));
const TAGS = { added: "ins", removed: "del", same: "span" };
const version = (one) => h("li", {},
  h("p", { class: "facts" }, h("span", {}, `Version ${one.version}`), h("span", {}, one.operation), time(one.recorded_at)),
  h("p", { class: "difference" }, one.difference.map((part) => h(TAGS[part.change], {}, part.text))));
