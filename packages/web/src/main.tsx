/** Starts the page: one store, one render per animation frame. */

import { options, render } from "preact";
import { applyTheme, createApp, storedTheme } from "./app/app.ts";
import { Page } from "./app/page.tsx";
import { parseRoute } from "./app/route.ts";
import { createStore } from "./app/store.ts";
import { drawSafely } from "./chat/drawn-text.ts";
import { onNextFrame } from "./chat/frame-clock.ts";

drawSafely(options);
const theme = storedTheme();
applyTheme(theme);

const store = createStore(
	{ auth: "asking", route: parseRoute(location.hash), sessions: [], moreSessions: false, theme, drawer: false },
	onNextFrame,
);
const app = createApp(store);
const root = document.getElementById("app");
if (!root) throw new Error("the page has no element to live in");

const draw = () => render(<Page state={store.state} app={app} />, root);
store.subscribe(draw);
draw();
void app.start();
