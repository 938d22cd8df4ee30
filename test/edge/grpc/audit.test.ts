/** RuntimeAuditService over gRPC: the list, and the export by close mode C. */

import { gunzipSync } from "node:zlib";
import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { AuditExportFormat, RuntimeAuditService } from "../../../packages/client/src/gen/nexus/runtime/v1/audit_pb.ts";
import { auditText } from "../../../packages/daemon/src/services/audit/record.ts";
import { noticeWrites } from "../../../packages/daemon/src/services/audit/rows.ts";
import { auditOptions } from "../audit-kit.ts";
import { errorOf, kitForTest, PROTOCOLS, readStream } from "./kit.ts";

async function started() {
	const kit = await kitForTest(auditOptions());
	const fill = (count: number, domain = "runs") =>
		kit.rig.bus.write(
			Array.from({ length: count }, (_, n) =>
				noticeWrites.post("audit", auditText({ domain, operation: "started", payload: { n } }, n), n),
			),
		);
	return { kit, fill, client: kit.client(RuntimeAuditService) };
}

const textOf = (chunks: readonly { chunk: Uint8Array }[]) => Buffer.concat(chunks.map(({ chunk }) => chunk)).toString();
const sequencesIn = (text: string) =>
	text
		.split("\n")
		.filter(Boolean)
		.map((line) => (JSON.parse(line) as { sequence: number }).sequence);

describe("ExportAuditEvents", () => {
	it.each(PROTOCOLS)("K-STREAM-009, Z23, R4-51: chunks, then an empty one with eof, then OK (%s)", async (protocol) => {
		const { kit, fill } = await started();
		await fill(3000);
		const { messages, error } = await readStream(kit.client(RuntimeAuditService, protocol).exportAuditEvents({}));
		expect(error).toBeUndefined();
		const last = messages.pop()!;
		expect(last).toMatchObject({ eof: true, lastAuditSequence: 3000n, mimeType: "application/x-ndjson" });
		expect(last.chunk).toHaveLength(0);
		expect(messages.length).toBeGreaterThan(1);
		expect(messages.every(({ eof }) => !eof)).toBe(true);
		expect([...messages, last].map(({ sequence }) => sequence)).toEqual(
			[...messages, last].map((_, n) => BigInt(n + 1)),
		);
		expect(sequencesIn(textOf(messages))).toEqual(Array.from({ length: 3000 }, (_, n) => n + 1));
		for (const { chunk, lastAuditSequence } of messages)
			expect(sequencesIn(Buffer.from(chunk).toString()).at(-1)).toBe(Number(lastAuditSequence));
	});

	it("R4-53: an empty export has its eof chunk, too; CSV has its header", async () => {
		const { client } = await started();
		const empty = await readStream(client.exportAuditEvents({ filter: { domain: "nothing" } }));
		expect(empty).toMatchObject({ messages: [{ eof: true }] });
		expect(empty.messages).toHaveLength(1);
		const csv = await readStream(
			client.exportAuditEvents({ filter: { domain: "nothing" }, format: AuditExportFormat.CSV }),
		);
		expect(csv.messages.map(({ eof }) => eof)).toEqual([false, true]);
		expect(textOf(csv.messages)).toMatch(/^sequence,timestamp,.*payload\n$/);
		expect(csv.messages[0]!.mimeType).toContain("text/csv");
	});

	it("Y9: ends at what was on record at the call; that it was exported is on record after it", async () => {
		const { client, fill } = await started();
		await fill(5);
		let grown = false;
		const { messages } = await readStream(client.exportAuditEvents({}), () => {
			if (!grown) void fill(5);
			grown = true;
		});
		expect(sequencesIn(textOf(messages))).toEqual([1, 2, 3, 4, 5]);
		const { events } = await client.listAuditEvents({ filter: { domain: "audit" } });
		expect(events).toMatchObject([{ sequence: 6n, operation: "exported", payload: { head: 5 } }]);
	});

	it("Z23: each gzip chunk is a separate member, and an export that was cut resumes after the last whole one", async () => {
		const { client, fill } = await started();
		await fill(3000);
		const { messages } = await readStream(client.exportAuditEvents({ gzip: true }));
		const [first, ...rest] = messages.slice(0, -1);
		expect(first!.mimeType).toBe("application/gzip");
		const head = sequencesIn(gunzipSync(first!.chunk).toString());
		expect(head.at(-1)).toBe(Number(first!.lastAuditSequence));
		expect(sequencesIn(gunzipSync(Buffer.concat([first!, ...rest].map(({ chunk }) => chunk))).toString())).toHaveLength(
			3000,
		);
		const resumed = await readStream(client.exportAuditEvents({ after: first!.lastAuditSequence }));
		const [begin] = sequencesIn(textOf(resumed.messages));
		expect(begin).toBe(Number(first!.lastAuditSequence) + 1);
	});

	it("Z3: what was removed is OUT_OF_RANGE, what is not there yet INVALID_ARGUMENT; both before the stream", async () => {
		const { kit, client, fill } = await started();
		await fill(10);
		await kit.rig.bus.write([noticeWrites.forget("audit", 5, 100)]);
		expect((await readStream(client.exportAuditEvents({ after: 2n }))).error?.code).toBe(Code.OutOfRange);
		expect((await readStream(client.exportAuditEvents({ after: 99n }))).error?.code).toBe(Code.InvalidArgument);
		expect((await readStream(client.exportAuditEvents({ format: 9 as never }))).error?.code).toBe(Code.InvalidArgument);
		const kept = await readStream(client.exportAuditEvents({}));
		expect(sequencesIn(textOf(kept.messages))[0]).toBe(6);
	});

	it("Z7: a caller that goes away sees no clean end", async () => {
		const { client, fill } = await started();
		for (let n = 0; n < 10; n++) await fill(1000);
		const abort = new AbortController();
		const { error } = await readStream(client.exportAuditEvents({}, { signal: abort.signal }), () => abort.abort());
		expect(error?.code).toBe(Code.Canceled);
	});
});

describe("ListAuditEvents", () => {
	it("newest first, in pages, with a filter", async () => {
		const { client, fill } = await started();
		await fill(5);
		await fill(2, "tools");
		const { events, nextBefore } = await client.listAuditEvents({ filter: { domain: "runs" }, pageSize: 2 });
		expect(events).toMatchObject([
			{ sequence: 5n, auditId: "aud_5", domain: "runs", operation: "started", payload: { n: 4 } },
			{ sequence: 4n },
		]);
		const older = await client.listAuditEvents({ filter: { domain: "runs" }, before: nextBefore! });
		expect(older.events.map(({ sequence }) => sequence)).toEqual([3n, 2n, 1n]);
		expect(older.nextBefore).toBeUndefined();
		expect((await errorOf(client.listAuditEvents({ pageSize: -1 }))).code).toBe(Code.InvalidArgument);
	});
});
