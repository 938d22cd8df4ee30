import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type MemoryItem, memoryWrites } from "../../packages/daemon/src/services/memory/rows.ts";
import { matchOf } from "../../packages/daemon/src/services/memory/search-sqlite.ts";
import type { SqliteFile } from "../../packages/daemon/src/std/sqlite/sqlite.ts";
import { character } from "../character.ts";
import { atEffort } from "../effort.ts";
import { stores } from "./rig.ts";

const { add, forget } = memoryWrites;
const LIMITS = { itemsMax: 100, itemsTotalMax: 1000 };

const itemOf = (n: number, text: string, fields: Partial<MemoryItem> = {}): MemoryItem => ({
	id: `mem_${String(n).padStart(4, "0")}`,
	bank: "agent:main",
	text,
	provenance: { at: n },
	...fields,
});

function expectNoTrace(file: SqliteFile, word: string): void {
	const tables = file.db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'memory%'").all();
	expect(tables.length).toBeGreaterThan(3);
	for (const { name } of tables) {
		const rows = file.db.prepare(`SELECT * FROM "${String(name)}"`).all();
		const bytes = rows.flatMap((row) =>
			Object.values(row).map((value) => Buffer.from(value instanceof Uint8Array ? value : String(value))),
		);
		expect(
			bytes.some((value) => value.includes(word)),
			String(name),
		).toBe(false);
	}
	file.db.exec("INSERT INTO memory_index (memory_index) VALUES ('integrity-check')");
}

describe.each(stores)("memory %s", (_name, open) => {
	test("an item comes back as it was saved, with where it came from", async () => {
		const { ledger, write } = await open();
		const full = itemOf(1, "likes tea", {
			bank: "person:telegram/bot/7/8",
			provenance: { at: 5, runId: "run_1", agent: "main", channel: "telegram", account: "bot", sender: "7/8" },
		});
		await write(add(full, LIMITS), add(itemOf(2, "plain"), LIMITS));
		expect(await ledger.memory.get(full.id)).toEqual(full);
		expect(await ledger.memory.same("agent:main", "plain")).toEqual(itemOf(2, "plain"));
		expect(await ledger.memory.same(full.bank, "plain")).toBeUndefined();
		expect(await ledger.memory.get("mem_none")).toBeUndefined();
	});

	test("a list is newest first, by bank and by page", async () => {
		const { ledger, write } = await open();
		for (const n of [1, 2, 3]) await write(add(itemOf(n, `text ${n}`), LIMITS));
		await write(add(itemOf(4, "other", { bank: "agent:other" }), LIMITS));
		const ids = async (query: object) => (await ledger.memory.list({ limit: 10, ...query })).map(({ text }) => text);
		expect(await ids({})).toEqual(["other", "text 3", "text 2", "text 1"]);
		expect(await ids({ banks: ["agent:main"], limit: 2 })).toEqual(["text 3", "text 2"]);
		expect(await ids({ banks: ["agent:main"], before: "mem_0002" })).toEqual(["text 1"]);
		expect(await ids({ banks: [] })).toEqual([]);
	});

	test("A17: a search finds words in the given banks only, best first", async () => {
		const { ledger, write } = await open();
		await write(
			add(itemOf(1, "the cat sleeps on the mat, and the dog on the other mat"), LIMITS),
			add(itemOf(2, "Dogs bark; a dog's dog"), LIMITS),
			add(itemOf(3, "dog", { bank: "person:telegram/bot/7" }), LIMITS),
			add(itemOf(4, "Grüße aus Köln"), LIMITS),
		);
		const found = async (words: string, banks = ["agent:main"]) =>
			(await ledger.memory.search(words, { banks, limit: 10 })).map(({ id }) => id);
		expect(await found("dog")).toEqual(["mem_0002", "mem_0001"]);
		expect(await found("DOG cat")).toContain("mem_0001");
		expect(await found("dog", ["person:telegram/bot/7"])).toEqual(["mem_0003"]);
		expect(await found("dog", ["person:telegram/bot/8"])).toEqual([]);
		expect(await found("grusse")).toEqual([]);
		expect(await found("koln")).toEqual(["mem_0004"]);
		expect(await found("unicorn")).toEqual([]);
		expect(await found("  ")).toEqual([]);
		expect((await ledger.memory.search("dog", { limit: 1 })).length).toBe(1);
	});

	test.each([
		'dog"',
		"dog OR",
		"NOT dog",
		"text:dog",
		"dog*",
		"(dog",
		"^dog",
		"NEAR(dog, 1)",
		"dog AND",
		"-dog",
		"{a}:dog",
	])("A17: %j is words, not a query", async (words) => {
		const { ledger, write } = await open();
		await write(add(itemOf(1, "a dog"), LIMITS), add(itemOf(2, "somebody else"), LIMITS));
		const found = await ledger.memory.search(words, { limit: 10 });
		expect(found.map(({ id }) => id)).toEqual(["mem_0001"]);
	});

	test("what is forgotten is in no table and in no index, and the log has no text", async () => {
		const { ledger, write, file } = await open();
		await write(add(itemOf(1, "xylophone secret"), LIMITS), add(itemOf(2, "kept"), LIMITS));
		await write(forget(itemOf(1, ""), { at: 9, runId: "run_2", agent: "main" }));
		expect(await ledger.memory.get("mem_0001")).toBeUndefined();
		expect(await ledger.memory.search("xylophone", { limit: 10 })).toEqual([]);
		if (file) expectNoTrace(file, "xylophone");
		expect(await ledger.memory.changes({ limit: 10 })).toEqual([
			{
				seq: 3,
				id: "mem_0001",
				bank: "agent:main",
				change: "forgotten",
				provenance: { at: 9, runId: "run_2", agent: "main" },
			},
			{ seq: 2, id: "mem_0002", bank: "agent:main", change: "added", provenance: { at: 2 } },
			{ seq: 1, id: "mem_0001", bank: "agent:main", change: "added", provenance: { at: 1 } },
		]);
		expect(await ledger.memory.changes({ limit: 10, before: 2 })).toHaveLength(1);
		await expect(write(forget(itemOf(1, ""), { at: 10 }))).rejects.toThrow(
			expect.objectContaining({ refusal: "conflict" }),
		);
	});

	test("I11: a bank, and all banks together, have room for so many", async () => {
		const { write } = await open();
		const limits = { itemsMax: 2, itemsTotalMax: 3 };
		await write(add(itemOf(1, "a"), limits), add(itemOf(2, "b"), limits));
		await expect(write(add(itemOf(3, "c"), limits))).rejects.toThrow(/bank is full \(2 items\)/);
		await write(add(itemOf(4, "d", { bank: "agent:b" }), limits));
		await expect(write(add(itemOf(5, "e", { bank: "agent:c" }), limits))).rejects.toThrow(/memory is full \(3 items\)/);
	});
});

