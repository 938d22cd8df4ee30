/** The world of a browser test: the shared browser, the shared daemon or one of the file, and fresh cookies and storage for each test. */

import { type Browser, type BrowserContext, chromium } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, inject } from "vitest";
import { type Daemon, daemonAt, type OwnDaemon } from "./daemon.ts";

export interface World<D extends Daemon = Daemon> {
	readonly browser: Browser;
	readonly daemon: D;
	readonly context: BrowserContext;
}

/** For the body of a `describe`; filled in before its tests run. The daemon is shared: sessions need names that no other test uses. */
export function createWorld(): World {
	const world = inBrowser<Daemon>();
	beforeAll(() => {
		world.daemon = daemonAt(shared().daemon);
	});
	return world as World;
}

/** With a daemon that only these tests use: they may kill it, or need it configured in their own way. */
export function createOwnWorld(start: () => Promise<OwnDaemon>): World<OwnDaemon> {
	const world = inBrowser<OwnDaemon>();
	beforeAll(async () => {
		world.daemon = await start();
	});
	afterAll(() => world.daemon?.close());
	return world as World<OwnDaemon>;
}

function inBrowser<D extends Daemon>(): { -readonly [K in keyof World<D>]?: World<D>[K] } {
	const world: { -readonly [K in keyof World<D>]?: World<D>[K] } = {};
	beforeAll(async () => {
		world.browser = await chromium.connect(shared().wsEndpoint);
	});
	// Leaves the browser to the other files; what was opened here is closed.
	afterAll(() => world.browser?.close());
	beforeEach(async () => {
		// Endless animations cost more than everything else where the processor paints.
		world.context = await world.browser!.newContext({ reducedMotion: "reduce" });
	});
	afterEach(() => world.context?.close());
	return world;
}

function shared() {
	const world = inject("browserWorld");
	if ("failure" in world) throw new Error(world.failure);
	return world;
}
