// Nodes by construction: a text is always a text node, so nothing that is remembered can become markup.

export function h(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  put(node, children);
  return node;
}

export function put(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    node.append(child instanceof Node ? child : String(child));
  }
  return node;
}

export function fill(node, ...children) {
  node.replaceChildren();
  return put(node, children);
}

export function parts(pieces) {
  return pieces.map((piece) => (piece.match ? h("mark", {}, piece.text) : piece.text));
}

const moments = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const ages = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const units = [["year", 31557600], ["month", 2629800], ["week", 604800], ["day", 86400], ["hour", 3600], ["minute", 60]];

export function time(text) {
  const moment = new Date(text);
  const seconds = (moment - Date.now()) / 1000;
  const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) ?? ["minute", 60];
  return h("time", { datetime: text, title: moments.format(moment) }, ages.format(Math.round(seconds / size), unit));
}

// Text of any kind as one value of the filter language.
export const quoted = (value) => (/[\s,"\\]/.test(value) ? `"${value.replace(/[\\"]/g, "\\$&")}"` : value);

export const memoryLink = (id, text) => h("a", { href: `/memories/${encodeURIComponent(id)}` }, text);

const TAGS = { added: "ins", removed: "del", same: "span" };
export const difference = (pieces) => h("p", { class: "difference" }, pieces.map((part) => h(TAGS[part.change], {}, part.text)));

export function counted(number, one, more) {
  return `${number.toLocaleString()} ${number === 1 ? one : more}`;
}
