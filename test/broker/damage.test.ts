/** Recovery of a run whose stored log has holes: the end tells of it, and no checksum is made to fit. */

import { crc32 } from "node:zlib";
import { expect, test } from "vitest";
import { encodeFrame } from "../../packages/protocol/src/protocol.ts";
import { ask, finalEnd, framesOf, never, rig, tempFile, text, until, verified, yields } from "./rig.ts";

/** A run that a process left, as it was stored. */
async function left(pieces: number) {
	const path = tempFile();
	const dead = rig(
		async function* () {
			for (let n = 1; n <= pieces; n++) yield text(`piece ${n} `);
			await never;
		},
		{ path, dies: true },
	);
	const { runId } = await ask(dead.broker, "main", "question");
	await until(async () => (await dead.bus.describe(runId))!.head === pieces + 1);
	const records = (await framesOf(dead.bus, runId)).map(encodeFrame);
	return { path, dead, runId, records };
}

test("I2 I3: a gap in a text is not summed up as if nothing were missing", async () => {
	const { path, dead, runId, records } = await left(4);
	const journal = records.toSpliced(2, 1).map((record, n) => `1 ${n + 1} 1\n${record}\n`);
	dead.file.db.exec("DELETE FROM journal");
	const entries = journal.join("");
	dead.file.db.prepare("INSERT INTO journal (id, entries, crc) VALUES (1, ?, ?)").run(entries, crc32(entries));
	const { broker, look, frames } = rig(() => never as never, { path });
	expect(await broker.recover()).toMatchObject({ recovered: 1 });
	const all = await frames(runId);
	const error = { code: "data_loss", message: expect.stringMatching(/damaged: .*chunk 3 follows 1 \(P1\.7\)/) };
	expect(finalEnd(all)).toMatchObject({ reason: "crashed", synthetic: true, error, total_chunks: 1 });
	expect(verified(all.filter((frame) => frame.type !== "stream.chunk" || frame.seq_no === 1))).toBeUndefined();
	expect(verified(all)).toMatchObject({ kind: "gap" });
	expect(look.turn(runId)).toMatchObject({ status: "failed", error });
	expect(look.turn(runId)!.messages.at(-1)!.text).toBe("piece 1 ");
});

test("I3: damaged newest records are reported, though the rest looks whole", async () => {
	const { path, dead, runId } = await left(3);
	dead.file.db.exec("UPDATE journal SET entries = replace(entries, 'piece 2', 'piece X')");
	const { broker, frames } = rig(() => never as never, { path });
	await broker.recover();
	const all = await frames(runId);
	expect(finalEnd(all).error).toMatchObject({ code: "data_loss" });
	expect(JSON.stringify(all)).not.toContain("piece X");
});

test("I3: a damaged segment does not keep a run from ending, or its session from going on", async () => {
	const { path, dead, runId } = await left(1200);
	dead.file.db.exec("UPDATE segment SET records = replace(records, 'piece 9 ', 'piece 8 ')");
	const { broker, look } = rig(yields(text("again")), { path });
	expect(await broker.recover()).toMatchObject({ recovered: 1 });
	expect(look.turn(runId)).toMatchObject({ status: "failed", error: { code: "data_loss" } });
	const { result } = await ask(broker, "main", "more");
	expect(await result).toMatchObject({ status: "completed" });
});
