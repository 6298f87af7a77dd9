// The page comes with its content; this adds what needs a script. Only the module of the current view is loaded.

import { key, ready } from "./keys.js";

const box = document.getElementById("q");

key("/", "Search", () => { if (box) box.focus(); else location.href = "/"; });
document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
import(`./${document.body.dataset.view}.js`).then(({ start }) => {
  start(document.getElementById("main"));
  ready();
});
