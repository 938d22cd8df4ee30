/** One Chromium and one daemon for all browser tests of a run: started before the first file, ended after the last one. */

import type { BrowserServer } from "playwright-core";
import type { TestProject } from "vitest/node";
import { hasChromium, launchChromium } from "./chromium.ts";
import { type DaemonAddress, type OwnDaemon, startDaemon } from "./daemon.ts";

declare module "vitest" {
	interface ProvidedContext {
		/** `failure`: why there is none. Thrown here, it would stop the tests of every other folder, too. */
		browserWorld: { wsEndpoint: string; daemon: DaemonAddress } | { failure: string };
	}
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
	let browser: BrowserServer | undefined;
	let daemon: OwnDaemon | undefined;
	const end = async () => {
		await browser?.close();
		await daemon?.close();
	};
	try {
		browser = await launchChromium();
		// It is never started again.
		daemon = await startDaemon({}, 0);
		const { url, data } = daemon;
		project.provide("browserWorld", { wsEndpoint: browser.wsEndpoint(), daemon: { url, data } });
	} catch (cause) {
		project.provide("browserWorld", { failure: String(cause) });
		if (hasChromium) console.error("the browser tests cannot run:", cause);
	}
	return end;
}
