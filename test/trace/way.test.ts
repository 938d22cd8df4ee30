/** ARCHITECTURE.md names exactly the files that run for every token, every message and every model call: counted while they pass one at a time. */

import { afterAll, beforeAll, expect, test } from "vitest";
import type { Rig } from "../edge/rig.ts";
import { until } from "../until.ts";
import { type Counts, type Coverage, startCoverage } from "./coverage.ts";
import { filesListed } from "./document.ts";
import type { Reader } from "./reader.ts";

const COUNTED = 60;
/** Until everything that happens once has happened. */
const BEFORE = 10;

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
	const [counts] = await trace(tokensTo(puppet, reader), [coverage]);
	await reader.close();
	expect(onTheWay(counts!)).toEqual(listed("From the engine to the log", "From the log to the page"));
});

test("the files between the engine and a chat platform are those that the document names", async () => {
	const { deliverToTelegram } = await import("./telegram.ts");
	const { puppet, runId } = await rig.start("platform");
	const reader = await deliverToTelegram(rig, runId);
	const [daemon, adapter] = await trace(tokensTo(puppet, reader), [coverage, reader.coverage]);
	await reader.close();
	expect(onTheWay(daemon!)).toEqual(listed("From the engine to the log", "From the log to a chat platform, and back"));
	expect(onTheWay(adapter!)).toEqual(listed("In the adapter process"));
});

test("the files between a chat platform and the start of a run are those that the document names", async () => {
	const { receiveFromTelegram } = await import("./telegram.ts");
	const person = await receiveFromTelegram();
	await person.write("the first message starts the adapter");
	const [daemon, adapter] = await trace(person.write, [coverage, person.coverage]);
	await person.close();
	expect(onTheWay(adapter!)).toEqual(listed("From the platform to the daemon"));
	expect(onTheWay(daemon!).filter(isOwn)).toEqual(listed("From the adapter's line to the run"));
});

test("the files of a model call over gRPC are those that the document names", async () => {
	const { openScenarios } = await import("./scenarios.ts");
	const scenarios = await openScenarios();
	const [counts] = await trace(scenarios.call, [coverage]);
	await scenarios.close();
	expect(onTheWay(counts!).filter(isOwn)).toEqual(listed("The way of a model call"));
});

/** Says a token, and waits until its reader shows it. */
const tokensTo = (puppet: ReturnType<Rig["puppet"]>, reader: Reader) => async (token: string) => {
	puppet.say(`${token} `);
	await until(`the reader shows ${token}`, () => reader.shows(token));
};

/** The files that ran while so many passed, each to its destination before the next one comes. */
async function trace(pass: (name: string) => Promise<void>, processes: Coverage[]): Promise<Counts[]> {
	for (let n = 0; n < BEFORE; n++) await pass(`before-${n}.`);
	for (const process of processes) await process.take();
	for (let n = 0; n < COUNTED; n++) await pass(`counted-${n}.`);
	return await Promise.all(processes.map((process) => process.take()));
}

/** Something runs for each or hardly ever; a commit or a report may serve two. */
const onTheWay = (counts: Counts): string[] =>
	Object.keys(counts)
		.filter((file) => counts[file]! >= COUNTED / 2)
		.sort();

/** The document describes the Bus and the deliveries once, with the tokens. */
const isOwn = (file: string): boolean => !/^(?:daemon\/(?:bus|std|nex\/delivery)|protocol|client\/gen)\//.test(file);

const listed = (...parts: string[]): string[] => [...new Set(parts.flatMap(filesListed))].sort();
