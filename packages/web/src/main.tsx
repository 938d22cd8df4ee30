/** Starts the page. */

import { options, render } from "preact";
import { applyTheme, storedTheme, WebApp } from "./app/app.ts";
import { Shell } from "./app/shell.tsx";
import { drawSafely } from "./ui/drawn-text.ts";

drawSafely(options);
applyTheme(storedTheme());

const root = document.getElementById("app");
if (!root) throw new Error("index.html has no #app element");

const app = new WebApp();
render(<Shell app={app} />, root);
void app.start();
