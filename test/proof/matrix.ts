/** The daemon's outbound side with every bundled adapter as a real process, fake platforms around it, and the table of what became of answers. */

import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openNotes } from "../../src/adapter/kit/notes.ts";
import type { DeliveryInfo } from "../../src/nex/nex.ts";
import type { FakeCall } from "../fakes/fake.ts";
import { beginRun, createRigWith, FAST, type Rig } from "../nex/outbound/rig.ts";
import {
	channelsConfig,
	type FakePlatform,
	letters,
	listenForStatuses,
	sentencesOf,
	startPlatforms,
} from "./fake-platforms.ts";

/** A line of the table. */
export interface Line {
	channel: string;
	fault: string;
	deliveries: number;
	kills: number;
	/** What is visible is the source, once, in order, whole. */
	exact: number;
	/** Flagged for the operator; what is visible is a beginning of the source, once and in order. */
	unknown: number;
	/** Creations that were under way at a kill: only these can be in doubt. */
	inTheAir: number;
	/** Of these, how many are nevertheless to be read. */
	unknownShown: number;
	/** Everything else, said in words. */
	wrong: string[];
	calls: number;
	/** Longest time between two calls for one chat. */
	pauseMs: number;
}

export interface Matrix {
	rig: Rig;
	platforms: FakePlatform[];
	/** Delivers answers to as many chats at once, `rounds` each, and says what became of them. */
	deliver(platform: FakePlatform, fault: string, work: Work): Promise<Line>;
	close(): Promise<void>;
}

type Outcome = Pick<DeliveryInfo, "state" | "error"> & { messages: readonly object[] };

export interface Work {
	chats: number;
	/** Another answer for each chat while this says so. */
	more(): boolean;
	tokenEveryMs: number;
}

/** Only what hangs takes this long: an answer may have to outlive thirty kills, each with a start of its adapter on a busy machine. */
const SETTLE_MS = 540_000;

export async function startMatrix(): Promise<Matrix> {
	const platforms = await startPlatforms();
	const restart = { ...FAST.restart, backoffMs: 5, backoffMsMax: 20, failuresMax: 100_000 };
	// Dozens of kills in a row would make every wait a minute.
	const limits = { ...FAST, restart, retryMsMax: 500 };
	const rig = createRigWith(() => channelsConfig(platforms), { limits });
	await rig.outbound.start();
	rig.outbound.monitor("whatsapp", "main", () => Promise.resolve());
	listenForStatuses(platforms, async ({ method, headers, body }) => {
		const request = { method, query: "", headers, body: body.toString("base64") };
		// WhatsApp tries for days to tell what it has to tell, the fake for a second: too short while everything starts.
		for (;;) {
			const { status } = await rig.outbound.webhook("whatsapp", "main", request).catch(() => ({ status: 503 }));
			if (status === 200 || closed) return status;
			await sleep(100);
		}
	});
	let chat = 0;
	let closed = false;
	return {
		rig,
		platforms,
		async deliver(platform, fault, work) {
			const line = emptyLine(platform, fault);
			const before = platform.fake.calls.length;
			const chats = Array.from({ length: work.chats }, () => chat++);
			await Promise.all(
				chats.map(async (first) => {
					let n = first;
					let said = "";
					do {
						const source = sentencesOf(platform.sentences, `answer ${line.deliveries + 1} in chat ${n}`);
						const row = await deliverOne(rig, platform, n, source, work.tokenEveryMs);
						note(line, row, platform, n, said + source.join(""), said.length);
						said += source.join("");
						// A flagged answer may lack its end: what comes after it goes elsewhere.
						if (row.state !== "complete") [n, said] = [chat++, ""];
					} while (work.more());
				}),
			);
			const calls = platform.fake.calls.slice(before);
			return measured(line, calls);
		},
		async close() {
			closed = true;
			await rig.close();
			await Promise.all(platforms.map(({ fake }) => fake.close()));
		},
	};
}

