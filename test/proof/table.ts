/** The outcome of answers on a platform: each judged by its own record, all of them as a table. */

import { pieceOf } from "../../packages/adapter/src/nonce.ts";
import type { Delivery } from "../../packages/daemon/src/ledger/deliveries/port.ts";
import type { FakeCall } from "../../packages/lab/src/fake.ts";
import { type FakePlatform, letters } from "./fake-platforms.ts";

/** A line of the table. */
export interface Line {
	channel: string;
	fault: string;
	deliveries: number;
	kills: number;
	/** The visible text is the source, once, in order, whole. */
	exact: number;
	/** Flagged for the operator; what is visible is a beginning of the source, once and in order. */
	unknown: number;
	/** Creations that were under way at a kill: only these can be in doubt. */
	inTheAir: number;
	/** How many of these are visible nevertheless. */
	unknownShown: number;
	/** Everything else, said in words. */
	wrong: string[];
	calls: number;
	/** Longest time between two calls for one chat. */
	pauseMs: number;
}

/** A delivery as the ledger has it. */
export type Outcome = Pick<Delivery, "id" | "state" | "error" | "messages" | "updatedAt">;

/** Whether the record of a delivery has a creation of which its adapter cannot know what came of it: only then it may be flagged. */
export type Doubt = (row: Outcome, to: string) => boolean;

export const emptyLine = ({ channel }: FakePlatform, fault: string): Line => ({
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
});

export const measured = (line: Line, calls: readonly FakeCall[]): Line =>
	Object.assign(line, { calls: calls.length, pauseMs: longestPause(calls) });

export interface Judged {
	row: Outcome;
	platform: FakePlatform;
	chat: number;
	/** Everything that should be read in the chat by now. */
	source: string;
	/** Where in it this delivery begins. */
	before?: number;
	inDoubt: Doubt;
	/** When the platform has reported the status of a message, where it reports later. */
	toldAt?(nonce: string): number | undefined;
	/** The adapter's reports of failed calls. */
	failures?: readonly string[];
}

/** How long after its last look a delivery may be flagged. */
const LAST_LOOK_MS = 1000;

/** Adds what became of a delivery. */
export function judge(line: Line, judged: Judged): void {
	const { row, platform, chat, source, before = 0, inDoubt, toldAt, failures = [] } = judged;
	const { to } = platform.target(chat);
	const shown = letters(platform.fake.visible(to).join(""));
	const owed = letters(source);
	const wrong = (what = "") => void line.wrong.push([what + describe(row, shown, owed), ...failures].join("; "));
	line.deliveries++;
	if (row.state === "complete" && shown === owed) line.exact++;
	else if (row.state !== "unknown" || !owed.startsWith(shown)) wrong();
	else if (platform.tells || !inDoubt(row, to)) wrong("flagged without a reason: ");
	else {
		line.unknown++;
		if (shown.length > letters(source.slice(0, before + cursorOf(row))).length) line.unknownShown++;
		// A delivery is flagged for a person only if the platform had not reported by the time of the last look.
		const told = unknownOf(row).map((nonce) => toldAt?.(nonce) ?? Number.POSITIVE_INFINITY);
		if (Math.min(...told) < row.updatedAt - LAST_LOOK_MS) wrong("flagged although the platform had reported: ");
	}
}

const unknownOf = ({ messages }: Outcome): string[] =>
	messages.flatMap(({ state, nonce }) => (state === "unknown" ? [nonce] : []));

/** In doubt because a kill came while one of its messages was being created. */
export const killedUnderWay =
	(nonces: ReadonlySet<string>): Doubt =>
	(row) => {
		const lines = new Set([...nonces].map((nonce) => pieceOf(nonce).line));
		return unknownOf(row).some((nonce) => lines.has(pieceOf(nonce).line));
	};

/** In doubt because the platform's record has a creation in that chat whose answer never came, or said nothing. */
export const brokenCreate =
	({ fake, creates }: FakePlatform, faults: readonly FakeCall["fault"][]): Doubt =>
	(_row, to) =>
		fake.calls.some(
			(call) => call.to === to && faults.includes(call.fault) && creates.some((name) => name.test(call.name)),
		);

/** How far the messages go that are certainly there. */
const cursorOf = ({ messages }: Outcome): number =>
	messages.reduce((to, each) => Math.max(to, (each.state === "sent" && each.to) || 0), 0);

function describe({ state, error, messages }: Outcome, shown: string, owed: string): string {
	let at = 0;
	while (at < shown.length && shown[at] === owed[at]) at++;
	const around = (text: string) => JSON.stringify(text.slice(Math.max(0, at - 30), at + 60));
	const where = shown === owed ? "" : `shows ${around(shown)} instead of ${around(owed)} at ${at} of ${owed.length}; `;
	return `${state}${error ? ` (${error})` : ""}: ${where}${JSON.stringify(messages)}`;
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
