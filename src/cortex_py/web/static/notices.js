// Short messages at the foot of the page, with an undo where there is one.

import { h } from "./dom.js";

const place = document.getElementById("notices");

export function notify(text, action = null) {
  const notice = h("div", { class: "notice" }, h("span", {}, text));
  if (action) {
    notice.append(h("button", { type: "button", onclick: () => { notice.remove(); action.run(); } }, action.name));
  }
  place.replaceChildren(notice);
  setTimeout(() => notice.remove(), action ? 12000 : 5000);
}

export function fail(error) {
  if (error.name === "AbortError") return;
  notify(error.message);
}
