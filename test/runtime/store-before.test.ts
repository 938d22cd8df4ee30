/** A data directory of an earlier version, left by a kill in the middle of work: all of it is read, and the work continues. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Engine } from "@nexus-stream/protocol/engine";
import { expect, it, onTestFinished } from "vitest";
import type { Bus } from "../../packages/daemon/src/bus/bus.ts";
import { openStore } from "../../packages/daemon/src/runtime/data/store.ts";
import { dataPaths, startDaemon } from "../../packages/daemon/src/runtime/runtime.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { createVerifier, decodeFrame } from "../../packages/protocol/src/protocol.ts";
import { until } from "../until.ts";
import { freshFolder } from "./folder.ts";

const BEFORE = readFileSync(join(import.meta.dirname, "../fixtures/store-before.sql"), "utf8");
const TOKEN = "a-token-of-the-tests-0123456789";

const DONE = "run_01M7M1BK645X1EG4CEG231E50C";
const DELIVERED = "run_01M7M1BNRKAKYYYR3NNZSWZJ32";
const LIVE = "run_01M7M1BS3TCJBSDACG5Q3AG7B3";
const QUEUED = "evt_01M7M1BS4G7CVG9DGBPGZWPENF";
const OWED = "dlv_01M7M1BS4Q6GCP891ZJ13KM4EE";
const DONE_TEXT = "Demo engine: this text is made up to try things out. She";
const LIVE_TEXT = /^Demo engine: this text is made up to try/;

/** The data directory, as if the daemon had been killed just now. */
function leftBehind(): string {
	const data = freshFolder();
	const db = new DatabaseSync(dataPaths(data).db);
	db.exec(`BEGIN; ${BEFORE} COMMIT`);
	const age = Date.now() - Number(db.prepare("SELECT max(received_at) AS at FROM inbound").get()?.at);
	db.exec(`UPDATE inbound SET received_at = received_at + ${age}`);
	db.exec(`UPDATE delivery SET created_at = created_at + ${age}, updated_at = updated_at + ${age}`);
	db.close();
	return data;
}

async function recordsOf(bus: Bus, log: string): Promise<string[]> {
	const cursor = await bus.cursor({ log }, 0);
	const records: string[] = [];
	for (let batch = await cursor.next(); batch; batch = await cursor.next()) records.push(...batch.records);
	cursor.close();
	return records;
}

it("a store of ebbca5a opens, and everything in it can be read", async () => {
	const { bus, ledger, close } = await openStore(dataPaths(leftBehind()).db, { durability: "process" }, silentLog);
	onTestFinished(close);
	expect((await ledger.turns.list({ limit: 9 })).map(({ runId }) => runId)).toEqual([DELIVERED, DONE]);
	expect(await ledger.turns.get(DONE)).toMatchObject({
		session: "done",
		status: "completed",
		messages: [{ attachments: [{ name: "notes.txt", data: "aGVsbG8=" }] }, { text: DONE_TEXT }],
		toolCalls: [{ name: "search", status: "completed" }],
		trace: { channel: "web", stages: expect.any(Array) as unknown },
	});
	const sessions = await ledger.sessions.list({ limit: 9 });
	expect(sessions.map(({ session, turns }) => [session, turns])).toEqual([
		["live", 0],
		["terminal:main:main", 1],
		["done", 1],
	]);
	expect(await ledger.inbox.list({ limit: 9 })).toHaveLength(6);
	expect((await ledger.inbox.byKey("done", "k1"))?.disposition).toEqual({ state: "started", runId: DONE });
	expect((await ledger.inbox.bySource("terminal", "main", "0"))?.origin?.sender).toBe("ann");
	expect((await ledger.inbox.queued()).map(({ eventId, text }) => [eventId, text])).toEqual([[QUEUED, "and then?"]]);
	expect((await ledger.inbox.orphaned()).map(({ eventId }) => eventId)).toEqual([QUEUED]);
	expect((await ledger.deliveries.list({ limit: 9 })).map(({ state }) => state)).toEqual([
		"active",
		...Array<string>(4).fill("complete"),
	]);
	expect(await ledger.deliveries.orphaned()).toMatchObject([
		{ id: OWED, runId: LIVE, messages: [{ state: "intended" }] },
	]);
	const pairings = await ledger.pairings.list();
	expect(Object.fromEntries(pairings.map(({ account, state }) => [account, state]))).toEqual({
		approved: "approved",
		pending: "pending",
	});
	expect(await bus.describe(DONE)).toMatchObject({ head: 51, sealedAt: expect.any(Number) as number });
	const verifier = createVerifier();
	const frames = (await recordsOf(bus, DONE)).map((record) => decodeFrame(record));
	expect(frames).toHaveLength(51);
	expect(frames.flatMap((frame) => verifier.push(frame) ?? [])).toEqual([]);
	const live = (await recordsOf(bus, LIVE)).map((record) => decodeFrame(record));
	expect(live.map(({ type }) => type)).toEqual(["stream.begin", ...Array<string>(12).fill("stream.chunk")]);
});

