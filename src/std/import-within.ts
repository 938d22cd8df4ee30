/** Loads a module of the user's; one whose top level takes too long is refused, so that a start never hangs without a word. */

import { pathToFileURL } from "node:url";

/** A person who waits for a start reads the error within ten seconds. */
const MODULE_LOAD_MS = 8_000;

export async function importWithin(path: string, loadMs = MODULE_LOAD_MS): Promise<Record<string, unknown>> {
	let timer: NodeJS.Timeout | undefined;
	const late = new Promise<never>((_, reject) => {
		timer = setTimeout(() => reject(new Error(`its top level is still waiting after ${loadMs} ms`)), loadMs);
	});
	try {
		return await Promise.race([import(pathToFileURL(path).href), late]);
	} finally {
		clearTimeout(timer);
	}
}
