/** A stored answer with a hole: what is whole of it goes out, and the delivery says that it is not all. */

import { afterEach, describe, expect, it } from "vitest";
import { decodeFrame, encodeFrame, newRunId } from "../../../src/protocol/protocol.ts";
import { createRig, type Flavour, finishedRun, type Rig } from "./rig.ts";

let rig: Rig | undefined;
afterEach(() => rig?.close());

/** The records of a run under another name, with one of them changed. */
async function damagedRun({ bus }: Rig, change: (record: string, n: number) => string | undefined): Promise<string> {
	const whole = await finishedRun(bus, ["Hello there, how are you today?"]);
	const cursor = await bus.cursor({ log: whole }, 0);
	const runId = newRunId();
	const records: string[] = [];
	for (let batch = await cursor.next(); batch; batch = await cursor.next()) records.push(...batch.records);
	cursor.close();
	const changed = records.map((record, n) => change(record.replaceAll(whole, runId), n));
	const kept = changed.filter((record) => record !== undefined);
	await (await bus.create({ log: runId, kind: "run", meta: { session: "main" } }, kept)).seal([]);
	return runId;
}

const CASES: [what: string, (record: string, n: number) => string | undefined, rule: RegExp][] = [
	["a lost record", (record, n) => (n === 2 ? undefined : record), /chunk 3 follows 1 \(P1\.7\)/],
	["a changed payload", (record, n) => (n === 2 ? record.replace("here", "HERE") : record), /checksum .*\(P1\.10\)/],
	["a record that is no frame", (record, n) => (n === 2 ? record.slice(0, 40) : record), /record 3 is no frame/],
	[
		"a wrong count",
		(record) => {
			const frame = decodeFrame(record);
			return frame.type === "stream.end" ? encodeFrame({ ...frame, total_chunks: 9 }) : record;
		},
		/total_chunks is 9/,
	],
	[
		"an end of recovery, which could not read all of it",
		(record) => {
			const frame = decodeFrame(record);
			const error = { code: "data_loss", message: "its newest records are damaged on disk" } as const;
			return frame.type === "stream.end" ? encodeFrame({ ...frame, reason: "crashed", error }) : record;
		},
		/its newest records are damaged on disk/,
	],
];

describe.each(["full", "blocks"] satisfies Flavour[])("a damaged answer on a platform (%s)", (flavour) => {
	it.each(CASES)("I2 I7: with %s the delivery ends as damaged, not as complete", async (_, change, rule) => {
		rig = createRig(flavour);
		await rig.outbound.start();
		const runId = await damagedRun(rig, change);
		const account = { channel: flavour, id: "main" };
		const { id } = await rig.outbound.deliver({ runId, account, target: { to: "42" } });
		const { state, error } = await rig.outbound.settled(id);
		expect({ state, error }).toEqual({ state: "damaged", error: expect.stringMatching(rule) });
		expect(rig.deliveries.counts(flavour, "main")).toMatchObject({ damaged: 1, complete: 0 });
	});
});
