/** The bundled platforms: their names, how each is started, and how each names a chat. The door of this package. */

import { fileURLToPath } from "node:url";
import { CHANNELS } from "./channels.ts";

export { CHANNEL_BLOCKS, CHANNELS, type Channel } from "./channels.ts";
export { isSameChat } from "./chats.ts";

export const isBundled = (channel: string): boolean => (CHANNELS as readonly string[]).includes(channel);

export const bundledCommand = (channel: string): readonly string[] => [
	process.execPath,
	// It holds the keys of accounts: no signal opens its debugger.
	"--disable-sigusr1",
	...mainNextTo(import.meta.url),
	channel,
];

/** The entry of the bundled adapters, with the flag that it needs when it runs from source. */
const mainNextTo = (here: string): string[] =>
	here.endsWith(".ts")
		? ["--conditions=nexus-source", fileURLToPath(new URL("./main.ts", here))]
		: [fileURLToPath(new URL("../platforms/main.js", here))];
