/** What most browser tests stand in: one browser and one daemon for a file, fresh cookies and storage for each test. */

import type { Browser, BrowserContext } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { type Daemon, openBrowser, startDaemon } from "./kit.ts";

export interface World {
	readonly browser: Browser;
	readonly daemon: Daemon;
	readonly context: BrowserContext;
}

/** For the body of a `describe`; filled in before its tests run. */
export function createWorld(start: () => Promise<Daemon> = startDaemon): World {
	const world: { -readonly [K in keyof World]?: World[K] } = {};
	beforeAll(async () => {
		[world.browser, world.daemon] = await Promise.all([openBrowser(), start()]);
	});
	afterAll(async () => {
		await world.browser?.close();
		await world.daemon?.close();
	});
	beforeEach(async () => {
		world.context = await world.browser!.newContext();
	});
	afterEach(() => world.context?.close());
	return world as World;
}
