/** The least a durable server can do: one file for all streams, one write and one fdatasync at a time. */

import { fdatasync, openSync, write } from "node:fs";
import { promisify } from "node:util";

const writeTo = promisify(write);
const sync = promisify(fdatasync);
/** Far more than streams at pace make during a sync: only a flood waits. */
const CROWDED_CHARS = 4 << 20;

export interface SyncedLog {
	/** Calls `written` once the text is on disk, in the order of the calls; `crowded` asks the writer to wait for that. */
	append(text: string, written: () => void): { synced: Promise<void>; crowded: boolean };
}

class Batch {
	text = "";
	readonly written: (() => void)[] = [];
	readonly synced = Promise.withResolvers<void>();
}

export function openSyncedLog(path: string): SyncedLog {
	const file = openSync(path, "a");
	let next = new Batch();
	let flushing = false;

	/** Records appended while a batch is being synced form the next one. */
	const flush = async () => {
		while (next.text !== "") {
			const batch = next;
			next = new Batch();
			const bytes = Buffer.from(batch.text);
			for (let at = 0; at < bytes.length; ) at += (await writeTo(file, bytes, at)).bytesWritten;
			await sync(file);
			for (const written of batch.written) written();
			batch.synced.resolve();
		}
		flushing = false;
	};

	return {
		append(text, written) {
			next.text += text;
			next.written.push(written);
			const { promise: synced } = next.synced;
			const crowded = next.text.length >= CROWDED_CHARS;
			if (!flushing) {
				flushing = true;
				// At the end of the tick, so that it holds what all streams append in it.
				setImmediate(() => void flush());
			}
			return { synced, crowded };
		},
	};
}
