// Health: what `cortex doctor` checks.

import { get } from "./api.js";
import { counted, fill, h } from "./dom.js";
import { fail } from "./notices.js";

export async function start(main) {
  const result = h("div", { class: "memory" }, h("p", { class: "hint" }, "Checking…"));
  main.append(result);
  try {
    const found = await get("/doctor");
    const sick = found.checks.filter((one) => !one.well).length;
    fill(result,
      h("h2", { class: sick ? "bad" : "good" }, sick ? counted(sick, "check failed", "checks failed") : "All is well"),
      h("dl", { class: "details checks" }, found.checks.map((one) => [
        h("dt", {}, h("span", { class: one.well ? "good" : "bad", "aria-label": one.well ? "well" : "failed" }, one.well ? "✓ " : "✗ "), one.name),
        h("dd", {}, one.detail)])),
      h("h2", {}, "What is kept"),
      h("p", {}, `${counted(found.memories, "memory", "memories")} in ${found.engine}`, found.size_bytes > 0 && `, ${(found.size_bytes / 1e6).toFixed(1)} MB`),
      h("p", { class: "facts" }, Object.entries(found.statuses).map(([status, count]) => h("span", {}, `${status} ${count.toLocaleString()}`))),
      h("h2", {}, "What leaves this machine"),
      found.outbound.length ? h("ul", { class: "plain-list" }, found.outbound.map((one) => h("li", {}, h("strong", {}, one.host), h("p", {}, `${one.purpose}: ${one.what}`)))) : h("p", {}, "Nothing."));
  } catch (error) {
    fill(result);
    fail(error);
  }
}
