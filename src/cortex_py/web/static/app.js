// The page comes with its content; this adds what needs a script. Only the module of the current view is loaded.

import { key } from "./keys.js";

const views = { "": "search", memories: "memory", timeline: "timeline", graph: "graph", review: "review", check: "check", lines: "work", next: "next", doctor: "doctor" };
const main = document.getElementById("main");

key("/", "Search", () => { location.href = "/"; });
document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
const view = views[location.pathname.split("/")[1]];
if (view) import(`./${view}.js`).then(({ start }) => start(main));
