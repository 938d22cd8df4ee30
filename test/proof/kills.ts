/** Where processes are killed: drawn from the seed, found by what happens (the n-th call, note or line), never by time. */

import { mkdirSync, watch as watchFolder } from "node:fs";
import { join } from "node:path";
import { openNotes } from "../../packages/adapter/src/memory/notes.ts";
import type { FakePlatform } from "./fake-platforms.ts";
import type { Random } from "./random.ts";

/**
 * `arrival`: the platform has the call and will act on it. `loss`: the call left, and nothing comes of it. `answer`: the platform's answer is
 * out. `line`: the adapter has reported a call to the daemon. `note`: the adapter has noted what it creates or has created.
 */
type Happening = "arrival" | "loss" | "answer" | "line" | "note";

export type KillPoint =
	/** Once the process is there. */
	| { after: "start" }
	/** `of: "create"`: only calls that make a message count. */
	| { after: Happening; n: number; of?: "create" };

/** At most one of five kills falls into a start: a process that is always killed there delivers nothing, and proves nothing. */
const START_EVERY = 5;
const NTH_MAX = 3;

/** `before`: how many were drawn for others, so that short draws have their starts too. */
export function drawKillPoints(random: Random, from: readonly Happening[], count: number, before = 0): KillPoint[] {
	const starts = Math.floor((before + count) / START_EVERY) - Math.floor(before / START_EVERY);
	const points = Array.from({ length: count }, (_, index): KillPoint => {
		if (index < starts) return { after: "start" };
		const after = from[random.between(0, from.length - 1)]!;
		const point = { after, n: random.between(1, NTH_MAX) };
		const isCall = after === "arrival" || after === "loss" || after === "answer";
		return isCall && random.between(0, 1) === 1 ? { ...point, of: "create" } : point;
	});
	return random.shuffled(points);
}

export interface Watch {
	/** Calls `strike` at the point, once, before anything else happens. */
	arm(point: Exclude<KillPoint, { after: "start" }>, strike: () => void): void;
	/** The adapter has reported a call. */
	line(): void;
	end(): void;
}

const notesFile = (dataDir: string, channel: string) => join(dataDir, "adapters", channel, "main", "state.json.sent");

/** Sees what happens on platforms, and what their adapters note in `dataDir`. */
export function watch(platforms: readonly FakePlatform[], dataDir: string): Watch {
	let armed: { happened(what: Happening, creates: boolean, count?: number): boolean } | undefined;
	const happened = (what: Happening, creates = false, count = 1) => armed?.happened(what, creates, count) === true;
	for (const platform of platforms) {
		const creates = (call: string) => platform.creates.some((name) => name.test(call));
		for (const call of [...platform.creates, ...platform.others]) {
			const watched = {
				arrived(name: string) {
					happened("arrival", creates(name));
					return happened("loss", creates(name)) ? ("lost" as const) : undefined;
				},
				answered: (name: string) => void happened("answer", creates(name)),
			};
			platform.fake.fault({ kind: "watched", call, watch: watched });
		}
	}
	const noted = platforms.map(({ channel }) => {
		const file = notesFile(dataDir, channel);
		mkdirSync(join(file, ".."), { recursive: true, mode: 0o700 });
		const notes = openNotes(file);
		let known = notes.all().length;
		const news = () => {
			const count = notes.all().length - known;
			known += count;
			return count;
		};
		const watcher = watchFolder(join(file, ".."), () => {
			const count = news();
			if (count > 0) happened("note", true, count);
		});
		return { news, watcher };
	});
	return {
		arm({ after, n, of }, strike) {
			let left = n;
			// A note that was made before counts for no point, however late its folder's event comes.
			for (const { news } of noted) news();
			armed = {
				happened(what, creates, count = 1) {
					if (what !== after || (of === "create" && !creates)) return false;
					left -= count;
					if (left > 0) return false;
					armed = undefined;
					strike();
					return true;
				},
			};
		},
		line: () => void happened("line"),
		end() {
			armed = undefined;
			for (const { fake } of platforms) fake.fault(undefined);
			for (const { watcher } of noted) watcher.close();
		},
	};
}

/** Creations of an account whose call has left, or was about to, and of which nothing more is noted: after a kill, those that were under way. */
export function underWay(dataDir: string, channel: string): string[] {
	const open = new Map<string, number>();
	for (const line of openNotes(notesFile(dataDir, channel)).all()) {
		const { nonce, at } = JSON.parse(line) as { nonce: string; at: "leaving" | "refused" | "sent" };
		open.set(nonce, at === "sent" ? Number.NEGATIVE_INFINITY : (open.get(nonce) ?? 0) + (at === "leaving" ? 1 : -1));
	}
	return [...open].filter(([, calls]) => calls > 0).map(([nonce]) => nonce);
}
