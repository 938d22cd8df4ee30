/** ARCHITECTURE.md, "The way of a token", names exactly the files that run for every token: counted while tokens pass one at a time. */

import { afterAll, beforeAll, expect, test } from "vitest";
import type { Rig } from "../edge/rig.ts";
import { until } from "../until.ts";
import { type Counts, type Coverage, startCoverage } from "./coverage.ts";
import { filesListed } from "./document.ts";
import type { Reader } from "./reader.ts";

const TOKENS = 60;
/** Until the stream is established and everything that happens once has happened. */
const TOKENS_BEFORE = 10;

let coverage: Coverage;
let rig: Rig;

beforeAll(async () => {
	coverage = await startCoverage();
	// Only what is loaded from here on is counted block by block: hence the imports inside.
	const { createRig } = await import("../edge/rig.ts");
	const { openPlainStore } = await import("../store.ts");
	// Without a limit to keep to, the event loop's load is not measured: that happens by time, not by token.
	rig = await createRig({ open: openPlainStore, limits: { flushMsMax: 0 } });
});
afterAll(() => rig.close());

test("the files between the engine and the page are those that the document names", async () => {
	const { openPage } = await import("./page.ts");
	const { puppet } = await rig.start("page");
	const reader = openPage(rig.url, "page");
	const [counts] = await trace(puppet, reader, [coverage]);
	await reader.close();
	expect(onTheWay(counts!)).toEqual(listed("From the engine to the log", "From the log to the page"));
});

test("the files between the engine and a chat platform are those that the document names", async () => {
	const { deliverToTelegram } = await import("./telegram.ts");
	const { puppet, runId } = await rig.start("platform");
	const reader = await deliverToTelegram(rig, runId);
	const [daemon, adapter] = await trace(puppet, reader, [coverage, reader.coverage]);
	await reader.close();
	expect(onTheWay(daemon!)).toEqual(listed("From the engine to the log", "From the log to a chat platform, and back"));
	expect(onTheWay(adapter!)).toEqual(listed("In the adapter process"));
});

/** The files that ran while tokens passed, each to its reader before the next one comes. */
async function trace(puppet: ReturnType<Rig["puppet"]>, reader: Reader, processes: Coverage[]): Promise<Counts[]> {
	const pass = async (name: string, count: number) => {
		for (let n = 0; n < count; n++) {
			const token = `${name}-${n}.`;
			puppet.say(`${token} `);
			await until(`the reader shows ${token}`, () => reader.shows(token));
		}
	};
	await pass("before", TOKENS_BEFORE);
	for (const process of processes) await process.take();
	await pass("token", TOKENS);
	return await Promise.all(processes.map((process) => process.take()));
}

/** Something runs for each token or hardly ever; a commit or a report may serve two. */
const onTheWay = (counts: Counts): string[] =>
	Object.keys(counts)
		.filter((file) => counts[file]! >= TOKENS / 2)
		.sort();

const listed = (...parts: string[]): string[] => [...new Set(parts.flatMap(filesListed))].sort();
