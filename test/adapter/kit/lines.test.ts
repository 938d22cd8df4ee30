/** JSON lines: whole characters and whole lines out of any chunks, and nothing that grows. */

import { PassThrough, Writable } from "node:stream";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createLineReader, createLineWriter, type LineFault } from "../../../packages/adapter/src/serve/lines.ts";

function read(bytes: Buffer, cuts: readonly number[], lineBytesMax?: number) {
	const faults: LineFault[] = [];
	const reader = createLineReader({ onFault: (fault) => faults.push(fault), lineBytesMax });
	const values: object[] = [];
	let start = 0;
	for (const cut of [...cuts].map((each) => each % (bytes.length + 1)).sort((a, b) => a - b)) {
		values.push(...reader.push(bytes.subarray(start, cut)));
		start = cut;
	}
	values.push(...reader.push(bytes.subarray(start)), ...reader.end());
	return { values, faults };
}

describe("lines, reading", () => {
	it("gives back what was written, however the bytes are cut", () => {
		const value = fc.record({ type: fc.string(), text: fc.string({ unit: "grapheme" }) });
		fc.assert(
			fc.property(fc.array(value), fc.array(fc.nat()), (sent, cuts) => {
				const bytes = Buffer.from(sent.map((each) => `${JSON.stringify(each)}\n`).join(""));
				const { values, faults } = read(bytes, cuts);
				expect(values).toEqual(sent);
				expect(faults).toEqual([]);
			}),
		);
	});

	it("splits on LF only: U+2028, U+2029, CR and NEL are text", () => {
		const text = "a\u2028b\u2029c\u0085d\re";
		expect(read(Buffer.from(`{"text":"a\u2028b\u2029c\u0085d\\re"}\r\n`), []).values).toEqual([{ text }]);
	});

	it("reports garbage and continues after it", () => {
		const bytes = Buffer.from('{"a":1}\nnot json\n[1]\n7\n\n  \n{"b":2}');
		const { values, faults } = read(bytes, [3, 9, 14]);
		expect(values).toEqual([{ a: 1 }, { b: 2 }]);
		expect(faults.map(({ excerpt }) => excerpt)).toEqual(["not json", "[1]", "7"]);
	});

	it("skips a line that is too long, in one chunk or in many, and names the limit", () => {
		const long = `{"x":"${"y".repeat(500)}"}`;
		const bytes = Buffer.from(`{"a":1}\n${long}\n{"b":2}\n`);
		for (const cuts of [[], [10], [20, 40, 60, 80, 100, 300], [509, 510, 511, 515, 516]]) {
			const { values, faults } = read(bytes, cuts, 100);
			expect(values).toEqual([{ a: 1 }, { b: 2 }]);
			expect(faults).toHaveLength(1);
			expect(faults[0]?.reason).toContain("100 bytes");
		}
		expect(read(Buffer.from(long), [], 100).faults).toHaveLength(1);
	});
});

describe("lines, writing", () => {
	it("writes the lines of one tick at once and in order", async () => {
		const output = new PassThrough();
		const chunks: string[] = [];
		output.on("data", (chunk: Buffer) => chunks.push(chunk.toString()));
		const writer = createLineWriter(output, () => {});
		writer.write({ a: 1 });
		writer.write({ b: "\n" });
		await writer.flushed();
		expect(chunks).toEqual(['{"a":1}\n{"b":"\\n"}\n']);
	});

	it("says when the reader is behind, and when it has caught up", async () => {
		const held: (() => void)[] = [];
		const output = new Writable({ write: (_chunk, _encoding, done) => void held.push(done) });
		const writer = createLineWriter(output, () => {});
		writer.write({ text: "a piece that is under way" });
		await Promise.resolve();
		expect(writer.full).toBe(false);
		writer.write({ text: "x".repeat(128 * 1024) });
		await Promise.resolve();
		expect(writer.full).toBe(true);
		let drained = false;
		const waiting = writer.drained().then(() => {
			drained = true;
		});
		await new Promise((resolve) => setImmediate(resolve));
		expect(drained).toBe(false);
		held.shift()?.();
		await new Promise((resolve) => setImmediate(resolve));
		expect(drained).toBe(false);
		held.shift()?.();
		await waiting;
		expect(writer.full).toBe(false);
	});

	it("reports a broken pipe once, and then waits for no reader", async () => {
		const broken: string[] = [];
		const output = new Writable({ write: (_chunk, _encoding, done) => done(new Error("EPIPE")) });
		const writer = createLineWriter(output, (cause) => broken.push(cause.message));
		writer.write({ a: 1 });
		await new Promise((resolve) => setImmediate(resolve));
		writer.write({ b: 2 });
		await writer.drained();
		await writer.flushed();
		expect(broken).toEqual(["EPIPE"]);
	});
});

describe("a line that may have reached the other side", () => {
	/** A pipe that takes one piece at a time: `next` makes room for the next one. */
	function pipe() {
		const taken: string[] = [];
		let done: ((error?: Error) => void) | undefined;
		const output = new Writable({
			decodeStrings: false,
			write(chunk: string, _encoding, callback) {
				taken.push(chunk);
				done = callback;
			},
		});
		return { output, taken, next: (error?: Error) => done?.(error) };
	}
	const settled = () => new Promise((resolve) => setImmediate(resolve));

	it("is reported when it is handed over, not while it waits behind a full pipe", async () => {
		const { output, next, taken } = pipe();
		const writer = createLineWriter(output, () => {});
		const begun: string[] = [];
		writer.write({ n: 1 }, () => begun.push("one"));
		await settled();
		writer.write({ n: 2 }, () => begun.push("two"));
		await settled();
		expect(begun).toEqual(["one"]);
		expect(taken).toHaveLength(1);
		next();
		await settled();
		expect(begun).toEqual(["one", "two"]);
		expect(taken).toHaveLength(2);
	});

	it("is never reported when the pipe broke before its turn", async () => {
		const { output, next } = pipe();
		const writer = createLineWriter(output, () => {});
		const begun: string[] = [];
		writer.write({ n: 1 });
		await settled();
		writer.write({ n: 2 }, () => begun.push("two"));
		await settled();
		next(new Error("EPIPE"));
		await settled();
		writer.write({ n: 3 }, () => begun.push("three"));
		await settled();
		expect(begun).toEqual([]);
	});
});
