// The keyboard: one key for each action, and `?` to see them.

import { h } from "./dom.js";

const bound = new Map();

export function key(name, about, run) {
  bound.set(name, { about, run });
}

function typing(target) {
  return target.matches?.("textarea, select, dialog, dialog *, input:not([type=checkbox])");
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.key === "Escape" && typing(event.target)) {
    event.target.blur();
    return;
  }
  if (typing(event.target)) return;
  const found = bound.get(event.key);
  if (found) {
    event.preventDefault();
    found.run();
  }
});

key("?", "Show these keys", () => {
  const rows = [...bound].map(([name, { about }]) => [h("dt", {}, h("kbd", {}, name)), h("dd", {}, about)]);
  const dialog = h("dialog", { "aria-labelledby": "keys-title" },
    h("h1", { id: "keys-title" }, "Keys"), h("dl", {}, rows),
    h("form", { method: "dialog" }, h("button", { class: "primary" }, "Close")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
});

// The view listens: say how to see its keys.
export function ready() {
  document.getElementById("keys")?.replaceChildren(h("kbd", {}, "?"), " keys");
}

// Moves through the items of a list; `enter` opens the chosen one.
export function walk(list, open) {
  let at = -1;
  const choose = (next) => {
    const items = [...list().children];
    if (!items.length) return;
    items[at]?.classList.remove("chosen");
    at = Math.max(0, Math.min(items.length - 1, next));
    items[at].classList.add("chosen");
    items[at].scrollIntoView({ block: "nearest" });
    items[at].querySelector("a, input, button")?.focus({ preventScroll: true });
  };
  key("j", "Next", () => choose(at + 1));
  key("k", "Previous", () => choose(at - 1));
  if (open) key("Enter", "Open", () => open([...list().children][at]));
  return { reset: () => { at = -1; }, chosen: () => [...list().children][at], again: () => choose(at) };
}
