// What cannot be read in a picture: text on text, outside the picture or across the edge of its box, without contrast;
// and two series in one colour.
(() => {
  const faults = [];
  const rgb = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
  const part = (c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const page = document.documentElement.getBoundingClientRect();
  const boxes = [...document.querySelectorAll("rect")].map((node) => ({ node, box: node.getBoundingClientRect() }));
  const within = (one, box) => one.left >= box.left && one.right <= box.right && one.top >= box.top && one.bottom <= box.bottom;

  const texts = [];
  const walker = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { currentNode: text } = walker;
    if (!text.data.trim() || !text.parentElement.closest("text")) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    const { left, top, right, bottom } = range.getBoundingClientRect();
    const trim = (bottom - top) / 5;
    texts.push({ says: text.data.trim(), node: text.parentElement, left, right, top: top + trim, bottom: bottom - trim });
  }
  texts.forEach((one, at) => {
    if (!within(one, page)) faults.push(`outside the picture: ${one.says}`);
    const middle = (one.top + one.bottom) / 2;
    // The box that the text begins in; later ones are drawn on earlier ones.
    const around = boxes.filter(({ box }) => within({ left: one.left, right: one.left, top: middle, bottom: middle }, box)).at(-1);
    if (around && !within(one, around.box)) faults.push(`across the edge of its box: ${one.says}`);
    for (const other of texts.slice(at + 1)) {
      if (one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom) faults.push(`on each other: ${one.says} and ${other.says}`);
    }
    const behind = around ? getComputedStyle(around.node).fill : "rgb(255, 255, 255)";
    const [a, b] = [light(rgb(getComputedStyle(one.node).fill)), light(rgb(behind))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) faults.push(`without contrast: ${one.says}`);
  });
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  if (boxes.length && light(rgb(getComputedStyle(boxes[0].node).fill)) < 0.5 !== dark) faults.push("paper of the other scheme");
  const colours = [...document.querySelectorAll("polyline")].map((node) => getComputedStyle(node).stroke);
  if (new Set(colours).size < colours.length) faults.push("two series in one colour");
  return faults;
})()
