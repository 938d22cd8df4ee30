/** The daemon's part in what an account has to remember, without a process. */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createRecorder, openNotes } from "../../../packages/adapter/src/memory/notes.ts";
import { openState } from "../../../packages/adapter/src/memory/state.ts";
import type { KeepLine } from "../../../packages/adapter/src/port.ts";
import { checkLine, KEEP_SHAPES } from "../../../packages/adapter/src/shapes.ts";
import { createNoteKeeping } from "../../../packages/daemon/src/nex/accounts/kept-notes.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { manualClock } from "../../clock.ts";
import { freshFolder } from "../../runtime/folder.ts";
import { openStore, type TestStore } from "../../store.ts";
import { until } from "../../until.ts";

const owner = { channel: "telegram", account: "bot" };
let folder: string;
let store: TestStore;
beforeEach(() => {
	folder = freshFolder();
	store = openStore(join(folder, "nexus.db"));
});
afterEach(() => store.close());

/** One of several daemons, each with separate files. */
function daemon(name: string, write: TestStore["bus"]["write"] = store.bus.write.bind(store.bus)) {
	mkdirSync(join(folder, name));
	const files = { state: join(folder, name, "state.json"), notes: join(folder, name, "notes") };
	const noteStore = { notes: store.ledger.notes, write, log: silentLog };
	const keeping = createNoteKeeping(noteStore);
	const kept = keeping.of(owner, files);
	const answers: string[] = [];
	const process = { write: (line: object | string) => void answers.push((line as { id: string }).id) };
	const take = (...lines: KeepLine[]) => {
		for (const line of lines) kept.take(line, process);
	};
	return { store: noteStore, keeping, kept, files, answers, take, lines: () => openNotes(files.notes).all() };
}

const note = (id: string, text = `text of ${id}`): KeepLine => ({ type: "note", id, text });
const set = (id: string, key: string, value: string): KeepLine => ({ type: "state", id, key, value });
const isAnswered = ({ answers }: { answers: string[] }, count: number) =>
	until("the lines are answered", () => answers.length === count);

it("ST26: a line is answered once it is on record, in the order of the lines", async () => {
	const one = daemon("one");
	one.take(note("1"), set("2", "position", "7"), note("3"));
	expect(one.answers).toEqual([]);
	await isAnswered(one, 3);
	expect(one.answers).toEqual(["1", "2", "3"]);
	expect(store.stored.notes.list(owner)).toEqual(["text of 1", "text of 3"]);
	expect(store.stored.notes.state(owner)).toEqual([["position", "7"]]);
	// Its processes read it there, and it is there before the answer.
	expect(readFileSync(one.files.state, "utf8")).toBe('{"position":"7"}');
});

it("ST26, I7: what another daemon noted is in the files when its deliveries were taken over, each once", async () => {
	const one = daemon("one");
	const two = daemon("two");
	await two.kept.prepare();
	one.take(note("1"), set("2", "position", "7"));
	await isAnswered(one, 2);
	expect(two.lines()).toEqual([]);
	for (let times = 0; times < 2; times++) await two.keeping.catchUp(owner);
	expect(two.lines()).toEqual(["text of 1"]);
	expect(readFileSync(two.files.state, "utf8")).toBe('{"position":"7"}');
	// An account that this daemon does not run.
	await two.keeping.catchUp({ channel: "telegram", account: "other" });
});

it("ST26: what a process could only write into its file before the daemon was killed is put on record", async () => {
	const one = daemon("one");
	one.take(note("1"));
	await isAnswered(one, 1);
	openNotes(one.files.notes).add("text of 1");
	openNotes(one.files.notes).add("its end");
	for (let times = 0; times < 2; times++) await one.kept.prepare();
	expect(store.stored.notes.list(owner)).toEqual(["text of 1", "its end"]);
	expect(one.lines()).toEqual(["text of 1", "its end"]);
});

