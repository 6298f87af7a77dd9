// What does not stay in its place, in a view of WIDTH pixels: text and boxes beyond the page or beyond their column, and
// texts on each other. WIDTH is the one that was asked for: on a phone, `innerWidth` grows with what is too wide.
((width) => {
  const faults = [];
  const name = (node) => `${node.tagName.toLowerCase()}.${[...node.classList].join(".")} ${JSON.stringify((node.textContent || "").trim().slice(0, 40))}`;
  const page = document.documentElement;
  if (page.scrollWidth > width) faults.push(`the page is ${page.scrollWidth} wide`);

  // What can be seen of a box: less than all where a part of the page around it scrolls or hides the rest.
  function seen(node, box, inside = node.parentElement) {
    let { left, top, right, bottom } = box;
    let fixed = inside === node ? "static" : getComputedStyle(node).position;
    for (let around = inside; around && fixed !== "fixed"; around = around.parentElement) {
      const style = getComputedStyle(around);
      // A box that is placed absolutely escapes from all that is not placed itself.
      if (fixed === "absolute" && style.position === "static") continue;
      if (style.overflowX !== "visible" || style.overflowY !== "visible" || style.contain.includes("strict")) {
        const edge = around.getBoundingClientRect();
        [left, top] = [Math.max(left, edge.left), Math.max(top, edge.top)];
        [right, bottom] = [Math.min(right, edge.right), Math.min(bottom, edge.bottom)];
      }
      fixed = style.position;
    }
    return right - left > 1 && bottom - top > 1 ? { left, top, right, bottom } : null;
  }

  const shown = (node) => node.checkVisibility({ visibilityProperty: true }) && !node.closest(".skip, .unseen, #notices");
  const main = document.querySelector("main");
  const column = main.getBoundingClientRect();
  for (const node of document.querySelectorAll("body *")) {
    if (!shown(node)) continue;
    const box = seen(node, node.getBoundingClientRect());
    if (!box) continue;
    const [from, to] = main.contains(node) ? [column.left, column.right] : [0, width];
    if (box.left < from - 1 || box.right > to + 1) faults.push(`beyond its column: ${name(node)} ${Math.round(box.left)} to ${Math.round(box.right)}`);
  }

  // Letters, line by line, without the space above and below them.
  const lines = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { currentNode: text } = walker;
    const node = text.parentElement;
    if (!text.data.trim() || !shown(node) || node.closest("dialog, .completions, textarea, option")) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    for (const rect of range.getClientRects()) {
      const box = seen(node, { left: rect.left, right: rect.right, top: rect.top + rect.height / 4, bottom: rect.bottom - rect.height / 4 }, node);
      if (box) lines.push({ ...box, node });
    }
  }
  lines.sort((a, b) => a.top - b.top);
  lines.forEach((one, at) => {
    for (let next = at + 1; next < lines.length && lines[next].top < one.bottom - 1; next += 1) {
      const other = lines[next];
      if (one.node !== other.node && one.left < other.right - 1 && other.left < one.right - 1) faults.push(`on each other: ${name(one.node)} and ${name(other.node)}`);
    }
  });
  return faults;
})
