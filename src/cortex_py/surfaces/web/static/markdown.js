// Markdown as nodes. Only what is safe exists here: there is no HTML, no image, and a link leads to http, https or mailto.

import { h } from "./dom.js";

const INLINE = /(`+)([^`]+?)\1|\*\*([^*\n]+)\*\*|__([^_\n]+)__|\*([^*\s][^*\n]*)\*|\[([^\]\n]+)\]\(([^()\s]+)\)|(https?:\/\/[^\s<>"'`)\]]+)/g;
const SAFE = /^(https?:\/\/|mailto:)/i;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const LONGEST = 200000;

export function markdown(text, mark = (piece) => [piece]) {
  const lines = text.slice(0, LONGEST).split(/\r?\n/);
  const blocks = [];
  for (let at = 0; at < lines.length;) {
    const line = lines[at];
    if (!line.trim()) { at += 1; continue; }
    const fence = /^\s*(```+|~~~+)/.exec(line);
    if (fence) {
      const code = [];
      for (at += 1; at < lines.length && !lines[at].trim().startsWith(fence[1]); at += 1) code.push(lines[at]);
      at += 1;
      blocks.push(h("pre", { tabindex: 0 }, h("code", {}, mark(code.join("\n")))));
      continue;
    }
    const heading = /^(#{1,6})\s+(.*)$/.exec(line);
    if (heading) {
      blocks.push(h(`h${Math.min(3, heading[1].length + 1)}`, {}, inline(heading[2], mark)));
      at += 1;
      continue;
    }
    if (line.startsWith(">")) {
      const quoted = [];
      for (; at < lines.length && lines[at].startsWith(">"); at += 1) quoted.push(lines[at].replace(/^>\s?/, ""));
      blocks.push(h("blockquote", {}, inline(quoted.join("\n"), mark)));
      continue;
    }
    const first = ITEM.exec(line);
    if (first) {
      const items = [];
      for (; at < lines.length && lines[at].trim(); at += 1) {
        const item = ITEM.exec(lines[at]);
        if (item) items.push(item[3]);
        else items[items.length - 1] += `\n${lines[at].trim()}`;
      }
      blocks.push(h(/\d/.test(first[2]) ? "ol" : "ul", {}, items.map((item) => h("li", {}, inline(item, mark)))));
      continue;
    }
    const paragraph = [];
    for (; at < lines.length && lines[at].trim() && !/^(\s*(```|~~~)|#{1,6}\s|>)/.test(lines[at]); at += 1) {
      if (paragraph.length && ITEM.test(lines[at])) break;
      paragraph.push(lines[at]);
    }
    blocks.push(h("p", {}, inline(paragraph.join("\n"), mark)));
  }
  return blocks;
}

function inline(text, mark) {
  const nodes = [];
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    nodes.push(broken(text.slice(at, found.index), mark));
    at = found.index + found[0].length;
    const [whole, , code, strong, alsoStrong, soft, name, address, plain] = found;
    if (code !== undefined) nodes.push(h("code", {}, mark(code)));
    else if (strong ?? alsoStrong) nodes.push(h("strong", {}, mark(strong ?? alsoStrong)));
    else if (soft) nodes.push(h("em", {}, mark(soft)));
    else if (SAFE.test(address ?? plain)) nodes.push(h("a", { href: address ?? plain, rel: "noreferrer noopener" }, mark(name ?? plain)));
    else nodes.push(mark(whole));
  }
  nodes.push(broken(text.slice(at), mark));
  return nodes;
}

function broken(text, mark) {
  return text.split("\n").flatMap((line, number) => (number ? [h("br"), mark(line)] : [mark(line)]));
}

// Marks whole words, as the server found them in the text.
export function marker(pieces) {
  const words = [...new Set(pieces.filter((one) => one.match).map((one) => one.text))];
  if (!words.length) return (piece) => [piece];
  const escaped = words.sort((a, b) => b.length - a.length).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(${escaped.join("|")})(?![\\p{L}\\p{N}])`, "gu");
  return (piece) => piece.split(pattern).map((one, number) => (number % 2 ? h("mark", {}, one) : one));
}