it("a store that was opened once is the same when it is opened again", async () => {
	const { db } = dataPaths(leftBehind());
	const contents = async () => {
		const { ledger, close } = await openStore(db, { durability: "process" }, silentLog);
		const { inbox, deliveries, turns } = ledger;
		const all = [await turns.list({ limit: 9 }), await inbox.list({ limit: 9 }), await deliveries.list({ limit: 9 })];
		await close();
		return all;
	};
	expect(await contents()).toEqual(await contents());
});

it("I3, I7, I10: the daemon ends the run that was cut, delivers what there is of it, and answers the queued message", async () => {
	const asked: string[] = [];
	const engine: Engine = {
		name: "echo",
		async *run({ messages }) {
			const text = messages.at(-1)?.text ?? "";
			asked.push(text);
			yield { type: "text", delta: `re ${text}` };
		},
	};
	const shown = join(freshFolder(), "terminal");
	const terminal = {
		command: ["python3", join(import.meta.dirname, "../../examples/adapter.py")],
		env: { NEXUS_TERMINAL_FILE: shown },
		accounts: { main: {} },
	};
	const retention = { ageDaysMax: 100_000 };
	const work = { engine, retention, channels: { terminal } };
	const daemon = await startDaemon({ ...work, data: leftBehind(), port: 0, token: TOKEN, logger: silentLog });
	onTestFinished(() => daemon.close());
	const get = async <T>(path: string): Promise<T> => {
		const response = await fetch(daemon.url + path, { headers: { authorization: `Bearer ${TOKEN}` } });
		return (await response.json()) as T;
	};
	type Run = { status: string; reason: string; messages: { text: string }[] };
	expect(await get<Run>(`/v1/runs/${LIVE}`)).toMatchObject({
		status: "failed",
		reason: "crashed",
		messages: [{}, { text: expect.stringMatching(LIVE_TEXT) as string }],
	});
	type Turns = { turns: Run[]; queued: unknown[] };
	await until(
		"the queued message is answered",
		async () => (await get<Turns>("/v1/sessions/live/turns")).turns.length === 2,
	);
	expect(asked).toEqual(["and then?"]);
	const { turns, queued } = await get<Turns>("/v1/sessions/live/turns");
	expect(turns[1]).toMatchObject({ status: "completed", messages: [{ text: "and then?" }, { text: "re and then?" }] });
	expect(queued).toEqual([]);
	type Deliveries = { deliveries: { delivery_id: string; state: string }[] };
	const { deliveries: owed } = await get<Deliveries>(`/v1/deliveries?run=${LIVE}`);
	expect(owed.map(({ delivery_id }) => delivery_id)).toEqual([OWED]);
	await until("the pending delivery is complete", async () => {
		const { deliveries } = await get<Deliveries>(`/v1/deliveries?run=${LIVE}`);
		return deliveries[0]?.state === "complete";
	});
	expect(readFileSync(shown, "utf8").match(/Demo engine: this text/g)).toHaveLength(1);
	expect(await get<Run>(`/v1/runs/${DONE}`)).toMatchObject({ messages: [{}, { text: DONE_TEXT }] });
});
