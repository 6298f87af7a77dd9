// A view inside a conversation. It speaks with its host by messages (MCP Apps, 2026-01-26) and asks the server's tools through it.

const VERSION = "2026-01-26";
const waiting = new Map();
const main = document.querySelector("main");
const kind = document.body.dataset.view;
let [number, asked, host] = [0, {}, {}];

const send = (message) => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");

function request(method, params) {
  number += 1;
  const id = number;
  send({ id, method, params });
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
}

async function call(name, args) {
  const result = await request("tools/call", { name, arguments: args });
  if (result.isError) throw new Error(result.content?.find((one) => one.type === "text")?.text ?? "The tool refused.");
  return result.structuredContent ?? {};
}

const heard = {
  "ui/notifications/tool-input": ({ arguments: given }) => { asked = given ?? {}; },
  "ui/notifications/tool-result": (result) => views[kind](result.structuredContent ?? {}, result),
  "ui/notifications/tool-cancelled": ({ reason }) => say(`Cancelled. ${reason ?? ""}`),
  "ui/notifications/host-context-changed": dress,
};
const answered = { ping: () => ({}), "ui/resource-teardown": () => ({}) };

addEventListener("message", (event) => {
  const message = event.data;
  if (event.source !== parent || message?.jsonrpc !== "2.0") return;
  if (message.method === undefined) {
    const open = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.error) open?.reject(new Error(message.error.message));
    else open?.resolve(message.result ?? {});
  } else if (message.id === undefined) heard[message.method]?.(message.params ?? {});
  else if (answered[message.method]) send({ id: message.id, result: answered[message.method]() });
  else send({ id: message.id, error: { code: -32601, message: "This view does not know that method." } });
});

// Colours and fonts of the host, by the names that the protocol knows.
function dress(context) {
  const root = document.documentElement;
  if (["light", "dark"].includes(context.theme)) root.dataset.theme = context.theme;
  for (const [name, value] of Object.entries(context.styles?.variables ?? {})) {
    if (/^--(color|font)-[a-z0-9-]+$/.test(name) && typeof value === "string") root.style.setProperty(name, value);
  }
}

const say = (text, tone = "hint") => fill(main, h("p", { class: tone }, text));
const attempt = (work) => async () => {
  try {
    await work();
  } catch (error) {
    main.prepend(h("p", { class: "bad", role: "alert" }, error.message));
  }
};
const act = (name, work) => h("button", { type: "button", onclick: attempt(work) }, name);
const facts = (one, ...more) => h("p", { class: "facts" }, h("span", { class: "namespace" }, one.namespace), (one.tags ?? []).map((tag) => h("span", {}, `#${tag}`)), more);

function words(query) {
  const found = [...new Set((query ?? "").match(/[\p{L}\p{N}_]{3,}/gu) ?? [])].slice(0, 30);
  return found.length ? new RegExp(`(${found.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "giu") : null;
}

function marked(text) {
  const pattern = words(asked.query);
  return pattern ? text.split(pattern).map((piece, n) => (n % 2 ? h("mark", {}, piece) : piece)) : text;
}

const views = {
  search(found, result) {
    const results = found.results ?? [];
    if (result.isError || !results.length) {
      say(result.isError ? result.content?.[0]?.text ?? "The search failed." : "Nothing that is remembered matches.");
      return;
    }
    const back = () => views.search(found, result);
    fill(main, h("h1", {}, counted(found.total ?? results.length, "memory", "memories")), h("ul", { class: "list" }, results.map((one) => h("li", {},
      h("button", { type: "button", class: "open", onclick: attempt(async () => views.memory(await call("subcog_get", { memory_id: one.id }), {}, back)) }, marked(one.content ?? one.id)),
      facts(one, one.score !== undefined && h("span", {}, `${Math.round(one.score * 100)} %`))))));
  },

  memory(one, result, back = null) {
    if (result.isError || one.content === undefined) {
      say(result.content?.[0]?.text ?? "There is no such memory.");
      return;
    }
    const remove = async () => {
      await call("subcog_delete", { memory_id: one.id });
      fill(main, h("p", {}, "Deleted."), h("p", { class: "actions" }, act("Undo", async () => { await call("subcog_restore", { memory_id: one.id }); views.memory(one, {}, back); })));
    };
    const past = async () => {
      const { versions } = await call("subcog_history", { memory_id: one.id });
      main.querySelector(".past").replaceChildren(h("ul", { class: "list" }, [...versions].reverse().map((version) => h("li", {}, h("p", { class: "facts" }, `Version ${version.version}`, time(version.recorded_at)), h("p", {}, version.content)))));
    };
    fill(main, back && h("p", {}, h("button", { type: "button", onclick: back }, "Back")), h("article", {}, markdown(one.content)),
      facts(one, one.status !== "active" && h("span", {}, one.status), h("span", {}, time(one.updated_at)), one.branch && h("span", {}, one.branch), one.source && h("span", {}, one.source)),
      host.serverTools && h("p", { class: "actions" }, act("History", past), act("Delete", remove)), h("div", { class: "past" }));
  },

  // Decided by people only: the tool is not shown to the model.
  async review() {
    const { staged } = await call("cortex_review", { action: "list" });
    if (!staged.length) {
      say("Nothing waits for a review.");
      return;
    }
    const decide = (one, action, undo) => async () => {
      await call("cortex_review", { action, id: one.id });
      await views.review();
      main.prepend(h("p", { class: "actions" }, action === "accept" ? "Accepted. " : "Dropped. ", act("Undo", async () => { await call("cortex_review", { action: undo, id: one.id }); await views.review(); })));
    };
    fill(main, h("h1", {}, counted(staged.length, "memory waits", "memories wait")), h("ul", { class: "list" }, staged.map((one) => h("li", {}, h("p", {}, one.content), facts(one, time(one.created_at)),
      one.conflicts.map((reason) => h("p", { class: "bad" }, `Contradicts another memory: ${reason}`)),
      h("p", { class: "actions" }, act("Accept", decide(one, "accept", "stage")), act("Drop", decide(one, "drop", "restore")))))));
  },
};

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link) return;
  event.preventDefault();
  request("ui/open-link", { url: link.href }).catch(() => {});
});
new ResizeObserver(() => {
  const { width, height } = document.body.getBoundingClientRect();
  send({ method: "ui/notifications/size-changed", params: { width: Math.ceil(width), height: Math.ceil(height) } });
}).observe(document.body);

request("ui/initialize", { protocolVersion: VERSION, appInfo: { name: "cortex", version: document.body.dataset.version }, appCapabilities: { availableDisplayModes: ["inline"] } }).then((found) => {
  host = found.hostCapabilities ?? {};
  dress(found.hostContext ?? {});
  send({ method: "ui/notifications/initialized", params: {} });
}).catch((error) => say(error.message, "bad"));
