// Rules that hold in every view: names for controls, one main part, ids that are unique, and a contrast of 4.5 to 1.
(() => {
  const faults = [];
  const name = (node) => node.getAttribute("aria-label") || node.labels?.[0]?.innerText || node.textContent || node.title;
  for (const node of document.querySelectorAll("a, button, input, textarea, select, summary")) {
    if (node.offsetParent && !name(node)) faults.push("no name: " + node.outerHTML);
  }
  if (document.querySelectorAll("main").length !== 1) faults.push("main parts");
  if (document.querySelectorAll("h1").length > 1) faults.push("several titles");
  if (!document.documentElement.lang || !document.title) faults.push("no language or title");
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  if (new Set(ids).size !== ids.length) faults.push("ids: " + ids);
  const rgb = (text) => text.match(/[\d.]+/g).map(Number);
  const part = (c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * part(r / 255) + 0.7152 * part(g / 255) + 0.0722 * part(b / 255);
  const behind = (node) => {
    for (let one = node; one; one = one.parentElement) {
      const found = rgb(getComputedStyle(one).backgroundColor);
      if (found.length === 3 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  for (const node of document.querySelectorAll("body *")) {
    const says = [...node.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
    if (!says || !node.offsetParent || node.closest(".skip, .unseen, noscript")) continue;
    const [a, b] = [light(rgb(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) faults.push("contrast: " + node.outerHTML.slice(0, 120));
  }
  return faults;
})()
