// Health: what `cortex doctor` checks, how the store grows, how fast it answers, snapshots, sync and clients.

import { change, get, mayChange } from "./api.js";
import { counted, fill, h, time } from "./dom.js";
import { ask, fail, notify } from "./notices.js";

export async function start(main) {
  const result = h("div", { class: "memory" }, h("p", { class: "hint" }, "Checking…"));
  const kept = h("section", { id: "snapshots", class: "memory" });
  main.append(result, kept);
  try {
    show(result, await get("/doctor"));
    await snapshots(kept);
    if (location.hash === "#snapshots") kept.scrollIntoView();
  } catch (error) {
    fill(result, h("p", { class: "error", role: "alert" }, error.message));
  }
}

function show(result, found) {
  const sick = found.checks.filter((one) => !one.well).length;
  const connected = found.clients.some((one) => one.server || one.hooks);
  const sorted = [...found.recall_ms].sort((a, b) => a - b);
  fill(result,
    h("h2", { class: sick ? "bad" : "good" }, sick ? counted(sick, "check failed", "checks failed") : connected ? "All is well" : "All checks passed"),
    !connected && h("p", { class: "warn" }, "No client on this machine is set up to use this memory. In a terminal: ", h("code", {}, "cortex install")),
    h("dl", { class: "details checks" }, found.checks.map((one) => [
      h("dt", {}, h("span", { class: one.well ? "good" : "bad", role: "img", "aria-label": one.well ? "well" : "failed" }, one.well ? "✓ " : "✗ "), one.name),
      h("dd", {}, one.detail)])),
    h("h2", {}, "What is kept"),
    h("p", {}, `${counted(found.memories, "memory", "memories")} in ${found.engine}`, found.size_bytes > 0 && `, ${size(found.size_bytes)}`),
    h("p", { class: "facts" }, Object.entries(found.statuses).map(([status, count]) => h("span", {}, `${status} ${count.toLocaleString()}`))),
    found.growth.length > 1 && figure("Captured by day", byDay(found.growth), `${counted(found.growth.reduce((sum, one) => sum + one.count, 0), "memory", "memories")} on the last ${found.growth.length} days with captures`, true),
    h("h2", {}, "How fast it answers"),
    sorted.length ? figure("Time of recall", found.recall_ms, `median ${sorted[sorted.length >> 1].toFixed(0)} ms, slowest ${sorted.at(-1).toFixed(0)} ms of the last ${counted(sorted.length, "search", "searches")}`)
      : h("p", { class: "hint" }, "Nothing was searched since this server began."),
    h("h2", {}, "Clients"),
    h("ul", { class: "plain-list clients" }, found.clients.filter((one) => one.installed || one.server || one.hooks).map((one) => h("li", {}, h("strong", {}, one.name), " ",
      h("span", { class: one.server ? "good" : "hint" }, one.server ? "server set up" : `not set up: cortex install ${one.key}`), one.hooks && h("span", { class: "good" }, ", hooks set up")))),
    !found.clients.some((one) => one.installed || one.server || one.hooks) && h("p", { class: "hint" }, "No known client is installed here."),
    h("h2", {}, "Sync"),
    found.sync ? h("p", {}, h("button", { type: "button", class: "small", onclick: (event) => sync(event.currentTarget.parentElement) }, "Compare with the target")) : h("p", { class: "hint" }, "No target is set."),
    h("h2", {}, "What leaves this machine"),
    found.outbound.length ? h("ul", { class: "plain-list" }, found.outbound.map((one) => h("li", {}, h("strong", {}, one.host), h("p", {}, `${one.purpose}: ${one.what}`)))) : h("p", {}, "Nothing."));
}

const size = (bytes) => (bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);
const byDay = (days) => [...days].reverse().map((one) => one.count);

// A small picture of numbers: a line, or bars from nothing.
function figure(name, values, text, bars = false) {
  const most = Math.max(...values, 1e-9);
  const [width, height] = [240, 40];
  const svg = (tag, attributes) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    return node;
  };
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "spark", preserveAspectRatio: "none", role: "img", "aria-label": `${name}: ${text}` });
  const step = width / Math.max(1, values.length - (bars ? 0 : 1));
  if (bars) values.forEach((value, n) => picture.append(svg("rect", { x: n * step, y: height - (height * value) / most, width: Math.max(1, step - 1), height: (height * value) / most })));
  else picture.append(svg("polyline", { points: values.map((value, n) => `${(n * step).toFixed(1)},${(height - 2 - ((height - 4) * value) / most).toFixed(1)}`).join(" ") }));
  return h("figure", { class: "figure" }, picture, h("figcaption", { class: "hint" }, text));
}

async function sync(place) {
  try {
    const found = await get("/sync");
    fill(place, `${found.target}: ${counted(found.pending, "change waits", "changes wait")} to be pushed, ${counted(found.waiting, "machine has", "machines have")} something to pull; ${found.pushes_today} pushed and ${found.pulls_today} pulled today.`);
  } catch (error) {
    fail(error);
  }
}

async function snapshots(place) {
  const found = await get("/snapshots");
  const run = (work, text) => async (event) => {
    event.currentTarget.disabled = true;
    try {
      const done = await work();
      if (done) notify(text(done), done.safety && { name: "Undo", run: () => restore(done.safety, false).then(() => { notify("Undone."); snapshots(place); }).catch(fail) });
      await snapshots(place);
    } catch (error) {
      fail(error);
      await snapshots(place);
    }
  };
  const restore = async (id, asking = true) => {
    if (asking && !await ask("Go back to this snapshot?", "The memories become what they were then. The present state is saved first, so this can be undone.", "Go back")) return null;
    return change("POST", `/snapshots/${encodeURIComponent(id)}/restore`, { confirm: id });
  };
  fill(place, h("h2", {}, "Snapshots"),
    mayChange && h("p", {}, h("button", { type: "button", class: "create small", onclick: run(() => change("POST", "/snapshots", {}), () => "Saved.") }, "Take one now")),
    found.snapshots.length ? h("ul", { class: "plain-list" }, found.snapshots.map((one) => h("li", { class: "with-switch" },
      h("div", {}, h("strong", {}, one.description || one.kind), h("p", { class: "facts" }, time(one.created_at), h("span", {}, counted(one.memories, "memory", "memories")), h("span", {}, size(one.size_bytes)),
        h("span", { class: one.fault ? "bad" : one.verified ? "good" : "hint" }, one.fault || (one.verified ? "intact" : "not read since it was made")))),
      h("span", { class: "switches" }, h("button", { type: "button", class: "verify small", onclick: run(() => change("POST", `/snapshots/${encodeURIComponent(one.id)}/verify`, {}), (done) => (done.fault ? done.fault : "It is intact.")) }, "Verify"),
        mayChange && h("button", { type: "button", class: "restore small", onclick: run(() => restore(one.id), (done) => `${counted(done.memories, "memory", "memories")} are as they were.`) }, "Go back")))))
      : h("p", { class: "hint" }, "There is none yet."));
}
