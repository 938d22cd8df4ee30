/** The open session of the page without a browser, on a daemon of the test. */

import { vi } from "vitest";
import { ChatPage } from "../../packages/web/src/chat/session-feed.ts";
import { onNextFrame } from "../../packages/web/src/ui/timing.ts";
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
	vi.stubGlobal("sessionStorage", { getItem: () => null, removeItem() {} });
	const feed = new ChatPage(session, { schedule: onNextFrame, onSignedOut() {}, onRunChange() {}, onSent() {} });
	return {
		shows: (token) => JSON.stringify(feed.view.peek().turns).includes(token),
		async close() {
			feed.close();
			vi.unstubAllGlobals();
		},
	};
}
