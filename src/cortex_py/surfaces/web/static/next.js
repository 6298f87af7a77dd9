// The next session: what the hooks give it, word by word.

import { change, get, mayChange } from "./api.js";
import { counted, fill, h, memoryLink } from "./dom.js";
import { key } from "./keys.js";
import { follow } from "./live.js";
import { fail, notify } from "./notices.js";

const NEVER = "never-inject";

export function start(main) {
  const prompt = h("input", { type: "text", id: "prompt", autocomplete: "off", placeholder: "Why do the tests need Redis?" });
  const result = h("div", { class: "memory", "aria-live": "polite" });
  main.append(h("form", { class: "memory", onsubmit: (event) => { event.preventDefault(); load(); } },
    h("div", { class: "field" }, h("label", { for: "prompt" }, "A prompt, to see what it brings along"), prompt)), result);
  key("i", "Type a prompt", () => prompt.focus());

  async function load() {
    try {
      const [found, left] = await Promise.all([change("POST", "/next", { prompt: prompt.value }), get("/search", { q: `tag:${NEVER}`, limit: 50 })]);
      fill(result, given("At the start", found.start, "Nothing is given at the start."),
        found.prompt && given("With this prompt", found.prompt, "Nothing is certain enough to go with this prompt."),
        left.total > 0 && h("section", { class: "left-out" }, h("h2", {}, "Never injected"), h("ul", { class: "plain-list" }, left.results.map(({ memory }) => h("li", { class: "with-switch" },
          memoryLink(memory.id, memory.content.slice(0, 160)), mayChange && h("button", { type: "button", class: "again small", onclick: () => again(memory) }, "Inject again"))))));
    } catch (error) {
      fail(error);
    }
  }

  async function set(memory, tags, text, undo) {
    try {
      const now = await change("PATCH", `/memories/${encodeURIComponent(memory.id)}`, { tags, version: memory.version });
      notify(text, undo && { name: "Undo", run: () => set({ ...memory, version: now.version }, undo, "Undone.") });
      await load();
    } catch (error) {
      fail(error);
    }
  }

  const never = (memory) => set(memory, [...memory.tags, NEVER], "No session is given it any more.", memory.tags);

  const again = (memory) => set(memory, memory.tags.filter((tag) => tag !== NEVER), "Sessions may be given it again.", memory.tags);

  function given(title, one, nothing) {
    return h("section", {}, h("h2", {}, title),
      h("p", { class: "hint" }, one.text ? `${counted(one.tokens, "token", "tokens")}, ${counted(one.memories.length, "memory", "memories")}` : nothing),
      one.text && h("p", { class: "injected" }, one.text),
      h("ul", { class: "plain-list" }, one.memories.map((memory) => h("li", { class: "with-switch" }, memoryLink(memory.id, memory.text),
        mayChange && h("button", { type: "button", class: "never small", onclick: () => never(memory) }, "Never inject")))));
  }

  return load().then(() => follow((certain) => certain && load()));
}
