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

// Asks before something that cannot be taken back; true if the person agrees.
export function ask(title, text, yes, danger = true) {
  const dialog = h("dialog", { "aria-labelledby": "question" },
    h("h1", { id: "question" }, title), h("p", {}, text),
    h("form", { method: "dialog", class: "actions" },
      h("button", { value: "no", autofocus: true }, "No"), h("button", { value: "yes", class: danger ? "danger confirm" : "primary confirm" }, yes)));
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => { dialog.remove(); resolve(dialog.returnValue === "yes"); }));
}
