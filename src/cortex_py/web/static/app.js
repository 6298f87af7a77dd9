// The page comes with its content; this adds what needs a script.

import { key } from "./keys.js";
import { start as memory } from "./memory.js";
import { start as review } from "./review.js";
import { start as search } from "./search.js";

const views = { "": search, memories: memory, review };
const main = document.getElementById("main");

key("/", "Search", () => { location.href = "/"; });
views[location.pathname.split("/")[1]]?.(main);
