import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openNotes } from "../../../src/adapter/kit/notes.ts";
import { PlatformError } from "../../../src/adapter/kit/platform.ts";
import { openSentLog } from "../../../src/adapter/kit/sent.ts";

let folder = "";
beforeEach(() => {
	folder = mkdtempSync(join(tmpdir(), "nexus-sent-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const file = () => join(folder, "sent");
/** As another process of the account would. */
const open = () => openSentLog({ notes: openNotes(file()) });
const under = new Promise<never>(() => {});

describe("I7: what a crash leaves in doubt", () => {
	test("a message that was never begun has certainly not left", () => {
		expect(open().mayHaveLeft("a")).toBe(false);
	});

	test("a call under way when the process dies may have left", () => {
		void open().create("a", () => under);
		expect(open().mayHaveLeft("a")).toBe(true);
		expect(open().of("a")).toBeUndefined();
	});

	test("a message whose answer came is known to every process", async () => {
		await open().create("a", async () => ({ messageId: "m1" }));
		expect(open().of("a")).toBe("m1");
		expect(open().has("m1")).toBe(true);
		expect(open().has("m2")).toBe(false);
	});

	test("a refused call has not left; one without an answer may have; a second try is as good as the first", async () => {
		const sent = open();
		const refused = () => Promise.reject(new PlatformError("rate_limited", "slow down"));
		await expect(sent.create("a", refused)).rejects.toThrow("slow down");
		expect(open().mayHaveLeft("a")).toBe(false);
		const broken = () => Promise.reject(new PlatformError("unknown_outcome", "reset"));
		await expect(sent.create("a", broken)).rejects.toThrow("reset");
		expect(open().mayHaveLeft("a")).toBe(true);
		// A refusal says nothing about the try before it.
		await expect(sent.create("a", refused)).rejects.toThrow("slow down");
		expect(open().mayHaveLeft("a")).toBe(true);
		const wrong = () => Promise.reject(new Error("a bug"));
		await expect(sent.create("b", wrong)).rejects.toThrow("a bug");
		expect(open().mayHaveLeft("b")).toBe(true);
	});

	test("a status that comes before the answer does not hide it, nor is it hidden", () => {
		void open().create("a", () => under);
		open().add("a", "m1");
		appendFileSync(file(), '\n{"nonce":"a","at":"refused"}');
		expect(open().of("a")).toBe("m1");
	});

	test("half a line costs that line only", () => {
		open().add("a", "m1");
		appendFileSync(file(), '\n{"nonce":"b","at":"se');
		open().add("c", "m3");
		expect([open().of("a"), open().of("b"), open().of("c")]).toEqual(["m1", undefined, "m3"]);
	});

	test("without a file nothing is certain", () => {
		expect(openSentLog({}).mayHaveLeft("a")).toBe(true);
	});
});

test("I11: the file does not grow beyond its limit, and only its owner reads it", () => {
	const notes = openNotes(file(), 1000);
	for (let n = 0; n < 500; n++) notes.add(`line ${n}`);
	expect(readdirSync(folder).toSorted()).toEqual(["sent", "sent.1"]);
	expect(statSync(file()).mode & 0o777).toBe(0o600);
	expect(readFileSync(file()).length + readFileSync(`${file()}.1`).length).toBeLessThan(2100);
	expect(notes.all().slice(-100)).toEqual(Array.from({ length: 100 }, (_, n) => `line ${400 + n}`));
});
