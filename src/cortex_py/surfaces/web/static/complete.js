// Completion of the filter language below a field: keys and values that exist.

import { get } from "./api.js";
import { fill, h } from "./dom.js";

export function complete(box, changed) {
  const list = h("ul", { id: `${box.id}-completions`, role: "listbox", class: "completions", "aria-label": "Completions", hidden: true });
  box.after(list);
  for (const [name, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-controls": list.id, "aria-expanded": "false" })) box.setAttribute(name, value);
  let [found, at, asked] = [{ word: "", completions: [] }, -1, null];

  function show(answer) {
    [found, at] = [answer, -1];
    fill(list, answer.completions.map((one, n) => h("li", { role: "option", id: `${list.id}-${n}`, "aria-selected": "false", onmousedown: (event) => { event.preventDefault(); take(n); } },
      h("span", {}, one.text), h("span", { class: "hint" }, one.hint))));
    list.hidden = !answer.completions.length;
    box.setAttribute("aria-expanded", String(!list.hidden));
    box.removeAttribute("aria-activedescendant");
  }
  const hide = () => { asked?.abort(); show({ word: "", completions: [] }); };

  function choose(next) {
    list.children[at]?.setAttribute("aria-selected", "false");
    at = (next + list.children.length) % list.children.length;
    list.children[at].setAttribute("aria-selected", "true");
    box.setAttribute("aria-activedescendant", list.children[at].id);
  }

  function take(n) {
    const text = found.completions[n].text;
    const before = box.value.slice(0, box.selectionStart);
    const after = box.value.slice(box.selectionStart).replace(/^\S*/, "");
    const start = before.slice(0, before.length - found.word.length) + text;
    box.value = start + (text.endsWith(":") ? "" : " ") + after.trimStart();
    box.setSelectionRange(start.length + (text.endsWith(":") ? 0 : 1), start.length + (text.endsWith(":") ? 0 : 1));
    hide();
    if (text.endsWith(":")) look();
    changed();
  }

  async function look() {
    asked?.abort();
    const before = box.value.slice(0, box.selectionStart);
    if (!/(^|\s)-?[a-z]+(:\S*|:".*)?$/i.test(before)) return hide();
    asked = new AbortController();
    try {
      const answer = await get("/complete", { q: before }, asked.signal);
      if (document.activeElement === box) show(answer);
    } catch {
      // What is typed goes on without it.
    }
  }

  box.addEventListener("input", look);
  box.addEventListener("blur", hide);
  box.addEventListener("done", hide);
  box.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      choose(event.key === "ArrowDown" ? at + 1 : at < 0 ? -1 : at - 1);
    } else if (event.key === "Tab" || (event.key === "Enter" && at >= 0)) {
      event.preventDefault();
      take(Math.max(at, 0));
    } else if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      hide();
    }
  });
}
