import { describe, expect, test } from "vitest";
import { noteWrites } from "../../packages/daemon/src/ledger/notes/port.ts";
import { stores } from "./rig.ts";

const { add, set, trim } = noteWrites;
const bot = { channel: "telegram", account: "bot" };
const other = { channel: "telegram", account: "other" };

describe.each(stores)("ST26: notes %s", (_name, open) => {
	test("an account's notes come back in order, each once", async () => {
		const { ledger, write } = await open();
		await write(add(bot, ["b", "a"]), add(other, ["a"]));
		await write(add(bot, ["a", "c"]));
		expect(await ledger.notes.list(bot)).toEqual(["b", "a", "c"]);
		expect(await ledger.notes.list(other)).toEqual(["a"]);
		expect(await ledger.notes.list({ channel: "discord", account: "bot" })).toEqual([]);
	});

	test("a key has the value that was set last; other keys stay", async () => {
		const { ledger, write } = await open();
		await write(
			set(bot, [
				["x", "1"],
				["y", "1"],
			]),
			set(other, [["x", "other"]]),
		);
		await write(
			set(bot, [
				["x", "2"],
				["__proto__", "3"],
			]),
		);
		expect(await ledger.notes.state(bot)).toEqual([
			["y", "1"],
			["x", "2"],
			["__proto__", "3"],
		]);
		expect(await ledger.notes.state(other)).toEqual([["x", "other"]]);
	});

	test("I11: only the newest notes and the keys set last are kept, of the account that is trimmed", async () => {
		const { ledger, write } = await open();
		await write(add(bot, ["a", "b", "c"]), add(other, ["a", "b", "c"]));
		await write(
			set(bot, [
				["x", "1"],
				["y", "1"],
			]),
			set(bot, [["x", "2"]]),
			trim(bot, 2, 1),
		);
		expect(await ledger.notes.list(bot)).toEqual(["b", "c"]);
		expect(await ledger.notes.state(bot)).toEqual([["x", "2"]]);
		expect(await ledger.notes.list(other)).toEqual(["a", "b", "c"]);
		await write(trim(other, 3, 1));
		expect(await ledger.notes.list(other)).toEqual(["a", "b", "c"]);
	});
});
