/** The state of the page without a browser: its feed and its store, on a daemon of the test. */

import { vi } from "vitest";
import { type AppState, createStore } from "../../packages/web/src/app/store.ts";
import { newChat } from "../../packages/web/src/chat/chat.ts";
import { onNextFrame } from "../../packages/web/src/chat/frame-clock.ts";
import { openSession } from "../../packages/web/src/chat/session-feed.ts";
import { BEARER } from "../edge/rig.ts";
import type { Reader } from "./reader.ts";

export function openPage(url: string, session: string): Reader {
	const real = fetch;
	vi.stubGlobal("fetch", (path: string, init: RequestInit) => {
		const headers = new Headers(init.headers);
		headers.set("authorization", BEARER.authorization);
		return real(url + path, { ...init, headers });
	});
	vi.stubGlobal("requestAnimationFrame", setImmediate);
	vi.stubGlobal("cancelAnimationFrame", clearImmediate);
	const initial: AppState = {
		auth: "in",
		route: { name: "chat", session },
		sessions: [],
		moreSessions: false,
		chat: newChat(session),
		theme: "auto",
		drawer: false,
	};
	const store = createStore(initial, onNextFrame);
	const feed = openSession({
		session,
		dispatch: (action) => store.dispatch({ type: "chat", session, action }),
		chat: () => store.state.chat,
		schedule: onNextFrame,
		onSignedOut() {},
		onRunChange() {},
	});
	return {
		shows: (token) => JSON.stringify(store.state.chat?.turns).includes(token),
		async close() {
			feed.close();
			vi.unstubAllGlobals();
		},
	};
}
