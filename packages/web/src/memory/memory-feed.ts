/** Reads the memory page, and forgets what a person wants forgotten. */

import { toNexusError } from "@nexus-stream/protocol";
import { loadRuntime } from "../app/runtime.ts";
import { startPolling } from "../ui/poll.ts";
import { type MemoryView, NEW_MEMORY } from "./memory.ts";

const ROWS_MAX = 100;
const EVERY_MS = 5000;

export interface MemoryFeed {
	search(query: string): void;
	forget(id: string): void;
	close(): void;
}

export interface MemoryFeedOptions {
	onChange(memory: MemoryView): void;
	onSignedOut(): void;
}

export function openMemory({ onChange, onSignedOut }: MemoryFeedOptions): MemoryFeed {
	let view = NEW_MEMORY;
	let closed = false;

	function change(part: Partial<MemoryView>, without: "failure" | "forgetting" | "notice" | "" = ""): void {
		view = { ...view, ...part };
		if (without !== "") {
			const { [without]: _, ...rest } = view;
			view = rest as MemoryView;
		}
		if (!closed) onChange(view);
	}

	function wordsOf(cause: unknown): string {
		const error = toNexusError(cause);
		if (error.code === "unauthenticated") onSignedOut();
		return error.message;
	}

	async function look(): Promise<number> {
		const { query } = view;
		try {
			const { memory } = await loadRuntime();
			const { items, enabled } = await memory.listMemory({ pageSize: ROWS_MAX, query });
			// An answer to an older wish is not shown under a newer one.
			if (query === view.query) change({ phase: "ready", items, enabled }, "failure");
		} catch (cause) {
			change({ failure: wordsOf(cause), ...(view.phase === "loading" && { phase: "failed" as const }) });
		}
		return EVERY_MS;
	}

	async function forget(id: string): Promise<void> {
		change({ forgetting: id });
		let notice = "Forgotten. Turns keep their text.";
		try {
			const { memory } = await loadRuntime();
			await memory.forget({ memoryId: id });
		} catch (cause) {
			notice = wordsOf(cause);
		}
		change({ notice }, "forgetting");
		poller.now();
	}

	const poller = startPolling(look);
	return {
		search(query) {
			change({ query: query.trim() }, "notice");
			poller.now();
		},
		forget: (id) => void forget(id),
		close() {
			closed = true;
			poller.stop();
		},
	};
}
