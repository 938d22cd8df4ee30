/** The adapters that come with Nexus, as command lines. */

import { fileURLToPath } from "node:url";
import { CHANNELS } from "./channels.ts";

export const isBundled = (channel: string): boolean => (CHANNELS as readonly string[]).includes(channel);

export const bundledCommand = (channel: string): readonly string[] => [
	process.execPath,
	// It holds the keys of accounts: no signal opens its debugger.
	"--disable-sigusr1",
	mainBeside(import.meta.url),
	channel,
];

/** In the sources and in the published package alike. */
const mainBeside = (here: string): string =>
	fileURLToPath(new URL(here.endsWith(".ts") ? "./main.ts" : "../adapter/main.js", here));
