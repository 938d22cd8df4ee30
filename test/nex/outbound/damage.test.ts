/** A stored answer with a hole: what is whole of it goes out, and the delivery says that it is not all. */

import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { checksumOf, crc32, decodeFrame, encodeFrame, newRunId } from "../../../packages/protocol/src/protocol.ts";
import { createRig, type Flavour, finishedRun, type Rig, rigForTest, until } from "./rig.ts";

let rig: Rig;

/** The records of a run under another name, with one of them changed. */
async function damagedRecords(
	bus: Rig["bus"],
	change: (record: string, n: number) => string | undefined,
	messages = ["Hello there, how are you today?"],
): Promise<{ runId: string; kept: string[] }> {
	const whole = await finishedRun(bus, messages);
	const cursor = await bus.cursor({ log: whole }, 0);
	const runId = newRunId();
	const records: string[] = [];
	for (let batch = await cursor.next(); batch; batch = await cursor.next()) records.push(...batch.records);
	cursor.close();
	const changed = records.map((record, n) => change(record.replaceAll(whole, runId), n));
	return { runId, kept: changed.filter((record) => record !== undefined) };
}

async function damagedRun({ bus }: Rig, ...what: [(record: string, n: number) => string | undefined, string[]?]) {
	const { runId, kept } = await damagedRecords(bus, ...what);
	await (await bus.create({ log: runId, kind: "run", meta: { session: "main" } }, kept)).seal([]);
	return runId;
}

const CASES: [what: string, (record: string, n: number) => string | undefined, rule: RegExp][] = [
	["a lost record", (record, n) => (n === 2 ? undefined : record), /chunk 3 follows 1 \(P1\.7\)/],
	["a changed payload", (record, n) => (n === 2 ? record.replace("here", "HERE") : record), /checksum .*\(P1\.10\)/],
	["a record that is not a frame", (record, n) => (n === 2 ? record.slice(0, 40) : record), /record 3 is not a frame/],
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
	["nothing that can be read", (record, n) => (n === 0 ? record.slice(0, 40) : record), /record 1 is not a frame/],
];

describe.each(["full", "blocks", "mail", "drafts"] satisfies Flavour[])(
	"a damaged answer on a platform (%s)",
	(flavour) => {
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
	},
);

const EARLY = fileURLToPath(new URL("./adapters/early-platform.ts", import.meta.url));

/** A kit adapter that can edit and take away, 1,000 characters a message. */
const editing = (errorText: string) =>
	rigForTest((channel) => ({
		early: { ...channel("full", {}, { errorText }), command: [process.execPath, "--conditions=nexus-source", EARLY] },
	}));

const otherChecksum = (record: string) => {
	const frame = decodeFrame(record);
	const isLast = frame.type === "stream.end" && frame.final;
	return isLast ? encodeFrame({ ...frame, checksum: checksumOf(crc32("another text")) }) : record;
};
const changed = (word: string) => (record: string) => record.replace(word, word.toUpperCase());

describe("I2: text that fails its check at its end", () => {
	const deliverTo = async (channel: string, runId: string) => {
		const { id } = await rig.outbound.deliver({ runId, account: { channel, id: "main" }, target: { to: "42" } });
		return rig.outbound.settled(id);
	};
	const seen = () => {
		const shown = new Map<string, string>();
		for (const { op, id, text } of rig.calls()) {
			if (op === "remove") shown.delete(id!);
			else if (id !== undefined) shown.set(id, text!.trim());
		}
		return [...shown.values()];
	};

	it("is edited away where the platform can, and the error text stands in its place", async () => {
		rig = editing("Sorry.");
		const runId = await damagedRun(rig, changed("are"), ["This is true.", "How are you today?"]);
		expect(await deliverTo("early", runId)).toMatchObject({ state: "damaged" });
		expect(seen()).toEqual(["This is true.", "Sorry."]);
	});

	it.each([
		["Sorry.", ["This is true.", "Sorry."]],
		["", ["This is true."]],
	])("is taken away again from all messages that show it (error text %j)", async (errorText, left) => {
		rig = editing(errorText);
		const long = "A sentence of some length that is repeated. ".repeat(60);
		const records = await damagedRecords(rig.bus, otherChecksum, ["This is true.", long]);
		const writer = await rig.bus.create(
			{ log: records.runId, kind: "run", meta: { session: "main" } },
			records.kept.slice(0, -1),
		);
		const delivered = deliverTo("early", records.runId);
		await until(() => seen().join(" ").length > long.length, "all of it is shown");
		expect(seen().length).toBeGreaterThan(3);
		await writer.seal(records.kept.slice(-1));
		expect(await delivered).toMatchObject({ state: "damaged" });
		expect(seen()).toEqual(left);
	});

	it.each(["blocks", "mail"] as const)(
		"is not sent when it waits still, and the error text is (%s)",
		async (flavour) => {
			rig = createRig(flavour, {}, { errorText: "Sorry." });
			const runId = await damagedRun(rig, changed("you"), ["How are you?"]);
			expect(await deliverTo(flavour, runId)).toMatchObject({ state: "damaged" });
			expect(rig.visible("42")).toEqual(["Sorry."]);
		},
	);

	it("in blocks that are out, is followed by the error text", async () => {
		rig = createRig("blocks", {}, { errorText: "Sorry." });
		const long = "A sentence of some length that is repeated. ".repeat(6);
		const runId = await damagedRun(rig, changed("length"), [long]);
		expect(await deliverTo("blocks", runId)).toMatchObject({ state: "damaged" });
		expect(rig.visible("42").at(-1)).toBe("Sorry.");
	});
});
