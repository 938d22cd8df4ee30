/** The audit log as a file. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Batch } from "../../../packages/daemon/src/bus/bus.ts";
import { auditHeader, auditSpelling, csvCell } from "../../../packages/daemon/src/services/audit/export.ts";
import { auditText, createAudit } from "../../../packages/daemon/src/services/audit/record.ts";
import { character } from "../../character.ts";
import { manualClock } from "../../clock.ts";
import { atEffort } from "../../effort.ts";
import { rejectsWith } from "../parts.ts";
import { toldStore } from "./rig.ts";

const entry = (n: number) => ({ domain: n % 2 ? "runs" : "tools", operation: "started", payload: { n } });
const lines = (count: number) => Array.from({ length: count }, (_, n) => auditText(entry(n), n * 1000));

describe("an export", () => {
	it("NDJSON: each line is an event with its sequence, filtered or not", () => {
		const batch = Batch.of(5, lines(3));
		const all = auditSpelling("ndjson", {})(batch);
		expect(
			all
				.trimEnd()
				.split("\n")
				.map((line) => JSON.parse(line) as object),
		).toMatchObject([
			{ sequence: 5, timestamp: "1970-01-01T00:00:00.000Z", domain: "tools", payload: { n: 0 } },
			{ sequence: 6, domain: "runs" },
			{ sequence: 7, domain: "tools" },
		]);
		const some = auditSpelling("ndjson", { domain: "runs" })(batch);
		expect(some).toBe(`${all.split("\n")[1]}\n`);
		expect(auditSpelling("ndjson", { from: 1000, to: 2000 })(batch)).toBe(some);
		expect(auditSpelling("ndjson", { appId: "other" })(batch)).toBe("");
	});

	it("CSV: a header once, a line for each event, and no cell that a spreadsheet takes for a formula", () => {
		const text = auditText(
			{ domain: "apps", operation: "=cmd", appId: "@app", caller: '+1,"x"', payload: { a: "-1" } },
			0,
		);
		expect(auditHeader("csv", undefined)).toBe(
			"sequence,timestamp,domain,operation,app_id,subject_user_id,reason_code,trace_id,caller,payload\n",
		);
		expect(auditHeader("csv", 3)).toBe("");
		expect(auditHeader("ndjson", undefined)).toBe("");
		expect(auditSpelling("csv", {})(Batch.of(1, [text]))).toBe(
			`1,1970-01-01T00:00:00.000Z,apps,'=cmd,'@app,,,,"'+1,""x""","{""a"":""-1""}"\n`,
		);
	});

	it("Z28: whatever is in a cell, it begins no formula and comes back whole", () => {
		fc.assert(
			fc.property(fc.string({ unit: character, maxLength: 30 }), (text) => {
				const cell = csvCell(text);
				const read = cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell;
				expect(/^[=+\-@\t\r]/.test(read)).toBe(false);
				expect(read === text || read === `'${text}`).toBe(true);
				if (!cell.startsWith('"')) expect(/[",\r\n]/.test(cell)).toBe(false);
			}),
			{ numRuns: atEffort(300) },
		);
	});
});

describe("a list", () => {
	it("is newest first, page by page, with a filter that passes over the rest", async () => {
		const clock = manualClock(0);
		const { bus, auditLog } = toldStore({ clock });
		const audit = createAudit(clock);
		for (let n = 0; n < 10; n++) await bus.write([audit(entry(n))]);
		const first = await auditLog.list({ filter: { domain: "runs" }, limit: 3 });
		expect(first.records.map(({ sequence }) => sequence)).toEqual([10, 8, 6]);
		const second = await auditLog.list({ filter: { domain: "runs" }, limit: 3, before: first.nextBefore! });
		expect(second).toMatchObject({ records: [{ sequence: 4 }, { sequence: 2 }] });
		expect(second.nextBefore).toBeUndefined();
		await rejectsWith(auditLog.list({ filter: { from: 2, to: 1 }, limit: 1 }), "invalid");
	});
});
