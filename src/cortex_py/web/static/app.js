// The page comes with its content; this adds what needs a script.

import { key } from "./keys.js";
import { start as search } from "./search.js";

const views = { "/": search };
const main = document.getElementById("main");
const path = location.pathname;

key("/", "Search", () => { location.href = "/"; });
const found = views[path];
if (found) found(main);
