// The page comes with its content; this adds what needs a script.

import { start as check } from "./check.js";
import { start as doctor } from "./doctor.js";
import { key } from "./keys.js";
import { start as memories } from "./memory.js";
import { start as next } from "./next.js";
import { start as review } from "./review.js";
import { start as search } from "./search.js";
import { start as lines } from "./work.js";

const views = { "": search, memories, review, check, lines, next, doctor };
const main = document.getElementById("main");

key("/", "Search", () => { location.href = "/"; });
document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
views[location.pathname.split("/")[1]]?.(main);