test("A17: whatever is searched for, no sign has a meaning, and a text is found by itself", async () => {
	const { ledger, write } = await stores[0]![1]();
	const hostile = fc.constantFrom(
		'"',
		"'",
		"*",
		"(",
		")",
		":",
		"^",
		"-",
		"+",
		"{",
		"}",
		",",
		"\\",
		"\0",
		";",
		"\ud83d",
	);
	const word = fc.oneof(hostile, fc.constantFrom("OR", "AND", "NOT", "NEAR", "dog"), fc.string({ unit: character }));
	const typed = fc.array(word, { maxLength: 20 }).map((words) => words.join(" "));
	let n = 0;
	await fc.assert(
		fc.asyncProperty(typed, async (text) => {
			const item = itemOf(++n, text, { bank: `agent:${n}` });
			await write(add(item, { itemsMax: 1, itemsTotalMax: 1_000_000 }));
			const found = await ledger.memory.search(text, { banks: [item.bank], limit: 2 });
			const none = await ledger.memory.search(text, { banks: ["agent:none"], limit: 2 });
			expect(none).toEqual([]);
			if (matchOf(text) === undefined) expect(found).toEqual([]);
			else if (/[a-z0-9]/i.test(text)) expect(found.map(({ id }) => id)).toEqual([item.id]);
		}),
		{ numRuns: atEffort(3000) },
	);
});

test("I11: a search takes so many words of so many characters", async () => {
	const match = matchOf(Array.from({ length: 1000 }, (_, n) => `word${n}${"x".repeat(1000)}`).join(" "))!;
	expect(match.split(" OR ")).toHaveLength(32);
	expect(match.length).toBeLessThan(32 * 110);
});
