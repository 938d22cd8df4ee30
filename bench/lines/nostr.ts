/** Nostr: how many events an answer at a model's pace costs, and how long a token takes to a reader of its thread. */

import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createBus, sqliteStorage } from "../../packages/daemon/src/bus/bus.ts";
import { sqliteLedger } from "../../packages/daemon/src/ledger/ledger.ts";
import { createOutbound } from "../../packages/daemon/src/nex/nex.ts";
import { openSqlite } from "../../packages/daemon/src/std/sqlite/sqlite.ts";
import { createNostrFake, type NostrFake } from "../../packages/lab/src/nostr.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { quiet } from "../../test/quiet.ts";
import type { Figure } from "../figure.ts";
import { writeRun } from "../outbound.ts";
import { withFolder } from "../processes.ts";
import { percentile } from "../statistics.ts";

const TOKENS = 1000;
const RATE = 50;
const WARM_TOKENS = 100;
/** Kind 21111: a piece of an answer that is being written. */
const STREAM = 21_111;
/** Sentences of prose have about 17 words, which are about 22 tokens; short ones and long ones follow each other. */
const SENTENCE_TOKENS = [9, 22, 34, 16, 29];

const TARGET = { to: `thread:${"b".repeat(64)}`, direct: false };

/** Words of five letters in sentences, as models' tokens are on average. */
const TEXT: readonly string[] = tokensOf(TOKENS);

function tokensOf(count: number): string[] {
	const tokens: string[] = [];
	for (let sentence = 0; tokens.length < count; sentence++) {
		const length = SENTENCE_TOKENS[sentence % SENTENCE_TOKENS.length]!;
		for (let n = 1; n <= length; n++) {
			tokens.push(`w${String(tokens.length).padStart(4, "0")}${n === length ? ". " : " "}`);
		}
	}
	return tokens.slice(0, count);
}

interface Arrived {
	events: number;
	latenciesMs: number[];
}

/** The text of a reader of the thread after each event, and when. Spaces are the platform's affair. */
function watch(fake: NostrFake, dueMs: readonly number[]): { done(): Arrived } {
	const lengths: number[] = [];
	for (const token of TEXT) lengths.push((lengths.at(-1) ?? 0) + token.trim().length);
	const latenciesMs: number[] = [];
	let seen = fake.received.length;
	const first = seen;
	let text = "";
	const look = () => {
		const now = performance.now();
		for (; seen < fake.received.length; seen++) {
			const { kind, tags, content } = fake.received[seen]!;
			if (kind !== STREAM) continue;
			const from = Number(tags.find(([name]) => name === "from")?.[1] ?? 0);
			text = text.slice(0, from) + content;
		}
		const letters = text.replace(/\s+/g, "").length;
		for (let n = latenciesMs.length; n < dueMs.length && (lengths[n] ?? Infinity) <= letters; n++)
			latenciesMs.push(now - dueMs[n]!);
	};
	const timer = setInterval(look, 1);
	return {
		done() {
			look();
			clearInterval(timer);
			return { events: fake.received.length - first, latenciesMs };
		},
	};
}

/** Tokens as they are due, however late the last one was. */
async function say(run: Awaited<ReturnType<typeof writeRun>>, tokens: number, dueMs: number[]): Promise<void> {
	const begun = performance.now();
	for (let n = 0; n < tokens; n++) {
		const due = begun + (n * 1000) / RATE;
		const waitMs = due - performance.now();
		if (waitMs > 0) await sleep(waitMs);
		dueMs.push(due);
		await run.say(TEXT[n] ?? "");
	}
	await run.end();
}

export async function nostr(): Promise<Figure[]> {
	return withFolder(async (folder) => {
		const fake = await createNostrFake();
		const file = openSqlite(join(folder, "nexus.db"), "process");
		const bus = createBus({ ...quiet, storage: sqliteStorage(file) });
		const outbound = createOutbound({
			bus,
			ledger: sqliteLedger(file),
			dataDir: folder,
			log: silentLog,
			adapters: { nostr: { accounts: { main: { settings: { ...fake.settings } } } } },
		});
		const deliver = async (tokens: number, dueMs: number[]) => {
			const run = await writeRun(bus);
			const account = { channel: "nostr", id: "main" };
			const { id } = await outbound.deliver({ runId: run.runId, account, target: TARGET });
			await say(run, tokens, dueMs);
			const { state, error } = await outbound.settled(id);
			if (state !== "complete") throw new Error(`the delivery is ${state}: ${error}`);
		};
		try {
			// Starts the adapter, and is not measured.
			await deliver(WARM_TOKENS, []);
			const dueMs: number[] = [];
			const reader = watch(fake, dueMs);
			await deliver(TOKENS, dueMs);
			const { events, latenciesMs } = reader.done();
			if (latenciesMs.length < TOKENS) throw new Error(`${latenciesMs.length} of ${TOKENS} tokens arrived`);
			const name = `nostr, ${RATE} tokens/s`;
			return [
				{ name: `${name}, events per 1,000 tokens`, unit: "events", value: events, goal: { of: "value", atMost: 120 } },
				{ name: `${name}, token to reader, p50`, unit: "ms", value: percentile(latenciesMs, 50) },
				{
					name: `${name}, token to reader, p99`,
					unit: "ms",
					value: percentile(latenciesMs, 99),
					goal: { of: "value", atMost: 250 },
				},
			];
		} finally {
			await outbound.stop(0);
			await bus.close();
			file.close();
			await fake.close();
		}
	});
}