/** One answer that is written while it is delivered. */
async function deliverOne(
	rig: Rig,
	{ channel, target }: FakePlatform,
	n: number,
	source: readonly string[],
	tokenEveryMs: number,
): Promise<DeliveryInfo> {
	const run = await beginRun(rig.bus, `${channel}-${n}`);
	const account = { channel, id: "main" };
	const { id } = await rig.outbound.deliver({ runId: run.runId, account, target: target(n) });
	for (const sentence of source) {
		run.text(sentence);
		await sleep(tokenEveryMs);
	}
	await run.end();
	const late = AbortSignal.timeout(SETTLE_MS);
	return await Promise.race([
		rig.outbound.settled(id),
		new Promise<never>((_, reject) =>
			late.addEventListener("abort", () => reject(new Error(`${channel} ${id}: ${JSON.stringify(rowOf(rig, id))}`))),
		),
	]);
}

const rowOf = (rig: Rig, id: string): unknown => rig.outbound.deliveries({ limit: 200 }).find((row) => row.id === id);

export const emptyLine = ({ channel }: FakePlatform, fault: string): Line => ({
	...{
		channel,
		fault,
		deliveries: 0,
		kills: 0,
		inTheAir: 0,
		exact: 0,
		unknown: 0,
		unknownShown: 0,
		wrong: [],
		calls: 0,
		pauseMs: 0,
	},
});

export const measured = (line: Line, calls: readonly FakeCall[]): Line =>
	Object.assign(line, { calls: calls.length, pauseMs: longestPause(calls) });

/** What became of a delivery to a chat in which everything of `source` should be read by now; it begins after `before` units of it. */
export function note(line: Line, row: Outcome, platform: FakePlatform, n: number, source: string, before = 0): void {
	const shown = letters(platform.fake.visible(platform.target(n).to).join(""));
	const owed = letters(source);
	line.deliveries++;
	if (row.state === "complete" && shown === owed) line.exact++;
	else if (row.state === "unknown" && owed.startsWith(shown)) {
		line.unknown++;
		if (shown.length > letters(source.slice(0, before + cursorOf(row))).length) line.unknownShown++;
	} else line.wrong.push(describe(row, shown, owed));
}

/** How far the messages go that are certainly there. */
const cursorOf = ({ messages }: Outcome): number =>
	(messages as { state: string; to?: number }[]).reduce(
		(to, each) => Math.max(to, (each.state === "sent" && each.to) || 0),
		0,
	);

function describe({ state, error, messages }: Outcome, shown: string, owed: string): string {
	let at = 0;
	while (at < shown.length && shown[at] === owed[at]) at++;
	const around = (text: string) => JSON.stringify(text.slice(Math.max(0, at - 30), at + 60));
	const where = shown === owed ? "" : `shows ${around(shown)} instead of ${around(owed)} at ${at} of ${owed.length}; `;
	return `${state}${error ? ` (${error})` : ""}: ${where}${JSON.stringify(messages)}`;
}

/** Creations of an account whose call has left, or was about to, and of which nothing more is noted: after a kill, those that were under way. */
export function underWay(dataDir: string, channel: string): string[] {
	const open = new Map<string, number>();
	for (const line of openNotes(join(dataDir, "adapters", channel, "main", "state.json.sent")).all()) {
		const { nonce, at } = JSON.parse(line) as { nonce: string; at: "leaving" | "refused" | "sent" };
		open.set(nonce, at === "sent" ? Number.NEGATIVE_INFINITY : (open.get(nonce) ?? 0) + (at === "leaving" ? 1 : -1));
	}
	return [...open].filter(([, calls]) => calls > 0).map(([nonce]) => nonce);
}

function longestPause(calls: readonly FakeCall[]): number {
	const last = new Map<string, number>();
	let most = 0;
	for (const { to, at } of calls) {
		most = Math.max(most, at - (last.get(to) ?? at));
		last.set(to, at);
	}
	return most;
}

export function printTable(title: string, lines: readonly Line[]): void {
	const head = [
		...["platform", "fault", "deliveries", "kills", "in the air", "exact", "unknown", "shown", "wrong"],
		...["calls", "max pause ms"],
	];
	const rows = lines.map((line) =>
		[
			...[line.channel, line.fault, line.deliveries, line.kills, line.inTheAir, line.exact, line.unknown],
			...[line.unknownShown, line.wrong.length, line.calls, line.pauseMs],
		].map(String),
	);
	const widths = head.map((name, column) => Math.max(name.length, ...rows.map((row) => row[column]?.length ?? 0)));
	const show = (row: readonly string[]) =>
		row.map((cell, column) => (column < 2 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!))).join("  ");
	console.log([title, show(head), ...rows.map(show)].join("\n"));
}