it("ST26: the store's state counts, not the one of an old file", async () => {
	const one = daemon("one");
	const two = daemon("two");
	one.take(set("1", "position", "7"));
	await isAnswered(one, 1);
	writeFileSync(two.files.state, '{"position":"3","more":"x"}');
	await two.kept.prepare();
	expect(readFileSync(two.files.state, "utf8")).toBe('{"position":"7"}');
	expect(store.stored.notes.state(owner)).toEqual([["position", "7"]]);
});

it("ST26: a state that a killed daemon did not answer is set by the next one, unless it was set since", async () => {
	const one = daemon("one");
	one.take(set("1", "revision", "a"), set("2", "position", "7"));
	await isAnswered(one, 2);
	const recorder = createRecorder(() => {}, manualClock(), 1000);
	const state = openState(one.files.state, recorder, silentLog);
	for (const [key, value] of [
		["revision", "b"],
		["revision", "c"],
		["new", "x"],
		["position", "8"],
	] as const)
		state.set(key, value);
	recorder.end();
	await expect(state.recorded?.()).rejects.toMatchObject({ fault: "unavailable" });
	one.take(set("3", "position", "9"));
	await isAnswered(one, 3);
	// Another daemon from the same folder; the second time there is nothing left.
	for (let times = 0; times < 2; times++) {
		const kept = createNoteKeeping(one.store).of(owner, one.files);
		await kept.prepare();
		const expected = { revision: "c", position: "9", new: "x" };
		expect(Object.fromEntries(store.stored.notes.state(owner))).toEqual(expected);
		expect(JSON.parse(readFileSync(one.files.state, "utf8"))).toEqual(expected);
		expect(existsSync(`${one.files.state}.left`)).toBe(false);
	}
});

it("ST26: what the store refuses is not answered", async () => {
	let asked = 0;
	const one = daemon("one", async () => {
		asked++;
		throw new Error("fenced");
	});
	one.take(note("1"), set("2", "position", "7"));
	await until("the store was asked", () => asked === 1);
	one.take(note("3"));
	await until("the store was asked again", () => asked === 2);
	expect(one.answers).toEqual([]);
	expect(existsSync(one.files.state)).toBe(false);
});

it("I11: an account's notes and keys have a limit, and so have the lines that wait", async () => {
	const one = daemon("one");
	let said = 0;
	for (let times = 0; times < 7; times++) {
		const lines = Array.from({ length: 1100 }, () => note(String(++said)));
		one.take(...lines);
		// Lines above the limit are never acknowledged.
		await isAnswered(one, (times + 1) * 1000);
	}
	const kept = store.stored.notes.list(owner);
	expect(kept).toHaveLength(5000);
	expect(kept.at(-1)).toBe("text of 7600");
	one.take(...Array.from({ length: 1000 }, (_, n) => set(`a${n}`, `a${n}`, "1")));
	await isAnswered(one, 8000);
	one.take(...Array.from({ length: 500 }, (_, n) => set(`b${n}`, `b${n}`, "1")));
	await isAnswered(one, 8500);
	const keys = store.stored.notes.state(owner).map(([key]) => key);
	expect(keys).toHaveLength(1000);
	expect(Object.keys(JSON.parse(readFileSync(one.files.state, "utf8")))).toEqual(keys);
});

it("I11: a line that is too long is garbage", () => {
	const isGarbage = (line: KeepLine) => "fault" in checkLine(line, KEEP_SHAPES);
	expect(isGarbage(note("1", "x".repeat(4096)))).toBe(false);
	expect(isGarbage(note("1", "x".repeat(4097)))).toBe(true);
	expect(isGarbage(note("1", "two\nlines"))).toBe(true);
	expect(isGarbage(set("1", "k".repeat(257), ""))).toBe(true);
	expect(isGarbage(set("1", "k", "x".repeat(65_536)))).toBe(false);
	expect(isGarbage(set("1", "k", "x".repeat(65_537)))).toBe(true);
});
