/** Chromium, where the machine has one. */

import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { type BrowserServer, chromium } from "playwright-core";

const ARGS = [
	"--headless",
	"--no-sandbox",
	"--disable-gpu",
	"--disable-quic",
	"--no-first-run",
	"--disable-background-networking",
	"--disable-component-update",
	"--disable-sync",
];

function findChromium(): string | undefined {
	for (const folder of (process.env.PATH ?? "").split(delimiter)) {
		for (const name of ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]) {
			const file = join(folder, name);
			try {
				accessSync(file, constants.X_OK);
				return file;
			} catch {
				// Not here: the next name.
			}
		}
	}
	return undefined;
}

const executablePath = findChromium();
export const hasChromium = executablePath !== undefined;

/** A browser that several processes can open tabs in. */
export async function launchChromium(): Promise<BrowserServer> {
	if (!executablePath) throw new Error("no chromium on PATH: install it, the page must be tested in CI");
	return chromium.launchServer({ executablePath, args: ARGS });
}
