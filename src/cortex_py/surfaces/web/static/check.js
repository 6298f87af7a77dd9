// Check: a pasted answer, claim by claim, with what speaks for or against it.

import { change } from "./api.js";
import { counted, fill, h } from "./dom.js";
import { open } from "./excerpt.js";
import { walk } from "./keys.js";
import { fail } from "./notices.js";

const TONES = { supported: "good", contradicted: "bad", "not found": "warn", unverified: "warn" };

export function start(main) {
  const text = h("textarea", { id: "answer", rows: 10, placeholder: "The function parse_config in config.py reads TOML…" });
  const button = h("button", { class: "primary" }, "Check");
  const result = h("div", { class: "memory", "aria-live": "polite" });
  const form = h("form", { class: "memory", onsubmit: run },
    h("div", { class: "field" }, h("label", { for: "answer" }, "The answer"), text), h("div", { class: "actions" }, button));
  main.append(form, result);
  text.focus();
  walk(() => result.querySelector(".claims") ?? result, (item) => item?.querySelector(".evidence button")?.click());
  text.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit(); });

  async function run(event) {
    event.preventDefault();
    if (!text.value.trim()) return;
    button.disabled = true;
    try {
      show(await change("POST", "/check", { text: text.value }));
    } catch (error) {
      fail(error);
    } finally {
      button.disabled = false;
    }
  }

  function show(found) {
    fill(result,
      h("h2", {}, `${Math.round(found.score * 100)} % grounded: ${found.status.toLowerCase()}`),
      h("p", { class: "hint" }, found.message),
      found.contradictions.length > 0 && [h("h3", {}, "Contradictions"), h("ul", { class: "plain-list" }, found.contradictions.map((one) =>
        h("li", {}, h("p", {}, one.left), h("p", { class: "bad" }, one.right), h("p", { class: "evidence" }, one.reason, one.source && ` (${one.source})`))))],
      h("ol", { class: "plain-list claims" }, found.claims.map((one) => h("li", {},
        h("p", {}, one.text),
        h("p", { class: `verdict ${TONES[one.verdict] ?? ""}` }, one.verdict === "unverified" ? one.verdict : `${one.verdict}, ${Math.round(one.probability * 100)} %`),
        h("p", { class: "hint" }, one.reason),
        one.evidence.map((evidence) => h("div", { class: "evidence" }, evidence.path
          ? h("button", { type: "button", class: "link", "aria-label": `Open ${evidence.place}`, onclick: (event) => open(event.currentTarget.parentElement, evidence.path, evidence.line ?? 1) }, evidence.place)
          : evidence.place))))),
      found.unchecked.length > 0 && h("details", {}, h("summary", {}, counted(found.unchecked.length, "statement that cannot be checked", "statements that cannot be checked")),
        h("ul", {}, found.unchecked.map((one) => h("li", {}, one.text, h("span", { class: "hint" }, ` (${one.reason})`))))));
  }
}
