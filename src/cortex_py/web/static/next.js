// The next session: what the hooks give it, word by word.

import { change } from "./api.js";
import { counted, fill, h } from "./dom.js";
import { key } from "./keys.js";
import { fail } from "./notices.js";

export function start(main) {
  const prompt = h("input", { type: "text", id: "prompt", autocomplete: "off", placeholder: "Why do the tests need Redis?" });
  const result = h("div", { class: "memory", "aria-live": "polite" });
  main.append(h("form", { class: "memory", onsubmit: (event) => { event.preventDefault(); load(); } },
    h("div", { class: "field" }, h("label", { for: "prompt" }, "A prompt, to see what it brings along"), prompt)), result);
  key("i", "Type a prompt", () => prompt.focus());

  async function load() {
    try {
      const found = await change("POST", "/next", { prompt: prompt.value });
      fill(result, given("At the start", found.start, "Nothing is given at the start."),
        found.prompt && given("With this prompt", found.prompt, "Nothing is certain enough to go with this prompt."));
    } catch (error) {
      fail(error);
    }
  }

  return load();
}

function given(title, one, nothing) {
  return h("section", {}, h("h2", {}, title),
    h("p", { class: "hint" }, one.text ? `${counted(one.tokens, "token", "tokens")}, ${counted(one.memories.length, "memory", "memories")}` : nothing),
    one.text && h("p", { class: "injected" }, one.text),
    h("ul", { class: "plain-list" }, one.memories.map((memory) => h("li", {}, h("a", { href: `/memories/${encodeURIComponent(memory.id)}` }, memory.text)))));
}
