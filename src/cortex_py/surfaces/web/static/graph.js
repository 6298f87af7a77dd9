// Graph: what the memories name, drawn on a canvas; beside it in words, with the memory behind every edge.

import { get } from "./api.js";
import { counted, fill, h, time } from "./dom.js";
import { Layout } from "./force.js";
import { key, walk } from "./keys.js";
import { fail, notify } from "./notices.js";

const TYPES = ["Person", "Organization", "Technology", "Concept", "File"];
const MOST = 2000;
const FIRST = 150;
const LABELS = 60;
const SHOWN = 40;
const NEAR = 10;

export async function start(main) {
  const canvas = h("canvas", { role: "img", "aria-label": "The graph. The list beside it says the same in words." });
  const panel = h("div", { class: "panel", "aria-live": "polite" });
  const names = h("datalist", { id: "names" });
  const centre = h("input", { type: "text", id: "centre", list: "names", autocomplete: "off", placeholder: "PostgreSQL" });
  const from = h("input", { type: "text", id: "from", list: "names", autocomplete: "off" });
  const to = h("input", { type: "text", id: "to", list: "names", autocomplete: "off" });
  const count = h("p", { class: "count", role: "status" });
  const chips = h("div", { class: "chips", role: "group", "aria-label": "Types" });
  const side = h("aside", { class: "side", "aria-label": "In words" }, panel);
  main.append(h("div", { class: "tools" },
    h("form", { onsubmit: (event) => { event.preventDefault(); around(centre.value.trim()); } },
      h("label", { for: "centre" }, "Around"), centre),
    h("form", { class: "pair", onsubmit: path },
      h("label", { for: "from" }, "From"), from, h("label", { for: "to" }, "to"), to, h("button", {}, "Path"))),
  chips, count, h("div", { class: "drawing" }, h("div", { class: "canvas" }, canvas), side), names);
  main.classList.add("broad");

  const layout = new Layout();
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const brush = canvas.getContext("2d");
  let [nodes, edges, index] = [[], [], new Map()];
  let [chosen, hovered, marked] = [-1, -1, new Set()];
  const hidden = new Set();
  const view = { scale: 1, x: 0, y: 0, moved: false };
  let colours = {};
  // What was asked last: an answer that comes after something else was asked for is left out.
  let turn = 0;

  // -- data ----------------------------------------------------------------------------------------

  // Adds what is new; nodes keep their places.
  function merge(found, beside = -1) {
    const before = nodes.length;
    for (const node of found.nodes) {
      if (index.has(node.id) || nodes.length >= MOST) continue;
      index.set(node.id, nodes.length);
      nodes.push({ ...node, radius: 4 + Math.min(8, Math.sqrt(node.mentions)) });
    }
    const known = new Set(edges.map((one) => one.key));
    for (const edge of found.edges) {
      const one = { ...edge, a: index.get(edge.source), b: index.get(edge.target), key: `${edge.source} ${edge.target} ${edge.type}` };
      if (one.a === undefined || one.b === undefined || known.has(one.key)) continue;
      known.add(one.key);
      edges.push(one);
    }
    const next = new Map();
    for (const { a, b } of edges) {
      if (b >= before && !next.has(b)) next.set(b, a);
      if (a >= before && !next.has(a)) next.set(a, b);
    }
    layout.resize(nodes.length, edges.map(({ a, b }) => [a, b]), (n) => {
      const other = next.get(n) ?? -1;
      return other >= 0 && other < n && before ? other : beside;
    });
    fill(count, `${counted(nodes.length, "name", "names")}, ${counted(edges.length, "relationship", "relationships")}${found.complete === false ? "; the most named" : ""}`);
    fill(chips, TYPES.filter((type) => nodes.some((one) => one.type === type)).map((type) =>
      h("button", { type: "button", class: `chip type-${type}`, "aria-pressed": String(!hidden.has(type)), onclick: (event) => {
        if (!hidden.delete(type)) hidden.add(type);
        event.currentTarget.setAttribute("aria-pressed", String(!hidden.has(type)));
        draw();
      } }, h("span", { class: "dot" }), type)));
    settle();
  }

  async function around(name, limit = name ? 300 : FIRST) {
    const mine = turn += 1;
    try {
      const found = await get("/graph", { centre: name, depth: name ? 2 : 1, limit });
      if (mine !== turn) return;
      [nodes, edges, index, chosen, marked] = [[], [], new Map(), -1, new Set()];
      layout.count = 0;
      Object.assign(view, { scale: 1, x: 0, y: 0, moved: false });
      merge(found);
      if (!found.complete && limit < MOST) count.append(" ", h("button", { type: "button", class: "link all", onclick: () => around(name, MOST) }, `Show up to ${MOST.toLocaleString()}`));
      history.replaceState(null, "", name ? `/graph?${new URLSearchParams({ centre: name })}` : "/graph");
      if (found.centre !== null) choose(index.get(found.centre));
      else list();
    } catch (error) {
      fail(error);
    }
  }

  async function expand(n) {
    const mine = turn += 1;
    try {
      const before = nodes.length;
      const found = await get("/graph", { centre: nodes[n].id, depth: 1, limit: 200 });
      if (mine !== turn) return;
      merge(found, n);
      if (nodes.length === before) notify("Nothing more is known around it.");
      choose(n);
    } catch (error) {
      fail(error);
    }
  }

  async function path(event) {
    event.preventDefault();
    if (!from.value.trim() || !to.value.trim()) return;
    const mine = turn += 1;
    try {
      const found = await get("/graph/path", { source: from.value.trim(), target: to.value.trim() });
      if (mine !== turn) return;
      if (!found.found) {
        notify("No path leads from one to the other.");
        return;
      }
      merge(found);
      marked = new Set(found.edges.map((one) => `${one.source} ${one.target} ${one.type}`));
      chosen = -1;
      const name = (id) => nodes[index.get(id)]?.name ?? id;
      fill(panel, h("h2", {}, "Path"), h("ol", { class: "plain-list" }, found.edges.map((one) => h("li", {},
        h("button", { type: "button", class: "link", onclick: () => facts(one) }, `${name(one.source)} ${spaced(one.type)} ${name(one.target)}`)))), back());
      draw();
    } catch (error) {
      fail(error);
    }
  }

  // -- in words ------------------------------------------------------------------------------------

  const visible = (n) => !hidden.has(nodes[n].type);
  const back = () => h("p", {}, h("button", { type: "button", onclick: list }, "All names"));
  const button = (n) => h("button", { type: "button", class: "link", onclick: () => choose(n) },
    h("span", { class: `dot type-${nodes[n].type}` }), nodes[n].name);

  function list() {
    turn += 1;
    [chosen, marked] = [-1, new Set()];
    const order = [...nodes.keys()].filter(visible).sort((a, b) => nodes[b].mentions - nodes[a].mentions).slice(0, SHOWN);
    fill(panel, h("h2", {}, "Most named"), nodes.length ? h("ul", { class: "plain-list names" }, order.map((n) => h("li", {}, button(n), h("span", { class: "hint" }, ` ${nodes[n].mentions}`))))
      : h("p", { class: "hint" }, "No memory names anything yet."));
    draw();
  }

  async function choose(n) {
    const mine = turn += 1;
    [chosen, marked] = [n, new Set()];
    draw();
    const node = nodes[n];
    const near = edges.filter((one) => (one.a === n || one.b === n) && visible(one.a) && visible(one.b));
    fill(panel, h("h2", {}, node.name), h("p", { class: "facts" }, h("span", {}, node.type), h("span", {}, counted(node.mentions, "memory", "memories"))),
      h("div", { class: "actions" }, h("button", { type: "button", class: "expand", onclick: () => expand(n) }, "Expand"),
        h("button", { type: "button", onclick: () => { centre.value = node.name; around(node.id); } }, "Put in the middle"),
        h("button", { type: "button", onclick: () => { (from.value ? to : from).value = node.name; (from.value && to.value ? to : from).focus(); } }, "Path…")),
      near.length > 0 && h("ul", { class: "plain-list names" }, near.slice(0, SHOWN).map((one) => {
        const other = one.a === n ? one.b : one.a;
        const text = one.a === n ? `${spaced(one.type)} ${nodes[other].name}` : `${nodes[other].name} ${spaced(one.type)} this`;
        return h("li", {}, h("button", { type: "button", class: "link edge", onclick: () => facts(one) }, text));
      })),
      h("div", { class: "named" }), back());
    try {
      const found = await get("/graph/entity", { id: node.id });
      if (mine !== turn) return;
      fill(panel.querySelector(".named"), found.aliases.length > 0 && h("p", { class: "hint" }, `Also ${found.aliases.join(", ")}`),
        found.memories.length > 0 && [h("h3", {}, "In memories"), briefs(found.memories)]);
    } catch (error) {
      fail(error);
    }
  }

  async function facts(edge) {
    const mine = turn += 1;
    try {
      const found = await get("/graph/facts", { source: edge.source, target: edge.target });
      if (mine !== turn) return;
      const name = (id) => nodes[index.get(id)]?.name ?? id;
      marked = new Set([...marked, `${edge.source} ${edge.target} ${edge.type}`]);
      fill(panel, h("h2", {}, `${name(edge.source)} and ${name(edge.target)}`),
        h("ul", { class: "plain-list" }, found.facts.map((one) => h("li", {},
          h("p", {}, `${name(one.source)} ${spaced(one.type)} ${name(one.target)}`, h("span", { class: "hint" }, ` ${Math.round(one.confidence * 100)} %, ${one.method}`)),
          one.evidence && h("p", { class: "evidence" }, one.evidence),
          one.memory ? h("p", {}, h("a", { href: `/memories/${encodeURIComponent(one.memory.id)}` }, one.memory.text)) : h("p", { class: "hint" }, "No memory: the project itself shows it.")))), back());
      draw();
    } catch (error) {
      fail(error);
    }
  }

  // -- drawing -------------------------------------------------------------------------------------

  function readColours() {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue(name).trim();
    colours = { ink: value("--ink"), line: value("--edge"), accent: value("--accent"), paper: value("--paper"), muted: value("--muted"),
      ...Object.fromEntries(TYPES.map((type) => [type, value(`--type-${type.toLowerCase()}`)])) };
  }

  function resize() {
    const box = canvas.parentElement.getBoundingClientRect();
    const ratio = devicePixelRatio || 1;
    Object.assign(canvas, { width: Math.max(1, box.width * ratio), height: Math.max(1, box.height * ratio) });
    draw();
  }

  function fit() {
    if (view.moved || !nodes.length) return;
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (let n = 0; n < nodes.length; n += 1) {
      left = Math.min(left, layout.x[n]); right = Math.max(right, layout.x[n]);
      top = Math.min(top, layout.y[n]); bottom = Math.max(bottom, layout.y[n]);
    }
    const ratio = devicePixelRatio || 1;
    const [width, height] = [canvas.width / ratio, canvas.height / ratio];
    view.scale = Math.min(2, 0.9 * Math.min(width / (right - left + 120), height / (bottom - top + 60)));
    view.x = width / 2 - ((left + right) / 2) * view.scale;
    view.y = height / 2 - ((top + bottom) / 2) * view.scale;
  }

  let asked = false;
  function draw() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; paint(); });
  }

  function paint() {
    fit();
    const ratio = devicePixelRatio || 1;
    const { scale } = view;
    brush.setTransform(ratio, 0, 0, ratio, 0, 0);
    brush.clearRect(0, 0, canvas.width, canvas.height);
    brush.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * view.x, ratio * view.y);
    const focus = hovered >= 0 ? hovered : chosen;
    const strokes = (wanted) => {
      brush.beginPath();
      for (const one of edges) {
        if (!visible(one.a) || !visible(one.b) || !wanted(one)) continue;
        brush.moveTo(layout.x[one.a], layout.y[one.a]);
        brush.lineTo(layout.x[one.b], layout.y[one.b]);
      }
      brush.stroke();
    };
    brush.strokeStyle = colours.line;
    brush.lineWidth = 1 / scale;
    strokes(() => true);
    brush.strokeStyle = colours.accent;
    brush.lineWidth = 2 / scale;
    strokes((one) => marked.has(one.key) || one.a === focus || one.b === focus);
    for (const type of TYPES) {
      if (hidden.has(type)) continue;
      brush.fillStyle = colours[type];
      brush.beginPath();
      nodes.forEach((node, n) => {
        if (node.type !== type) return;
        brush.moveTo(layout.x[n] + node.radius, layout.y[n]);
        brush.arc(layout.x[n], layout.y[n], node.radius, 0, 7);
      });
      brush.fill();
    }
    if (chosen >= 0) {
      brush.strokeStyle = colours.ink;
      brush.beginPath();
      brush.arc(layout.x[chosen], layout.y[chosen], nodes[chosen].radius + 3 / scale, 0, 7);
      brush.stroke();
    }
    labels(focus, ratio);
  }

  // Of the names only those that have room, the most named first.
  function labels(focus, ratio) {
    brush.setTransform(ratio, 0, 0, ratio, 0, 0);
    brush.font = "12px system-ui, sans-serif";
    brush.textAlign = "center";
    brush.lineJoin = "round";
    const near = new Set(focus < 0 ? [] : edges.filter((one) => one.a === focus || one.b === focus).flatMap((one) => [one.a, one.b]));
    const wanted = [...nodes.keys()].filter(visible).sort((a, b) => (b === focus) - (a === focus) || near.has(b) - near.has(a) || nodes[b].mentions - nodes[a].mentions);
    const taken = [];
    const [width, height] = [canvas.width / ratio, canvas.height / ratio];
    let left = LABELS;
    for (const n of wanted.slice(0, 4 * LABELS)) {
      if (!left) break;
      const text = nodes[n].name.length > 28 ? `${nodes[n].name.slice(0, 27)}…` : nodes[n].name;
      const half = text.length * 3.3 + 4;
      const [x, y] = [layout.x[n] * view.scale + view.x, layout.y[n] * view.scale + view.y + nodes[n].radius * view.scale + 13];
      if (x < -half || y < 0 || x > width + half || y > height + 14) continue;
      if (n !== focus && taken.some(([tx, ty, th]) => Math.abs(tx - x) < th + half && Math.abs(ty - y) < 15)) continue;
      taken.push([x, y, half]);
      left -= 1;
      brush.strokeStyle = colours.paper;
      brush.lineWidth = 3;
      brush.strokeText(text, x, y);
      brush.fillStyle = n === focus ? colours.accent : colours.ink;
      brush.fillText(text, x, y);
    }
  }

  // A step costs more the more nodes there are; each frame does what fits into a few milliseconds.
  let running = false;
  function settle() {
    if (running) return;
    running = true;
    const frame = () => {
      const until = performance.now() + (still ? 30 : 9);
      do layout.tick(); while (!layout.calm && performance.now() < until && (still || nodes.length < 400));
      if (!still || layout.calm) paint();
      running = !layout.calm;
      canvas.dataset.calm = String(layout.calm);
      if (running) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  // -- the pointer ---------------------------------------------------------------------------------

  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left - view.x) / view.scale, (event.clientY - box.top - view.y) / view.scale];
  };

  function nodeAt(x, y) {
    let [best, least] = [-1, Infinity];
    for (let n = 0; n < nodes.length; n += 1) {
      const far = Math.hypot(layout.x[n] - x, layout.y[n] - y) - nodes[n].radius;
      if (visible(n) && far < Math.min(least, NEAR / view.scale)) [best, least] = [n, far];
    }
    return best;
  }

  function edgeAt(x, y) {
    let [best, least] = [null, 6 / view.scale];
    for (const one of edges) {
      if (!visible(one.a) || !visible(one.b)) continue;
      const [ax, ay, bx, by] = [layout.x[one.a], layout.y[one.a], layout.x[one.b], layout.y[one.b]];
      const length = (bx - ax) ** 2 + (by - ay) ** 2 || 1;
      const t = Math.max(0, Math.min(1, ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length));
      const far = Math.hypot(ax + t * (bx - ax) - x, ay + t * (by - ay) - y);
      if (far < least) [best, least] = [one, far];
    }
    return best;
  }

  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    const [x, y] = place(event);
    drag = { node: nodeAt(x, y), x: event.clientX, y: event.clientY, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = place(event);
    if (!drag) {
      const over = nodeAt(x, y);
      canvas.classList.toggle("over", over >= 0 || edgeAt(x, y) !== null);
      if (over !== hovered) { hovered = over; draw(); }
      return;
    }
    if (!drag.moved && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < 4) return;
    drag.moved = true;
    view.moved = true;
    if (drag.node >= 0) {
      layout.held = drag.node;
      [layout.x[drag.node], layout.y[drag.node]] = [x, y];
      layout.warm();
      settle();
    } else {
      view.x += event.clientX - drag.x;
      view.y += event.clientY - drag.y;
      [drag.x, drag.y] = [event.clientX, event.clientY];
      draw();
    }
  });
  canvas.addEventListener("pointerup", (event) => {
    const [x, y] = place(event);
    layout.held = -1;
    if (drag && !drag.moved) {
      if (drag.node >= 0) choose(drag.node);
      else {
        const edge = edgeAt(x, y);
        if (edge) facts(edge); else list();
      }
    }
    drag = null;
  });
  canvas.addEventListener("pointercancel", () => { drag = null; layout.held = -1; });
  canvas.addEventListener("dblclick", (event) => { const n = nodeAt(...place(event)); if (n >= 0) expand(n); });
  const zoom = (by, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) => {
    const scale = Math.max(0.05, Math.min(6, view.scale * by));
    view.x = x - ((x - view.x) * scale) / view.scale;
    view.y = y - ((y - view.y) * scale) / view.scale;
    Object.assign(view, { scale, moved: true });
    draw();
  };
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 400), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });

  let asking = null;
  for (const box of [centre, from, to]) {
    box.addEventListener("input", async () => {
      asking?.abort();
      asking = new AbortController();
      try {
        const found = await get("/graph/names", { q: box.value.trim() }, asking.signal);
        fill(names, found.entities.map((one) => h("option", { value: one.name }, one.type)));
      } catch (error) {
        fail(error);
      }
    });
  }
  key("i", "Choose the middle", () => centre.focus());
  key("x", "Expand", () => { if (chosen >= 0) expand(chosen); });
  key("+", "Nearer", () => zoom(1.3));
  key("-", "Farther", () => zoom(1 / 1.3));
  key("0", "Show all", () => { view.moved = false; draw(); });
  walk(() => panel.querySelector("ul, ol") ?? panel, (item) => item?.querySelector("button, a")?.click());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); draw(); });
  new ResizeObserver(resize).observe(canvas.parentElement);
  readColours();
  resize();
  await around(new URLSearchParams(location.search).get("centre") ?? "");
}

const spaced = (type) => type.replace(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter}`).toLowerCase();
const briefs = (list) => h("ul", { class: "plain-list" }, list.map((one) => h("li", {}, h("a", { href: `/memories/${encodeURIComponent(one.id)}` }, one.text), h("p", { class: "facts" }, h("span", { class: "namespace" }, one.namespace), time(one.created_at)))));
