// A file of the project, opened at a line.

import { get } from "./api.js";
import { h } from "./dom.js";
import { fail } from "./notices.js";

// Shows the lines inside a node, or takes them away again.
export async function open(node, path, line) {
  const shown = node.querySelector(".excerpt");
  if (shown) {
    shown.remove();
    return;
  }
  try {
    const found = await get("/evidence", { path, line });
    node.append(h("div", { class: "excerpt", tabindex: 0, role: "region", "aria-label": `${found.path}, line ${line}` },
      h("ol", { start: found.lines[0]?.number ?? 1 }, found.lines.map((one) =>
        h("li", { class: one.number === line && "here", value: one.number }, h("code", {}, one.text || " "))))));
  } catch (error) {
    fail(error);
  }
}
